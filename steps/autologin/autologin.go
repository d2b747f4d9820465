// Package autologin is the step auto_login: a session of the login user at the screen.
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
	codeAutoLoginOtherUser     = plan.NewCode("auto-login-other-user", plan.Warning, "automatic login is another user's")
	codeKcpasswordMissing      = plan.NewCode("kcpassword-missing", plan.Warning, "/etc/kcpassword is missing")
	codeKcpasswordUnterminated = plan.NewCode("kcpassword-unterminated", plan.Warning, "the password in /etc/kcpassword has no end")
	codeKcpasswordEmpty        = plan.NewCode("kcpassword-empty", plan.Warning, "the password in /etc/kcpassword is empty")
	codeSealedKcpassword       = plan.NewCode("sealed-kcpassword", plan.Critical, "there is no session, and /etc/kcpassword holds <sealed> in place of a password")
	codeDeadLoginwindow        = plan.NewCode("dead-loginwindow", plan.Critical, "there is no session, and loginwindow does not run")
	codeKcpasswordMode         = plan.NewCode("kcpassword-mode", plan.Warning, "/etc/kcpassword has another owner or mode")
	codeFilevaultOn            = plan.NewCode("filevault-on", plan.Critical, "FileVault is on: nobody is logged in automatically after a boot",
		"turn it off on the host: sudo fdesetup disable")
	codeAutoLoginDisabledByProfile = plan.NewCode("auto-login-disabled-by-profile", plan.Warning, "a management profile forbids automatic login",
		"remove the key com.apple.login.mcx.DisableAutoLoginClient from the device's management profile")
	codeForeignSession = plan.NewCode("foreign-session", plan.Critical, "another user is logged in at the host's screen",
		"log that user out, then plan again")
	codeWorkInDeadSession = plan.NewCode("work-in-dead-session", plan.Critical, "the login user has no session, and yet a virtual machine or a job runs",
		"wait for it or end it (ps -p PID -o command), then plan again")
	codeSealedWithSession = plan.NewCode("sealed-with-session", plan.Warning, "/etc/kcpassword holds <sealed>, and the session is up",
		"nothing now; where the session goes missing, apply writes the password and brings it back")
	codeKcpasswordUnverified = plan.NewCode("kcpassword-unverified", plan.Warning, "the password or /etc/kcpassword was changed since the two were known to fit")
	codeStaleKcpassword      = plan.NewCode("stale-kcpassword", plan.Critical, "the Mac refuses the password in /etc/kcpassword: the next boot shows the login window")
	codeSessionLocked        = plan.NewCode("session-comes-up-locked", plan.Warning, "the session of an automatic login comes up with its screen locked")
	codeForeignAutoLogin     = plan.NewCode("foreign-auto-login", plan.Warning, "automatic login is set up for a user that macfleet did not choose",
		"nothing, if that is meant")
	codeNoLongerWanted = plan.NewCode("no-longer-wanted", plan.Notice, "auto_login is no longer configured, and macfleet set it up")
)

// autoLogin keeps an Aqua session of the login user on the Mac: without one no
// virtual machine starts, and nothing says why but a timeout.
//
// The session is what counts. /etc/kcpassword explains a missing one, and no
// more: whether a Mac seals the file only after a wrong password, or by design
// too, nobody knows.
type autoLogin struct {
	wish *fleet.AutoLogin
	user string // the login user
}

// newAutoLogin returns the step of a host.
func New(h fleet.Host) plan.Step { return autoLogin{wish: h.Spec.AutoLogin, user: h.User} }

func (autoLogin) ID() plan.StepID { return "auto_login" }

func (a autoLogin) Wanted() string {
	if a.wish == nil {
		return ""
	}
	return kit.Wanted(a.settings(loginState{}))
}

// Without a wish the question is asked where an earlier apply was proven: what it
// made is to be removed.
func (a autoLogin) Probes() []plan.Probe {
	p := scripts.Probe(a.ID(), "state", plan.Root, a.user)
	p.ID = a.probeID()
	return kit.Asked(a.wish != nil, p)
}

