package runlog

import (
	"slices"

	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/plan"
)

// LeftHost is a host that a run did not finish, and why.
type LeftHost struct {
	Host   string    `json:"host"`
	Fleet  string    `json:"fleet,omitempty"`
	State  State     `json:"state"`
	Code   plan.Code `json:"code,omitzero"` // of what is blocked or was not compared
	Text   string    `json:"text,omitempty"`
	Remedy string    `json:"remedy,omitempty"`
}

// urgency orders the states of a host's actions: the first of them that occurs is the host's.
var urgency = []State{StateFailed, StateUncertain, StateNotStarted, StateNotWaited}

// leftBy returns the hosts that a run did not finish, each once: those whose actions did not succeed, then those
// that the last comparison did not find in sync.
func (r Record) leftBy(result engine.Result) []LeftHost {
	out := []LeftHost{}
	known := make(map[string]bool) // names in out
	add := func(h LeftHost) {
		if h.Host != "" && !known[h.Host] {
			known[h.Host], out = true, append(out, h)
		}
	}
	for _, h := range r.acted() {
		for _, state := range urgency {
			if slices.ContainsFunc(h.Actions, func(a ActionReport) bool { return a.State == state }) {
				add(LeftHost{Host: h.Host, Fleet: h.Fleet, State: state})
				break
			}
		}
	}
	for _, f := range result.Failures { // some have no event, such as a marker that could not be written
		add(LeftHost{Host: f.Action.Host, Fleet: f.Action.Fleet, State: StateFailed})
	}
	after := result.After
	if after == nil {
		return out
	}
	actions := make(map[string][]plan.Action) // by server id
	for _, a := range after.Actions {
		actions[a.ServerID] = append(actions[a.ServerID], a)
	}
	for i := range after.Hosts {
		h := &after.Hosts[i]
		if state, why := stateAfter(h, actions[h.Server.ID]); state != StateDone {
			add(LeftHost{h.Name, h.Fleet, state, why.Code, why.Text, why.Remedy})
		}
	}
	for _, l := range after.Lost {
		add(LeftHost{l.Name, l.Fleet, StateRefused, l.Code, l.Text, l.Remedy})
	}
	return out
}

// stateAfter returns how a comparison found a host: StateDone when nothing is left to do there.
func stateAfter(h *plan.Host, actions []plan.Action) (State, plan.Trouble) {
	refused := slices.IndexFunc(actions, func(a plan.Action) bool { return a.Refusal != nil })
	deferred := slices.IndexFunc(actions, func(a plan.Action) bool { return a.Deferral != nil })
	switch {
	case h.Unknown != nil && h.Unknown.Code == plan.CodeUnreachable:
		return StateUnreachable, *h.Unknown
	case h.Unknown != nil:
		return StateNotCompared, *h.Unknown
	case slices.ContainsFunc(actions, byHold):
		return StateHeld, *actions[slices.IndexFunc(actions, byHold)].Refusal
	case h.Refused != nil:
		return StateRefused, *h.Refused
	case slices.ContainsFunc(actions, plan.Action.Runs):
		return StateNotConverged, plan.Trouble{}
	case refused >= 0:
		return StateRefused, *actions[refused].Refusal
	case len(h.Unread) > 0:
		return StateNotCompared, plan.Trouble{Code: plan.CodeUnread, Text: h.Unread[0].Why}
	case h.NotJudged() != nil:
		return StateNotCompared, *h.NotJudged()
	case deferred >= 0:
		return StateDeferred, *actions[deferred].Deferral
	}
	return StateDone, plan.Trouble{}
}

func byHold(a plan.Action) bool { return a.Refusal != nil && a.Refusal.Code == plan.CodeHeld }

// leftHosts returns the hosts that the run left, as its record says. A record without that, of a run that was
// interrupted, knows what happened to the actions and which hosts its plan could not change.
func (r Record) leftHosts() []LeftHost {
	if i := slices.IndexFunc(r.Entries, func(e Entry) bool { return e.Type == TypeLeft }); i >= 0 {
		return r.Entries[i].Left
	}
	out := r.leftBy(engine.Result{})
	if r.End != nil && r.End.Exit == 0 {
		return out
	}
	add := func(host, fleet string, code plan.Code, state State) {
		if host != "" && code != (plan.Code{}) && !slices.ContainsFunc(out, func(l LeftHost) bool { return l.Host == host }) {
			out = append(out, LeftHost{Host: host, Fleet: fleet, State: state, Code: code})
		}
	}
	for _, h := range r.Plan.Hosts {
		state := StateRefused
		if h.Trouble == plan.CodeUnreachable {
			state = StateUnreachable
		}
		add(h.Name, h.Fleet, h.Trouble, state)
	}
	for _, a := range r.Plan.Actions {
		add(a.Host, a.Fleet, a.Refused, StateRefused)
	}
	return out
}
