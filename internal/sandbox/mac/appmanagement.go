package mac

import (
	"path"
	"strings"
	"syscall"
)

// Since macOS 13 an app that was launched is protected from all others, root included, unless remote
// users have full disk access (App Management). Reports differ on what this covers of a bundle in
// /usr/local.
const protectSwitch = "app-management"

// appSwitches are the uncertain behaviours of this protection.
func appSwitches() []Switch {
	return []Switch{{protectSwitch, "what macOS forbids over SSH for the bundle of a launched app: nothing, its removal, or moving it too",
		[]string{"off", "removal", "all"}}}
}

// launchedRecord are the launched bundles, by inode.
var launchedRecord = inFirmware("launched")

// launched records the bundle of a program that is executed.
func (v *visit) launched(name string) error {
	bundle, _, inside := strings.Cut(name, ".app/Contents/MacOS/")
	if !inside || v.switched(protectSwitch) == "off" {
		return nil
	}
	n, err := v.find(v.session.users()[0], "/", bundle+".app", true)
	if err != nil {
		return err
	}
	known := map[string]bool{}
	if err := v.recall(launchedRecord, &known); err != nil || known[inodeOf(n)] {
		return err
	}
	known[inodeOf(n)] = true
	return v.keep(launchedRecord, known)
}

// protectedApp refuses to remove or move files of a launched bundle.
func (v *visit) protectedApp(n node, moves bool) error {
	how := v.switched(protectSwitch)
	if how == "off" && !moves && strings.HasSuffix(n.path, ".app") {
		return v.forgetApp(n)
	}
	if how == "off" || moves && how == "removal" {
		return nil
	}
	known := map[string]bool{}
	if err := v.recall(launchedRecord, &known); err != nil || len(known) == 0 {
		return err
	}
	for at := n.path; at != "/" && at != "."; at = path.Dir(at) {
		one, err := v.at(at)
		if err != nil {
			return err
		}
		if one.exists() && known[inodeOf(one)] {
			return syscall.EPERM
		}
	}
	return nil
}

// forgetApp forgets a removed bundle: the disk reuses its inode number, which APFS never does.
func (v *visit) forgetApp(n node) error {
	known := map[string]bool{}
	if err := v.recall(launchedRecord, &known); err != nil || !known[inodeOf(n)] {
		return err
	}
	delete(known, inodeOf(n))
	return v.keep(launchedRecord, known)
}
