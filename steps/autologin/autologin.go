// Package autologin is the step auto_login: the login user's GUI session.
package autologin

import (
	"embed"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/steps/kcpassword"
	"github.com/macfleet/macfleet/steps/kit"
)

//go:embed scripts
var files embed.FS

var scripts = kit.ScriptsOf(files)

var (
	codeAutoLoginOff           = plan.NewCode("auto-login-off", plan.Warning, "automatic login is off")
	codeAutoLoginOtherUser     = plan.NewCode("auto-login-other-user", plan.Warning, "automatic login is set to another user")
	codeKcpasswordMissing      = plan.NewCode("kcpassword-missing", plan.Warning, "/etc/kcpassword is missing")
	codeKcpasswordUnterminated = plan.NewCode("kcpassword-unterminated", plan.Warning, "the password in /etc/kcpassword is not terminated")
	codeKcpasswordEmpty        = plan.NewCode("kcpassword-empty", plan.Warning, "the password in /etc/kcpassword is empty")
	codeSealedKcpassword       = plan.NewCode("sealed-kcpassword", plan.Critical, "no GUI session, and /etc/kcpassword is sealed: it holds <sealed> in place of the password")
	codeDeadLoginwindow        = plan.NewCode("dead-loginwindow", plan.Critical, "no GUI session, and loginwindow does not run")
	codeKcpasswordMode         = plan.NewCode("kcpassword-mode", plan.Warning, "/etc/kcpassword has the wrong owner or mode")
	codeFilevaultOn            = plan.NewCode("filevault-on", plan.Critical, "FileVault is on, which disables automatic login",
		"turn FileVault off on the host: sudo fdesetup disable")
	codeAutoLoginDisabledByProfile = plan.NewCode("auto-login-disabled-by-profile", plan.Warning, "a management profile forbids automatic login",
		"remove the key com.apple.login.mcx.DisableAutoLoginClient from the management profile")
	codeForeignSession = plan.NewCode("foreign-session", plan.Critical, "another user is logged in at the host's screen",
		"log that user out over VNC, then: macfleet plan")
	codeWorkInDeadSession = plan.NewCode("work-in-dead-session", plan.Critical, "the login user has no GUI session, but a virtual machine or a job is running",
		"wait until it ends, or stop it on the host (ps -p PID -o command shows it), then: macfleet plan")
	codeSealedWithSession = plan.NewCode("sealed-with-session", plan.Warning, "/etc/kcpassword is sealed, and the GUI session is up",
		"nothing to do now; if the session is lost: macfleet apply writes the password and restores it")
	codeKcpasswordUnverified = plan.NewCode("kcpassword-unverified", plan.Warning, "the password or /etc/kcpassword changed since it was last verified")
	codeStaleKcpassword      = plan.NewCode("stale-kcpassword", plan.Critical, "the Mac refuses the password in /etc/kcpassword, so automatic login fails at the next boot")
	codeSessionLocked        = plan.NewCode("session-comes-up-locked", plan.Warning, "automatic login starts with a locked screen")
	codeForeignAutoLogin     = plan.NewCode("foreign-auto-login", plan.Warning, "automatic login is set to a user that macfleet did not configure",
		"nothing to do if this is intended; otherwise add an auto_login block")
	codeNoLongerWanted = plan.NewCode("no-longer-wanted", plan.Notice, "the configuration no longer has an auto_login block for the host")
)

// autoLogin keeps an Aqua session of the login user open: without one, virtual machines fail
// to start with nothing but a timeout.
//
// The session decides. /etc/kcpassword only explains a missing one: macOS seals the file
// after a wrong password, and possibly at other times.
type autoLogin struct {
	desired *fleet.AutoLogin
	user    string // the login user
}

// New returns the step of a host.
func New(h fleet.Host) plan.Step { return autoLogin{desired: h.Spec.AutoLogin, user: h.User} }

func (autoLogin) ID() plan.StepID { return "auto_login" }

// KeepsSession reports whether the host should have a session.
func (a autoLogin) KeepsSession() bool { return a.desired != nil }

func (a autoLogin) Wanted() string {
	if a.desired == nil {
		return ""
	}
	return kit.Wanted(a.settings(loginState{}))
}

