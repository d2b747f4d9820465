package autologin

import (
	"fmt"
	"slices"
	"strconv"
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

// tool is what one tool said.
type tool struct {
	exit int
	text string
}

// missing reports that defaults found no such key, which it says in words.
func (t tool) missing() bool { return t.exit == 1 && strings.Contains(t.text, "does not exist") }

// loginState reads the answer to auto_login-state.sh. What it does not
// understand is unread as a whole: half of a state decides nothing.
func readLogin(r *kit.Reader, id, user string) loginState {
	a, ok := r.Answer(id)
	if !ok {
		return loginState{}
	}
	p := loginParser{said: make(map[string]tool)}
	p.lines(a.Stdout)
	if a.Exit != 0 {
		p.odd("the script ended with exit %d", a.Exit)
	}
	s := p.state(user)
	if p.err != nil {
		r.Odd(id, p.err.Error(), a)
		return loginState{}
	}
	return s
}

// loginParser turns what the tools said, by the names of their lines, into a state, and
// keeps the first thing that it does not understand.
type loginParser struct {
	said map[string]tool
	err  error
}

func (p *loginParser) odd(format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf(format, args...)
	}
}

// lines takes the answer apart: lines of name, exit code and text. A line that
// does not look so goes on with the text before it.
func (p *loginParser) lines(text string) {
	last := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		name, rest, _ := strings.Cut(line, " ")
		code, said, _ := strings.Cut(rest, " ")
		exit, err := strconv.Atoi(code)
		_, twice := p.said[name]
		switch known := slices.Contains([]string{"filevault", "managed", "forbidden", "user", "kcpassword", "console", "session", "loginwindow", "work"}, name); {
		case known && err == nil && twice:
			p.odd("two lines of %s", name)
		case known && err == nil:
			p.said[name], last = tool{exit, said}, name
		case last == "":
			p.odd("the first line is no answer: %q", line)
			return
		default:
			p.said[last] = tool{p.said[last].exit, p.said[last].text + "\n" + line}
		}
	}
}

// of returns a tool's answer, which must be there.
func (p *loginParser) of(name string) tool {
	t, there := p.said[name]
	if !there {
		p.odd("the line of %s is missing", name)
	}
	return t
}

// truth is an answer that is yes or no; another one is odd, with the exit code.
func (p *loginParser) truth(t tool, yes, no bool, odd string) bool {
	if !yes && !no {
		p.odd(odd, t.exit)
	}
	return yes
}

func (p *loginParser) state(user string) loginState {
	var s loginState
	vault := p.of("filevault")
	first, _, _ := strings.Cut(vault.text, "\n")
	s.fileVault = p.truth(vault, vault.exit == 0 && first == "FileVault is On.", vault.exit == 0 && first == "FileVault is Off.",
		"fdesetup status ended with exit %d and says neither on nor off")
	s.user = p.autoLoginUser()
	for _, name := range []string{"managed", "forbidden"} { // where nobody set it, it is false
		t := p.of(name)
		set := p.truth(t, t == tool{0, "1"}, t.missing() || t == tool{0, "0"}, "defaults read DisableAutoLoginClient ended with exit %d and no truth value")
		s.forbidden = s.forbidden || set
	}
	s.file, s.access = p.file()
	screen := p.of("console")
	if s.screen = screen.text; screen.exit != 0 || !kit.IsName(screen.text) {
		p.odd("stat of /dev/console ended with exit %d and no user", screen.exit)
	}
	// A release of macOS says in one of three ways that there is no session.
	session := p.of("session")
	s.session = p.truth(session, session == tool{0, "Aqua"}, session.exit == 112 || session.exit == 113 || session.exit == 125,
		"launchctl print gui/UID ended with exit %d and says neither that a session is there nor that none is")
	if s.session {
		return s
	}
	if s.screen == user {
		p.odd("the screen is %s's and yet launchd knows no session of his: one is beginning or ending", user)
	}
	s.dead = p.of("loginwindow") == tool{0, "dead"} // what else it says explains nothing
	work := p.of("work")                            // pgrep prints a process a line
	if p.truth(work, work.exit == 0 && work.text != "", work == tool{1, ""}, "pgrep ended with exit %d: whether a job or a virtual machine runs is not known") {
		s.work = strings.Join(strings.Fields(work.text), ", ")
	}
	return s
}

func (p *loginParser) autoLoginUser() string {
	t := p.of("user")
	switch {
	case t.missing(), t == tool{0, ""}:
	case t.exit == 0 && kit.IsName(t.text):
		return t.text
	default:
		p.odd("defaults read autoLoginUser ended with exit %d and no user", t.exit)
	}
	return ""
}

// file reads what kind of thing /etc/kcpassword holds, and who may read it.
func (p *loginParser) file() (kind, access string) {
	t := p.of("kcpassword")
	words := strings.Fields(t.text)
	kinds := []string{filePresent, fileSealed, fileEmpty, fileUnterminated}
	switch {
	case t == tool{0, fileAbsent}:
		return fileAbsent, ""
	case t.exit == 0 && len(words) == 3 && slices.Contains(kinds, words[0]):
		return words[0], fmt.Sprintf("%s %04s", words[1], words[2])
	}
	p.odd("what /etc/kcpassword is cannot be told (exit %d)", t.exit)
	return "", ""
}
