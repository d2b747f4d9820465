package view

import (
	"fmt"
	"io"
	"strings"

	"github.com/charmbracelet/lipgloss"

	"github.com/macfleet/macfleet/internal/doctor"
	"github.com/macfleet/macfleet/internal/wire"
	"github.com/macfleet/macfleet/plan"
)

// Checkup prints the check list of one host.
func (t *Text) Checkup(c doctor.Checkup) {
	t.styled(0, "", t.strong.Render(printable(c.Name))+printable(given(c.Name != c.Server, "  (server %s)", c.Server)))
	t.blank()
	column := 0
	for _, check := range c.Checks {
		column = max(column, lipgloss.Width(check.Name))
	}
	for i, check := range c.Checks {
		sign := map[doctor.State]string{doctor.OK: signOK, doctor.Problem: signRefused, doctor.Warning: signDrift, doctor.Unknown: signUnknown}[check.State]
		lead := "  " + t.signs[sign].Render(fmt.Sprintf("%-7s", check.State)) + fmt.Sprintf("  %-*s  ", column, check.Name)
		once := i+1 == len(c.Checks) || c.Checks[i+1].Remedy != check.Remedy // a remedy stands below the last that it is for
		for n, text := range []string{given(check.Code != plan.Code{}, "%s: ", check.Code) + check.Text, given(check.Bytes != "", "it printed: %q", wire.Shortened(check.Bytes)),
			given(once && check.Remedy != "", "do: %s", check.Remedy)} {
			if n == 0 || text != "" {
				t.behind(lead, printable(text))
				lead = strings.Repeat(" ", lipgloss.Width(lead))
			}
		}
	}
	t.blank()
	t.sayf("%s: %d ok, %s, %d unknown%s.", count(len(c.Checks), "check"), c.Count(doctor.OK),
		count(c.Count(doctor.Problem), "problem"), c.Count(doctor.Unknown), given(c.Count(doctor.Warning) > 0, ", %s", count(c.Count(doctor.Warning), "warning")))
}

// CheckupDocument is a checkup as one JSON object.
type CheckupDocument struct {
	wire.Head
	doctor.Checkup
}

// WriteCheckup prints a checkup as one JSON document.
func WriteCheckup(w io.Writer, c doctor.Checkup) error {
	c.Checks = wire.Each(c.Checks, func(check doctor.Check) doctor.Check {
		check.Bytes = wire.Shortened(check.Bytes)
		return check
	})
	return wire.Write(w, CheckupDocument{wire.NewHead(), c})
}
