package view

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/runlog"
	"github.com/macfleet/macfleet/plan"
)

// Runs shows the runs of a folder as a table, the newest first.
func (t *Text) Runs(runs []runlog.Brief) {
	if len(runs) == 0 {
		t.line(0, "", "No runs: nothing was applied from here yet.")
		return
	}
	rows := [][]string{{"WHEN", "ID", "WHO", "WHAT", "OUTCOME", "TOOK"}}
	for _, b := range runs {
		took := "-"
		if b.End != nil {
			took = b.Lasted.Round(time.Second).String()
		}
		rows = append(rows, []string{when(b.Head.Started), b.Head.ID, b.Head.Who, what(b.Head), outcomeText(b.Outcome, b.End), took})
	}
	t.table(rows)
}

func when(at time.Time) string { return at.UTC().Format("2006-01-02 15:04:05 MST") }

// what says what a run was to do, and where.
func what(h runlog.Head) string {
	text := h.Command + " " + cmp.Or(h.Environment, h.Configuration)
	for _, part := range []struct {
		flag string
		of   []string
	}{{"--on", h.Selection.On}, {"--exclude", h.Selection.Exclude}, {"--step", h.Selection.Steps}} {
		for _, v := range part.of {
			text += " " + part.flag + " " + v
		}
	}
	if h.Selection.Rollback {
		text += " --rollback"
	}
	return text
}

func outcomeText(o runlog.Outcome, end *runlog.End) string {
	switch {
	case o == runlog.LeftAtOnce:
		return "left at once"
	case o == runlog.Converged && end.Done == 0:
		return "converged, nothing to do"
	case o != runlog.Incomplete:
		return string(o)
	}
	var parts []string
	for _, part := range []struct {
		n    int
		what string
	}{{end.Failed, "failed"}, {end.NotStarted, "not started"}, {end.NotWaited, "not waited for"}} {
		if part.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", part.n, part.what))
		}
	}
	if len(parts) == 0 {
		return "did not converge"
	}
	return strings.Join(parts, ", ")
}

// Run shows one run: whose, what it came to, and what happened on each host.
func (t *Text) Run(r runlog.Record) {
	h := r.Head
	fmt.Fprintln(t.out, t.styles.strong.Render(printable("Run "+h.ID+": "+what(h))))
	t.line(2, "", fmt.Sprintf("who      %s", h.Who))
	if len(h.Arguments) > 0 { // what was lifted for it is among them
		t.line(2, "", "with     "+strings.Join(h.Arguments, " "))
	}
	t.line(2, "", fmt.Sprintf("when     %s, %s", when(h.Started), lasted(r)))
	t.line(2, "", fmt.Sprintf("plan     %d to add, %d to change, %d to remove", r.Plan.Add, r.Plan.Change, r.Plan.Remove))
	t.line(2, "", "outcome  "+outcomeText(r.Outcome(), r.End))
	if r.End != nil && r.End.Stopped != "" {
		t.line(2, "", "stopped  "+r.End.Stopped)
	}
	if r.End != nil && r.End.Error != "" {
		t.line(2, "", "error    "+r.End.Error)
	}
	t.line(2, "", "record   "+r.Path)
	if h.Log != "" {
		t.line(2, "", "log      "+h.Log)
	}
	if r.Torn {
		t.line(2, "", "The last line of the record was cut off and is left out.")
	}
	for _, host := range r.Reports() {
		t.blank()
		t.line(0, signOf(host), subject(host.Host))
		for _, group := range byState(host.Actions) {
			t.acted(group)
		}
	}
}

func lasted(r runlog.Record) string {
	took := r.Lasted().Round(time.Second)
	switch r.Outcome() {
	case runlog.BrokeOff:
		return fmt.Sprintf("last heard of after %s", took)
	case runlog.Running:
		return fmt.Sprintf("running for %s or longer", took)
	}
	return fmt.Sprintf("took %s", took)
}

// signOf marks a host on which something is left.
func signOf(h runlog.HostReport) string {
	sign := ""
	for _, a := range h.Actions {
		switch a.State {
		case runlog.StateFailed, runlog.StateRefused:
			return signRefused
		case runlog.StateUncertain:
			sign = signUnknown
		}
	}
	return sign
}

// byState puts actions together that lie beside each other and came equally far;
// what failed stands alone.
func byState(all []runlog.ActionReport) [][]runlog.ActionReport {
	var out [][]runlog.ActionReport
	for _, a := range all {
		if n := len(out); n > 0 && out[n-1][0].State == a.State && a.State != runlog.StateFailed && a.State != runlog.StateUncertain {
			out[n-1] = append(out[n-1], a)
			continue
		}
		out = append(out, []runlog.ActionReport{a})
	}
	return out
}

// acted shows actions that came equally far.
func (t *Text) acted(group []runlog.ActionReport) {
	var labels []string
	took := 0.0
	for _, a := range group {
		labels = append(labels, a.Action.Label())
		took += a.Seconds
	}
	text := fmt.Sprintf("%s: %s", group[0].State, strings.Join(labels, ", "))
	if took > 0 {
		text += fmt.Sprintf(" (%.1f s)", took)
	}
	t.line(4, "", text)
	for _, a := range group {
		if a.Text != "" {
			t.line(6, "", strings.TrimPrefix(a.Code.String()+": "+a.Text, ": "))
		}
		for _, line := range a.Output {
			t.line(8, "|", line)
		}
		if a.Remedy != "" {
			t.line(6, "", "to do: "+a.Remedy)
		}
	}
}

// hostsNamed is how many hosts a list of what is left names.
const hostsNamed = 20

// Remaining says what a run that was stopped did not start, and what to type.
func (t *Text) Remaining(left []plan.Action, resume string) {
	if len(left) > 0 {
		t.blank()
		fmt.Fprintln(t.out, t.styles.strong.Render("Not started"))
	}
	labels := make(map[string][]string) // by host
	var hosts []string
	for _, a := range left {
		if labels[a.Host] == nil {
			hosts = append(hosts, a.Host)
		}
		labels[a.Host] = append(labels[a.Host], label(a))
	}
	slices.Sort(hosts)
	for _, h := range hosts[:min(len(hosts), hostsNamed)] {
		t.line(2, "", subject(h)+": "+strings.Join(labels[h], ", "))
	}
	if more := len(hosts) - hostsNamed; more > 0 {
		t.line(2, "", fmt.Sprintf("and %s more", count(more, "host")))
	}
	t.line(0, "", "To go on: "+resume)
}

// stopped says why a run started nothing more.
func stopped(r engine.Result) string {
	text, _ := stoppedBy(r)
	return text + ": running actions were finished, no other was started. macfleet apply goes on from here."
}

// stoppedBy returns what stopped a run, for a person and for a program.
func stoppedBy(r engine.Result) (text, code string) {
	var lost *engine.UnrecordedError
	switch {
	case !r.Interrupted:
		return "", ""
	case errors.Is(r.Stopped, engine.ErrDeadline):
		return "The deadline passed", "deadline"
	case errors.As(r.Stopped, &lost):
		return "The record of the run could not be written", "record"
	}
	return "Interrupted", "interrupted"
}
