package view

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/macfleet/macfleet/fleet"
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
		t.Say("No runs recorded here yet.")
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
	return h.Command + " " + cmp.Or(h.Environment, h.Configuration) + flags(of.On, of.Exclude, of.Steps, of.Decisions)
}

// flags are the flags of a selection, each behind a space.
func flags(on, exclude, steps []string, d plan.Decisions) string {
	if d.AdoptOnly {
		steps = nil // it implies them
	}
	each := func(flag string, all []string) string {
		return strings.Join(mapped(all, func(v string) string { return " " + flag + " " + v }), "")
	}
	return each("--on", on) + each("--exclude", exclude) + each("--step", steps) + strings.Join(mapped(d.Flags(), func(f string) string { return " " + f }), "")
}

func outcomeText(o runlog.Outcome, end *runlog.End) string {
	switch {
	case o == runlog.LeftAtOnce:
		return "aborted"
	case o == runlog.BrokeOff:
		return "interrupted"
	case o == runlog.Converged && end.Done == 0:
		return "converged, nothing to do"
	case o != runlog.Incomplete && o != runlog.Deferred:
		return string(o)
	}
	return cmp.Or(leftCount(end), "did not converge")
}

// leftCount counts the hosts that a run did not finish. Records of older versions count them only as actions.
func leftCount(end *runlog.End) string {
	if end.Hosts == nil {
		return listed(", ", given(end.Failed > 0, "%s failed", count(end.Failed, "action")), given(end.NotStarted > 0, "%s not started", count(end.NotStarted, "action")),
			given(end.NotWaited > 0, "%s not waited for", count(end.NotWaited, "host")), given(end.Deferred > 0, "%s deferred", count(end.Deferred, "host")))
	}
	return unfinished(func(s runlog.State) int { return end.Hosts[s] })
}

// Run shows one run: what it came to, then what failed, then what happened on the other hosts.
func (t *Text) Run(r runlog.Record) {
	h, end := r.Head, runlog.End{}
	if r.End != nil {
		end = *r.End
	}
	said := func(word, text string) { t.pair(2, 8, word, text) }
	took := fmt.Sprintf(cmp.Or(lasted[r.Outcome()], "%s"), clock(r.Lasted()))
	t.heading(listed(", ", "Run "+h.ID+": "+outcomeText(r.Outcome(), r.End), took, given(r.End != nil, "exit %d", end.Exit)))
	said("what", what(h))
	said("who", h.Who)
	said("when", moment(h.Started))
	said("with", strings.Join(h.Arguments, " ")) // what was lifted for it is among them
	said("plan", planned(r.Plan))
	said("stopped", end.Stopped)
	said("error", end.Error)
	said("record", r.Path)
	said("log", h.Log)
	if r.Torn {
		t.line(2, "", "The last line of the record was cut off and is ignored.")
	}
	reports := r.Reports()
	names := plan.NewNames(fleet.Owner{}, mapped(reports, func(h runlog.HostReport) string { return h.Host }))
	var rest []runlog.HostReport
	t.blank()
	for _, host := range reports {
		if markOf(host) != markFailed {
			rest = append(rest, host)
			continue
		}
		t.line(0, markFailed, subject(names.Short(host.Host))+given(host.Wave > 0, " (wave %d)", host.Wave))
		t.reported(host)
	}
	for _, same := range grouped(rest, reportKey) {
		hosts := joinedUpTo(mapped(same, func(h runlog.HostReport) string { return subject(names.Short(h.Host)) }), 20)
		t.line(0, markOf(same[0]), hosts+given(same[0].Wave > 0, " (wave %d)", same[0].Wave))
		t.reported(same[0])
	}
}

// reported shows what happened on a host, and why the run did not finish it.
func (t *Text) reported(h runlog.HostReport) {
	actions := h.Actions
	left := h.Left
	if left != nil && left.Text != "" { // it has the cause; otherwise each action would repeat only the code
		actions = slices.DeleteFunc(slices.Clone(actions), func(a runlog.ActionReport) bool { return a.State == runlog.StateRefused })
	}
	for _, group := range runsOf(actions) {
		t.acted(group)
	}
	if left == nil || left.Code == (plan.Code{}) {
		return
	}
	state, code := stateText(left.State), left.Code.String()
	t.line(4, "", listed(": ", state, given(code != state, "%s", code), left.Text))
	if left.Remedy != "" {
		t.line(6, "", "fix: "+left.Remedy)
	}
}

