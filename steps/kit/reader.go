package kit

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/macfleet/macfleet/plan"
)

// Reader reads the answers of one step and collects what it cannot use.
type Reader struct {
	Facts  plan.Facts
	Unread []plan.Unread
}

// Answer returns a probe's answer; ok is false when there is none, which is
// then noted.
func (r *Reader) Answer(id string) (a plan.Answer, ok bool) {
	seen := r.Facts.Get(id)
	a, ok = seen.Get()
	if !ok {
		r.Unread = append(r.Unread, plan.Unread{Probe: id, Why: seen.Why()})
	}
	return a, ok
}

// Blind is the finding of a step without a wish that cannot say what is left of it. Where
// nothing was ever proven or begun, nothing says that there is anything. blind is false
// where all was read.
func (r *Reader) Blind(v plan.View) (f plan.Finding, blind bool) {
	if v.Proven || v.Pending {
		f.Unread = r.Unread
	}
	return f, len(r.Unread) > 0
}

// Odd notes an answer that the step does not understand.
func (r *Reader) Odd(id, why string, a plan.Answer) {
	bytes := a.Stdout
	if a.Stderr != "" {
		bytes += a.Stderr
	}
	r.Unread = append(r.Unread, plan.Unread{Probe: id, Why: why, Bytes: bytes})
}

// Preference reads a whole number from `defaults read`; a key that does not
// exist, which defaults says in words with exit 1, is missing.
func (r *Reader) Preference(id string, missing int) int {
	a, ok := r.Answer(id)
	if !ok {
		return 0
	}
	if a.Exit == 1 && strings.Contains(a.Stderr, "does not exist") {
		return missing
	}
	n, err := strconv.Atoi(strings.TrimSpace(a.Stdout))
	if a.Exit != 0 || err != nil || n < 0 {
		r.Odd(id, fmt.Sprintf("defaults read ended with exit %d and no whole number", a.Exit), a)
		return 0
	}
	return n
}

// Part is one part of the answer of a script that asks many things: what a tool
// printed, the exit code with which it ended, and what it is of.
type Part struct {
	Name string
	Exit int
	Of   string
	Body string
}

// Lines are the part's lines that hold something.
func (p Part) Lines() []string {
	var out []string
	for line := range strings.Lines(p.Body) {
		if line = strings.TrimRight(line, "\n"); strings.TrimSpace(line) != "" {
			out = append(out, line)
		}
	}
	return out
}

// Value returns what follows a word on the first line that begins with it.
func (p Part) Value(word string) string {
	for _, line := range p.Lines() {
		if rest, ok := strings.CutPrefix(line, word+" "); ok {
			return rest
		}
	}
	return ""
}

// Worked is the error of a part whose tool failed.
func (p Part) Worked() error {
	if p.Exit != 0 {
		return fmt.Errorf("it ended with exit %d", p.Exit)
	}
	return nil
}

// partMark begins the line behind each part of an answer.
const partMark = "\n== "

// Parts cuts the answer of a probe into its parts and gives them to take. An
// answer that breaks off, or that take does not understand, is noted as unread.
func (r *Reader) Parts(id string, take func(Part) error) {
	a, ok := r.Answer(id)
	if !ok {
		return
	}
	rest := a.Stdout
	for {
		body, after, found := strings.Cut(rest, partMark)
		if !found {
			r.Odd(id, "the answer breaks off", a)
			return
		}
		var head string
		head, rest, _ = strings.Cut(after, "\n")
		if head == "end" && a.Exit != 0 {
			r.Odd(id, fmt.Sprintf("the script ended with exit %d", a.Exit), a)
		}
		if head == "end" {
			return
		}
		p, err := newPart(head, body)
		if err == nil {
			err = take(p)
		}
		if err != nil {
			r.Odd(id, fmt.Sprintf("%q: %v", head, err), a)
			return
		}
	}
}

// ErrPart says that nobody knows such a part.
var ErrPart = errors.New("this is no part of the answer")

// newPart reads the line behind a part: its name, the exit code of what gave it, and
// what it is of.
func newPart(head, body string) (Part, error) {
	_, rest, more := strings.Cut(head, " ")
	for more {
		var code, of string
		code, of, more = strings.Cut(rest, " ")
		if exit, err := strconv.Atoi(code); err == nil {
			return Part{Name: head[:len(head)-len(rest)-1], Exit: exit, Of: of, Body: body}, nil
		}
		rest = of
	}
	return Part{}, ErrPart
}

// JobCode reads the exit code of launchctl print: 113 is a job that launchd does
// not have.
func JobCode(exit int) error {
	if exit != 0 && exit != 113 {
		return fmt.Errorf("launchctl print ended with exit %d", exit)
	}
	return nil
}

// FileState is a file as it was seen, with its owner, group and mode.
type FileState struct{ Text, Mode string }

// Is says how a file compares with what macfleet writes: as rendered, or what is else.
func (f FileState) Is(rendered bool, mode string) string {
	switch {
	case f.Mode == "":
		return "missing"
	case !rendered:
		return "edited"
	case f.Mode != mode:
		return "owner and mode " + f.Mode
	}
	return AsRendered
}

// What is right of a file that macfleet writes, and owner, group and mode of one, and of a program.
const (
	AsRendered  = "as rendered"
	FileMode    = "0:0:644"
	ProgramMode = "0:0:755"
)
