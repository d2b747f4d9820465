package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/wire"
	"github.com/macfleet/macfleet/plan"
)

// CodeRunnerBusyStuck is raised if only the CI service reports a job on a host that is idle.
var CodeRunnerBusyStuck = plan.NewCode("runner-busy-stuck", plan.Warning, "the CI service reports a job on a host that is idle",
	"check the job at the CI service; if none runs there: macfleet apply --force-busy NAME")

// fence is the CI agent of a host while this run prevents new jobs on it. A service reports jobs late and sometimes wrongly,
// so the host decides whether it is idle; the fence only makes that answer last.
type fence struct {
	of    inventory.ServiceName
	spec  plan.AgentSpec
	agent inventory.Agent // as it was before
	noted bool            // the marker has the note
	sent  bool            // the fence was requested at the service, with or without an answer
	idle  bool            // the host was found idle since
}

// LeftFenced is a host whose CI agent gets no new jobs after the run, or whose marker still notes the fence. The next apply restores it.
type LeftFenced struct {
	Host, Fleet string
	Err         error
}

// agentFor returns the step that keeps the host's CI agent, and the agent. A host that should be none any more, or that has no
// place in the configuration, still has the agent that the action ends.
func (w *worker) agentFor(a plan.Action) (plan.AgentKeeper, plan.AgentSpec, bool) {
	all := w.engine.Steps(w.host.Spec)
	if k, spec, ok := plan.AgentStep(all); ok {
		return k, spec, true
	}
	for _, s := range all {
		k, is := s.(plan.AgentKeeper)
		if !is {
			continue
		}
		i := slices.IndexFunc(a.Changes, func(c plan.Change) bool { return c.Peer != nil && c.Peer.Peer == k.Service().ID })
		switch {
		case i >= 0:
			to := a.Changes[i].Peer
			return k, plan.AgentSpec{Scope: to.Realm, Name: to.Entry.Name}, true
		case a.Kind == plan.RetirePeer && a.Step == s.ID():
			return k, plan.AgentSpec{}, true
		}
	}
	return nil, plan.AgentSpec{}, false
}

// fenceAgent prevents new jobs on the host, if it has an agent at the service. The marker notes it first, so that the next
// run can tell an interrupted run from a person who changed the agent. A host without a marker, which is being adopted, is
// only watched.
func (w *worker) fenceAgent(ctx context.Context, k plan.AgentKeeper, spec plan.AgentSpec) error {
	e := w.engine
	if w.fence != nil || spec.Scope == "" {
		return nil
	}
	agent, there, err := w.findAgent(ctx, k, spec)
	if err != nil {
		return fmt.Errorf("unknown whether the host has an agent at %s: %w", spec.Scope, err)
	}
	if !there {
		return nil
	}
	if _, _, configured := plan.AgentStep(e.Steps(w.host.Spec)); !configured {
		spec.Labels, spec.GroupID = agent.Labels, agent.Group
	}
	w.fence = &fence{of: k.Service().ID, spec: spec, agent: agent}
	if w.unmarked() {
		return nil
	}
	e.emit(Event{Type: Fencing, Host: w.host.Name})
	w.fence.noted = true
	m := w.currentMarker()
	m.Fence = &plan.Fence{Run: e.Run.ID, Epoch: e.Run.Epoch, At: e.Now().UTC().Truncate(time.Second)}
	if err := w.writeMarker(ctx, m, ""); err != nil {
		return err
	}
	if w.held != nil {
		return w.held
	}
	if err := e.checkLock(); err != nil {
		return err
	}
	fencer, err := e.fencer(k.Service().ID)
	if err != nil {
		return err
	}
	w.fence.sent = true
	return fencer.Fence(ctx, spec, agent)
}

