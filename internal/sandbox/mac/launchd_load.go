package mac

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
)

// domain is where a job is loaded.
type domain struct {
	kind string // system, user or gui
	uid  int
}

func (d domain) String() string {
	if d.kind == "system" {
		return d.kind
	}
	return d.kind + "/" + strconv.Itoa(d.uid)
}

// words returns launchctl's name of a domain in a sentence.
func (d domain) words() string {
	if d.kind == "system" {
		return d.kind
	}
	return fmt.Sprintf("user %s: %d", d.kind, d.uid)
}

// writable reports whether a user may load and unload there.
func (d domain) writable(who user) bool {
	return who.uid == 0 || d.kind != "system" && who.uid == d.uid
}

// splitTarget reads a domain target, or a service target if a label follows.
func splitTarget(target string) (d domain, label string, ok bool) {
	kind, rest, _ := strings.Cut(target, "/")
	switch kind {
	case "system":
		return domain{kind: kind}, rest, true
	case "user", "gui":
		number, label, _ := strings.Cut(rest, "/")
		uid, err := strconv.ParseUint(number, 10, 32)
		return domain{kind, int(uid)}, label, err == nil
	}
	return domain{}, "", false
}

// inSession reports whether a domain exists: that of a GUI session only while the user is logged in
// there, the background one from the first login of any kind on.
func (v *visit) inSession(d domain) (bool, error) {
	switch d.kind {
	case "system":
		return true, nil
	case "gui":
		at, err := v.console()
		who, known := v.session.user(at.User)
		return err == nil && known && who.uid == d.uid, err
	}
	return d.uid == 0 || d.uid == loginUID, nil
}

// load loads a job from its property list; an error is a launchCode.
func (v *visit) load(m *manager, now time.Time, d domain, name string) (*job, error) {
	root := v.session.users()[0]
	if label, ok := stockPath(name); ok && d.kind == "system" {
		return nil, m.reload(label)
	}
	about, n, err := v.describeFile(root, name)
	if err != nil {
		return nil, launchCode(5)
	}
	if !trusted(n, d) {
		return nil, launchCode(v.codeSwitched(ownerSwitch))
	}
	if !about.fits(d.kind) {
		return nil, launchCode(134)
	}
	if off, err := v.disabled(d, about); err != nil {
		return nil, err
	} else if off {
		return nil, launchCode(v.codeSwitched(disabledSwitch))
	}
	j := &job{Domain: d.String(), Path: name, About: about}
	if present, ok := m.Jobs[j.target()]; ok && present.leaving() {
		return nil, launchCode(v.codeSwitched(drainCodeSwitch))
	} else if ok || isStock(about.Label) && d.kind == "system" {
		return nil, launchCode(5)
	}
	if m.Jobs == nil {
		m.Jobs = map[string]*job{}
	}
	allowed, err := v.register(about.Label)
	if err != nil {
		return nil, err
	}
	j.Off = d.kind == "system" && !allowed
	j.Pin = v.pinOf(j)
	m.Jobs[j.target()] = j
	j.plan(true, now)
	return j, nil
}

func (v *visit) describeFile(as user, name string) (description, node, error) {
	n, err := v.find(as, "/", name, true)
	if err != nil {
		return description{}, n, err
	}
	data, err := v.read(&proc{session: v.session, user: as, dir: "/"}, name)
	if err != nil {
		return description{}, n, err
	}
	about, err := describe(data)
	return about, n, err
}

// trusted reports whether launchd accepts a file: only root, or the session's own user, may have been
// able to write it.
func trusted(n node, d domain) bool {
	own := n.owner.UID == 0 || d.kind != "system" && n.owner.UID == d.uid
	return own && n.owner.Mode&0o022 == 0
}

// unload boots a job out. It returns before the process has ended, and the label is free only then.
func (v *visit) unload(m *manager, now time.Time, d domain, label string) error {
	if isStock(label) && d.kind == "system" {
		if slices.Contains(m.Unloaded, label) {
			return launchCode(3)
		}
		m.Unloaded = append(m.Unloaded, label)
		return nil
	}
	j, ok := m.Jobs[d.String()+"/"+label]
	switch {
	case !ok:
		return launchCode(3)
	case j.leaving():
		return launchCode(36)
	case j.PID == 0:
		delete(m.Jobs, j.target())
		return nil
	}
	if err := v.endsWith(j); err != nil {
		return err
	}
	drain := v.timeSwitched(drainTimeSwitch)
	if drain != manualExitTimeout { // otherwise launchd waits as its manual says
		drain = min(drain, j.About.ExitWithin)
	}
	m.cutOff(j)
	j.Due, j.Gone = time.Time{}, now.Add(drain)
	if code := v.codeSwitched(bootoutSwitch); code != 0 {
		return launchCode(code)
	}
	return nil
}

