package view

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/lock"
	"github.com/macfleet/macfleet/internal/runlog"
	"github.com/macfleet/macfleet/internal/wire"
	"github.com/macfleet/macfleet/plan"
)

// Runs shows the runs of a folder as a table, the newest first.
func (t *Text) Runs(runs []runlog.Record) {
	if len(runs) == 0 {
		t.Say("No runs: nothing was applied from here yet.")
		return
	}
	rows := [][]string{{"WHEN", "ID", "WHO", "WHAT", "OUTCOME", "TOOK"}}
	for _, b := range runs {
		took := "-"
		if b.End != nil {
			took = b.Lasted().Round(time.Second).String()
		}
		rows = append(rows, []string{moment(b.Head.Started), b.Head.ID, b.Head.Who, what(b.Head), outcomeText(b.Outcome(), b.End), took})
	}
	t.Table(rows, "TOOK", "WHO")
}

// what says what a run was to do, and where.
func what(h runlog.Head) string {
	of := h.Selection
	return h.Command + " " + cmp.Or(h.Environment, h.Configuration) + flags(of.On, of.Exclude, of.Steps, of.Rollback)
}

// flags are the flags of a selection, each behind a space.
func flags(on, exclude, steps []string, rollback bool) string {
	each := func(flag string, all []string) string {
		return strings.Join(mapped(all, func(v string) string { return " " + flag + " " + v }), "")
	}
	return each("--on", on) + each("--exclude", exclude) + each("--step", steps) + given(rollback, " --rollback")
}

func outcomeText(o runlog.Outcome, end *runlog.End) string {
	switch {
	case o == runlog.LeftAtOnce:
		return "left at once"
	case o == runlog.Converged && end.Done == 0:
		return "converged, nothing to do"
	case o != runlog.Incomplete && o != runlog.Deferred:
		return string(o)
	}
	late := given(end.Deferred > 0, "%s deferred", count(end.Deferred, "host"))
	if o == runlog.Deferred {
		return late
	}
	left := listed(", ", some(end.Failed, "failed"), some(end.NotStarted, "not started"), some(end.NotWaited, "not waited for"), late)
	return cmp.Or(left, "did not converge")
}

// Run shows one run: whose, what it came to, and what happened on each host.
func (t *Text) Run(r runlog.Record) {
	h, end := r.Head, runlog.End{}
	if r.End != nil {
		end = *r.End
	}
	said := func(word, text string) { t.pair(2, 8, word, text) }
	t.heading("Run " + h.ID + ": " + what(h))
	said("who", h.Who)
	said("with", strings.Join(h.Arguments, " ")) // what was lifted for it is among them
	said("when", moment(h.Started)+", "+fmt.Sprintf(cmp.Or(lasted[r.Outcome()], "took %s"), r.Lasted().Round(time.Second)))
	said("plan", fmt.Sprintf("%d to add, %d to change, %d to remove", r.Plan.Add, r.Plan.Change, r.Plan.Remove))
	said("outcome", outcomeText(r.Outcome(), r.End))
	said("stopped", end.Stopped)
	said("error", end.Error)
	said("record", r.Path)
	said("log", h.Log)
	if r.Torn {
		t.line(2, "", "The last line of the record was cut off and is left out.")
	}
	for _, host := range r.Reports() {
		t.blank()
		t.line(0, signOf(host), subject(host.Host)+given(host.Wave > 0, " (wave %d)", host.Wave))
		var group []runlog.ActionReport // that lie beside each other and came equally far; what failed stands alone
		for i, a := range host.Actions {
			group = append(group, a)
			alone := a.State == runlog.StateFailed || a.State == runlog.StateUncertain
			if alone || i+1 == len(host.Actions) || host.Actions[i+1].State != a.State {
				t.acted(group)
				group = nil
			}
		}
	}
}

// lasted are the words for how long a run took that did not come to its end.
var lasted = map[runlog.Outcome]string{runlog.BrokeOff: "last heard of after %s", runlog.Running: "running for %s or longer"}

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

func (t *Text) acted(group []runlog.ActionReport) {
	took := 0.0
	for _, a := range group {
		took += a.Seconds
	}
	labels := joined(group, func(a runlog.ActionReport) string { return a.Action.Label() })
	t.line(4, "", fmt.Sprintf("%s: %s%s", group[0].State, labels, given(took > 0, " (%.1f s)", took)))
	for _, a := range group {
		if a.Text != "" {
			t.line(6, "", listed(": ", a.Code.String(), a.Text))
		}
		for _, line := range a.Output {
			t.line(8, "|", line)
		}
		if a.Remedy != "" {
			t.line(6, "", "to do: "+a.Remedy)
		}
	}
}

// RunsDocument is the runs of a folder as one JSON object.
type RunsDocument struct {
	wire.Head
	Runs []RunLine `json:"runs"`
}

// RunLine is one run in a list.
type RunLine struct {
	ID            string      `json:"id"`
	Who           string      `json:"who"`
	Started       time.Time   `json:"started"`
	Command       string      `json:"command"`
	Configuration string      `json:"configuration"`
	Environment   string      `json:"environment"`
	Outcome       string      `json:"outcome"`
	Seconds       *float64    `json:"seconds,omitempty"` // absent: it did not come to its end
	End           *runlog.End `json:"end,omitempty"`     // so here
	Record        string      `json:"record"`
}

// WriteRuns prints the runs of a folder as one JSON object.
func WriteRuns(out io.Writer, runs []runlog.Record) error {
	return wire.Write(out, RunsDocument{wire.NewHead(), wire.Each(runs, func(b runlog.Record) RunLine {
		h := b.Head
		line := RunLine{ID: h.ID, Who: h.Who, Started: h.Started, Command: h.Command, Configuration: h.Configuration,
			Environment: h.Environment, Outcome: string(b.Outcome()), End: b.End, Record: b.Path}
		if b.End != nil {
			line.Seconds = new(b.Lasted().Seconds())
		}
		return line
	})})
}

