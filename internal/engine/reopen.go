package engine

import (
	"cmp"
	"context"
	"slices"

	"github.com/macfleet/macfleet/plan"
)

// Closed is a host whose Node a run leaves closed to new Pods: what was begun there is not
// proven. The next apply goes on there, or opens it.
type Closed struct{ Host, Fleet string }

// opening takes out of a host's actions the one that opens its Node: that is done when
// the rest is, and the Node is Ready.
func opening(actions []plan.Action) (rest []plan.Action, open *plan.Action) {
	i := slices.IndexFunc(actions, func(a plan.Action) bool { return a.Kind == plan.UncordonNode })
	if i < 0 {
		return actions, nil
	}
	return slices.Delete(slices.Clone(actions), i, i+1), &actions[i]
}

// open opens the Node of a host whose work is done. The host keeps its place until then.
// What is no action of the plan is told of where it fails alone.
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

// opened takes what came of it.
func (s *schedule) opened(j *job, h plan.Host, failed bool) {
	switch nodes := s.gate.nodes; {
	case failed:
		s.sum.Closed = append(s.sum.Closed, Closed{h.Name, h.Fleet})
		s.rollout.Failed(h.Server.ID)
	case nodes != nil:
		if n, there := nodes[h.NodeName()]; there {
			n.Cordoned = false // until the next list says more
			nodes[n.Name] = n
		}
		s.rollout.Closed(s.closedNodes())
	}
	j.opening, j.opens, j.closed = false, nil, failed && j.closed
	s.hostEnded(h)
}

// leaveClosed notes of a host whose work failed that its opening was not started, and that
// its Node stays closed. opened says that its Node was opened even so.
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

// closedNodes are the healthy hosts whose Nodes take no new Pods, whoever closed them:
// they are away.
func (s *schedule) closedNodes() map[string]bool {
	out := make(map[string]bool)
	for id := range s.healthy {
		if n, there := s.nodeOf(id); there && n.Cordoned {
			out[id] = true
		}
	}
	return out
}
