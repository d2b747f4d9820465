package engine

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/rollout"
	"github.com/macfleet/macfleet/plan"
)

// schedule is the work of one run: it starts hosts as the rollout lets them, and
// waits for their Nodes. Only its own goroutine touches it; the hosts' workers tell
// it of their end.
type schedule struct {
	engine   *Engine
	rollout  *rollout.Rollout
	gate     *gate
	jobs     map[string]*job         // by server id
	healthy  map[string]plan.Healthy // likewise
	hosts    map[string]*plan.Host   // likewise: all of the plan
	told     map[string]time.Time    // by fleet: until when the soak is that was told
	ends     chan end
	disturbs bool // healthy hosts wait for their turn, or are watched
	stopped  bool
	moved    time.Time // when something last went on
	sum      Result
}

// job is the work on one host.
type job struct {
	host    *plan.Host
	actions []plan.Action
	lane    rollout.Lane
	failed  []Failure
	opens   *plan.Action // what opens its Node, which an earlier run closed; nil: nothing
	closed  bool         // this run closed its Node
	opening bool         // its Node is being opened
	stuck   bool         // its Node is not Ready, and what would make it so is refused
}

// closes reports whether the host's Node is closed in the name of a run: this one's, or an
// earlier one's that the plan wants to be opened.
func (j *job) closes() bool { return j.closed || j.opens != nil }

// end is what came of a host's work.
type end struct {
	result Result
	host   plan.Host
}

// execute works on hosts as the limits of their fleets let it, and on one host in
// the plan's order. A failure ends its host's work; whether it keeps others, the
// rollout says. What the cluster itself must hold comes first: hosts may need it.
func (e *Engine) execute(ctx context.Context, p *plan.Plan) Result {
	work := p.Runnable()
	e.renaming = newRenameRight()
	var kept Result
	if len(work) > 0 && work[0][0].OfCluster() {
		kept = e.perform(ctx, "", work[0], nil, func(ctx context.Context, a plan.Action) error {
			w := &worker{engine: e, host: plan.Host{Name: a.Host}}
			return w.inCluster(ctx, a)
		})
		work = work[1:]
	}
	s := e.schedule(p, work)
	s.sum = kept
	s.run(ctx)
	s.leave()
	for _, actions := range work {
		s.sum.Failures = append(s.sum.Failures, s.jobs[actions[0].ServerID].failed...)
	}
	return s.sum
}

// run ends when nothing is at work and nothing can start any more.
func (s *schedule) run(ctx context.Context) {
	tick := time.NewTicker(cmp.Or(s.engine.Ready.Every, DefaultEvery))
	defer tick.Stop()
	defer s.gate.end()
	stop, cancelled := s.engine.Stop.Done(), ctx.Done()
	if s.disturbs {
		s.look(ctx) // the plan may have waited long for its approval
	}
	for {
		s.start(ctx)
		if s.over() {
			return
		}
		select {
		case end := <-s.ends:
			s.ended(ctx, end)
		case hear := <-s.gate.answers:
			hear()
			s.release(ctx, s.gate.release())
		case <-tick.C:
			if len(s.gate.waiting) > 0 || s.disturbs {
				s.look(ctx)
			}
		case <-stop:
			stop = nil
			s.abandon(ctx)
		case <-cancelled:
			cancelled = nil
			s.abandon(ctx)
		}
	}
}

// start starts the hosts that may.
func (s *schedule) start(ctx context.Context) {
	// While the Nodes cannot be listed, nobody knows how many of a fleet are Ready.
	if !s.stopped && s.engine.Stop.Err() != nil {
		s.abandon(ctx) // an end of work may be heard before the stop
	}
	if s.stopped || s.gate.last != nil && s.disturbs {
		return
	}
	now := s.engine.Now()
	for _, id := range s.rollout.Next(now, s.ready) {
		j := s.jobs[id]
		h := j.host
		s.moved = now
		if !s.engine.begin(ctx, Event{Type: HostBegun, Host: h.Name, Fleet: h.Fleet, Lane: j.lane.String(), Wave: s.rollout.Wave(id),
			Worst: plan.Worst(j.actions).String()}) {
			s.rollout.Ended(id, now)
			s.skip(j)
			continue
		}
		go func() {
			r, after := s.engine.work(ctx, *h, j.actions)
			s.ends <- end{r, after}
		}()
	}
	for fleet, until := range s.rollout.Soaks(now) {
		if !s.told[fleet].Equal(until) {
			s.told[fleet] = until
			s.engine.emit(Event{Type: Soaking, Fleet: fleet, Until: until})
		}
	}
}

