package steps

import (
	"fmt"
	"strings"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/steps/kcpassword"
	"github.com/macfleet/macfleet/steps/kit"
)

var (
	codeSudoMissing    = plan.NewCode("sudo-missing", plan.Critical, "passwordless sudo does not work")
	codeSudoersMissing = plan.NewCode("sudoers-missing", plan.Warning, "/etc/sudoers.d/macfleet is missing; passwordless sudo works by another rule")
	codeSudoersEdited  = plan.NewCode("sudoers-edited", plan.Warning, "/etc/sudoers.d/macfleet was edited")
)

// sudo gives the login user passwordless sudo with a drop-in in /etc/sudoers.d. It is
// verified by running sudo: on a host with a broken sudo the file has no effect by itself.
type sudo struct {
	desired *fleet.Sudo
	user    string
}

const sudoFile = plan.SudoersFile

// managed is the first line of every file that only macfleet writes.
const managed = "# Managed by macfleet.\n"

// RootStep is the step that sets up passwordless sudo: every change of a host needs it, also the first marker.
const RootStep plan.StepID = "sudo"

func (sudo) ID() plan.StepID { return RootStep }

func (s sudo) Wanted() string {
	if s.desired == nil {
		return ""
	}
	return kit.Wanted(sudoState{}.settings())
}

func (s sudo) Probes() []plan.Probe {
	return []plan.Probe{
		scripts.Probe(s.ID(), "root", plan.Login),
		scripts.Probe(s.ID(), "account", plan.Login),
		scripts.Probe(s.ID(), "file", plan.Root),
	}
}

// content is the drop-in. With verifypw=always, sudo -v still asks for the password, so
// macfleet can check one without exposing it.
func (s sudo) content() string {
	return managed + "Defaults:" + s.user + " verifypw=always\n" + s.user + " ALL = (ALL) NOPASSWD: ALL\n"
}

// sudoState is the seen state in normal form.
type sudoState struct {
	root    string // "yes", "no", "broken", "unusable"
	account string // "open", "locked"
	file    string // "right", "missing", "edited", or readable by root only
	managed bool   // the file starts with macfleet's first line
	said    string // sudo's error message
}

func (s sudoState) settings() []kit.Setting {
	return []kit.Setting{
		kit.Compare("root without a password", s.root, "yes"),
		kit.Compare("account", s.account, "open"),
		kit.Compare(sudoFile, s.file, "right"),
	}
}

func (s sudo) Diff(v plan.View) plan.Finding {
	r := kit.Reader{Facts: v.Facts}
	seen := s.read(&r, v.Root)
	all := seen.settings()
	switch {
	case s.desired == nil && v.Root && v.Verified && len(r.Unread) == 0 && seen.managed:
		return s.remove(all)
	case s.desired == nil:
		return plan.Finding{}
	}
	f := r.Found(all)
	if len(f.Unread) > 0 || kit.Differing(all) == 0 {
		return f
	}
	f = r.Found(all, s.changes(v, seen, all)...)
	switch {
	case v.Root:
	case seen.root == "unusable":
		f.Refused = plan.BrokenSudo(v.Host.Name, seen.said)
	case seen.account == "locked":
		f.Refused = plan.LockedAccount(v.Host.Name, v.Host.User)
	}
	return f
}

// changes unlocks the account before its password is used.
func (s sudo) changes(v plan.View, seen sudoState, all []kit.Setting) []plan.Change {
	unlock := plan.Change{Fields: kit.Fields(all[1]), Command: scripts.Command("sudo-unlock", plan.Root, s.user),
		Reason: plan.Reason{Code: plan.CodeSudoLocked, Text: "the login user's account is locked: too many wrong passwords"}}
	install := plan.Change{Fields: kit.Fields(all[0], all[2]), Command: scripts.Command("sudo-install", plan.Login, s.content()),
		Reason: s.reason(seen)}
	if !v.Root {
		install.Fields = kit.Fields(all[0]) // only root can read the file
		install.Input, install.GrantsRoot = plan.LoginPassword, true
	}
	return []plan.Change{unlock, install}
}

