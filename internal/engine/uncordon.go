package engine

import (
	"cmp"
	"context"
	"slices"

	"github.com/macfleet/macfleet/plan"
)

// LeftCordoned is a host whose Node a run leaves cordoned, because its changes are not verified. The
// next apply resumes there, or uncordons it.
type LeftCordoned struct{ Host, Fleet string }

// splitUncordon separates the action that uncordons a host's Node: it runs last, once the Node is
// Ready.
func splitUncordon(actions []plan.Action) (rest []plan.Action, uncordon *plan.Action) {
	i := slices.IndexFunc(actions, func(a plan.Action) bool { return a.Kind == plan.UncordonNode })
	if i < 0 {
		return actions, nil
	}
	return slices.Delete(slices.Clone(actions), i, i+1), &actions[i]
}

// uncordon uncordons the Node of a host whose work is done; the host keeps its slot until then. If
// that is no action of the plan, only a failure emits an event.
func (s *schedule) uncordon(ctx context.Context, h plan.Host) {
	j := s.jobs[h.Server.ID]
	planned := j.uncordon
	j.uncordoning = true
	go func() {
		if planned != nil {
			s.engine.emit(Event{Type: Started, Host: h.Name, Action: planned})
		}
		var r Result
		ended := s.engine.act(ctx, h.Name, cmp.Or(planned, actionOn(&h, plan.UncordonNode)),
			func(ctx context.Context, _ plan.Action) error { return s.engine.uncordon(ctx, h) })
		if planned != nil || ended.Err != nil {
			s.engine.ended(&r, ended)
		}
		s.ends <- end{r, h}
	}()
}

// uncordonDone handles the result.
func (s *schedule) uncordonDone(j *job, h plan.Host, failed bool) {
	switch nodes := s.gate.nodes; {
	case failed:
		s.sum.LeftCordoned = append(s.sum.LeftCordoned, LeftCordoned{h.Name, h.Fleet})
		s.rollout.Failed(h.Server.ID)
	case nodes != nil:
		if n, there := nodes[h.NodeName()]; there {
			n.Cordoned = false // until the next list
			nodes[n.Name] = n
		}
		s.rollout.SetCordoned(s.cordonedNodes())
	}
	j.uncordoning, j.uncordon, j.cordoned = false, nil, failed && j.cordoned
	s.hostEnded(h)
}

// leaveCordoned records that a failed host's Node stays cordoned, unless uncordoned is set.
func (s *schedule) leaveCordoned(j *job, h plan.Host, uncordoned bool) {
	if j.uncordon != nil {
		s.sum.NotStarted++
		s.engine.emit(Event{Type: Skipped, Host: h.Name, Action: j.uncordon})
	}
	if _, there := h.Node.Get(); there && j.isCordoned() && !uncordoned {
		s.sum.LeftCordoned = append(s.sum.LeftCordoned, LeftCordoned{h.Name, h.Fleet})
	}
	j.uncordon, j.cordoned = nil, false
}

// cordonedNodes returns the healthy hosts whose Nodes are cordoned, by anyone: they count as
// unavailable.
func (s *schedule) cordonedNodes() map[string]bool {
	out := make(map[string]bool)
	for id := range s.healthy {
		if n, there := s.nodeOf(id); there && n.Cordoned {
			out[id] = true
		}
	}
	return out
}
