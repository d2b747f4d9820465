package view

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/charmbracelet/lipgloss"

	"github.com/macfleet/macfleet/internal/doctor"
	"github.com/macfleet/macfleet/internal/wire"
)

// Checkup prints the check list of one host: what is ok, what is a problem and
// what to do, and what nobody knows.
func (t *Text) Checkup(c doctor.Checkup) {
	title := t.styles.strong.Render(printable(c.Name))
	if c.Name != c.Server {
		title += printable("  (server " + c.Server + ")")
	}
	t.styled(0, "", title)
	t.blank()
	column := 0
	for _, check := range c.Checks {
		column = max(column, lipgloss.Width(check.Name))
	}
	for i, check := range c.Checks {
		if i+1 < len(c.Checks) && c.Checks[i+1].Remedy == check.Remedy {
			check.Remedy = "" // it stands once, below the last that it is for
		}
		t.check(check, column)
	}
	t.blank()
	t.sayf("%s: %d ok, %s, %d unknown.", count(len(c.Checks), "check"), c.Count(doctor.OK),
		count(c.Count(doctor.Problem), "problem"), c.Count(doctor.Unknown))
}

// check prints one check behind its state and its name, which is column wide.
func (t *Text) check(c doctor.Check, column int) {
	state := fmt.Sprintf("%-7s", c.State)
	switch c.State {
	case doctor.OK:
		state = t.styles.create.Render(state)
	case doctor.Problem:
		state = t.styles.remove.Render(state)
	case doctor.Unknown:
		state = t.styles.unknown.Render(state)
	}
	lead := "  " + state + "  " + c.Name + strings.Repeat(" ", column-lipgloss.Width(c.Name)) + "  "
	texts := []string{c.Text}
	if c.Bytes != "" {
		texts = append(texts, "it printed: "+fmt.Sprintf("%q", wire.Shortened(c.Bytes)))
	}
	if c.Remedy != "" {
		texts = append(texts, "do: "+c.Remedy)
	}
	for _, text := range texts {
		t.behind(lead, printable(text))
		lead = strings.Repeat(" ", lipgloss.Width(lead))
	}
}

// CheckupDocument is a checkup as one JSON object.
type CheckupDocument struct {
	wire.Head
	doctor.Checkup
}

// WriteCheckup prints a checkup as one JSON document. Of what a step could not read it has
// no more than a person is shown.
func WriteCheckup(w io.Writer, c doctor.Checkup) error {
	c.Checks = slices.Clone(c.Checks)
	for i := range c.Checks {
		c.Checks[i].Bytes = wire.Shortened(c.Checks[i].Bytes)
	}
	return wire.Write(w, CheckupDocument{wire.NewHead(), c})
}
