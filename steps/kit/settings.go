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

// Setting is one value of a step, seen and wanted, in normal form. The name and the values
// are part of the digests in the markers: changing one makes every host drift after an
// upgrade. plan.FieldName holds the names that people read instead.
type Setting struct{ Name, Seen, Wanted string }

// Compare returns a setting with its seen and its wanted value.
func Compare(name, seen, wanted string) Setting { return Setting{name, seen, wanted} }

// Differs reports whether the seen value is not the wanted one.
func (s Setting) Differs() bool { return s.Seen != s.Wanted }

// Wanted returns the wanted values as text.
func Wanted(all []Setting) string { return text(all, func(s Setting) string { return s.Wanted }) }

// Facts returns the seen values as text.
func Facts(all []Setting) string { return text(all, func(s Setting) string { return s.Seen }) }

// text writes one value of each setting per line.
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
	if plainText(value) { // the usual case; quoting is slow
		to.WriteByte('"')
		to.WriteString(value)
		to.WriteByte('"')
	} else {
		to.WriteString(strconv.Quote(value))
	}
	to.WriteByte('\n')
}

// plainText reports whether strconv.Quote would escape nothing in a text.
func plainText(text string) bool {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

// Differing counts the settings that differ.
func Differing(all []Setting) int {
	n := 0
	for _, s := range all {
		if s.Differs() {
			n++
		}
	}
	return n
}

// Fields returns the settings that differ, for display.
func Fields(all ...Setting) []plan.Field {
	n := Differing(all) // plans of large fleets are mostly fields, so allocate exactly
	if n == 0 {
		return nil
	}
	out := make([]plan.Field, 0, n)
	for _, s := range all {
		if s.Differs() {
			out = append(out, plan.Field{Name: plan.FieldName(s.Name), Before: s.Seen, After: s.wantedText()})
		}
	}
	return out
}

// wantedTexts are the wanted values that people read, where the digests have other words.
var wantedTexts = map[[2]string]string{
	{"process", "runs"}:                  "running",
	{"folders", "the login user's"}:      "owned by the login user",
	{"/etc/sudoers.d/macfleet", "right"}: AsRendered,
}

func (s Setting) wantedText() string {
	return cmp.Or(wantedTexts[[2]string{s.Name, s.Wanted}], s.Wanted)
}

// Found returns the finding of a step: the unread answers, if any, or else the facts and the
// changes that have fields. A reason without a text gets one from its fields.
func (r *Reader) Found(all []Setting, changes ...plan.Change) plan.Finding {
	if len(r.Unread) > 0 {
		return plan.Finding{Unread: r.Unread}
	}
	n := 0
	for i := range changes {
		if len(changes[i].Fields) > 0 {
			n++
		}
	}
	f := plan.Finding{Facts: Facts(all)}
	if n > 0 { // a slice that holds no more than the plan keeps
		f.Changes = make([]plan.Change, 0, n)
	}
	for i := range changes {
		if c := &changes[i]; len(c.Fields) > 0 {
			c.Reason.Text = cmp.Or(c.Reason.Text, isNot(c.Fields))
			f.Changes = append(f.Changes, *c)
		}
	}
	return f
}

// Refused returns the finding for a difference that macfleet must not remove.
func Refused(t *plan.Trouble) plan.Finding {
	return plan.Finding{Facts: Facts([]Setting{{Name: t.Code.String(), Seen: t.Text}}), Refused: t}
}

// When returns the reason if it applies, or else the zero reason.
func When(is bool, code plan.Code, text string) plan.Reason {
	return Choose(is, plan.Reason{Code: code, Text: text}, plan.Reason{})
}

// Causes returns the reasons that apply, in the given order. If none does, an earlier run
// was left unfinished.
func Causes(all ...plan.Reason) []plan.Reason {
	all = slices.DeleteFunc(all, func(r plan.Reason) bool { return r == plan.Reason{} })
	if len(all) == 0 {
		return []plan.Reason{{Code: plan.CodeUnfinished, Text: "an earlier run started this change and did not finish it"}}
	}
	return all
}

// Choose returns one if yes, and other if not.
func Choose[T any](yes bool, one, other T) T {
	if yes {
		return one
	}
	return other
}

// ListOr joins a list for display; an empty list is none.
func ListOr(all []string, none string) string {
	if len(all) == 0 {
		return none
	}
	return strings.Join(all, "; ")
}

// Switched formats a boolean as on or off.
func Switched(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

// isNot lists fields with their current values.
func isNot(diff []plan.Field) string {
	if len(diff) == 1 {
		return diff[0].Name + ": " + diff[0].Before
	}
	var out []string
	for _, f := range diff {
		out = append(out, f.Name+": "+f.Before)
	}
	return strings.Join(out, ", ")
}

// IsName reports whether a text can be a Mac's name: it is one non-empty line.
func IsName(text string) bool {
	return strings.TrimSpace(text) != "" && !strings.ContainsFunc(text, unicode.IsControl)
}

// Count formats a number of things: "1 Pod", "2 Pods".
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