// RunDocument is one run as one JSON object.
type RunDocument struct {
	wire.Head
	Run     runlog.Head         `json:"run"`
	Outcome string              `json:"outcome"`
	End     *runlog.End         `json:"end,omitempty"` // absent: it did not come to its end
	Seconds float64             `json:"seconds"`       // until the last line of its record
	Torn    bool                `json:"torn"`          // that line was cut off
	Record  string              `json:"record"`
	Hosts   []runlog.HostReport `json:"hosts"`
}

// WriteRun prints one run as one JSON object.
func WriteRun(out io.Writer, r runlog.Record) error {
	return wire.Write(out, RunDocument{Head: wire.NewHead(), Run: r.Head, Outcome: string(r.Outcome()),
		End: r.End, Seconds: r.Lasted().Seconds(), Torn: r.Torn, Record: r.Path, Hosts: r.Reports()})
}

// WaitingLine says who has a lock that is waited for, and how long that may still take.
func WaitingLine(of string, w lock.Waiting) string {
	left := w.Record.Lasts - w.Still
	return listed("; ",
		fmt.Sprintf("Waiting for the lock of %s: %s has it since %s (run %s, on %s)", of, w.Record.Run.Who, moment(w.Record.Since), w.Record.Run.ID, w.Record.Machine),
		given(w.Still > w.Record.Lasts/2 && left > 0, "it is not renewed, and free in %s unless it is", seconds(left)),
		given(w.Err != nil, "the last look failed: %v", w.Err), fmt.Sprintf("given up in %s.", seconds(w.Left)))
}

// ArmedLine says that a host is waited for until it has taken back a change of a run that died.
func ArmedLine(host string, a plan.Armed) string {
	return "Waiting for " + host + ": " + a.Text() + "."
}

func seconds(d time.Duration) string { return d.Round(time.Second).String() }

// LockStatus is what is known of a lock.
type LockStatus struct {
	Of     string        // whose it is
	Where  string        // what keeps it: a Lease, or a host
	There  bool          // somebody has had it
	Record lock.Record   // who has it, or had it last
	Age    time.Duration // since it was renewed, by the clock of who keeps it
	Dead   bool          // for too long
}

// Lock shows a lock.
func (t *Text) Lock(s LockStatus) {
	r := s.Record
	if !s.There || !r.Held {
		in := given(r.Place.ID != "", " in the cluster %s, uid %s", r.Place.Name, r.Place.ID)
		t.sayf("%s: nobody has the lock (%s).%s", s.Of, s.Where,
			given(s.There, " %s had it last%s, until %s (run %s, epoch %d).", r.Run.Who, in, moment(r.Renewed), r.Run.ID, r.Run.Epoch))
		return
	}
	said := func(word, text string) { t.pair(2, 6, word, text) }
	t.sayf("%s: %s has the lock (%s).", s.Of, r.Run.Who, s.Where)
	said("run", r.Run.ID)
	said("on", r.Machine)
	said("in", given(r.Place.ID != "", "the cluster %s, uid %s", r.Place.Name, r.Place.ID))
	said("since", moment(r.Since))
	said("epoch", fmt.Sprint(r.Run.Epoch))
	alive := "it is valid: its run lives, or ended less than that ago"
	if s.Dead {
		alive = "it has expired: the next apply takes it over"
	}
	t.line(2, "", fmt.Sprintf("last sign of life %s ago, it counts for %s without one: %s", seconds(s.Age), seconds(r.Lasts), alive))
}

// ReleaseQuestion is what a person is asked before a lock is taken from a run.
func ReleaseQuestion(s LockStatus) string {
	alive := "It gives signs of life. It finishes what it is doing and starts nothing more; another apply that begins meanwhile may meet it on the same host."
	if s.Dead {
		alive = fmt.Sprintf("It gave no sign of life for %s.", seconds(s.Age))
	}
	return fmt.Sprintf("Take the lock of %s from %s (run %s)? %s", s.Of, s.Record.Run.Who, s.Record.Run.ID, alive)
}

// HostLock is the lock that a host keeps for the run which entered it last.
func HostLock(name string, e plan.Entered, span time.Duration) LockStatus {
	return LockStatus{Of: name, Where: "kept by the host", There: true, Age: e.Idle,
		Record: lock.Record{Held: e.Held, Run: plan.Run{ID: e.ID, Who: e.Who, Epoch: e.Epoch}, Since: e.At, Renewed: e.At, Lasts: span}}
}

// Holding says where a hold was written, or taken away where there is none, a line
// for each host, and why it was not elsewhere.
func (t *Text) Holding(all []engine.Holding, hold *inventory.Hold) {
	done, failed := "no longer held", "still held"
	if hold != nil {
		done, failed = "held "+plan.Held{Hold: *hold}.String(), "not held"
	}
	for _, h := range all {
		if h.Done(hold) {
			in := listed(", ", given(h.Marker == nil, plan.InMarker), given(h.Node == nil, plan.InNode))
			t.line(0, "", h.Host.Name+": "+done+" ("+in+")")
		} else {
			t.line(0, signRefused, h.Host.Name+": "+failed)
		}
		if h.Marker != nil {
			t.line(4, "", fmt.Sprintf("%s: %v", plan.InMarker, h.Marker))
		}
		if h.Node != nil {
			t.line(4, "", fmt.Sprintf("%s: %v", plan.InNode, h.Node))
		}
	}
}
