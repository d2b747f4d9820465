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
	StateNotWaited  State = "not waited for" // the run ended before the host's Node was Ready
)

// HostReport is what a run did on one host; the host without a name is the cluster.
type HostReport struct {
	Host    string         `json:"host"`
	Fleet   string         `json:"fleet"`
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
	b := builder{out: []HostReport{}, hosts: make(map[string]int), actions: make(map[string]place)}
	for _, a := range r.Plan.Actions {
		state := StateNotStarted
		if a.Refused != (plan.Code{}) {
			state = StateRefused
		}
		b.action(a).State = state
	}
	for _, e := range r.Entries {
		if e.Action != nil {
			b.enter(e)
		}
	}
	return b.out
}

type place struct{ host, action int }

// builder sorts events under the hosts of a plan.
type builder struct {
	out     []HostReport
	hosts   map[string]int // by name
	actions map[string]place
}

// action returns the report of an action, a new one if there is none yet.
func (b *builder) action(a Action) *ActionReport {
	p, ok := b.actions[a.Key()]
	if !ok {
		i, known := b.hosts[a.Host]
		if !known {
			i = len(b.out)
			b.hosts[a.Host] = i
			b.out = append(b.out, HostReport{Host: a.Host, Fleet: a.Fleet})
		}
		p = place{i, len(b.out[i].Actions)}
		b.actions[a.Key()] = p
		b.out[i].Actions = append(b.out[i].Actions, ActionReport{Action: a})
	}
	return &b.out[p.host].Actions[p.action]
}

func (b *builder) enter(e Entry) {
	r := b.action(*e.Action)
	switch e.Type {
	case engine.Started:
		r.State = StateUncertain
	case engine.Waiting:
		r.State = StateNotWaited
	case engine.Done, engine.NodeReady:
		r.State, r.Seconds = StateDone, e.Seconds
	case engine.Skipped:
		r.State = StateNotStarted
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
