package plan

import "slices"

// Verdict is what a plan says of one host. Every host has exactly one: the most urgent that holds.
type Verdict string

// The verdicts.
const (
	Unreachable    Verdict = "unreachable"
	Uncompared     Verdict = "not_compared"    // it could not be read, or not all of it
	Blocked        Verdict = "blocked"         // it has changes to make, and a rule refuses all of them
	HeldBack       Verdict = "held"            // it has changes to make, and a person holds the host
	ToAdd          Verdict = "to_add"          // it is claimed from the pool
	ToAdopt        Verdict = "to_adopt"        // it is taken over under its present name
	ToFix          Verdict = "to_fix"          // it drifted, and this run changes it
	ToUpdate       Verdict = "to_update"       // its configuration changed, and this run changes it
	ToRemove       Verdict = "to_remove"       // it leaves its group, and its server goes back to the pool
	LeftForLater   Verdict = "deferred"        // a limit leaves all of it for a later run
	NeedsAttention Verdict = "needs_attention" // it drifted, and only a person can decide about it
	InSync         Verdict = "in_sync"
)

// Changes reports whether the run changes the host.
func (v Verdict) Changes() bool {
	return v == ToAdd || v == ToAdopt || v == ToFix || v == ToUpdate || v == ToRemove
}

// Verdict returns what the plan says of the host, given its actions.
func (h *Host) Verdict(actions []Action) Verdict {
	has := func(is func(Action) bool) bool { return slices.ContainsFunc(actions, is) }
	switch {
	case h.Leaves && has(Action.Runs):
		return ToRemove
	case h.Unknown.NoAnswer():
		return Unreachable
	case h.Unknown != nil:
		return Uncompared
	case h.Refused != nil:
		return Blocked
	case has(func(a Action) bool { return a.Refusal != nil && a.Refusal.Code == CodeHeld }):
		return HeldBack
	case has(func(a Action) bool { return a.Runs() && a.Kind == ClaimServer }):
		return ToAdd
	case has(func(a Action) bool { return a.Runs() && a.Reason.Code == CodeAdopted }):
		return ToAdopt
	case has(Action.Runs) && h.Drifted(actions):
		return ToFix
	case has(Action.Runs):
		return ToUpdate
	case has(func(a Action) bool { return a.Deferral != nil }):
		return LeftForLater
	case len(actions) > 0:
		return Blocked
	case h.Drifted(nil):
		return NeedsAttention
	case h.Extent() != Whole || h.Converged != Converged:
		return Uncompared
	}
	return InSync
}

// Drifted reports whether something of the host changed outside macfleet, whether apply or a person fixes it.
func (h *Host) Drifted(actions []Action) bool {
	return slices.ContainsFunc(actions, func(a Action) bool { return a.Drift }) ||
		slices.ContainsFunc(h.Warnings, func(w StepWarning) bool { return w.Drift })
}

// Tally counts the hosts of a plan by their verdicts, each once. Every screen takes its counts of hosts from here.
type Tally struct {
	Hosts          int `json:"hosts"` // members, hosts to add, and servers that vanished; the sum of the counts below
	ToAdd          int `json:"to_add"`
	ToAdopt        int `json:"to_adopt,omitempty"`
	ToFix          int `json:"to_fix"`
	ToUpdate       int `json:"to_update"`
	ToRemove       int `json:"to_remove"`
	Blocked        int `json:"blocked"`
	Lost           int `json:"lost"` // their servers are not in the inventory
	Unreachable    int `json:"unreachable"`
	Uncompared     int `json:"not_compared"`
	HeldBack       int `json:"held"`
	LeftForLater   int `json:"deferred"`
	NeedsAttention int `json:"needs_attention"`
	InSync         int `json:"in_sync"`

	HeldInSync int `json:"held_in_sync"`     // of those in sync: hosts that a person holds
	Missing    int `json:"missing_servers"`  // servers that the pool does not have; no hosts yet
	Orphans    int `json:"orphaned_members"` // members without a place in the configuration; not among the hosts

	// Of the actions of hosts to change: those that run, and those that a rule or a limit keeps from it.
	Actions, BlockedActions, DeferredActions int `json:"-"`
	// ClusterActions change only the cluster; also those of hosts that could not be read, such as releasing their Pods.
	ClusterActions int `json:"-"`
}

// Tally counts the plan's hosts.
func (p *Plan) Tally() Tally {
	t := Tally{Hosts: len(p.Hosts) + len(p.Lost), Lost: len(p.Lost), Orphans: len(p.Orphans)}
	for _, u := range p.NotContacted {
		t.Hosts, t.Uncompared = t.Hosts+u.Replicas, t.Uncompared+u.Replicas
	}
	for _, s := range p.Shortages {
		t.Missing += s.Missing
	}
	actions := make(map[string][]Action, len(p.Hosts))
	for id, of := range p.byServer() {
		actions[id] = of
	}
	for _, a := range actions[""] {
		t.ClusterActions += ones(a.Runs())
	}
	for i := range p.Hosts {
		h := &p.Hosts[i]
		of := actions[h.Server.ID]
		v := h.Verdict(of)
		*t.of(v)++
		t.HeldInSync += ones(v == InSync && h.ActiveHold() != nil)
		t.countActions(of, v.Changes())
	}
	return t
}

func (t *Tally) countActions(of []Action, changes bool) {
	for _, a := range of {
		t.Actions += ones(changes && a.Runs())
		t.ClusterActions += ones(!changes && a.Runs())
		t.BlockedActions += ones(changes && a.Refusal != nil)
		t.DeferredActions += ones(changes && a.Refusal == nil && a.Deferral != nil)
	}
}

// of returns where a verdict is counted.
func (t *Tally) of(v Verdict) *int {
	switch v {
	case ToAdd:
		return &t.ToAdd
	case ToAdopt:
		return &t.ToAdopt
	case ToFix:
		return &t.ToFix
	case ToUpdate:
		return &t.ToUpdate
	case ToRemove:
		return &t.ToRemove
	case Blocked:
		return &t.Blocked
	case Unreachable:
		return &t.Unreachable
	case HeldBack:
		return &t.HeldBack
	case LeftForLater:
		return &t.LeftForLater
	case NeedsAttention:
		return &t.NeedsAttention
	case InSync:
		return &t.InSync
	}
	return &t.Uncompared
}

// ToChange counts the hosts that the run changes.
func (t Tally) ToChange() int { return t.ToAdd + t.ToAdopt + t.ToFix + t.ToUpdate + t.ToRemove }
