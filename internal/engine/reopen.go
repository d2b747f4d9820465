package engine

import (
	"cmp"
	"context"
	"slices"

	"github.com/macfleet/macfleet/plan"
)

// Closed is a host whose Node a run leaves cordoned, because its changes are not verified. The
// next apply resumes there, or uncordons it.
type Closed struct{ Host, Fleet string }

// opening separates the action that uncordons a host's Node: it runs last, once the Node is
// Ready.
func opening(actions []plan.Action) (rest []plan.Action, open *plan.Action) {
	i := slices.IndexFunc(actions, func(a plan.Action) bool { return a.Kind == plan.UncordonNode })
	if i < 0 {
		return actions, nil
	}
	return slices.Delete(slices.Clone(actions), i, i+1), &actions[i]
}

// open uncordons the Node of a host whose work is done; the host keeps its slot until then. If
// that is no action of the plan, only a failure emits an event.
func (s *schedule) open(ctx context.Context, h plan.Host) {
	j := s.jobs[h.Server.ID]
	planned := j.opens
	j.opening = true
	go func() {
		if planned != nil {
			s.engine.emit(Event{Type: Started, Host: h.Name, Action: planned})
		}
		var r Result
		ended := s.engine.act(ctx, h.Name, cmp.Or(planned, actionOn(&h, plan.UncordonNode)),
			func(ctx context.Context, _ plan.Action) error { return s.engine.open(ctx, h) })
		if planned != nil || ended.Err != nil {
			s.engine.ended(&r, ended)
		}
		s.ends <- end{r, h}
	}()
}

// opened handles the result.
func (s *schedule) opened(j *job, h plan.Host, failed bool) {
	switch nodes := s.gate.nodes; {
	case failed:
		s.sum.Closed = append(s.sum.Closed, Closed{h.Name, h.Fleet})
		s.rollout.Failed(h.Server.ID)
	case nodes != nil:
		if n, there := nodes[h.NodeName()]; there {
			n.Cordoned = false // until the next list
			nodes[n.Name] = n
		}
		s.rollout.SetCordoned(s.closedNodes())
	}
	j.opening, j.opens, j.closed = false, nil, failed && j.closed
	s.hostEnded(h)
}

// leaveClosed records that a failed host's Node stays cordoned, unless opened is set.
func (s *schedule) leaveClosed(j *job, h plan.Host, opened bool) {
	if j.opens != nil {
		s.sum.NotStarted++
		s.engine.emit(Event{Type: Skipped, Host: h.Name, Action: j.opens})
	}
	if _, there := h.Node.Get(); there && j.closes() && !opened {
		s.sum.Closed = append(s.sum.Closed, Closed{h.Name, h.Fleet})
	}
	j.opens, j.closed = nil, false
}

// closedNodes returns the healthy hosts whose Nodes are cordoned, by anybody: they count as
// unavailable.
func (s *schedule) closedNodes() map[string]bool {
	out := make(map[string]bool)
	for id := range s.healthy {
		if n, there := s.nodeOf(id); there && n.Cordoned {
			out[id] = true
		}
	}
	return out
}