// Reads reports the kind of input that its script reads.
func (sudo) Reads(k plan.InputKind) bool { return k == plan.LoginPassword }

// Render returns the password as one line. The encoder rejects unusable passwords.
func (sudo) Render(_ kit.InputFor, password string) (string, error) {
	if _, err := kcpassword.Encode([]byte(password)); err != nil {
		return "", fmt.Errorf("unusable login password: %w", err)
	}
	return password + "\n", nil
}

func (s sudo) reason(seen sudoState) plan.Reason {
	return kit.Causes(
		kit.When(seen.root == "broken" || seen.root == "unusable", plan.CodeSudoersBroken, "sudo cannot parse its rules: "+seen.said),
		kit.When(seen.root == "no", codeSudoMissing, "passwordless sudo does not work"),
		kit.When(seen.file == "missing", codeSudoersMissing, sudoFile+" is missing; passwordless sudo works by another rule"),
		kit.When(true, codeSudoersEdited, sudoFile+" was edited"),
	)[0]
}

// remove deletes the drop-in if passwordless sudo still works without it; otherwise the
// script puts the file back. The facts keep the verified form, or the removal would look
// like drift.
func (s sudo) remove(all []kit.Setting) plan.Finding {
	return plan.Finding{Facts: kit.Facts(all), Changes: []plan.Change{{Removes: true, Command: scripts.Command("sudo-remove", plan.Login),
		Reason: plan.Reason{Code: plan.CodeBlockRemoved, Text: "the configuration no longer has a sudo block for this host"},
		Fields: []plan.Field{{Name: sudoFile, Before: "present", After: "removed"}}}}}
}

func (s sudo) read(r *kit.Reader, root bool) sudoState {
	seen := sudoState{account: "open", file: "readable by root only"}
	if a, ok := r.Answer("sudo.root"); ok {
		if seen.root, seen.said = sudoAnswer(a); seen.root == "" {
			r.Unexpected("sudo.root", "unexpected answer of sudo -n true", a)
		}
	}
	if a, ok := r.Answer("sudo.account"); ok {
		if a.Exit != 0 {
			r.Unexpected("sudo.account", fmt.Sprintf("dscl: exit code %d", a.Exit), a)
		} else if strings.Contains(a.Stdout, ";tally;") {
			seen.account = "locked"
		}
	}
	if !root {
		return seen
	}
	if a, ok := r.Answer("sudo.file"); ok {
		if seen.file, seen.managed = s.fileState(a); seen.file == "" {
			r.Unexpected("sudo.file", "the sudoers drop-in could not be read", a)
		}
	}
	return seen
}

// sudoAnswer interprets the result of `sudo -k -n true`. The messages depend on the version
// of sudo.
func sudoAnswer(a plan.Answer) (root, said string) {
	said = strings.TrimSpace(a.Stderr)
	first, _, _ := strings.Cut(said, "\n")
	switch {
	case a.Exit == 0:
		return "yes", ""
	case strings.Contains(said, "policy plugin"): // sudo 1.8: no user gets root
		return "unusable", first
	case strings.Contains(said, "syntax error"), strings.Contains(said, "parse error"):
		return "broken", first
	case strings.Contains(said, "a password is required"), strings.Contains(said, "not in the sudoers file"), strings.Contains(said, "not allowed to"):
		return "no", said
	}
	return "", said
}

// fileState compares the drop-in; the first line of the answer has its mode and owner.
func (s sudo) fileState(a plan.Answer) (state string, ours bool) {
	if a.Exit == 4 && a.Stdout == "" {
		return "missing", false
	}
	about, text, found := strings.Cut(a.Stdout, "\n")
	if a.Exit != 0 || !found {
		return "", false
	}
	ours = strings.HasPrefix(text, managed)
	if about == "440 0 0" && text == s.content() {
		return "right", ours
	}
	return "edited", ours
}
