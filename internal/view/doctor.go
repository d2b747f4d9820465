package view

import (
	"fmt"
	"io"
	"strings"

	"github.com/charmbracelet/lipgloss"

	"github.com/macfleet/macfleet/internal/doctor"
	"github.com/macfleet/macfleet/internal/wire"
)

// Checkup prints the check list of one host: what is ok, what is a problem and
// what to do, and what nobody knows.
func (t *Text) Checkup(c doctor.Checkup) {
	title := t.styles.strong.Render(printable(c.Name))
	if c.Name != c.Server.Name {
		title += printable("  (server " + c.Server.Name + ")")
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
	t.line(0, "", fmt.Sprintf("%s: %d ok, %s, %d unknown.", count(len(c.Checks), "check"), c.Count(doctor.OK),
		count(c.Count(doctor.Problem), "problem"), c.Count(doctor.Unknown)))
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
		for _, part := range wrap(printable(text), t.width-lipgloss.Width(lead)) {
			fmt.Fprintln(t.out, strings.TrimRight(lead+part, " "))
			lead = strings.Repeat(" ", lipgloss.Width(lead))
		}
	}
}

// CheckupDocument is a checkup as one JSON object.
type CheckupDocument struct {
	wire.Head
	Name     string         `json:"name"`
	Server   string         `json:"server"`
	ServerID string         `json:"server_id"`
	Healthy  bool           `json:"healthy"`
	Checks   []CheckupCheck `json:"checks"`
}

// CheckupCheck is one check.
type CheckupCheck struct {
	Name    string `json:"name"`
	State   string `json:"state"`
	Text    string `json:"text"`
	Remedy  string `json:"remedy,omitempty"`
	Printed string `json:"printed,omitempty"` // what a step could not read, at most 500 bytes
}

// WriteCheckup prints a checkup as one JSON document.
func WriteCheckup(w io.Writer, c doctor.Checkup) error {
	d := CheckupDocument{Head: wire.NewHead(), Name: c.Name, Server: c.Server.Name,
		ServerID: c.Server.ID, Healthy: c.Healthy(), Checks: []CheckupCheck{}}
	for _, check := range c.Checks {
		d.Checks = append(d.Checks, CheckupCheck{check.Name, string(check.State), check.Text, check.Remedy, wire.Shortened(check.Bytes)})
	}
	return wire.Write(w, d)
}