// findAgent reads the entry of the host's agent again: the one that the host's registration names, or else one of its name.
func (w *worker) findAgent(ctx context.Context, k plan.AgentKeeper, spec plan.AgentSpec) (inventory.Agent, bool, error) {
	if _, err := w.engine.fencer(k.Service().ID); err != nil {
		return inventory.Agent{}, false, err
	}
	facts, _, err := w.conn.Probe(ctx, k.Probes())
	if err != nil {
		return inventory.Agent{}, false, err
	}
	var ids []string
	if said, ok := k.Said(wire.Clean(w.engine.Scrub, facts)); ok && strings.EqualFold(said.Realm, spec.Scope) {
		ids = append(ids, said.ID)
	}
	v := w.host.View(k.ID())
	for _, id := range append(ids, w.namesakes(k, spec)...) {
		agent, there, err := w.engine.agent(ctx, k.Service().ID, spec.Scope, id)
		if there && v.CopiedRegistration(agent.Name, spec.Name) {
			continue
		}
		if err != nil || there {
			return agent, there, err
		}
	}
	return inventory.Agent{}, false, nil
}

// namesakes returns the ids of the listed agents with the host's name.
func (w *worker) namesakes(k plan.AgentKeeper, spec plan.AgentSpec) (ids []string) {
	if seen := w.host.Peer(k.Service().ID).Seen; seen != nil {
		for _, a := range seen.CI().Named(spec.Name) {
			ids = append(ids, a.ID)
		}
	}
	return ids
}

// agent reads one agent of a service; there is false if it has none with the id.
func (e *Engine) agent(ctx context.Context, of inventory.ServiceName, scope, id string) (a inventory.Agent, there bool, err error) {
	l, there, err := e.entry(ctx, of, scope, id)
	if all := l.CI().Agents; there && len(all) > 0 {
		return all[0], true, err
	}
	return a, false, err
}

// restoreAgent gives an agent the labels and the group that are configured, unless the end of this run's fence does.
func (w *worker) restoreAgent(ctx context.Context, to plan.PeerChange) error {
	e := w.engine
	if f := w.fence; f != nil && f.agent.ID == to.Entry.ID {
		return nil
	}
	_, spec, ok := plan.AgentStep(e.Steps(w.host.Spec))
	if !ok {
		return errors.New("the host should be no agent of a CI service; plan again")
	}
	now, there, err := e.agent(ctx, to.Peer, to.Realm, to.Entry.ID)
	if err == nil && !there {
		err = fmt.Errorf("%s has no agent %s any more; plan again", to.Realm, to.Entry.ID)
	}
	if err == nil {
		err = e.checkLock()
	}
	if err != nil {
		return err
	}
	fencer, err := e.fencer(to.Peer)
	if err != nil {
		return err
	}
	return fencer.Unfence(ctx, spec, now)
}

// awaitIdle waits until the host is idle at two checks that are Drain.Quiet apart and the service reports no job at both: a
// job that was assigned before the fence may still start. Work that starts in between restarts the wait. One check is enough
// for a host without an agent, and for one that was idle since its fence.
func (w *worker) awaitIdle(ctx context.Context, k plan.AgentKeeper, step plan.Step) error {
	e := w.engine
	quiet := cmp.Or(e.Drain.Quiet, DefaultQuiet)
	var since time.Time // the end of the first check that found nothing; zero: the last one found something
	if w.fence == nil || w.fence.idle {
		since = e.Now().Add(-quiet)
	}
	var last activity
	worked := false
	for {
		looked := e.Now()
		counts := since.IsZero() || looked.Sub(since) >= quiet
		now, err := w.look(ctx, k, step, counts)
		switch {
		case ctx.Err() != nil:
			return w.notIdle(ctx, last, worked)
		case err != nil:
			return err
		case now.text() != "":
			since, last, worked = time.Time{}, now, worked || len(now.work) > 0
			w.awaits(Idling, "waiting until the host is idle: "+now.text())
		case since.IsZero():
			since = e.Now()
			w.awaits(Idling, fmt.Sprintf("idle; checking again in %s, because an assigned job may still start", quiet))
		case counts:
			if w.fence != nil {
				w.fence.idle = true
			}
			return nil
		}
		if pause(ctx, cmp.Or(e.Drain.Every, quiet/4)) != nil {
			return w.notIdle(ctx, last, worked)
		}
	}
}

