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
	StateUncertain  State = "uncertain"      // it was begun, and nobody knows how it ended
	StateRefused    State = "refused"        // the plan did not mean to do it
	StateDeferred   State = "deferred"       // a limit of the run left it for a later one
	StateNotWaited  State = "not waited for" // the run ended before the host's Node was Ready
)

// HostReport is what a run did on one host; the host without a name is the cluster.
type HostReport struct {
	Host    string         `json:"host"`
	Fleet   string         `json:"fleet"`
	Wave    int            `json:"wave,omitempty"` // in which it was disturbed, from 1
	Actions []ActionReport `json:"actions"`
}

// ActionReport is what became of one action.
type ActionReport struct {
	Action  Action    `json:"action"`
	State   State     `json:"state"`
	Seconds float64   `json:"seconds"`
	Code    plan.Code `json:"code,omitzero"`
	Text    string    `json:"text,omitempty"`
	Remedy  string    `json:"remedy,omitempty"`
	Output  []string  `json:"output,omitempty"`
}

// Reports returns what the run did, in the plan's order of hosts and actions. What
// stands in no plan, such as the wait for a Node, is its host's last.
func (r Record) Reports() []HostReport {
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

// Unfinished returns the hosts on which something failed, was not started or is
// uncertain, in the plan's order. What is of the cluster alone has no host.
func (r Record) Unfinished() []string {
	var out []string
	for _, h := range r.Reports() {
		if h.Host != "" && slices.ContainsFunc(h.Actions, func(a ActionReport) bool {
			return a.State == StateFailed || a.State == StateNotStarted || a.State == StateUncertain
		}) {
			out = append(out, h.Host)
		}
	}
	return out
}
