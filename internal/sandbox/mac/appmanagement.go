package mac

import (
	"path"
	"strings"
	"syscall"
)

// Since macOS 13 an app that was launched is protected from all others, root included, unless remote users have full
// disk access (App Management). What it covers of a bundle in /usr/local differs in what is told.
const protectSwitch = "app-management"

// appSwitches are the doubts about this protection.
func appSwitches() []Switch {
	return []Switch{{protectSwitch, "what macOS forbids of an app's bundle that was launched, over SSH: nothing, to remove it, or to move it as well",
		[]string{"off", "removal", "all"}}}
}

// launchedRecord are the bundles that were launched, by inode.
var launchedRecord = inFirmware("launched")

// launched notes the bundle of a program that is executed.
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

// protectedApp refuses to remove, or to move, what belongs to a bundle that was launched.
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

// forgetApp forgets a bundle that goes: the disk gives its inode's number to another folder, which APFS never does.
func (v *visit) forgetApp(n node) error {
	known := map[string]bool{}
	if err := v.recall(launchedRecord, &known); err != nil || !known[inodeOf(n)] {
		return err
	}
	delete(known, inodeOf(n))
	return v.keep(launchedRecord, known)
}
