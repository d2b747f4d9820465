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

// schedule is the work of one run: it starts hosts as the rollout allows, and waits for their
// Nodes. Only its own goroutine uses it; workers report their end over a channel.
type schedule struct {
	engine    *Engine
	rollout   *rollout.Rollout
	gate      *gate
	jobs      map[string]*job         // by server id
	healthy   map[string]plan.Healthy // by server id
	hosts     map[string]*plan.Host   // by server id: all hosts of the plan
	announced map[string]time.Time    // by fleet: the announced end of the soak
	ends      chan end
	gone      chan string // ids of servers whose Nodes are gone because they leave
	disturbs  bool        // healthy hosts wait, or a canary soaks
	stopped   bool
	moved     time.Time // when something last happened
	sum       Result
}

// job is the work on one host.
type job struct {
	host        *plan.Host
	actions     []plan.Action
	lane        rollout.Lane
	failed      []Failure
	uncordon    *plan.Action // uncordons its Node, which an earlier run cordoned; nil: none
	cordoned    bool         // this run cordoned its Node
	uncordoning bool         // its Node is being uncordoned
	stuck       bool         // its Node is not Ready, and the action that would fix that is refused
}

// isCordoned reports whether macfleet cordoned the host's Node, in this run or in an earlier one.
func (j *job) isCordoned() bool { return j.cordoned || j.uncordon != nil }

// end is the result of a host's work.
type end struct {
	result Result
	host   plan.Host
}

