package steps

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// part is one part of the answer of a script that asks many things: what a tool
// printed, the exit code with which it ended, and what it is of.
type part struct {
	name string
	exit int
	of   string
	body string
}

// lines are the part's lines that hold something.
func (p part) lines() []string {
	var out []string
	for line := range strings.Lines(p.body) {
		if line = strings.TrimRight(line, "\n"); strings.TrimSpace(line) != "" {
			out = append(out, line)
		}
	}
	return out
}

// value returns what follows a word on the first line that begins with it.
func (p part) value(word string) string {
	for _, line := range p.lines() {
		if rest, ok := strings.CutPrefix(line, word+" "); ok {
			return rest
		}
	}
	return ""
}

// worked is the error of a part whose tool failed.
func (p part) worked() error {
	if p.exit != 0 {
		return fmt.Errorf("it ended with exit %d", p.exit)
	}
	return nil
}

// takenApart cuts the answer of a probe into its parts and gives them to take. An
// answer that breaks off, or that take does not understand, is noted as unread.
func (r *reader) takenApart(id string, take func(part) error) {
	a, ok := r.answer(id)
	if !ok {
		return
	}
	rest := a.Stdout
	for {
		body, after, found := strings.Cut(rest, sectionMark)
		if !found {
			r.odd(id, "the answer breaks off", a)
			return
		}
		var head string
		head, rest, _ = strings.Cut(after, "\n")
		if head == "end" {
			return
		}
		p, err := newPart(head, body)
		if err == nil {
			err = take(p)
		}
		if err != nil {
			r.odd(id, fmt.Sprintf("%q: %v", head, err), a)
			return
		}
	}
}

var errPart = errors.New("this is no part of the answer")

func newPart(head, body string) (part, error) {
	name, rest, _ := strings.Cut(head, " ")
	code, of, _ := strings.Cut(rest, " ")
	exit, err := strconv.Atoi(code)
	if err != nil || name == "" {
		return part{}, errPart
	}
	return part{name: name, exit: exit, of: of, body: body}, nil
}
