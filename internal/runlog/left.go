package runlog

import (
	"cmp"
	"slices"
	"strings"

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

// LeftBy returns the hosts that a run did not finish, each once: those whose actions did not succeed, then those
// that its last comparison did not find in sync. The record is that of the run, as far as it is written.
func (r Record) LeftBy(result engine.Result) []LeftHost {
	out := []LeftHost{}
	known := make(map[string]bool) // names in out
	add := func(h LeftHost) {
		if h.Host != "" && !known[h.Host] {
			known[h.Host], out = true, append(out, h)
		}
	}
	for _, h := range r.acted() {
		for _, state := range urgency {
			if h.has(state) {
				if state == StateNotStarted && h.has(StateDone) {
					state = StateNotFinished
				}
				add(LeftHost{Host: h.Host, Fleet: h.Fleet, State: state})
				break
			}
		}
	}
	for _, f := range result.Failures { // some have no event, such as a marker that could not be written
		add(LeftHost{Host: f.Action.Host, Fleet: f.Action.Fleet, State: StateFailed})
	}
	for _, l := range result.Left {
		add(LeftHost{Host: l.Host, Fleet: l.Fleet, State: StateNotStarted})
	}
	for _, l := range LeftIn(result.After) {
		add(l)
	}
	return out
}

// LeftIn returns the hosts that a plan does not find in sync; none without a plan.
func LeftIn(after *plan.Plan) (out []LeftHost) {
	if after == nil {
		return nil
	}
	actions := make(map[string][]plan.Action) // by server id
	for _, a := range after.Actions {
		actions[a.ServerID] = append(actions[a.ServerID], a)
	}
	for i := range after.Hosts {
		h := &after.Hosts[i]
		if state, why := stateAfter(h, actions[h.Server.ID]); state != StateDone {
			out = append(out, LeftHost{h.Name, h.Fleet, state, why.Code, why.Text, why.Remedy})
		}
	}
	for _, l := range after.Lost {
		out = append(out, LeftHost{l.Name, l.Fleet, StateLost, l.Code, l.Text, l.Remedy})
	}
	return out
}

func (h HostReport) has(state State) bool {
	return slices.ContainsFunc(h.Actions, func(a ActionReport) bool { return a.State == state })
}

// stateAfter returns how a comparison found a host, and why: StateDone when nothing is left to do there.
func stateAfter(h *plan.Host, actions []plan.Action) (State, plan.Trouble) {
	switch h.Verdict(actions) {
	case plan.Unreachable:
		return StateUnreachable, *h.Unknown
	case plan.Uncompared:
		switch {
		case h.Unknown != nil:
			return StateNotCompared, *h.Unknown
		case len(h.Unread) > 0:
			return StateNotCompared, plan.Trouble{Code: plan.CodeUnread, Text: h.Unread[0].Why}
		case h.NotJudged() != nil:
			return StateNotCompared, *h.NotJudged()
		}
		return StateNotCompared, plan.Trouble{}
	case plan.Blocked:
		return StateRefused, refusal(h, actions)
	case plan.HeldBack:
		return StateHeld, refusal(h, actions)
	case plan.ToAdd, plan.ToAdopt, plan.ToFix, plan.ToUpdate, plan.ToRemove:
		return StateNotConverged, toChange(actions)
	case plan.LeftForLater:
		for _, a := range actions {
			if a.Deferral != nil {
				return StateDeferred, *a.Deferral
			}
		}
	}
	return StateDone, plan.Trouble{}
}

// toChange names the actions that would run on a host.
func toChange(actions []plan.Action) plan.Trouble {
	var labels []string
	var code plan.Code
	for _, a := range actions {
		if a.Runs() {
			labels, code = append(labels, ActionOf(a).Label()), cmp.Or(code, a.Reason.Code)
		}
	}
	return plan.Trouble{Code: code, Text: "still to change: " + strings.Join(slices.Compact(labels), ", ")}
}

// refusal returns why nothing is changed on a host.
func refusal(h *plan.Host, actions []plan.Action) plan.Trouble {
	if h.Refused != nil {
		return *h.Refused
	}
	for _, a := range actions {
		if a.Refusal != nil {
			return *a.Refusal
		}
	}
	return plan.Trouble{}
}

// leftHosts returns the hosts that the run left, as its record says. A record without that, of a run that was
// interrupted, knows what happened to the actions and which hosts its plan could not change.
func (r Record) leftHosts() []LeftHost {
	if i := slices.IndexFunc(r.Entries, func(e Entry) bool { return e.Type == TypeLeft }); i >= 0 {
		return r.Entries[i].Left
	}
	out := r.LeftBy(engine.Result{})
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
		if (&plan.Trouble{Code: h.Trouble}).NoAnswer() {
			state = StateUnreachable
		}
		add(h.Name, h.Fleet, h.Trouble, state)
	}
	for _, a := range r.Plan.Actions {
		add(a.Host, a.Fleet, a.Refused, StateRefused)
	}
	return out
}