// planned counts the actions that a run was to perform.
func planned(p runlog.Plan) string {
	actions, hosts := 0, make(map[string]bool)
	for _, a := range p.Actions {
		if a.Refused == (plan.Code{}) && a.Deferred == (plan.Code{}) {
			actions, hosts[a.Host] = actions+1, true
		}
	}
	delete(hosts, "")
	return count(actions, "action") + given(len(hosts) > 0, " on %s", count(len(hosts), "host"))
}

// lasted are the words for the duration of a run that did not finish.
var lasted = map[runlog.Outcome]string{runlog.BrokeOff: "last record after %s", runlog.Running: "running for at least %s"}

// reportKey is equal for hosts on which the same happened.
func reportKey(h runlog.HostReport) string {
	key := fmt.Sprintln(h.Wave)
	if l := h.Left; l != nil {
		key += fmt.Sprintln(l.State, l.Code, strings.ReplaceAll(l.Text, l.Host, ownName))
	}
	for _, a := range h.Actions {
		key += fmt.Sprintln(a.State, a.Action.Label(), strings.ReplaceAll(a.Text, cmp.Or(h.Host, clusterName), ownName))
	}
	return key
}

// runsOf groups consecutive actions with the same state; a failed one is always a group by itself.
func runsOf(all []runlog.ActionReport) [][]runlog.ActionReport {
	var out [][]runlog.ActionReport
	for i, a := range all {
		alone := a.State == runlog.StateFailed || a.State == runlog.StateUncertain
		if i == 0 || alone || all[i-1].State != a.State {
			out = append(out, nil)
		}
		out[len(out)-1] = append(out[len(out)-1], a)
	}
	return out
}

// markOf is how a run left a host: failed or blocked, not finished, or done.
func markOf(h runlog.HostReport) string {
	mark := markDone
	if h.Left != nil {
		mark = markWaiting
		switch h.Left.State {
		case runlog.StateFailed, runlog.StateUncertain, runlog.StateRefused, runlog.StateUnreachable, runlog.StateLost, runlog.StateNotCompared, runlog.StateNotConverged:
			return markFailed
		}
	}
	for _, a := range h.Actions {
		switch a.State {
		case runlog.StateFailed, runlog.StateRefused, runlog.StateUncertain:
			return markFailed
		case runlog.StateDone:
		default:
			mark = markWaiting
		}
	}
	return mark
}

