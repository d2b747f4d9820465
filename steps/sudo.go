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
	codeSudoMissing    = plan.NewCode("sudo-missing", plan.Critical, "root is not to be had without a password")
	codeSudoersMissing = plan.NewCode("sudoers-missing", plan.Warning, "/etc/sudoers.d/macfleet is missing, and root is to be had by other means")
	codeSudoersEdited  = plan.NewCode("sudoers-edited", plan.Warning, "/etc/sudoers.d/macfleet is not as macfleet writes it")
)

// sudo lets the login user become root without a password, by a file of its own
// in /etc/sudoers.d. It is proven by becoming root, not by the file: a file that
// merely exists proved nothing on hosts whose sudo was broken.
type sudo struct {
	wish *fleet.Sudo
	user string
}

const sudoFile = plan.SudoersFile

// managed is the first line of every file that is macfleet's alone.
const managed = "# Managed by macfleet.\n"

func (sudo) ID() plan.StepID { return "sudo" }

func (s sudo) Wanted() string {
	if s.wish == nil {
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

// content is the drop-in. With verifypw, sudo -v goes on asking for the password:
// it is how one is checked without showing it to anybody.
func (s sudo) content() string {
	return managed + "Defaults:" + s.user + " verifypw=always\n" + s.user + " ALL = (ALL) NOPASSWD: ALL\n"
}

// sudoState is what was seen, in normal form.
type sudoState struct {
	root    string // "yes", "no", "broken", "unusable"
	account string // "open", "locked"
	file    string // "right", "missing", "edited", or that only root can tell
	ours    bool   // the file begins as macfleet's does
	said    string // sudo's words where root was not given
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
	case s.wish == nil && v.Root && v.Proven && len(r.Unread) == 0 && seen.ours:
		return s.remove(all)
	case s.wish == nil:
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

// changes unlocks the account before anything asks for its password.
func (s sudo) changes(v plan.View, seen sudoState, all []kit.Setting) []plan.Change {
	unlock := plan.Change{Fields: kit.Fields(all[1]), Command: scripts.Command("sudo-unlock", plan.Root, s.user),
		Reason: plan.Reason{Code: plan.CodeSudoLocked, Text: "the login user's account is locked after too many wrong passwords"}}
	install := plan.Change{Fields: kit.Fields(all[0], all[2]), Command: scripts.Command("sudo-install", plan.Login, s.content()),
		Reason: s.reason(seen)}
	if !v.Root {
		install.Fields = kit.Fields(all[0]) // what the file is like shows only to root
		install.Input, install.GrantsRoot = plan.LoginPassword, true
	}
	return []plan.Change{unlock, install}
}

// Reads names the input of its script.
func (sudo) Reads(k plan.InputKind) bool { return k == plan.LoginPassword }

// Render returns the password as a line. The encoder refuses what is none, or could not
// stand in one.
func (sudo) Render(_ kit.InputFor, password string) (string, error) {
	if _, err := kcpassword.Encode([]byte(password)); err != nil {
		return "", fmt.Errorf("the login password is of no use: %w", err)
	}
	return password + "\n", nil
}

func (s sudo) reason(seen sudoState) plan.Reason {
	return kit.Causes(
		kit.When(seen.root == "broken" || seen.root == "unusable", plan.CodeSudoersBroken, "sudo cannot read its rules: "+seen.said),
		kit.When(seen.root == "no", codeSudoMissing, "root is not to be had without a password"),
		kit.When(seen.file == "missing", codeSudoersMissing, sudoFile+" is missing, and root is to be had by other means"),
		kit.When(true, codeSudoersEdited, sudoFile+" is not as macfleet writes it"),
	)[0]
}

// remove takes the drop-in away, if root stays to be had by other means: the
// script tries, and puts the file back where it does not.
// What was seen has the form of the proof, or the removal would look like drift.
func (s sudo) remove(all []kit.Setting) plan.Finding {
	return plan.Finding{Facts: kit.Facts(all), Changes: []plan.Change{{Removes: true, Command: scripts.Command("sudo-remove", plan.Login),
		Reason: plan.Reason{Code: plan.CodeBlockRemoved, Text: "the configuration no longer wants " + sudoFile},
		Fields: []plan.Field{{Name: sudoFile, Before: "there", After: "gone"}}}}}
}

func (s sudo) read(r *kit.Reader, root bool) sudoState {
	seen := sudoState{account: "open", file: "known to root alone"}
	if a, ok := r.Answer("sudo.root"); ok {
		if seen.root, seen.said = sudoAnswer(a); seen.root == "" {
			r.Odd("sudo.root", "sudo -n true ended otherwise than expected", a)
		}
	}
	if a, ok := r.Answer("sudo.account"); ok {
		if a.Exit != 0 {
			r.Odd("sudo.account", fmt.Sprintf("dscl ended with exit %d", a.Exit), a)
		} else if strings.Contains(a.Stdout, ";tally;") {
			seen.account = "locked"
		}
	}
	if !root {
		return seen
	}
	if a, ok := r.Answer("sudo.file"); ok {
		if seen.file, seen.ours = s.fileState(a); seen.file == "" {
			r.Odd("sudo.file", "the drop-in could not be read", a)
		}
	}
	return seen
}

// sudoAnswer reads what became of `sudo -k -n true`. Which words sudo has for a
// missing permission depends on its version; that it is about its own rules does
// not.
func sudoAnswer(a plan.Answer) (root, said string) {
	said = strings.TrimSpace(a.Stderr)
	first, _, _ := strings.Cut(said, "\n")
	switch {
	case a.Exit == 0:
		return "yes", ""
	case strings.Contains(said, "policy plugin"): // as 1.8 does, which then gives root to nobody
		return "unusable", first
	case strings.Contains(said, "syntax error"), strings.Contains(said, "parse error"):
		return "broken", first
	case strings.Contains(said, "a password is required"), strings.Contains(said, "not in the sudoers file"), strings.Contains(said, "not allowed to"):
		return "no", said
	}
	return "", said
}

// fileState compares the drop-in, behind a line with its mode and owner.
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