// kick starts a job now, regardless of the throttle.
func (v *visit) kick(m *manager, now time.Time, d domain, label string, kill bool) error {
	if d.kind == "system" && m.runsStock(label) {
		if code := v.codeSwitched(protectedSwitch); kill && code != 0 {
			return launchCode(code)
		}
		if label == pfLabel {
			return v.loadAtBoot() // its only task
		}
		return nil
	}
	j, ok := m.Jobs[d.String()+"/"+label]
	switch {
	case !ok:
		return launchCode(113)
	case j.leaving():
		return launchCode(37)
	case j.PID != 0 && (!kill || v.switched(kickSwitch) == "keeps"):
		return nil
	}
	if err := v.endsWith(j); err != nil {
		return err
	}
	m.cutOff(j)
	j.end(ending{Signal: 15}, now)
	if j.Off {
		return nil // launchd accepts the request and starts nothing
	}
	j.Stuck, j.Due = false, now
	return nil
}

// loadFolder loads the jobs of a folder, as launchd does when a domain is created. Invalid ones are
// skipped.
func (v *visit) loadFolder(m *manager, now time.Time, d domain, name string) error {
	root := v.session.users()[0]
	folder, err := v.find(root, "/", name, true)
	if err != nil || !folder.folder() {
		return nil // such a folder may be missing
	}
	files, err := v.list(root, folder)
	if err != nil {
		return err
	}
	for _, file := range files {
		if path.Ext(file.path) != ".plist" {
			continue
		}
		if off, err := v.folderItemOff(d, name+"/"+path.Base(file.path)); err != nil || off {
			if err != nil {
				return err
			}
			continue
		}
		var refused launchCode
		if _, err := v.load(m, now, d, name+"/"+path.Base(file.path)); err != nil && !errors.As(err, &refused) {
			return err
		}
	}
	return nil
}

// startAgents loads the agents of a user whose Aqua session starts. They start at the next read of the
// machine.
func (v *visit) startAgents(who user) error {
	d := domain{"gui", who.uid}
	return v.changeLaunchd(func(m *manager, now time.Time) error {
		return errors.Join(v.loadFolder(m, now, d, "/Library/LaunchAgents"), v.loadFolder(m, now, d, who.home+"/Library/LaunchAgents"))
	})
}

// endSession ends the jobs of a user's Aqua session.
func (v *visit) endSession(uid int) error {
	if held, err := v.session.machine.pending(); held == nil || err != nil {
		return err
	}
	return v.changeLaunchd(func(m *manager, _ time.Time) error {
		for target, j := range m.Jobs {
			if j.Domain == (domain{"gui", uid}).String() {
				delete(m.Jobs, target)
			}
		}
		return nil
	})
}

// overrides is the file in which launchd keeps what was enabled and disabled: a disabled label is
// true.
func (d domain) overrides() string {
	const file = "/private/var/db/com.apple.xpc.launchd/disabled"
	if d.kind == "system" {
		return file + ".plist"
	}
	return file + "." + strconv.Itoa(d.uid) + ".plist"
}

func (v *visit) disabled(d domain, about description) (bool, error) {
	values, err := v.readPlist(d.overrides())
	if err != nil {
		return false, fmt.Errorf("%s: %w", d.overrides(), err)
	}
	if off, ok := values[about.Label].(bool); ok {
		return off, nil
	}
	return about.Disabled, nil
}

// override records that a label is enabled or disabled, also an unknown one.
func (v *visit) override(d domain, label string, off bool) error {
	values, err := v.readPlist(d.overrides())
	if err != nil {
		return fmt.Errorf("%s: %w", d.overrides(), err)
	}
	values[label] = off
	root := &proc{session: v.session, user: v.session.users()[0], dir: "/", umask: 0o022}
	if err := v.mkdirAll(root, path.Dir(d.overrides()), 0o755); err != nil {
		return err
	}
	return v.writePlist(d.overrides(), values, owner{Mode: 0o644})
}