// ended takes what came of a host's work, and lets its Node be waited for where
// something was done and nothing failed. On a host that is unknown or refused nothing
// was done but in the cluster.
func (s *schedule) ended(ctx context.Context, w end) {
	h, r, id := w.host, w.result, w.host.Server.ID
	j := s.jobs[id]
	s.moved = s.engine.Now()
	j.closed = j.closed || r.closed
	s.sum.Done += r.Done
	s.sum.NotStarted += r.NotStarted
	j.failed = append(j.failed, r.Failures...)
	if r.Deferred != nil && j.opens != nil { // it opens the Node of what is done
		s.engine.emit(Event{Type: Deferred, Host: h.Name, Action: j.opens, Trouble: r.Deferred})
		j.opens = nil
	}
	waits := (r.Done > 0 || j.closes()) && h.Unknown == nil && h.Refused == nil && h.Spec.Spec.JoinsCluster() && s.engine.Cluster != nil
	switch {
	case j.opening:
		s.opened(j, h, len(r.Failures) > 0)
	case len(r.Failures) > 0:
		s.hostEnded(h)
		s.rollout.Failed(id)
		s.leaveClosed(j, h, r.opened)
	case r.Deferred != nil && r.Done == 0 && !j.closes():
		s.emitEnded(h)
		s.rollout.Deferred(id)
	case waits && j.stuck: // what is refused is not done, however long this run waits
		s.leaveClosed(j, h, r.opened)
		s.hostEnded(h)
	case waits && s.stopped:
		s.sum.NotWaited++
		s.through(ctx, h)
	case waits:
		s.rollout.Worked(id)
		s.gate.add(h, s.moved)
		s.look(ctx)
	default:
		s.through(ctx, h)
	}
}

// through ends a host's work: its Node is opened where a run closed it.
func (s *schedule) through(ctx context.Context, h plan.Host) {
	if s.jobs[h.Server.ID].closes() {
		s.rollout.Worked(h.Server.ID)
		s.open(ctx, h)
		return
	}
	s.hostEnded(h)
}

// hostEnded tells that nothing of a host goes on any more, and counts from then on: by
// the record as well, nothing that waits for it or for its soak begins too early.
func (s *schedule) hostEnded(h plan.Host) {
	s.emitEnded(h)
	s.moved = s.engine.Now()
	s.rollout.Ended(h.Server.ID, s.moved)
}

func (s *schedule) emitEnded(h plan.Host) {
	id := h.Server.ID
	s.engine.emit(Event{Type: HostEnded, Host: h.Name, Fleet: h.Fleet, Lane: s.jobs[id].lane.String(), Wave: s.rollout.Wave(id)})
}

// release ends the work of hosts that are Ready.
func (s *schedule) release(ctx context.Context, ready []*awaited) {
	for _, h := range ready {
		s.moved = s.engine.Now()
		s.through(ctx, h.Host)
	}
}

// look lists the Nodes: those that are waited for may be Ready, or too late.
func (s *schedule) look(ctx context.Context) {
	s.release(ctx, s.gate.look(ctx))
	s.rollout.Closed(s.closedNodes())
	if s.stopped {
		return
	}
	now := s.engine.Now()
	late := func(h *awaited) bool { return now.Sub(h.since) >= cmp.Or(s.engine.Ready.Within, DefaultWithin) }
	for _, h := range s.gate.take(late) {
		node := s.gate.node(&h.Host)
		go func() {
			f := s.engine.failure(ctx, &h.Host, node, now.Sub(h.since))
			s.ends <- end{Result{Failures: []Failure{f}}, h.Host}
		}()
	}
}

// abandon starts nothing more and waits for no Node; what runs comes to its end.
func (s *schedule) abandon(ctx context.Context) {
	s.stopped = true
	for _, h := range s.gate.waiting {
		s.sum.NotWaited++
		s.through(ctx, h.Host)
	}
	s.gate.waiting = nil
}

