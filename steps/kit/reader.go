package kit

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/macfleet/macfleet/plan"
)

// Reader reads the answers of one step and collects those it cannot parse.
type Reader struct {
	Facts  plan.Facts
	Unread []plan.Unread
}

// Answer returns a probe's answer. If there is none, ok is false and the probe is added to
// Unread.
func (r *Reader) Answer(id string) (a plan.Answer, ok bool) {
	seen := r.Facts.Get(id)
	a, ok = seen.Get()
	if !ok {
		r.Unread = append(r.Unread, plan.Unread{Probe: id, Why: seen.Why()})
	}
	return a, ok
}

// Unreadable returns the finding of an unconfigured step whose answers could not be read. It is
// incomplete only on hosts where macfleet applied the step before. blind is false if
// everything was read.
func (r *Reader) Unreadable(v plan.View) (f plan.Finding, blind bool) {
	if v.Verified || v.Pending {
		f.Unread = r.Unread
	}
	return f, len(r.Unread) > 0
}

// Unexpected records an answer that the step cannot parse.
func (r *Reader) Unexpected(id, why string, a plan.Answer) {
	bytes := a.Stdout
	if a.Stderr != "" {
		bytes += a.Stderr
	}
	r.Unread = append(r.Unread, plan.Unread{Probe: id, Why: why, Bytes: bytes})
}

// Preference reads a whole number from `defaults read`. A key that does not exist (exit code
// 1 and a message) gives missing.
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
		r.Unexpected(id, fmt.Sprintf("defaults read: exit code %d and no number", a.Exit), a)
		return 0
	}
	return n
}

// Part is one part of a script's answer: what one tool printed, its exit code, and its
// subject, such as a path.
type Part struct {
	Name string
	Exit int
	Of   string
	Body string
}

// Lines returns the part's non-empty lines.
func (p Part) Lines() []string {
	return slices.AppendSeq(make([]string, 0, strings.Count(p.Body, "\n")+1), p.lines())
}

func (p Part) lines() iter.Seq[string] {
	return func(yield func(string) bool) {
		for line := range strings.Lines(p.Body) {
			if line = strings.TrimRight(line, "\n"); strings.TrimSpace(line) != "" && !yield(line) {
				return
			}
		}
	}
}

// Value returns the rest of the first line that begins with a word.
func (p Part) Value(word string) string {
	for line := range p.lines() {
		if rest, ok := strings.CutPrefix(line, word); ok && strings.HasPrefix(rest, " ") {
			return rest[1:]
		}
	}
	return ""
}

// Worked returns an error if the part's tool failed.
func (p Part) Worked() error {
	if p.Exit != 0 {
		return fmt.Errorf("exit code %d", p.Exit)
	}
	return nil
}

// partMark starts the line after each part of an answer.
const partMark = "\n== "

// Parts splits the answer of a probe and passes each part to take. A truncated answer, or
// one that take rejects, is recorded as unread.
func (r *Reader) Parts(id string, take func(Part) error) {
	a, ok := r.Answer(id)
	if !ok {
		return
	}
	rest := a.Stdout
	for {
		body, after, found := strings.Cut(rest, partMark)
		if !found {
			r.Unexpected(id, "the answer is truncated", a)
			return
		}
		var head string
		head, rest, _ = strings.Cut(after, "\n")
		if head == "end" && a.Exit != 0 {
			r.Unexpected(id, fmt.Sprintf("the script failed with exit code %d", a.Exit), a)
		}
		if head == "end" {
			return
		}
		p, err := newPart(head, body)
		if err == nil {
			err = take(p)
		}
		if err != nil {
			r.Unexpected(id, fmt.Sprintf("%q: %v", head, err), a)
			return
		}
	}
}

// ErrPart reports an unknown part of an answer.
var ErrPart = errors.New("unknown part of the answer")

// newPart parses the line after a part: its name, the tool's exit code, and its subject.
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

// JobCode checks the exit code of launchctl print: 113 means that launchd has no such job.
func JobCode(exit int) error {
	if exit != 0 && exit != 113 {
		return fmt.Errorf("launchctl print: exit code %d", exit)
	}
	return nil
}

// FileState is a file's content, owner, group and mode as seen.
type FileState struct{ Text, Mode string }

// Is compares a file with what macfleet writes: AsRendered, or what differs.
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

// The state of an unchanged file, and owner, group and mode of files and programs that macfleet writes.
const (
	AsRendered  = "as rendered"
	FileMode    = "0:0:644"
	ProgramMode = "0:0:755"
)
