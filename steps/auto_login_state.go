package steps

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
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
func (r *reader) loginState(id, user string) loginState {
	a, ok := r.answer(id)
	if !ok {
		return loginState{}
	}
	var p loginParser
	p.lines(a.Stdout)
	if a.Exit != 0 {
		p.odd("the script ended with exit %d", a.Exit)
	}
	s := p.state(user)
	if p.err != nil {
		r.odd(id, p.err.Error(), a)
		return loginState{}
	}
	return s
}

// loginParser turns what the tools said into a state, and keeps the first thing
// that it does not understand.
type loginParser struct {
	tools [9]tool
	there [9]bool
	err   error
}

// toolAt returns a tool's place in the parser by the name of its line, or -1.
func toolAt(name string) int {
	return slices.Index([]string{"filevault", "managed", "forbidden", "user", "kcpassword", "console", "session", "loginwindow", "work"}, name)
}

func (p *loginParser) odd(format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf(format, args...)
	}
}

// lines takes the answer apart: lines of name, exit code and text. A line that
// does not look so goes on with the text before it.
func (p *loginParser) lines(text string) {
	last, begin, end := -1, 0, 0 // the text that may go on
	for line := range strings.Lines(text) {
		name, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		code, said, _ := strings.Cut(rest, " ")
		exit, err := strconv.Atoi(code)
		at := toolAt(name)
		end += len(line)
		switch {
		case at < 0 || err != nil:
			if last < 0 {
				p.odd("the first line is no answer: %q", line)
				return
			}
			p.tools[last].text = strings.TrimSuffix(text[begin:end], "\n")
			continue
		case p.there[at]:
			p.odd("two lines of %s", name)
		}
		p.tools[at], p.there[at] = tool{exit, said}, true
		last, begin = at, end-len(line)+len(name)+1+len(code)+1
	}
}

// said returns a tool's answer, which must be there.
func (p *loginParser) said(name string) tool {
	at := toolAt(name)
	if !p.there[at] {
		p.odd("the line of %s is missing", name)
	}
	return p.tools[at]
}

func (p *loginParser) state(user string) loginState {
	s := loginState{fileVault: p.fileVault(), user: p.autoLoginUser()}
	managed, forbidden := p.flag("managed"), p.flag("forbidden")
	s.forbidden = managed || forbidden
	s.file, s.access = p.file()
	s.screen = p.screen()
	if s.session = p.session(); s.session {
		return s
	}
	if s.screen == user {
		p.odd("the screen is %s's and yet launchd knows no session of his: one is beginning or ending", user)
	}
	window := p.said("loginwindow")
	s.dead = window == tool{0, "dead"} // what else it says explains nothing
	s.work = p.work()
	return s
}

func (p *loginParser) fileVault() bool {
	t := p.said("filevault")
	first, _, _ := strings.Cut(t.text, "\n")
	switch {
	case t.exit == 0 && first == "FileVault is Off.":
	case t.exit == 0 && first == "FileVault is On.":
		return true
	default:
		p.odd("fdesetup status ended with exit %d and says neither on nor off", t.exit)
	}
	return false
}

// flag reads a truth value that is false where nobody set it.
func (p *loginParser) flag(name string) bool {
	t := p.said(name)
	switch {
	case t.missing(), t == tool{0, "0"}:
	case t == tool{0, "1"}:
		return true
	default:
		p.odd("defaults read DisableAutoLoginClient ended with exit %d and no truth value", t.exit)
	}
	return false
}

func (p *loginParser) autoLoginUser() string {
	t := p.said("user")
	switch {
	case t.missing(), t == tool{0, ""}:
	case t.exit == 0 && isName(t.text):
		return t.text
	default:
		p.odd("defaults read autoLoginUser ended with exit %d and no user", t.exit)
	}
	return ""
}

// file reads what kind of thing /etc/kcpassword holds, and who may read it.
func (p *loginParser) file() (kind, access string) {
	t := p.said("kcpassword")
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

func (p *loginParser) screen() string {
	t := p.said("console")
	if t.exit != 0 || !isName(t.text) {
		p.odd("stat of /dev/console ended with exit %d and no user", t.exit)
	}
	return t.text
}

// session reports whether the session is there. A release of macOS says that
// there is none in one of three ways.
func (p *loginParser) session() bool {
	t := p.said("session")
	switch {
	case t == tool{0, "Aqua"}:
		return true
	case t.exit != 112 && t.exit != 113 && t.exit != 125:
		p.odd("launchctl print gui/UID ended with exit %d and says neither that a session is there nor that none is", t.exit)
	}
	return false
}

// work returns the processes found, of which pgrep prints one a line.
func (p *loginParser) work() string {
	t := p.said("work")
	switch {
	case t.exit == 1 && t.text == "":
	case t.exit == 0 && t.text != "":
		return strings.Join(strings.Fields(t.text), ", ")
	default:
		p.odd("pgrep ended with exit %d: whether a job or a virtual machine runs is not known", t.exit)
	}
	return ""
}