// activity is what one check of a host and its CI service found.
type activity struct {
	work     []string // on the host
	reported string   // by the service, if nothing runs on the host
	job      bool     // the service reports a job; else its answer could not be read
}

func (a activity) text() string { return cmp.Or(strings.Join(a.work, ", "), a.reported) }

// look reads what runs on the host. If that is nothing and ask is set, it asks the service too: the host decides.
func (w *worker) look(ctx context.Context, k plan.AgentKeeper, step plan.Step, ask bool) (a activity, err error) {
	if a.work, err = w.hostWork(ctx, k, step); err == nil && len(a.work) == 0 && ask {
		a.job, a.reported = w.reportedJob(ctx)
	}
	return a, err
}

// notIdle says why a wait ended before the host was idle. worked says that work was found on the host itself.
func (w *worker) notIdle(ctx context.Context, last activity, worked bool) error {
	switch {
	case w.engine.Stop.Err() != nil:
		return ctx.Err()
	case last.job && !worked:
		return CodeRunnerBusyStuck.Trouble(last.reported+", but the host was idle all the time",
			"check the job at the service; if none runs: macfleet apply --force-busy "+w.host.Name)
	case last.text() == "":
		return errors.New("timed out before the host was idle long enough")
	}
	return errors.New("timed out; still running: " + last.text())
}

// reportedJob returns whether the service reports a job of the host's agent, in words. An answer that cannot be read counts as
// a job. The last state of an agent that is offline says nothing.
func (w *worker) reportedJob(ctx context.Context) (job bool, text string) {
	f := w.fence
	if f == nil {
		return false, ""
	}
	agent, there, err := w.engine.agent(ctx, f.of, f.spec.Scope, f.agent.ID)
	switch {
	case err != nil:
		return false, fmt.Sprintf("unknown whether %s has a job there (%v)", f.spec.Scope, w.engine.scrubError(err))
	case there && agent.Online && agent.Busy:
		return true, f.spec.Scope + " reports a job there"
	}
	return false, ""
}