// over reports whether nothing is at work and nothing can start any more: what keeps
// the others will not pass, or has not passed for as long as a Node may take.
func (s *schedule) over() bool {
	if s.rollout.Running() > 0 {
		return false
	}
	now, passing := s.engine.Now(), s.gate.last != nil
	left := s.rollout.Left(now, s.ready)
	for _, l := range left {
		if l.Why == rollout.Soaking {
			return s.stopped
		}
		passing = passing || l.Why == rollout.Unavailable
	}
	return s.stopped || len(left) == 0 || !passing || now.Sub(s.moved) >= cmp.Or(s.engine.Ready.Within, DefaultWithin)
}

// leave tells of the hosts that were not started.
func (s *schedule) leave() {
	for _, l := range s.rollout.Left(s.engine.Now(), s.ready) {
		j := s.jobs[l.ID]
		if s.skip(j); !s.stopped {
			left := Left{Host: j.host.Name, Fleet: j.host.Fleet, Why: l.Why}
			for _, id := range l.Of {
				left.Of = append(left.Of, s.hosts[id].Name)
			}
			s.sum.Left = append(s.sum.Left, left)
		}
	}
}

// skip tells of a host whose actions are not started.
func (s *schedule) skip(j *job) {
	actions := j.actions
	if j.opens != nil {
		actions = append(slices.Clip(actions), *j.opens)
	}
	for i := range actions {
		s.sum.NotStarted++
		s.engine.emit(Event{Type: Skipped, Host: j.host.Name, Action: &actions[i]})
	}
}

// ready reports whether a healthy host's Node was Ready when the Nodes were last
// listed. A Node of that name that is another server's is not its Node.
func (s *schedule) ready(id string) bool {
	if s.engine.Cluster == nil {
		return true
	}
	n, there := s.nodeOf(id)
	return there && n.Ready == inventory.Ready && n.ProviderID == s.healthy[id].ProviderID
}

// nodeOf returns a healthy host's Node as it was last listed: of one that gets another name in
// this run the one before, as long as the new one is not there.
func (s *schedule) nodeOf(id string) (inventory.Node, bool) {
	h := s.healthy[id]
	n, there := s.gate.nodes[h.Name]
	if !there {
		n, there = s.gate.nodes[h.Was]
	}
	return n, there
}

// Left is a host that a run did not start with, and why.
type Left struct {
	Host  string         `json:"host"`
	Fleet string         `json:"fleet"`
	Why   rollout.Reason `json:"reason"`
	Of    []string       `json:"because_of,omitempty"` // hosts that failed, where that is why
}

// schedule returns the work of a plan, not begun.
func (e *Engine) schedule(p *plan.Plan, work [][]plan.Action) *schedule {
	l := lineUpOf(e.Config, e.Steps, p, work)
	s := &schedule{engine: e, gate: e.newGate(), jobs: make(map[string]*job, len(work)), healthy: l.nodes, hosts: l.hosts,
		ends: make(chan end), told: make(map[string]time.Time), moved: e.Now()}
	stuck := e.stuck(p, l.hosts)
	for _, actions := range work {
		id := actions[0].ServerID
		j := &job{host: l.hosts[id], stuck: stuck[id]}
		j.actions, j.opens = opening(actions)
		s.jobs[id] = j
	}
	for _, w := range l.work {
		if j := s.jobs[w.ID]; j != nil {
			j.lane = w.Lane
			s.disturbs = s.disturbs || e.Cluster != nil && j.lane == rollout.Disrupt
		}
	}
	s.rollout = rollout.New(l.work, l.limits, l.healthy, e.Parallelism)
	return s
}

// stuck returns the hosts, by server id, whose Nodes are not Ready and cannot become so in this
// run: what their kubelet or its identity needs is refused.
func (e *Engine) stuck(p *plan.Plan, hosts map[string]*plan.Host) map[string]bool {
	out := make(map[string]bool)
	for _, a := range p.Actions {
		h := hosts[a.ServerID]
		if a.Refusal == nil || h == nil || out[a.ServerID] {
			continue
		}
		step, joins := plan.NodeStep(e.Steps(h.Spec))
		if state, _, _ := h.Ready(); joins && state != inventory.Ready && !h.Settling() {
			out[a.ServerID] = a.Step == step.ID() || a.Kind == plan.IdentifyHost || a.Kind == plan.ReplaceNode
		}
	}
	return out
}