// Probes asks an unconfigured host too if an earlier apply was verified there, in order to
// remove what it set up.
func (a autoLogin) Probes() []plan.Probe {
	p := scripts.Probe(a.ID(), "state", plan.Root, a.user)
	p.ID = a.probeID()
	return kit.ProbeOrTraces(a.desired != nil, p)
}

func (a autoLogin) probeID() string { return string(a.ID()) + ".state/" + a.user }

// sessionWait is how many seconds a session may take to start; it usually takes two.
const sessionWait = 30

func (a autoLogin) Diff(v plan.View) plan.Finding {
	r := kit.Reader{Facts: v.Facts}
	if a.desired == nil {
		seen := readLogin(&r, kit.AnsweredProbe(v.Facts, a.probeID()), a.user)
		return a.removal(v, seen, r.Unread)
	}
	seen := readLogin(&r, a.probeID(), a.user)
	if len(r.Unread) > 0 {
		return plan.Finding{Unread: r.Unread}
	}
	all := a.settings(seen)
	f := plan.Finding{Facts: kit.Facts(all), NoSession: !seen.session}
	if seen.session && seen.file == fileSealed {
		f.Warnings = []plan.Trouble{*codeSealedWithSession.Trouble("/etc/kcpassword is sealed, and the GUI session of " + a.user +
			" is up; it may not come back after a reboot")}
	}
	if f.Refused = a.refusal(seen); f.Refused != nil {
		return f
	}
	if diff := kit.Fields(all...); len(diff) > 0 {
		f.Changes = []plan.Change{a.change(seen, diff)}
	}
	return f
}

// settings compares seen and wanted values. A sealed file is fine while the session is up.
func (a autoLogin) settings(seen loginState) []kit.Setting {
	file, session := seen.file, "none"
	if seen.serves() {
		file = filePresent
	}
	if doubt := seen.whyUnverified(); doubt != "" {
		file += ", " + doubt
	}
	if seen.badAccess() {
		file += ", " + seen.access
	}
	if seen.session {
		session = a.user
	}
	all := []kit.Setting{
		kit.Compare("FileVault", kit.Switched(seen.fileVault), "off"),
		kit.Compare("profile against automatic login", kit.Switched(seen.forbidden), "off"),
		kit.Compare("automatic login", seen.user, a.user),
		kit.Compare("kcpassword", file, filePresent),
		kit.Compare("GUI session", session, a.user),
	}
	if seen.locked { // added only if locked, so that digests of earlier versions stay valid
		all = append(all, kit.Compare("screen after automatic login", "locked", "unlocked"))
	}
	return all
}

// change renders the change for a first setup and for a repair.
func (a autoLogin) change(seen loginState, diff []plan.Field) plan.Change {
	causes := seen.causes(a.user)
	var texts []string
	for _, cause := range causes {
		texts = append(texts, cause.Text)
	}
	c := plan.Change{Fields: diff, Reason: plan.Reason{Code: causes[0].Code, Text: strings.Join(texts, ", ")}}
	// The script checks the password before loginwindow tries it: a wrong one would seal the file.
	kick, input := "stay", "kept"
	if !seen.session {
		kick, c.Disruption = "kick", plan.Restart
	}
	switch {
	case seen.user != a.user || !seen.serves() || seen.refused():
		input, c.Input = "given", plan.AutoLogin
	case seen.file == filePresent && (seen.whyUnverified() != "" || !seen.session && !seen.verified()):
		input, c.Input = "checked", plan.AutoLoginCheck
	}
	c.Command = scripts.Command("auto_login-set", plan.Root, a.user, strconv.Itoa(sessionWait), kick, input)
	return c
}

// causes lists what is wrong, the most significant first.
func (s loginState) causes(user string) []plan.Reason {
	return kit.Causes(
		kit.When(s.user == "", codeAutoLoginOff, "automatic login is off"),
		kit.When(s.user != "" && s.user != user, codeAutoLoginOtherUser, fmt.Sprintf("automatic login is set to %q", s.user)),
		kit.When(s.file == fileAbsent, codeKcpasswordMissing, "/etc/kcpassword is missing"),
		kit.When(s.file == fileUnterminated, codeKcpasswordUnterminated, "the password in /etc/kcpassword is not terminated"),
		kit.When(s.file == fileEmpty, codeKcpasswordEmpty, "the password in /etc/kcpassword is empty"),
		kit.When(s.file == fileSealed && !s.session, codeSealedKcpassword, "/etc/kcpassword is sealed (it holds <sealed> in place of the password)"),
		kit.When(s.refused(), codeStaleKcpassword, "the Mac refuses the password in /etc/kcpassword"),
		kit.When(!s.session && s.dead, codeDeadLoginwindow, "loginwindow does not run"),
		kit.When(!s.session && !s.dead, plan.CodeNoGUISession, "no GUI session of "+user),
		kit.When(s.whyUnverified() != "" && !s.refused(), codeKcpasswordUnverified, "/etc/kcpassword is "+s.whyUnverified()),
		kit.When(s.badAccess(), codeKcpasswordMode, "/etc/kcpassword is "+s.access),
		kit.When(s.locked, codeSessionLocked, "automatic login starts with a locked screen (autoLoginUserScreenLocked)"),
	)
}

