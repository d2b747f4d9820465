package engine

import (
	"cmp"
	"math"
	"slices"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/rollout"
	"github.com/macfleet/macfleet/plan"
)

// lineUp is the work of a plan in the order in which its hosts start, with its limits.
type lineUp struct {
	work    []rollout.Work
	limits  map[string]rollout.Limits // by fleet
	healthy map[string][]string       // ids of servers, by fleet
	nodes   map[string]plan.Healthy   // of these, by server id
	hosts   map[string]*plan.Host     // by server id
}

// lineUpOf lines up the hosts that have actions. all holds these, without those of the
// cluster itself.
func lineUpOf(cfg *fleet.Config, steps plan.StepsFor, p *plan.Plan, all [][]plan.Action) lineUp {
	l := lineUp{limits: make(map[string]rollout.Limits), healthy: make(map[string][]string),
		nodes: make(map[string]plan.Healthy), hosts: make(map[string]*plan.Host, len(p.Hosts))}
	for i := range p.Hosts {
		l.hosts[p.Hosts[i].Server.ID] = &p.Hosts[i]
	}
	for fleet, healthy := range p.Healthy {
		for _, h := range healthy {
			// The cluster may still report Ready for a while after a kubelet died.
			if of := l.hosts[h.ServerID]; of == nil || !of.Repairs() {
				l.nodes[h.ServerID] = h
				l.healthy[fleet] = append(l.healthy[fleet], h.ServerID)
			}
		}
	}
	for _, f := range cfg.Fleets {
		l.limits[f.Name] = rollout.LimitsOf(f.Rollout, len(l.healthy[f.Name]))
	}
	of := make(map[string][]plan.Action, len(all)) // by server id
	for _, actions := range all {
		id := actions[0].ServerID
		of[id] = actions
		h := l.hosts[id]
		_, healthy := l.nodes[id]
		l.work = append(l.work, rollout.Work{ID: id, Fleet: h.Fleet, Lane: laneOf(h, plan.Worst(actions), healthy), Works: worksUntilItLeaves(h)})
	}
	l.sort(cfg, p, of)
	l.trials(steps, p, of)
	return l
}

// worksUntilItLeaves reports whether a host that leaves still takes Pods, or must not leave before another one has joined.
func worksUntilItLeaves(h *plan.Host) bool {
	n, there := h.Node.Get()
	return h.Leaves && !h.Stage.Final() && (h.Stage == plan.Replaced || there && n.Ready == inventory.Ready)
}

// laneOf returns the lane of a host's work.
func laneOf(h *plan.Host, worst plan.Disruption, healthy bool) rollout.Lane {
	switch _, there := h.Node.Get(); {
	case h.Leaves:
		return rollout.Leave
	case healthy && worst >= plan.Restart:
		return rollout.Disrupt
	case healthy:
		return rollout.Plain
	case h.Member && there && h.Spec.Spec.JoinsCluster():
		return rollout.Repair
	}
	return rollout.Join
}

