package view

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/charmbracelet/lipgloss"

	"github.com/macfleet/macfleet/internal/doctor"
	"github.com/macfleet/macfleet/internal/wire"
	"github.com/macfleet/macfleet/plan"
)

// checkMarks are the signs of checks by their state.
var checkMarks = map[doctor.State]string{doctor.OK: markDone, doctor.Problem: markFailed, doctor.Warning: signDrift, doctor.Unknown: signUnknown}

// Checkup prints the verdict on one host, then what is wrong with it and the fix. The checks that are ok are counted, or listed.
func (t *Text) Checkup(c doctor.Checkup, listed bool) {
	well := c.Count(doctor.OK)
	mark, end := markDone, "exit 0"
	text, what := count(len(c.Checks), "check")+" ok", given(!listed, " (-v lists them)")
	if !c.Healthy {
		text, what = found(c)
		mark, end = cmp.Or(given(c.Count(doctor.Problem) > 0, markFailed), signUnknown), "exit 3"
	}
	name := c.Name + given(c.Name != c.Server, " (server %s)", c.Server)
	if whole := name + ": " + text + what; t.width == 0 || lipgloss.Width(printable(whole))+len(end)+4 <= t.width {
		text += what
	}
	t.verdict(mark, name+": "+text, end)
	if c.Hold != nil {
		t.line(0, signUnknown, "held "+c.Hold.String())
	}
	fixes := make(map[string]bool) // that are printed
	for _, state := range []doctor.State{doctor.Problem, doctor.Warning, doctor.Unknown} {
		t.checks(c, state, fixes)
	}
	switch {
	case well == 0, c.Healthy && !listed:
	case listed:
		var rows [][]string
		for _, check := range c.Checks {
			if check.State == doctor.OK {
				rows = append(rows, []string{markDone, check.Name, check.Text})
			}
		}
		t.columns(0, rows)
	default:
		t.line(0, markDone, fmt.Sprintf("%s ok (-v lists them)", count(well, "other check")))
	}
	codes := slices.Compact(slices.Sorted(slices.Values(mapped(c.Checks, func(check doctor.Check) string { return check.Code.String() }))))
	switch codes = nonempty(codes...); len(codes) {
	case 0:
	case 1:
		t.Say("Details: macfleet explain " + codes[0])
	default:
		t.Say("Details: macfleet explain CODE")
	}
}

// found counts what is wrong, and names it where it is one thing.
func found(c doctor.Checkup) (counts, what string) {
	counts = listed(", ", given(c.Count(doctor.Problem) > 0, "%s", count(c.Count(doctor.Problem), "problem")),
		given(c.Count(doctor.Warning) > 0, "%s", count(c.Count(doctor.Warning), "warning")), some(c.Count(doctor.Unknown), "unknown"))
	wrong := slices.DeleteFunc(slices.Clone(c.Checks), func(check doctor.Check) bool { return check.State == doctor.OK })
	if len(wrong) > 1 {
		return counts, ""
	}
	return counts, ": " + wrong[0].Name + given(wrong[0].Code != plan.Code{}, " (%s)", wrong[0].Code)
}

// verdict prints what came of a command, and its exit code at the end of the line.
func (t *Text) verdict(mark, text, end string) {
	lead := t.signs[mark].Render(mark) + " "
	if t.width > 0 && lipgloss.Width(lead)+lipgloss.Width(text)+2+len(end) > t.width {
		t.behind(lead, printable(text+"  "+end))
		return
	}
	gap := max(2, t.width-lipgloss.Width(lead)-lipgloss.Width(printable(text))-len(end))
	fmt.Fprintln(t.out, t.plain(lead+t.strong.Render(printable(text)))+strings.Repeat(" ", gap)+end)
}

// checks prints the checks of one state; those with the same text stand in one line, and a fix below the last of those in a
// row that it is for, once.
func (t *Text) checks(c doctor.Checkup, state doctor.State, fixes map[string]bool) {
	all := slices.DeleteFunc(slices.Clone(c.Checks), func(check doctor.Check) bool { return check.State != state })
	same := grouped(all, func(check doctor.Check) [3]string { return [3]string{check.Code.String(), check.Text, check.Remedy} })
	for i, of := range same {
		first := of[0]
		t.line(0, checkMarks[state], joined(of, func(check doctor.Check) string { return check.Name })+given(first.Code != plan.Code{}, " (%s)", first.Code)+": "+brief(strings.TrimPrefix(first.Text, first.Name+": ")))
		if first.Bytes != "" {
			t.line(4, "", fmt.Sprintf("printed: %q", wire.Shortened(first.Bytes)))
		}
		if first.Remedy != "" && !fixes[first.Remedy] && (i+1 == len(same) || same[i+1][0].Remedy != first.Remedy) {
			fixes[first.Remedy] = true
			t.line(4, "", "fix: "+first.Remedy)
		}
	}
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
