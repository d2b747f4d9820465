package runlog

import (
	"slices"

	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/plan"
)

// State is how far an action came.
type State string

// The states of an action.
const (
	StateDone       State = "done"
	StateFailed     State = "failed"
	StateNotStarted State = "not started"
	StateUncertain  State = "uncertain"      // it was started, and its result is unknown
	StateRefused    State = "refused"        // blocked: a rule kept it out of the run
	StateDeferred   State = "deferred"       // a limit of the run left it for a later one
	StateNotWaited  State = "not waited for" // the run ended before the host's Node was Ready
)

// More states of hosts that a run did not finish.
const (
	StateNotFinished  State = "not finished"  // some of its actions were done, others not started
	StateNotConverged State = "not converged" // the last comparison still found something to change
	StateUnreachable  State = "unreachable"   // it did not answer
	StateLost         State = "lost"          // its server is not in the inventory
	StateNotCompared  State = "not compared"  // some or all of it could not be read
	StateHeld         State = "held"          // a person's hold keeps changes off it
)

// LeftStates are the states of hosts that a run did not finish, the most urgent first.
var LeftStates = []State{StateFailed, StateUncertain, StateNotFinished, StateNotStarted, StateNotWaited, StateNotConverged, StateRefused, StateUnreachable, StateLost, StateNotCompared,
	StateHeld, StateDeferred}

// HostReport is what a run did on one host and, if the run did not finish it, why. The host without a name is the cluster.
type HostReport struct {
	Host    string         `json:"host"`
	Fleet   string         `json:"fleet"`
	Wave    int            `json:"wave,omitempty"` // in which it was disturbed, from 1
	Actions []ActionReport `json:"actions"`
	Left    *LeftHost      `json:"left,omitempty"`
}

// ActionReport is the result of one action.
type ActionReport struct {
	Action  Action    `json:"action"`
	State   State     `json:"state"`
	Seconds float64   `json:"seconds"`
	Code    plan.Code `json:"code,omitzero"`
	Text    string    `json:"text,omitempty"`
	Remedy  string    `json:"remedy,omitempty"`
	Output  []string  `json:"output,omitempty"`
}

// Reports returns what the run did, in the plan's order of hosts and actions, and then the hosts that it left without
// an action. Actions that are not in the plan, such as the wait for a Node, are their host's last.
func (r Record) Reports() []HostReport {
	out := r.acted()
	for _, left := range r.leftHosts() {
		i := slices.IndexFunc(out, func(h HostReport) bool { return h.Host == left.Host })
		if i < 0 {
			i, out = len(out), append(out, HostReport{Host: left.Host, Fleet: left.Fleet, Actions: []ActionReport{}})
		}
		out[i].Left = &left
	}
	return out
}

// acted returns what happened to the actions of the run, by host.
func (r Record) acted() []HostReport {
	var keys []string
	actions := make(map[string]*ActionReport)
	report := func(a Action) *ActionReport {
		key := a.Key()
		if actions[key] == nil {
			keys, actions[key] = append(keys, key), &ActionReport{Action: a}
		}
		return actions[key]
	}
	for _, a := range r.Plan.Actions {
		x := report(a)
		switch x.State = StateNotStarted; {
		case a.Refused != (plan.Code{}):
			x.State = StateRefused
		case a.Deferred != (plan.Code{}):
			x.State = StateDeferred
		}
	}
	waves := make(map[string]int) // by host
	for _, e := range r.Entries {
		waves[e.Host] = max(waves[e.Host], e.Wave)
		if e.Action != nil {
			report(*e.Action).enter(e)
		}
	}
	out := []HostReport{}
	places := make(map[string]int) // of hosts in it
	for _, key := range keys {
		a := actions[key]
		i, known := places[a.Action.Host]
		if !known {
			i = len(out)
			places[a.Action.Host] = i
			out = append(out, HostReport{Host: a.Action.Host, Fleet: a.Action.Fleet, Wave: waves[a.Action.Host]})
		}
		out[i].Actions = append(out[i].Actions, *a)
	}
	return out
}

func (r *ActionReport) enter(e Entry) {
	switch e.Type {
	case engine.Started:
		r.State = StateUncertain
	case engine.Waiting:
		r.State = StateNotWaited
	case engine.Done, engine.NodeReady:
		r.State, r.Seconds = StateDone, e.Seconds
	case engine.Skipped:
		r.State = StateNotStarted
	case engine.Deferred:
		r.State = StateDeferred
	case engine.Failed:
		r.State, r.Seconds, r.Code, r.Text, r.Remedy, r.Output = StateFailed, e.Seconds, e.Code, e.Text, e.Remedy, e.Output
		if e.Uncertain {
			r.State = StateUncertain
		}
	}
}

// Unfinished returns the hosts that the run did not finish, in the plan's order. Deferred hosts are among them only if
// the run counts as incomplete because of them.
func (r Record) Unfinished() []string {
	var unfinished, deferred []string
	for _, l := range r.leftHosts() {
		if l.State == StateDeferred {
			deferred = append(deferred, l.Host)
		} else {
			unfinished = append(unfinished, l.Host)
		}
	}
	if len(unfinished) == 0 && r.End != nil && r.End.Exit != 0 {
		return deferred
	}
	return unfinished
}