// refusal returns what macfleet cannot or must not change: restarting loginwindow ends a
// session and everything that runs in it.
func (a autoLogin) refusal(s loginState) *plan.Trouble {
	switch {
	case s.fileVault:
		return codeFilevaultOn.Trouble("FileVault is on, so automatic login is disabled and a reboot waits for a password at the screen")
	case s.forbidden:
		return codeAutoLoginDisabledByProfile.Trouble("a management profile forbids automatic login (DisableAutoLoginClient)")
	case s.session:
		return nil
	case s.screen != noUser:
		return codeForeignSession.Trouble(fmt.Sprintf("%s has no GUI session, and %q is logged in at the screen; macfleet does not end that session", a.user, s.screen))
	case s.work != "":
		return codeWorkInDeadSession.Trouble(fmt.Sprintf("%s has no GUI session, but a virtual machine or a job is running (pid %s)", a.user, s.work))
	}
	return nil
}

// Reads reports the kinds of input that its scripts read.
func (autoLogin) Reads(k plan.InputKind) bool { return k == plan.AutoLogin || k == plan.AutoLoginCheck }

// Render returns one line: whether the host accepted the password, and the content of /etc/kcpassword for it. The
// encoder rejects unusable passwords.
func (autoLogin) Render(in kit.InputFor, password string) (string, error) {
	file, err := kcpassword.Encode([]byte(password))
	if err != nil {
		return "", fmt.Errorf("unusable login password: %w", err)
	}
	return kit.Choose(in.Refused, "refused ", "accepted ") + base64.StdEncoding.EncodeToString(file) + "\n", nil
}

// removal removes what macfleet set up. The session stays open, because ending it would end
// the work in it.
func (a autoLogin) removal(v plan.View, seen loginState, unread []plan.Unread) plan.Finding {
	switch {
	case !v.Verified:
		return plan.Finding{} // automatic login is off or set to another user
	case len(unread) > 0:
		return plan.Finding{Unread: unread}
	case seen.user != "" && seen.user != a.user:
		return plan.Finding{Warnings: []plan.Trouble{*codeForeignAutoLogin.Trouble(
			fmt.Sprintf("the configuration has no auto_login block, and automatic login is set to %q; macfleet leaves it unchanged", seen.user))}}
	}
	diff := kit.Fields(kit.Compare("automatic login", seen.user, ""), kit.Compare("kcpassword", seen.file, fileAbsent))
	if len(diff) == 0 {
		return plan.Finding{}
	}
	// The facts keep the verified form, so that the removal is not drift.
	return plan.Finding{Facts: kit.Facts(a.settings(seen)), Changes: []plan.Change{{
		Reason:  plan.Reason{Code: codeNoLongerWanted, Text: "the configuration no longer has an auto_login block for this host"},
		Fields:  diff,
		Command: scripts.Command("auto_login-remove", plan.Root, a.user),
		Removes: true,
	}}}
}

// lockedPart names the part of the answer that says that automatic login starts with a locked screen.
const lockedPart = "locked"

// What /etc/kcpassword can hold, in the words of auto_login-state.sh.
const (
	fileAbsent       = "absent"
	filePresent      = "present"
	fileSealed       = "sealed"
	fileEmpty        = "empty"        // the empty password
	fileUnterminated = "unterminated" // no terminating byte: loginwindow ignores the password
)

// loginFileAccess is the file's owner and mode. Its key is public, so only root may read it.
const loginFileAccess = "root:wheel 0600"

// noUser is the owner of the screen while the login window is shown.
const noUser = "root"