func (t *Text) acted(group []runlog.ActionReport) {
	took := 0.0
	for _, a := range group {
		took += a.Seconds
	}
	labels := joined(group, func(a runlog.ActionReport) string { return a.Action.Label() })
	t.line(4, "", fmt.Sprintf("%s: %s%s", stateText(group[0].State), labels, given(took >= 1, " (%s)", clock(duration(took)))))
	for _, a := range group {
		if a.Text != "" {
			t.line(6, "", listed(": ", a.Code.String(), a.Text))
		}
		for _, line := range a.Output {
			t.line(8, "|", strings.ReplaceAll(line, "\t", "  "))
		}
		if a.Remedy != "" {
			t.line(6, "", "fix: "+a.Remedy)
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
	Seconds       *float64    `json:"seconds,omitempty"` // absent: it did not finish
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
	End     *runlog.End         `json:"end,omitempty"` // absent: it did not finish
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

// WaitingLine says who holds a lock that is waited for, and how long that may still take.
func WaitingLine(of string, w lock.Waiting) string {
	left := w.Record.Lasts - w.Still
	return listed("; ",
		fmt.Sprintf("Waiting for the lock of %s: held by %s since %s (run %s, on %s)", of, w.Record.Run.Who, moment(w.Record.Since), w.Record.Run.ID, w.Record.Machine),
		given(w.Still > w.Record.Lasts/2 && left > 0, "not being renewed, expires in %s", clock(left)),
		given(w.Err != nil, "the last check failed: %v", w.Err), fmt.Sprintf("giving up in %s.", clock(w.Left)))
}

// ArmedLine says that a host is waited for until it has taken back a change of a run that died.
func ArmedLine(host string, a plan.Armed) string {
	return "Waiting for " + host + ": " + a.Text() + "."
}

// LockStatus is what is known of a lock.
type LockStatus struct {
	Of     string        // what it locks
	Where  string        // what keeps it: a Lease, or a host
	There  bool          // it was held at some time
	Record lock.Record   // who has it, or had it last
	Age    time.Duration // since it was renewed, by the clock of who keeps it
	Dead   bool          // for too long
}

// Lock shows a lock.
func (t *Text) Lock(s LockStatus) {
	r, held := s.Record, s.There && s.Record.Held
	said := func(word, text string) { t.pair(2, 7, word, text) }
	if held {
		t.sayf("%s: lock held by %s (%s).", s.Of, r.Run.Who, s.Where)
	} else {
		t.sayf("%s: not locked (%s).", s.Of, s.Where)
	}
	if !s.There {
		return
	}
	said("last", given(!held, "held by %s until %s", r.Run.Who, moment(r.Renewed)))
	said("run", r.Run.ID)
	said("on", r.Machine)
	said("in", given(r.Place.ID != "", "the cluster %s, uid %s", r.Place.Name, r.Place.ID))
	said("since", given(held, "%s", moment(r.Since)))
	said("epoch", fmt.Sprint(r.Run.Epoch))
	said("state", given(held, "renewed %s ago, %s", clock(s.Age), s.expiry()))
}

// expiry says when a held lock expires, or that it has.
func (s LockStatus) expiry() string {
	if s.Dead {
		return "expired: the next apply takes it over"
	}
	return fmt.Sprintf("expires in %s: held", clock(s.Record.Lasts-s.Age))
}

// ReleaseQuestion is the prompt before a lock is taken from a run.
func ReleaseQuestion(s LockStatus) string {
	state := "The run is active: it finishes its current actions and starts nothing more, but another apply may reach the same host meanwhile."
	if s.Dead {
		state = fmt.Sprintf("It was not renewed for %s.", clock(s.Age))
	}
	return fmt.Sprintf("Release the lock of %s, held by %s (run %s)? %s", s.Of, s.Record.Run.Who, s.Record.Run.ID, state)
}

// HostLock is the lock that a host keeps for the run which entered it last.
func HostLock(name string, e plan.Entered, span time.Duration) LockStatus {
	return LockStatus{Of: name, Where: "kept by the host", There: true, Age: e.Idle,
		Record: lock.Record{Held: e.Held, Run: plan.Run{ID: e.ID, Who: e.Who, Epoch: e.Epoch}, Since: e.At, Renewed: e.At, Lasts: span}}
}

// Holding says where a hold was written, or removed where there is none, a line for each
// host, and why it was not elsewhere.
func (t *Text) Holding(all []engine.Holding, hold *inventory.Hold) {
	done, failed := "no longer held", "still held"
	if hold != nil {
		done, failed = "held "+plan.Held{Hold: *hold}.String(), "not held"
	}
	for _, h := range all {
		t.stored(h.Host.Name, h.Done(hold), done, failed, h.Marker, h.Node)
	}
}

// stored says for a host what was stored in its marker and on its Node, and why not in one of them.
func (t *Text) stored(host string, is bool, done, failed string, marker, node error) {
	if is {
		in := listed(", ", given(marker == nil, plan.InMarker), given(node == nil, plan.InNode))
		t.line(0, "", host+": "+done+" ("+in+")")
	} else {
		t.line(0, signRefused, host+": "+failed)
	}
	if marker != nil {
		t.line(4, "", fmt.Sprintf("%s: %v", plan.InMarker, marker))
	}
	if node != nil {
		t.line(4, "", fmt.Sprintf("%s: %v", plan.InNode, node))
	}
}
