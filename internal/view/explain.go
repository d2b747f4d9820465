package view

import (
	"fmt"
	"strings"

	"github.com/charmbracelet/lipgloss"

	"github.com/macfleet/macfleet/internal/doctor"
	"github.com/macfleet/macfleet/internal/wire"
	"github.com/macfleet/macfleet/plan"
)

// Explain shows one host with every value, where it was written, what was seen,
// what would be done and why. With a step it shows that step alone.
func (t *Text) Explain(x doctor.Explanation, only plan.StepID) {
	h := x.Host
	t.styled(0, "", t.styles.strong.Render(h.Name)+printable(fmt.Sprintf(", %s of fleet %s, group %s", standing(h), h.Fleet, h.Group)))
	if only == "" {
		t.machine(x)
		for _, r := range troubles(h) {
			if h.Unknown != nil || h.Refused != nil {
				t.line(2+2*r.depth, r.sign, strings.ReplaceAll(strings.ReplaceAll(r.text, anyName, h.Name), ownName, h.Name))
			}
		}
		for _, a := range x.Actions {
			t.blank()
			t.action(h, a)
		}
	}
	for _, s := range x.Steps {
		if only == "" || s.ID == only {
			t.blank()
			t.step(h, s)
		}
	}
}

func standing(h plan.Host) string {
	if h.Member {
		return "a member"
	}
	return "to be claimed from the pool as a member"
}

// machine shows what the provider and the host say of the machine.
func (t *Text) machine(x doctor.Explanation) {
	h := x.Host
	for _, v := range []doctor.Effective{x.Type, x.OS} {
		t.pair(v.Path, fmt.Sprintf("%s, written in %s", v.Text, written(v)))
	}
	server := fmt.Sprintf("%s, type %s in %s, status %s", h.Server.ID, h.Server.Type, h.Server.Zone, h.Server.Status)
	if h.Server.Name != h.Name {
		server += ", now called " + h.Server.Name
	}
	t.pair("server", server)
	if h.Unknown != nil {
		t.pair("address", h.Server.Address)
		return
	}
	address := h.Server.Address
	if h.Seen.Path != "" {
		address += ", reached by " + h.Seen.Path
	}
	t.pair("address", address)
	pinned := "not pinned"
	if h.Seen.Pinned {
		pinned = "pinned"
	}
	t.pair("host key", h.Seen.Fingerprint+", "+pinned)
	os, _ := h.Seen.OSVersion.Get()
	serial, _ := h.Seen.Serial.Get()
	t.pair("macOS", or(os, "not known")+", serial number "+or(serial, "not known"))
	marker := "none"
	if m, ok := h.Seen.Marker.Get(); ok {
		marker = fmt.Sprintf("of %s, written by macfleet %s", m.Owner(), m.Version)
	} else if h.Seen.Marker.IsUnread() {
		marker = "not read: " + h.Seen.Marker.Why()
	}
	t.pair("marker", marker)
}

func or(text, other string) string {
	if text == "" {
		return other
	}
	return text
}

// pair prints a word and what is said of it.
func (t *Text) pair(word, text string) { t.line(2, fmt.Sprintf("%-9s", word), text) }

// detail is pair one level deeper, of a step.
func (t *Text) detail(word, text string) { t.line(4, fmt.Sprintf("%-7s", word), text) }

func (t *Text) action(h plan.Host, a plan.Action) {
	t.line(0, string(a.Kind.Sign()), label(a))
	for _, f := range a.Fields {
		t.detail("differs", fmt.Sprintf("%s: %s → %s", f.Name, or(f.Before, "not set"), or(f.After, "not set")))
	}
	t.detail("why", fmt.Sprintf("%s: %s", a.Reason.Code, a.Reason.Text))
	if a.Refusal != nil {
		t.refused(*a.Refusal)
	}
}

func (t *Text) refused(x plan.Trouble) {
	t.detail("refused", x.Code.String()+": "+x.Text)
	if x.Remedy != "" {
		t.detail("to do", x.Remedy)
	}
}