// loginState is everything that decides whether the login user gets a session.
type loginState struct {
	fileVault bool
	forbidden bool   // by a management profile
	user      string // the automatic login user; "" = none
	locked    bool   // automatic login starts with a locked screen
	file      string // what /etc/kcpassword holds
	access    string // its owner, group and mode
	screen    string // the owner of the screen
	session   bool   // the login user has an Aqua session
	dead      bool   // no session and no loginwindow process
	work      string // jobs and virtual machines that run without a session
	lastTry          // of the password in the file
}

// serves reports whether the file is usable for a login. While the session is up, a sealed
// file counts as usable.
func (s loginState) serves() bool {
	return s.file == filePresent || s.file == fileSealed && s.session
}

// badAccess reports whether the file has the wrong owner or mode.
func (s loginState) badAccess() bool { return s.file != fileAbsent && s.access != loginFileAccess }

// readLogin parses the answer of auto_login-state.sh. If any part is not understood, the
// whole state is unread.
func readLogin(r *kit.Reader, id, user string) loginState {
	var s loginState
	left := []string{"filevault", "managed", "forbidden", "user", "kcpassword", "console", "session", "loginwindow", "work"}
	r.Parts(id, func(p kit.Part) error {
		if p.Name == proofPart && s.file == filePresent {
			s.lastTry = readTry(p)
			return nil
		}
		if p.Name == lockedPart { // present only if locked
			s.locked = true
			return nil
		}
		if len(left) == 0 || p.Name != left[0] {
			return kit.ErrPart
		}
		if odd := s.take(p, user); odd != nil {
			return odd
		}
		if left = left[1:]; s.session { // the rest is read only without a session
			left = nil
		}
		return nil
	})
	if a, ok := r.Facts.Get(id).Get(); ok && len(r.Unread) == 0 && len(left) > 0 {
		r.Unexpected(id, "the answer lacks "+left[0], a)
	}
	return s
}

// take parses one part: a tool's output and exit code.
func (s *loginState) take(p kit.Part, user string) error {
	is := func(exit int, text string) bool { return p.Exit == exit && p.Body == text }
	missing := p.Exit == 1 && strings.Contains(p.Body, "does not exist") // the key does not exist
	var known bool
	var odd string
	switch p.Name {
	case "filevault":
		first, _, _ := strings.Cut(p.Body, "\n")
		s.fileVault = first == "FileVault is On."
		known, odd = p.Exit == 0 && (s.fileVault || first == "FileVault is Off."), "fdesetup status shows neither on nor off"
	case "managed", "forbidden": // false if not set
		s.forbidden = s.forbidden || is(0, "1")
		known, odd = is(0, "1") || is(0, "0") || missing, "defaults read DisableAutoLoginClient gives no boolean"
	case "user":
		if p.Exit == 0 {
			s.user = p.Body
		}
		known, odd = missing || is(0, "") || p.Exit == 0 && kit.IsName(p.Body), "defaults read autoLoginUser gives no user"
	case "kcpassword":
		words := strings.Fields(p.Body)
		if s.file = p.Body; len(words) == 3 {
			s.file, s.access = words[0], fmt.Sprintf("%s %04s", words[1], words[2])
		}
		whole := s.access != "" && slices.Contains([]string{filePresent, fileSealed, fileEmpty, fileUnterminated}, s.file)
		known, odd = is(0, fileAbsent) || p.Exit == 0 && whole, "the content of /etc/kcpassword could not be classified"
	case "console":
		s.screen = p.Body
		known, odd = p.Exit == 0 && kit.IsName(p.Body), "stat of /dev/console gives no user"
	case "session": // releases of macOS report a missing session in three ways
		s.session = is(0, "Aqua")
		known = s.session || p.Exit == 112 || p.Exit == 113 || p.Exit == 125
		odd = "launchctl print gui/UID does not show whether there is a session"
		if !s.session && s.screen == user {
			known, odd = false, user+" owns the screen, but launchd has no session: it is starting or ending"
		}
	case "loginwindow": // other output is of no use
		s.dead, known = is(0, "dead"), true
	case "work": // pgrep prints one process per line
		s.work = strings.Join(strings.Fields(p.Body), ", ")
		known, odd = is(1, "") || p.Exit == 0 && p.Body != "", "pgrep failed: unknown whether a job or a virtual machine runs"
	}
	if !known {
		return errors.New(odd)
	}
	return nil
}
