package kit

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/macfleet/macfleet/plan"
)

// Setting is one value of a step: how a person calls it, and both sides in
// normal form.
type Setting struct{ Name, Seen, Wanted string }

// Compare returns a setting of what was seen and what is wanted.
func Compare(name, seen, wanted string) Setting { return Setting{name, seen, wanted} }

// Differs reports whether the two sides do.
func (s Setting) Differs() bool { return s.Seen != s.Wanted }

// Wanted is the side of settings that is wanted, as text.
func Wanted(all []Setting) string { return text(all, func(s Setting) string { return s.Wanted }) }

// Facts is the side of settings that was seen, as text.
func Facts(all []Setting) string { return text(all, func(s Setting) string { return s.Seen }) }

// text is one side of settings, a line each.
func text(all []Setting, side func(Setting) string) string {
	size := 0
	for _, s := range all {
		size += len(s.Name) + len(side(s)) + len(`="" `)
	}
	var b strings.Builder
	b.Grow(size)
	for _, s := range all {
		writeLine(&b, s.Name, side(s))
	}
	return b.String()
}

func writeLine(to *strings.Builder, name, value string) {
	to.WriteString(name)
	to.WriteByte('=')
	if plainText(value) { // nearly all are, and quoting is slow
		to.WriteByte('"')
		to.WriteString(value)
		to.WriteByte('"')
	} else {
		to.WriteString(strconv.Quote(value))
	}
	to.WriteByte('\n')
}

// plainText reports whether strconv.Quote would change nothing within a text.
func plainText(text string) bool {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

// Differing is how many settings differ.
func Differing(all []Setting) int {
	n := 0
	for _, s := range all {
		if s.Differs() {
			n++
		}
	}
	return n
}

// Fields returns the settings that differ, for a person.
func Fields(all ...Setting) []plan.Field {
	n := Differing(all) // plans of big fleets are mostly fields
	if n == 0 {
		return nil
	}
	out := make([]plan.Field, 0, n)
	for _, s := range all {
		if s.Differs() {
			out = append(out, plan.Field{Name: s.Name, Before: s.Seen, After: s.Wanted})
		}
	}
	return out
}

// Found is the finding of a step: what could not be read or, where all was, the settings as
// facts and those of the changes that have fields. A reason without a text says what these are.
func (r *Reader) Found(all []Setting, changes ...plan.Change) plan.Finding {
	if len(r.Unread) > 0 {
		return plan.Finding{Unread: r.Unread}
	}
	changes = slices.DeleteFunc(changes, func(c plan.Change) bool { return len(c.Fields) == 0 })
	for i := range changes {
		c := &changes[i]
		c.Reason.Text = cmp.Or(c.Reason.Text, isNot(c.Fields))
	}
	return plan.Finding{Facts: Facts(all), Changes: changes}
}

// Refused is the finding of a difference that macfleet must not remove. The
// trouble is what was seen.
func Refused(t *plan.Trouble) plan.Finding {
	return plan.Finding{Facts: Facts([]Setting{{Name: t.Code.String(), Seen: t.Text}}), Refused: t}
}

// When returns a reason where it is one.
func When(is bool, code plan.Code, text string) plan.Reason {
	return Choose(is, plan.Reason{Code: code, Text: text}, plan.Reason{})
}

// Causes returns what When found, the most telling first as it is given. Where that is
// nothing, an earlier run never finished.
func Causes(all ...plan.Reason) []plan.Reason {
	all = slices.DeleteFunc(all, func(r plan.Reason) bool { return r == plan.Reason{} })
	if len(all) == 0 {
		return []plan.Reason{{Code: plan.CodeUnfinished, Text: "an earlier run began and was never proven"}}
	}
	return all
}

// Choose returns one of two values.
func Choose[T any](yes bool, one, other T) T {
	if yes {
		return one
	}
	return other
}

// ListOr is a list as a person reads it, or what stands for an empty one.
func ListOr(all []string, none string) string {
	if len(all) == 0 {
		return none
	}
	return strings.Join(all, "; ")
}

// Switched is a switch as a person reads it.
func Switched(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

// isNot says of fields what they are.
func isNot(diff []plan.Field) string {
	var out []string
	for _, f := range diff {
		out = append(out, f.Name+": "+f.Before)
	}
	return strings.Join(out, ", ")
}

// IsName reports whether a text can be a Mac's name: what has several lines is
// chatter, and the name is not known.
func IsName(text string) bool {
	return strings.TrimSpace(text) != "" && !strings.ContainsFunc(text, unicode.IsControl)
}

// Count is a number of things as a person reads it.
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