func (t *Text) step(h plan.Host, s doctor.StepExplanation) {
	sign, state := verdict(h, s)
	t.line(0, sign, string(s.ID)+": "+state)
	var rows [][]string
	for _, v := range s.Values {
		name, text := strings.TrimPrefix(v.Path, string(s.ID)+"."), v.Text
		if v.Text == "" {
			name, text = v.Path, "{}"
		}
		rows = append(rows, []string{name, text, string(v.Source.Level), place(v)})
	}
	t.columns(4, rows)
	for i, line := range strings.Split(strings.TrimSuffix(s.Finding.Facts, "\n"), "\n") {
		if s.Finding.Facts != "" {
			t.detail(first(i, "seen"), line)
		}
	}
	for _, u := range s.Finding.Unread {
		t.detail("unread", u.Probe+": "+u.Why)
		if u.Bytes != "" {
			t.detail("", fmt.Sprintf("it printed %q", wire.Shortened(u.Bytes)))
		}
	}
	for _, w := range s.Finding.Warnings {
		t.detail("warning", w.Code.String()+": "+w.Text)
	}
	for i, f := range changedFields(s) {
		t.detail(first(i, "differs"), fmt.Sprintf("%s: %s → %s", f.Name, or(f.Before, "not set"), or(f.After, "not set")))
	}
	if s.Action != nil {
		for i, c := range s.Action.Changes {
			t.detail(first(i, "would"), fmt.Sprintf("run %s as %s (%s)", c.Command.Name, asWhom(h, c.Command), c.Reason.Code))
		}
		t.detail("why", s.Action.Reason.Code.String()+": "+s.Action.Reason.Text)
		t.detail("harm", s.Action.Disruption.String())
		if text := s.Action.Undo(); text != "" {
			t.detail("undo", text)
		}
		if s.Action.Refusal != nil {
			t.refused(*s.Action.Refusal)
		}
	}
	if h.Unknown == nil && (s.Wanted || s.Proof != nil) {
		t.detail("proof", proof(s))
	}
}

// first returns the word for the first of several lines.
func first(i int, word string) string {
	if i == 0 {
		return word
	}
	return ""
}

func changedFields(s doctor.StepExplanation) []plan.Field {
	var out []plan.Field
	for _, c := range s.Finding.Changes {
		out = append(out, c.Fields...)
	}
	return out
}

// asWhom names the user that a script runs as.
func asWhom(h plan.Host, c plan.Command) string {
	if c.As == plan.Login {
		return h.Spec.User
	}
	return string(c.As)
}

// verdict says how a step stands.
func verdict(h plan.Host, s doctor.StepExplanation) (sign, state string) {
	switch {
	case len(s.Finding.Unread) > 0:
		return signUnknown, "not compared"
	case s.Action != nil:
		return string(s.Action.Kind.Sign()), "differs"
	case !s.Wanted:
		return "", "not in the configuration"
	case !s.Compared():
		return signUnknown, "not compared"
	}
	return "=", "matches"
}

// proof says what the marker holds of a step, and what moved since.
func proof(s doctor.StepExplanation) string {
	if s.Proof == nil {
		return "none yet"
	}
	text := "at a time that was not noted"
	if !s.Proof.At.IsZero() {
		text = s.Proof.At.UTC().Format("2006-01-02 15:04:05 UTC")
	}
	switch o := s.Moved(); {
	case !s.Compared():
		return text
	case o.Drift && o.Pending:
		return text + "; since then the host and the configuration moved"
	case o.Drift:
		return text + "; since then the host moved"
	case o.Pending:
		return text + "; since then the configuration moved"
	}
	return text + "; nothing moved since"
}

// written says where a value that somebody must have written stands.
func written(v doctor.Effective) string {
	return strings.TrimSpace(fmt.Sprintf("%s %s", v.Source.Level, place(v)))
}

// place returns "file:line", or nothing for a value that nobody wrote.
func place(v doctor.Effective) string {
	if v.Source.File == "" {
		return ""
	}
	return v.Source.String()
}

// columns prints rows of aligned cells without a head. A row that does not fit
// is wrapped.
func (t *Text) columns(indent int, rows [][]string) {
	var widths []int
	for _, r := range rows {
		for i, c := range r {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], lipgloss.Width(printable(c)))
		}
	}
	for _, r := range rows {
		var b strings.Builder
		for i, c := range r {
			c = printable(c)
			b.WriteString(c + strings.Repeat(" ", widths[i]-lipgloss.Width(c)+2))
		}
		text := strings.TrimRight(b.String(), " ")
		if t.width > 0 && indent+lipgloss.Width(text) > t.width {
			t.line(indent, "", text)
			continue
		}
		fmt.Fprintln(t.out, strings.Repeat(" ", indent)+text)
	}
}