// execute performs the plan within the limits of the fleets, on each host in the plan's order.
// A failure ends its host's work; the rollout decides whether others still start. The
// cluster's own objects come first, because hosts may need them.
func (e *Engine) execute(ctx context.Context, p *plan.Plan) Result {
	work := p.Runnable()
	e.renaming, e.keys = newRenameRight(), newKeyCheck()
	var kept Result
	if len(work) > 0 && work[0][0].OfCluster() {
		kept = e.perform(ctx, "", work[0], nil, e.withoutHost)
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

// withoutHost performs an action that belongs to no host of the plan: in the provider's project, or in the cluster.
func (e *Engine) withoutHost(ctx context.Context, a plan.Action) error {
	switch a.Kind {
	case plan.RegisterKey:
		return e.registerKey(ctx, a)
	case plan.ForgetPeer:
		return e.forgetPeer(ctx, a)
	}
	w := &worker{engine: e, host: plan.Host{Name: a.Host}}
	return w.inCluster(ctx, a)
}

// run ends when no host is in progress and none can start any more.
func (s *schedule) run(ctx context.Context) {
	tick := time.NewTicker(cmp.Or(s.engine.Ready.Every, DefaultEvery))
	defer tick.Stop()
	defer s.gate.end()
	stop, cancelled := s.engine.Stop.Done(), ctx.Done()
	if s.disturbs {
		s.poll(ctx) // the approval may have taken long
	}
	for {
		s.start(ctx)
		if s.done() {
			return
		}
		select {
		case end := <-s.ends:
			s.ended(ctx, end)
		case id := <-s.gone:
			s.rollout.HasLeft(id)
		case answer := <-s.gate.answers:
			answer()
			s.release(ctx, s.gate.release())
		case <-tick.C:
			if len(s.gate.waiting) > 0 || s.disturbs {
				s.poll(ctx)
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

// start starts the hosts that the rollout allows.
func (s *schedule) start(ctx context.Context) {
	// If the Nodes cannot be listed, the number of Ready hosts is unknown.
	if !s.stopped && s.engine.Stop.Err() != nil {
		s.abandon(ctx) // a worker's end may be received before the stop
	}
	if s.stopped || s.gate.last != nil && s.disturbs {
		return
	}
	now := s.engine.Now()
	for _, id := range s.rollout.Next(now, s.ready) {
		j := s.jobs[id]
		h := j.host
		s.moved = now
		if !s.engine.emitStart(ctx, Event{Type: HostStarted, Host: h.Name, Fleet: h.Fleet, Lane: j.lane.String(), Wave: s.rollout.Wave(id),
			Worst: plan.Worst(j.actions).String()}) {
			s.rollout.Finished(id, now)
			s.skip(j)
			continue
		}
		go func() {
			r, after := s.engine.work(ctx, *h, j.actions, func() { s.gone <- id })
			s.ends <- end{r, after}
		}()
	}
	for fleet, until := range s.rollout.Soaks(now) {
		if !s.announced[fleet].Equal(until) {
			s.announced[fleet] = until
			s.engine.emit(Event{Type: Soaking, Fleet: fleet, Until: until})
		}
	}
}

// ended handles the end of a host's work. If something was done and nothing failed, the run
// waits for its Node.
func (s *schedule) ended(ctx context.Context, w end) {
	h, r, id := w.host, w.result, w.host.Server.ID
	j := s.jobs[id]
	s.moved = s.engine.Now()
	j.cordoned = j.cordoned || r.cordoned
	s.sum.Done += r.Done
	s.sum.NotStarted += r.NotStarted
	j.failed = append(j.failed, r.Failures...)
	s.sum.LeftFenced = append(s.sum.LeftFenced, r.LeftFenced...)
	if r.Deferred != nil && j.uncordon != nil { // uncordon after the deferred part is done in a later run
		s.engine.emit(Event{Type: Deferred, Host: h.Name, Action: j.uncordon, Trouble: r.Deferred})
		j.uncordon = nil
	}
	// A marker disturbs no Node, and a host that is being adopted may not have one yet.
	waits := (r.Done > 0 || j.isCordoned()) && !h.Leaves && !s.engine.Selection.AdoptOnly && h.Unknown == nil && h.Refused == nil && h.Spec.Spec.JoinsCluster() && s.engine.Cluster != nil
	switch {
	case j.uncordoning:
		s.uncordonDone(j, h, len(r.Failures) > 0)
	case len(r.Failures) > 0, r.halted:
		s.hostEnded(h)
		s.rollout.Failed(id)
		s.leaveCordoned(j, h, r.uncordoned)
	case r.Deferred != nil && r.Done == 0 && !j.isCordoned():
		s.emitEnded(h)
		s.rollout.Deferred(id)
	case waits && j.stuck: // waiting would not help
		s.leaveCordoned(j, h, r.uncordoned)
		s.hostEnded(h)
	case waits && s.stopped:
		s.sum.NotWaited++
		s.finish(ctx, h)
	case waits:
		s.rollout.AwaitReady(id)
		s.gate.add(h, s.moved)
		s.poll(ctx)
	default:
		s.finish(ctx, h)
	}
}

// finish completes a host's work and uncordons its Node if macfleet cordoned it.
func (s *schedule) finish(ctx context.Context, h plan.Host) {
	if s.jobs[h.Server.ID].isCordoned() {
		s.rollout.AwaitReady(h.Server.ID)
		s.uncordon(ctx, h)
		return
	}
	s.hostEnded(h)
}

// hostEnded records that a host is done before others may start, so that also by the run
// record nothing starts too early.
func (s *schedule) hostEnded(h plan.Host) {
	s.emitEnded(h)
	s.moved = s.engine.Now()
	s.rollout.Finished(h.Server.ID, s.moved)
}

func (s *schedule) emitEnded(h plan.Host) {
	id := h.Server.ID
	s.engine.emit(Event{Type: HostEnded, Host: h.Name, Fleet: h.Fleet, Lane: s.jobs[id].lane.String(), Wave: s.rollout.Wave(id)})
}

// release ends the work of hosts that are Ready.
func (s *schedule) release(ctx context.Context, ready []*awaited) {
	for _, h := range ready {
		s.moved = s.engine.Now()
		s.finish(ctx, h.Host)
	}
}

// poll lists the Nodes: awaited ones may be Ready, or out of time.
func (s *schedule) poll(ctx context.Context) {
	s.release(ctx, s.gate.poll(ctx))
	s.rollout.SetCordoned(s.cordonedNodes())
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

// abandon starts no further host and stops waiting for Nodes; running actions finish.
func (s *schedule) abandon(ctx context.Context) {
	s.stopped = true
	for _, h := range s.gate.waiting {
		s.sum.NotWaited++
		s.finish(ctx, h.Host)
	}
	s.gate.waiting = nil
}

// done reports whether no host is in progress and none can start: what blocks the others is
// permanent, or has lasted for as long as a Node may take.
func (s *schedule) done() bool {
	if s.rollout.Running() > 0 {
		return false
	}
	now, passing := s.engine.Now(), s.gate.last != nil
	left := s.rollout.Waiting(now, s.ready)
	for _, l := range left {
		if l.Why == rollout.Soaking {
			return s.stopped
		}
		passing = passing || l.Why == rollout.Unavailable
	}
	return s.stopped || len(left) == 0 || !passing || now.Sub(s.moved) >= cmp.Or(s.engine.Ready.Within, DefaultWithin)
}

// leave reports the hosts that were not started.
func (s *schedule) leave() {
	for _, l := range s.rollout.Waiting(s.engine.Now(), s.ready) {
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

// skip reports a host whose actions are not started.
func (s *schedule) skip(j *job) {
	actions := j.actions
	if j.uncordon != nil {
		actions = append(slices.Clip(actions), *j.uncordon)
	}
	for i := range actions {
		s.sum.NotStarted++
		s.engine.emit(Event{Type: Skipped, Host: j.host.Name, Action: &actions[i]})
	}
}

// ready reports whether a healthy host's own Node was Ready in the last list.
func (s *schedule) ready(id string) bool {
	if s.engine.Cluster == nil {
		return true
	}
	n, there := s.nodeOf(id)
	return there && n.Ready == inventory.Ready && n.ProviderID == s.healthy[id].ProviderID
}

// nodeOf returns a healthy host's Node from the last list. For a host that is being renamed, it
// is the old one until the new one exists.
func (s *schedule) nodeOf(id string) (inventory.Node, bool) {
	h := s.healthy[id]
	n, there := s.gate.nodes[h.Name]
	if !there {
		n, there = s.gate.nodes[h.Was]
	}
	return n, there
}

// Left is a host that a run did not start, and why.
type Left struct {
	Host  string         `json:"host"`
	Fleet string         `json:"fleet"`
	Why   rollout.Reason `json:"reason"`
	Of    []string       `json:"because_of,omitempty"` // the failed hosts that are the reason
}

// schedule returns the work of a plan, not yet started.
func (e *Engine) schedule(p *plan.Plan, work [][]plan.Action) *schedule {
	l := lineUpOf(e.Config, e.Steps, p, work)
	s := &schedule{engine: e, gate: e.newGate(), jobs: make(map[string]*job, len(work)), healthy: l.nodes, hosts: l.hosts,
		ends: make(chan end), gone: make(chan string), announced: make(map[string]time.Time), moved: e.Now()}
	stuck := e.stuck(p, l.hosts)
	for _, actions := range work {
		id := actions[0].ServerID
		j := &job{host: l.hosts[id], stuck: stuck[id]}
		j.actions, j.uncordon = splitUncordon(actions)
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

// stuck returns the hosts, by server id, whose Nodes cannot become Ready in this run: an
// action for their kubelet or identity is refused.
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