// hostWork reads what runs on the host, with all steps that read it and with that of the action, which may be nil. What
// cannot be read counts as work.
func (w *worker) hostWork(ctx context.Context, k plan.AgentKeeper, of plan.Step) ([]string, error) {
	all := slices.DeleteFunc(w.engine.Steps(w.host.Spec), func(s plan.Step) bool {
		_, reads := s.(plan.WorkReader)
		return !reads && s.ID() != k.ID() && (of == nil || s.ID() != of.ID())
	})
	var probes []plan.Probe
	for _, s := range all {
		probes = append(probes, s.Probes()...)
	}
	if w.host.Asked {
		probes = append(probes, plan.WorkProbes(all)...)
	}
	facts, root, err := w.conn.Probe(ctx, probes)
	if err != nil {
		return nil, err
	}
	facts = wire.Clean(w.engine.Scrub, facts)
	var out []string
	for _, s := range all {
		v := w.host.View(s.ID())
		v.Facts, v.Root, v.At, v.Fenced = facts, root, w.engine.Now().UTC(), true
		f := s.Diff(v)
		running, read := f.Running.Get()
		switch {
		case read: // whatever else it could not read
		case len(f.Unread) > 0:
			out = append(out, fmt.Sprintf("unknown work (%s: %s)", f.Unread[0].Probe, f.Unread[0].Why))
		case s.ID() == k.ID():
			out = append(out, "unknown work: "+f.Running.Why())
		}
		for _, t := range append(running, f.Busy...) {
			out = append(out, t.Text)
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// stillIdleAgent checks the host once more, right before a change that would interrupt a job.
func (w *worker) stillIdleAgent(ctx context.Context, a plan.Action, c plan.Change) error {
	deletes := c.Peer != nil && c.Peer.Verb == inventory.DeleteEntry
	if !idles(a) || w.host.Unknown != nil || c.Disruption < plan.Restart && !deletes {
		return nil
	}
	k, _, ok := w.agentFor(a)
	if !ok {
		return nil
	}
	busy, err := w.hostWork(ctx, k, w.stepOf(a))
	if err == nil && len(busy) > 0 {
		err = w.notDrained(a, errors.New("running work: "+strings.Join(busy, ", ")))
	}
	return err
}

// silentAgent returns an error if the agent of a host that does not answer may run a job.
func (w *worker) silentAgent(ctx context.Context, a plan.Action) error {
	k, spec, ok := w.agentFor(a)
	if !ok || a.Forced {
		return nil
	}
	for _, id := range w.namesakes(k, spec) {
		agent, there, err := w.engine.agent(ctx, k.Service().ID, spec.Scope, id)
		if err == nil && there && (agent.Online || agent.Busy) {
			err = fmt.Errorf("the host does not answer, and %s lists its agent as online or busy", spec.Scope)
		}
		if err != nil {
			return w.notDrained(a, err)
		}
	}
	return nil
}

// liftFence lets the service give jobs to the host's agent again, and then removes the note from the marker. It is tried
// even if the run was stopped, but not after a second Ctrl-C.
func (w *worker) liftFence(ctx context.Context) error {
	f := w.fence
	if f == nil {
		return nil
	}
	if err := cmp.Or(context.Cause(ctx), w.engine.checkLock()); err != nil {
		return err
	}
	if f.sent {
		now, there, err := w.engine.agent(ctx, f.of, f.spec.Scope, f.agent.ID)
		if err == nil && there { // a new registration has its labels
			var fencer Fencer
			if fencer, err = w.engine.fencer(f.of); err == nil {
				err = fencer.Unfence(ctx, f.spec, now)
			}
		}
		if err != nil {
			return err
		}
	}
	if f.noted && !w.host.Stage.Final() { // else its disk is erased
		if err := w.clearFence(ctx); err != nil {
			return err
		}
	}
	w.fence = nil
	if f.noted {
		w.engine.emit(Event{Type: Unfenced, Host: w.host.Name})
	}
	if f.agent.Online && !w.host.Stage.Final() {
		w.unfenced = f
	}
	return nil
}

// awaitOnline waits until the service shows an agent as online that was before its fence: a restart of its host ends it for a
// while. The comparison at the end of the run reports one that does not return.
func (w *worker) awaitOnline(ctx context.Context) {
	e, f := w.engine, w.unfenced
	if f == nil {
		return
	}
	waiting, cancel := context.WithTimeout(ctx, cmp.Or(e.Ready.Agent, DefaultAgent))
	defer cancel()
	defer context.AfterFunc(e.Stop, cancel)()
	for {
		now, there, err := e.agent(waiting, f.of, f.spec.Scope, f.agent.ID)
		if err == nil && (!there || now.Online) {
			return
		}
		w.awaits(Idling, "waiting until "+f.spec.Scope+" shows the CI agent as online")
		if pause(waiting, cmp.Or(e.Ready.Every, DefaultEvery)) != nil {
			return
		}
	}
}

// clearFence removes the note from the marker, over a new connection if the old one broke. A hold does not prevent it.
func (w *worker) clearFence(ctx context.Context) error {
	w.holding = true
	var err error
	for range 2 {
		if err = w.connect(ctx); err != nil {
			return err
		}
		m := w.currentMarker()
		m.Fence = nil
		if err = w.writeMarker(ctx, m, ""); err == nil {
			return nil
		}
		w.conn.Close(ctx)
		w.conn = nil
	}
	return err
}