// sort puts hosts first whose Nodes an earlier run left cordoned: they count as unavailable,
// so others would wait for them. Hosts with a blocked action come last in their fleet: they get only a
// part of the change, so they are a poor canary. If the fleet asks for it, hosts are sorted by their
// number of Pods; hosts with unknown Pods count as busy.
func (l lineUp) sort(cfg *fleet.Config, p *plan.Plan, of map[string][]plan.Action) {
	blocked := make(map[string]int) // by server id
	for _, a := range p.Actions {
		if a.Refusal != nil {
			blocked[a.ServerID] = 1
		}
	}
	byIdle, place := make(map[string]bool), make(map[string]int) // by fleet
	for _, f := range cfg.Fleets {
		byIdle[f.Name] = f.Rollout.Order == fleet.ByIdle
	}
	for i, w := range l.work {
		if _, known := place[w.Fleet]; !known {
			place[w.Fleet] = i
		}
	}
	pods := func(w rollout.Work) int {
		list, known := l.hosts[w.ID].Pods.Get()
		switch {
		case !byIdle[w.Fleet]:
			return 0
		case !known:
			return math.MaxInt
		}
		return len(list)
	}
	notCordoned := func(w rollout.Work) int {
		if _, uncordon := splitUncordon(of[w.ID]); uncordon != nil {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(l.work, func(a, b rollout.Work) int {
		return cmp.Or(notCordoned(a)-notCordoned(b), place[a.Fleet]-place[b.Fleet],
			blocked[a.ID]-blocked[b.ID], cmp.Compare(pods(a), pods(b)))
	})
}

// trials finds hosts that are not Ready and already have the change that others of their fleet
// are about to get: their kubelet crash-loops, or their marker has the digest of a changed
// step that others still lack.
func (l *lineUp) trials(steps plan.StepsFor, p *plan.Plan, of map[string][]plan.Action) {
	rolled := make(map[string]map[plan.StepID]bool) // by fleet
	place := make(map[string]int, len(l.work))      // by server id
	for i, w := range l.work {
		place[w.ID] = i
		for _, a := range of[w.ID] {
			if w.Lane == rollout.Disrupt && a.Step != "" && a.Pending && a.Disruption >= plan.Restart {
				if rolled[w.Fleet] == nil {
					rolled[w.Fleet] = make(map[plan.StepID]bool)
				}
				rolled[w.Fleet][a.Step] = true
			}
		}
	}
	for i := range p.Hosts {
		h := &p.Hosts[i]
		at, works := place[h.Server.ID]
		has, all := hasDigests(h, rolled[h.Fleet], steps)
		k, _ := h.Kubelet.Get()
		dies := works && l.work[at].Lane == rollout.Repair && k.Fault.Code == plan.CodeKubeletCrashLoop
		switch {
		case works && l.work[at].Lane == rollout.Disrupt, h.ActiveHold() != nil, h.FailedRepairs.Quarantined(), h.Leaves:
		case dies, has && takesNoPods(h) && works:
			l.work[at].Trial = true
		case has && takesNoPods(h):
			l.work = append(l.work, rollout.Work{ID: h.Server.ID, Fleet: h.Fleet, Lane: rollout.Repair, Trial: true, Stuck: true})
		case all && !takesNoPods(h):
			limits := l.limits[h.Fleet]
			limits.Verified = true
			l.limits[h.Fleet] = limits
		}
	}
}

// hasDigests reports whether a host's marker has the wanted digest of one of the steps, and whether
// it has all of them.
func hasDigests(h *plan.Host, rolled map[plan.StepID]bool, steps plan.StepsFor) (has, all bool) {
	m, marked := h.Seen.Marker.Get()
	if len(rolled) == 0 || h.Moves() || !marked || // a moving host still has its former name's state
		!h.Member || m.ServerID != h.Server.ID {
		return false, false
	}
	n := 0
	for _, s := range steps(h.Spec) {
		if d, proven := m.Steps[s.ID()]; rolled[s.ID()] && proven && d.Wanted == plan.DigestOf(s.Wanted(), "").Wanted {
			n++
		}
	}
	return n > 0, n == len(rolled)
}

// takesNoPods reports whether a host that should be a Node takes no Pods.
func takesNoPods(h *plan.Host) bool {
	n, there := h.Node.Get()
	return h.Spec.Spec.JoinsCluster() && (h.Repairs() || h.Node.IsAbsent() || there && n.Ready != inventory.Ready)
}

// Bound applies a run's limits to a plan: it defers what exceeds them, and forecasts the rest.
// performed is the plan that the run has already performed, or nil.
func Bound(cfg *fleet.Config, steps plan.StepsFor, p *plan.Plan, b plan.Bounds, o Outlook, performed *plan.Plan) {
	p.Defer(b, steps, performed)
	forecast(cfg, steps, p, b, o)
}