func (a autoLogin) probeID() string { return string(a.ID()) + ".state/" + a.user }

// sessionWait is how many seconds a session may take; it needs about two.
const sessionWait = 30

func (a autoLogin) Diff(v plan.View) plan.Finding {
	r := kit.Reader{Facts: v.Facts}
	if a.wish == nil {
		seen := readLogin(&r, kit.Answered(v.Facts, a.probeID()), a.user)
		return a.removal(v, seen, r.Unread)
	}
	seen := readLogin(&r, a.probeID(), a.user)
	if len(r.Unread) > 0 {
		return plan.Finding{Unread: r.Unread}
	}
	all := a.settings(seen)
	f := plan.Finding{Facts: kit.Facts(all), NoSession: !seen.session}
	if seen.session && seen.file == fileSealed {
		f.Warnings = []plan.Trouble{*codeSealedWithSession.Trouble("/etc/kcpassword holds <sealed>, and the session of " + a.user +
			" is up: whether it comes back after a boot, the next boot shows")}
	}
	if f.Refused = a.refusal(seen); f.Refused != nil {
		return f
	}
	if diff := kit.Fields(all...); len(diff) > 0 {
		f.Changes = []plan.Change{a.change(seen, diff)}
	}
	return f
}

// settings are both sides in normal form. A sealed file is one that serves while
// the session is up.
func (a autoLogin) settings(seen loginState) []kit.Setting {
	file, session := seen.file, "none"
	if seen.serves() {
		file = filePresent
	}
	if doubt := seen.doubt(); doubt != "" {
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
	if seen.locked { // a fact only where it is so: what was proven before anybody asked stays as it is
		all = append(all, kit.Compare("screen after automatic login", "locked", "unlocked"))
	}
	return all
}

// change is the one renderer of automatic login, for a first set-up and for a
// repair.
func (a autoLogin) change(seen loginState, diff []plan.Field) plan.Change {
	causes := seen.causes(a.user)
	var texts []string
	for _, cause := range causes {
		texts = append(texts, cause.Text)
	}
	c := plan.Change{Fields: diff, Reason: plan.Reason{Code: causes[0].Code, Text: strings.Join(texts, ", ")}}
	// A wrong password in the file is found before loginwindow tries it, which would seal the file.
	kick, input := "stay", "kept"
	if !seen.session {
		kick, c.Disruption = "kick", plan.Restart
	}
	switch {
	case seen.user != a.user || !seen.serves() || seen.refused():
		input, c.Input = "given", plan.AutoLogin
	case seen.file == filePresent && (seen.doubt() != "" || !seen.session && !seen.verified()):
		input, c.Input = "checked", plan.AutoLoginCheck
	}
	c.Command = scripts.Command("auto_login-set", plan.Root, a.user, strconv.Itoa(sessionWait), kick, input)
	return c
}

// causes say what is wrong, the most telling first.
func (s loginState) causes(user string) []plan.Reason {
	return kit.Causes(
		kit.When(s.user == "", codeAutoLoginOff, "automatic login is off"),
		kit.When(s.user != "" && s.user != user, codeAutoLoginOtherUser, fmt.Sprintf("automatic login is %q's", s.user)),
		kit.When(s.file == fileAbsent, codeKcpasswordMissing, "/etc/kcpassword is missing"),
		kit.When(s.file == fileUnterminated, codeKcpasswordUnterminated, "the password in /etc/kcpassword has no end"),
		kit.When(s.file == fileEmpty, codeKcpasswordEmpty, "the password in /etc/kcpassword is empty"),
		kit.When(s.file == fileSealed && !s.session, codeSealedKcpassword, "/etc/kcpassword holds <sealed> in place of a password"),
		kit.When(s.refused(), codeStaleKcpassword, "the Mac refuses the password in /etc/kcpassword"),
		kit.When(!s.session && s.dead, codeDeadLoginwindow, "loginwindow does not run"),
		kit.When(!s.session && !s.dead, plan.CodeNoGUISession, "no session of "+user+" is there"),
		kit.When(s.doubt() != "" && !s.refused(), codeKcpasswordUnverified, "/etc/kcpassword is "+s.doubt()),
		kit.When(s.badAccess(), codeKcpasswordMode, "/etc/kcpassword is "+s.access),
		kit.When(s.locked, codeSessionLocked, "the session of an automatic login comes up locked (autoLoginUserScreenLocked)"),
	)
}

// refusal says what macfleet cannot remove, or must not: restarting loginwindow
// ends a session with all that runs in it.
func (a autoLogin) refusal(s loginState) *plan.Trouble {
	switch {
	case s.fileVault:
		return codeFilevaultOn.Trouble("FileVault is on: nobody is logged in automatically, and after a boot the Mac waits for a password at its screen")
	case s.forbidden:
		return codeAutoLoginDisabledByProfile.Trouble("DisableAutoLoginClient forbids automatic login")
	case s.session:
		return nil
	case s.screen != nobody:
		return codeForeignSession.Trouble(fmt.Sprintf("%s has no session and %q is logged in at the screen, whose session is not ended", a.user, s.screen))
	case s.work != "":
		return codeWorkInDeadSession.Trouble(fmt.Sprintf("%s has no session, and yet a virtual machine or a job runs (pid %s)", a.user, s.work))
	}
	return nil
}

// Reads names the input of its script.
func (autoLogin) Reads(k plan.InputKind) bool { return k == plan.AutoLogin || k == plan.AutoLoginCheck }

// Render returns a line with the content of /etc/kcpassword for a password, and whether the host took it. The
// encoder refuses what is no password, or could not stand in one line.
func (autoLogin) Render(in kit.InputFor, password string) (string, error) {
	file, err := kcpassword.Encode([]byte(password))
	if err != nil {
		return "", fmt.Errorf("the login password is of no use: %w", err)
	}
	return kit.Choose(in.Refused, "refused ", "accepted ") + base64.StdEncoding.EncodeToString(file) + "\n", nil
}

// removal takes away what macfleet made. The session goes on: who ends it ends
// the work in it.
func (a autoLogin) removal(v plan.View, seen loginState, unread []plan.Unread) plan.Finding {
	switch {
	case !v.Proven:
		return plan.Finding{} // nobody's, or a stranger's
	case len(unread) > 0:
		return plan.Finding{Unread: unread}
	case seen.user != "" && seen.user != a.user:
		return plan.Finding{Warnings: []plan.Trouble{*codeForeignAutoLogin.Trouble(
			fmt.Sprintf("auto_login is no longer configured, and automatic login is now %q's: it is left alone", seen.user))}}
	}
	diff := kit.Fields(kit.Compare("automatic login", seen.user, ""), kit.Compare("kcpassword", seen.file, fileAbsent))
	if len(diff) == 0 {
		return plan.Finding{}
	}
	// The facts are as proven: what has not moved is no drift.
	return plan.Finding{Facts: kit.Facts(a.settings(seen)), Changes: []plan.Change{{
		Reason:  plan.Reason{Code: codeNoLongerWanted, Text: "auto_login is no longer configured"},
		Fields:  diff,
		Command: scripts.Command("auto_login-remove", plan.Root, a.user),
		Removes: true,
	}}}
}

// lockedPart says that the session of an automatic login comes up with its screen locked.
const lockedPart = "locked"

// What /etc/kcpassword can hold, in the words of the script that looks.
const (
	fileAbsent       = "absent"
	filePresent      = "present"
	fileSealed       = "sealed"
	fileEmpty        = "empty"        // the empty password
	fileUnterminated = "unterminated" // no byte ends the password, so loginwindow takes none
)

// loginFileAccess is who may read the file: its key is known to everybody.
const loginFileAccess = "root:wheel 0600"

// nobody owns the screen while the login window is shown.
const nobody = "root"

// loginState is what stands between a Mac and a session of its login user.
type loginState struct {
	fileVault bool
	forbidden bool   // by a management profile
	user      string // whom loginwindow logs in by itself; "" = nobody
	locked    bool   // the session of an automatic login comes up with its screen locked
	file      string // what /etc/kcpassword holds
	access    string // its owner, group and mode
	screen    string // who owns the screen
	session   bool   // an Aqua session of the login user is there
	dead      bool   // no session, and loginwindow has no process either
	work      string // the processes of jobs and virtual machines that run without a session
	proof            // of the password in a file that holds one
}

// serves reports whether a login can be tried with the file as it is. While the
// session is up, a sealed file has served.
func (s loginState) serves() bool {
	return s.file == filePresent || s.file == fileSealed && s.session
}

// badAccess reports whether the file is another's or others may read it.
func (s loginState) badAccess() bool { return s.file != fileAbsent && s.access != loginFileAccess }

// readLogin reads the answer to auto_login-state.sh. What it does not
// understand is unread as a whole: half of a state decides nothing.
func readLogin(r *kit.Reader, id, user string) loginState {
	var s loginState
	left := []string{"filevault", "managed", "forbidden", "user", "kcpassword", "console", "session", "loginwindow", "work"}
	r.Parts(id, func(p kit.Part) error {
		if p.Name == proofPart && s.file == filePresent {
			s.proof = readProof(p)
			return nil
		}
		if p.Name == lockedPart { // said only where it is so
			s.locked = true
			return nil
		}
		if len(left) == 0 || p.Name != left[0] {
			return kit.ErrPart
		}
		if odd := s.take(p, user); odd != nil {
			return odd
		}
		if left = left[1:]; s.session { // which explains itself
			left = nil
		}
		return nil
	})
	if a, ok := r.Facts.Get(id).Get(); ok && len(r.Unread) == 0 && len(left) > 0 {
		r.Odd(id, "nothing is said of "+left[0], a)
	}
	return s
}

// take reads one part: what a tool said, and how it ended.
func (s *loginState) take(p kit.Part, user string) error {
	is := func(exit int, text string) bool { return p.Exit == exit && p.Body == text }
	missing := p.Exit == 1 && strings.Contains(p.Body, "does not exist") // as defaults says of a key
	var known bool
	var odd string
	switch p.Name {
	case "filevault":
		first, _, _ := strings.Cut(p.Body, "\n")
		s.fileVault = first == "FileVault is On."
		known, odd = p.Exit == 0 && (s.fileVault || first == "FileVault is Off."), "fdesetup status says neither on nor off"
	case "managed", "forbidden": // where nobody set it, it is false
		s.forbidden = s.forbidden || is(0, "1")
		known, odd = is(0, "1") || is(0, "0") || missing, "defaults read DisableAutoLoginClient gives no truth value"
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
		known, odd = is(0, fileAbsent) || p.Exit == 0 && whole, "what /etc/kcpassword is cannot be told"
	case "console":
		s.screen = p.Body
		known, odd = p.Exit == 0 && kit.IsName(p.Body), "stat of /dev/console gives no user"
	case "session": // a release of macOS says in one of three ways that there is none
		s.session = is(0, "Aqua")
		known = s.session || p.Exit == 112 || p.Exit == 113 || p.Exit == 125
		odd = "launchctl print gui/UID says neither that a session is there nor that none is"
		if !s.session && s.screen == user {
			known, odd = false, "the screen is "+user+"'s and yet launchd knows no session of his: one is beginning or ending"
		}
	case "loginwindow": // what else it says explains nothing
		s.dead, known = is(0, "dead"), true
	case "work": // pgrep prints a process a line
		s.work = strings.Join(strings.Fields(p.Body), ", ")
		known, odd = is(1, "") || p.Exit == 0 && p.Body != "", "pgrep does not say whether a job or a virtual machine runs"
	}
	if !known {
		return errors.New(odd)
	}
	return nil
}
