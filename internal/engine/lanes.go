package engine

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/rollout"
	"github.com/macfleet/macfleet/plan"
)

// Left is a host that a run did not start with, and why.
type Left struct {
	Host  string         `json:"host"`
	Fleet string         `json:"fleet"`
	Why   rollout.Reason `json:"reason"`
}

// schedule returns the work of a plan, not begun.
func (e *Engine) schedule(p *plan.Plan, work [][]plan.Action) *schedule {
	s := &schedule{engine: e, gate: e.newGate(), hosts: make(map[string]*plan.Host, len(work)), actions: make(map[string][]plan.Action, len(work)),
		lanes: make(map[string]rollout.Lane, len(work)), healthy: make(map[string]plan.Healthy), ends: make(chan end),
		failed: make(map[string][]Failure), told: make(map[string]time.Time), opens: make(map[string]*plan.Action),
		closed: make(map[string]bool), opening: make(map[string]bool), moved: e.Now()}
	byServer := make(map[string]*plan.Host, len(p.Hosts))
	for i := range p.Hosts {
		byServer[p.Hosts[i].Server.ID] = &p.Hosts[i]
	}
	ids, limits := make(map[string][]string), make(map[string]rollout.Limits)
	for fleet, all := range p.Healthy {
		for _, h := range all {
			// The cluster goes on for a while about a host whose kubelet has died.
			if of := byServer[h.ServerID]; of == nil || !of.Mends() {
				s.healthy[h.ServerID] = h
				ids[fleet] = append(ids[fleet], h.ServerID)
			}
		}
	}
	for _, f := range e.Config.Fleets {
		limits[f.Name] = rollout.LimitsOf(f.Rollout, len(ids[f.Name]))
	}
	all := make([]rollout.Work, len(work))
	for i, actions := range work {
		id := actions[0].ServerID
		_, healthy := s.healthy[id]
		actions, s.opens[id] = opening(actions)
		s.hosts[id], s.actions[id], s.lanes[id] = byServer[id], actions, laneOf(byServer[id], plan.Worst(actions), healthy)
		all[i] = rollout.Work{ID: id, Fleet: byServer[id].Fleet, Lane: s.lanes[id], Trial: crashes(byServer[id])}
	}
	s.idleFirst(all)
	s.closedFirst(all)
	s.rollout = rollout.New(all, limits, ids, e.Parallelism)
	return s
}

// laneOf returns the way that a host's work takes.
func laneOf(h *plan.Host, worst plan.Disruption, healthy bool) rollout.Lane {
	switch _, there := h.Node.Get(); {
	case healthy && worst >= plan.Restart:
		return rollout.Disrupt
	case healthy:
		return rollout.Plain
	case h.Member && there && h.Spec.Spec.JoinsCluster():
		return rollout.Repair
	}
	return rollout.Join
}

// crashes reports whether the host's kubelet ends as soon as it is started. Its repair
// gives it what its fleet is to get, so it shows what becomes of the others.
func crashes(h *plan.Host) bool {
	k, _ := h.Kubelet.Get()
	return k.Fault.Code == plan.CodeKubeletCrashLoop
}

// idleFirst sorts the hosts of the fleets that want it so by how many Pods they
// have. One whose Pods are not known comes last: unknown is busy.
func (s *schedule) idleFirst(all []rollout.Work) {
	pods := func(w rollout.Work) int {
		if list, known := s.hosts[w.ID].Pods.Get(); known {
			return len(list)
		}
		return math.MaxInt
	}
	for _, f := range s.engine.Config.Fleets {
		if f.Rollout.Order != fleet.ByIdle {
			continue
		}
		of := func(w rollout.Work) bool { return w.Fleet == f.Name }
		if from := slices.IndexFunc(all, of); from >= 0 { // a plan has a fleet's hosts side by side
			to := from + 1
			for to < len(all) && of(all[to]) {
				to++
			}
			slices.SortStableFunc(all[from:to], func(a, b rollout.Work) int { return cmp.Compare(pods(a), pods(b)) })
		}
	}
}

// closedFirst sorts the hosts to the front whose Nodes an earlier run left closed. They
// take places of their fleet, so the others could wait for them, and they for the canary.
func (s *schedule) closedFirst(all []rollout.Work) {
	open := func(w rollout.Work) int {
		if s.opens[w.ID] != nil {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(all, func(a, b rollout.Work) int { return cmp.Compare(open(a), open(b)) })
}

// isReady reports whether a Node is Ready and is this server's. A Node of that name
// that is another server's is not its Node.
func isReady(n inventory.Node, providerID string) bool {
	return n.Ready == inventory.Ready && n.ProviderID == providerID
}
