package autologin

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/macfleet/macfleet/steps/kit"
)

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
	file      string // what /etc/kcpassword holds
	access    string // its owner, group and mode
	screen    string // who owns the screen
	session   bool   // an Aqua session of the login user is there
	dead      bool   // no session, and loginwindow has no process either
	work      string // the processes of jobs and virtual machines that run without a session
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
		if len(left) == 0 || p.Name != left[0] {
			return kit.ErrPart
		}
		odd := s.take(p, user)
		if left = left[1:]; s.session { // which explains itself
			left = nil
		}
		return odd
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
		known, odd = s.session || p.Exit == 112 || p.Exit == 113 || p.Exit == 125, "launchctl print gui/UID says neither that a session is there nor that none is"
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
