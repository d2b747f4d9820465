package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/macfleet/macfleet/plan"
)

// Result is the outcome of an apply.
type Result struct {
	Done         int            // actions that were done and verified
	Failures     []Failure      // in the plan's order of hosts
	NotStarted   int            // actions not started because of a failure, a limit or a stop
	Left         []Left         // hosts that a limit of their fleet kept from starting
	NotWaited    int            // hosts whose Nodes were not Ready yet when the run was stopped
	Interrupted  bool           // a person, the system, a deadline or a full disk stopped the run
	Stopped      error          // why it was Interrupted: the cause of Engine.Stop
	Lost         error          // why the lock was lost, which stops the run; nil: it was not lost
	After        *plan.Plan     // observed afterwards; nil if that failed
	LeftCordoned []LeftCordoned // hosts whose Nodes the run leaves cordoned
	LeftFenced   []LeftFenced   // hosts whose CI agents the run leaves without new jobs
	Quarantined  []Quarantined  // hosts that the run has quarantined

	// Deferred is, for one host, the limit that left actions for a later run; nil: none.
	Deferred *plan.Trouble

	cordoned, uncordoned bool // for one host: this run cordoned its Node; it uncordoned it already
	halted               bool // for one host: its drain was stopped with the run
}

// Failure is an action that failed.
type Failure struct {
	Action plan.Action
	Err    error
	Remedy string // the fix for this failure; empty: the general one
	OfNode bool   // of the step that makes the host a Node: the host is not converged, even if the Node is Ready
}

// String is short: the action has whole scripts.
func (f Failure) String() string { return fmt.Sprintf("%s: %v", f.Action.Address(), f.Err) }

// Finished reports whether the run did everything it could: the plan made afterwards is
// complete and holds at most deferred actions.
func (r Result) Finished() bool {
	if r.After == nil || len(r.Failures) > 0 || len(r.LeftFenced) > 0 || r.NotStarted+r.NotWaited > 0 || r.Lost != nil {
		return false
	}
	return r.After.Summarise().Finished()
}

// Converged reports whether the hosts are in sync.
func (r Result) Converged() bool { return r.Finished() && r.After.Summarise().Deferred == 0 }

// Apply performs the plan's actions, exactly those that were shown, waits until the Nodes of
// their hosts are Ready, and observes everything again to verify the result. It returns an
// error only if that fails or ctx ends; failures on hosts are in the result.
func (e *Engine) Apply(ctx context.Context, p *plan.Plan) (Result, error) {
	// Keys are pinned before anything is sent to their hosts. If the pins cannot be written,
	// the run must fail before its first change.
	if err := e.Pins.Update(func(all []plan.Pin) []plan.Pin { return all }); err != nil {
		return Result{}, err
	}
	failures, err := e.Settle(ctx, p)
	if err != nil {
		return Result{}, err
	}
	r := e.execute(ctx, p)
	r.Failures = append(failures, r.Failures...)
	r.Lost = e.checkLock()
	r.Interrupted, r.Stopped = e.Stop.Err() != nil && r.Lost == nil, context.Cause(e.Stop)
	if ctx.Err() != nil {
		return r, context.Cause(ctx)
	}
	e.Selection.Departs = e.Selection.Departs.Including(p)
	e.Selection.NewTokens = false // they were created, or the failure was reported
	after, err := e.verify(ctx, p, r)
	if err != nil {
		return r, fmt.Errorf("the result could not be verified: %w", err)
	}
	r.After = after
	if r.Lost == nil {
		err = e.noteSizes(after)
		r.Lost = e.checkLock()
	}
	if err != nil && r.Lost == nil {
		return r, err
	}
	r.Failures = append(r.Failures, e.noteKeys(ctx, after)...)
	e.countRepairs(ctx, p, &r)
	return r, nil
}

// verify observes everything again. When a kubelet started is known only within the time that its
// observation took, so after a slow one the last heartbeat may seem to be an earlier process's. Then
// the next heartbeat is awaited, and everything is observed once more.
func (e *Engine) verify(ctx context.Context, p *plan.Plan, r Result) (*plan.Plan, error) {
	_, after, err := e.observe(ctx, p)
	if err != nil || e.Stop.Err() != nil || e.Cluster == nil {
		return after, err
	}
	changed := map[string]bool{}
	for _, actions := range p.Runnable() {
		changed[actions[0].ServerID] = true
	}
	for _, f := range r.Failures {
		delete(changed, f.Action.ServerID)
	}
	unheard := slices.DeleteFunc(slices.Clone(after.Hosts), func(h plan.Host) bool { return !h.Member || !changed[h.Server.ID] || !h.Unheard() })
	if len(unheard) == 0 || r.NotWaited > 0 {
		return after, nil
	}
	if err := e.awaitHeartbeats(ctx, unheard); err != nil {
		return nil, err
	}
	_, after, err = e.observe(ctx, p)
	return after, err
}

// Settle records what a plan found in sync: keys of members that were reached for the first
// time, and pin names and markers that an interrupted run did not write. Without these, later
// drift would look like configuration that was never applied. The error is about keys.
func (e *Engine) Settle(ctx context.Context, p *plan.Plan) ([]Failure, error) {
	if err := e.checkLock(); err != nil {
		return nil, err
	}
	// If the lock was deleted since, its epochs start again: the hosts would take this run
	// for an older one.
	if e.Raise != nil && e.Run.Epoch != 0 && p.Epoch() >= e.Run.Epoch {
		run, err := e.Raise(ctx, p.Epoch())
		if err != nil {
			return nil, err
		}
		e.Run = run
	}
	if err := errors.Join(e.settleStages(p), e.storeAsked(p)); err != nil {
		return nil, err
	}
	var fresh []plan.Pin
	for _, h := range Unpinned(p) {
		// Hosts with actions are pinned just before their first action.
		if !h.Seen.Marker.IsAbsent() && !h.Trust().Lost() {
			fresh = append(fresh, *e.PinOf(h))
		}
	}
	if len(fresh) > 0 {
		if err := e.pin(fresh...); err != nil {
			return nil, err
		}
	}
	if err := e.renamePins(misnamedPins(p)); err != nil {
		return nil, err
	}
	if err := e.noteSizes(p); err != nil {
		return nil, err
	}
	failures := append(e.noteKeys(ctx, p), e.forgetRepairs(ctx, p, nil)...)
	stale := slices.DeleteFunc(slices.Clone(p.Hosts), func(h plan.Host) bool {
		return !h.Member || h.Leaves || h.Refused != nil || h.Unknown != nil || !h.MarkerStale()
	})
	for i, err := range each(stale, e.Parallelism, func(h plan.Host) error { return e.recordSynced(ctx, h) }) {
		if err != nil {
			failures = append(failures, Failure{Action: *actionOn(&stale[i], plan.CreateMarker),
				Err: fmt.Errorf("write the marker: %w", e.scrubError(err))})
		}
	}
	return failures, nil
}

// noteSizes stores the sizes of groups with the pins of their hosts, for the next run: hosts leave a group only if replicas was lowered.
func (e *Engine) noteSizes(p *plan.Plan) error {
	all, err := e.Pins.All()
	if err != nil {
		return err
	}
	if _, changed := p.Resized(all); !changed {
		return nil
	}
	if err := e.checkLock(); err != nil {
		return err
	}
	return e.Pins.Update(func(all []plan.Pin) []plan.Pin {
		all, _ = p.Resized(all)
		return all
	})
}

// each calls do for all elements, with a limit on concurrency, and returns the results in their order.
func each[T, R any](all []T, atOnce int, do func(T) R) []R {
	out := make([]R, len(all))
	var g errgroup.Group
	g.SetLimit(atOnce)
	for i, x := range all {
		g.Go(func() error {
			out[i] = do(x)
			return nil
		})
	}
	_ = g.Wait()
	return out
}

// recordSynced writes the marker of a host that is in sync.
func (e *Engine) recordSynced(ctx context.Context, h plan.Host) error {
	w := &worker{engine: e, host: h}
	defer w.close(ctx)
	if err := w.connect(ctx); err != nil {
		return err
	}
	return w.writeMarker(ctx, w.currentMarker(), "")
}

// Unpinned returns the members whose keys an apply would pin: adopted servers, and those
// whose keys are in the configuration. A claim action shows its server's key itself.
func Unpinned(p *plan.Plan) []plan.Host {
	var out []plan.Host
	for _, h := range p.Hosts {
		if h.Member && !h.Leaves && h.Unknown == nil && h.Refused == nil && !h.Seen.Pinned && h.Writable() && !h.Trust().Lost() {
			out = append(out, h)
		}
	}
	return out
}

// PinOf returns the key that a host showed, as the pin that new connections must match. If it
// showed none, nothing matches, so no change reaches the host.
func (e *Engine) PinOf(h plan.Host) *plan.Pin {
	serial, _ := h.Seen.Serial.Get()
	return &plan.Pin{ServerID: h.Server.ID, Name: h.Name, Key: h.Seen.Key, Serial: serial, Since: e.Now().UTC(), Stage: h.Stage}
}

// misnamedPins returns the names of members, by server id, whose server was renamed but whose
// pin was not: a run was interrupted between the two.
func misnamedPins(p *plan.Plan) map[string]string {
	out := make(map[string]string)
	for _, h := range p.Hosts {
		pin := h.Trust().Pin
		if h.Member && !h.Leaves && h.Unknown == nil && h.Refused == nil && h.Writable() && pin != nil && pin.Name != h.Name && h.Server.Name == h.Name {
			out[h.Server.ID] = h.Name
		}
	}
	return out
}

// renamePins changes the names of pinned keys, by server id.
func (e *Engine) renamePins(names map[string]string) error {
	if len(names) == 0 {
		return nil
	}
	return e.Pins.Update(func(all []plan.Pin) []plan.Pin {
		all = slices.Clone(all)
		for i := range all {
			if name, is := names[all[i].ServerID]; is {
				all[i].Name = name
			}
		}
		return all
	})
}

// noteKeys writes the pinned keys of members onto Nodes that lack them, as a second record in
// case the pins are lost.
func (e *Engine) noteKeys(ctx context.Context, p *plan.Plan) []Failure {
	if e.Cluster == nil {
		return nil
	}
	lacking := slices.DeleteFunc(slices.Clone(p.Hosts), func(h plan.Host) bool {
		n, _ := h.Node.Get()
		return !h.Member || h.Leaves || !h.Seen.Pinned || h.Unknown != nil || h.Refused != nil || !h.Writable() || !own(&h) || n.HostKey != ""
	})
	var failures []Failure
	for i, err := range each(lacking, e.Parallelism, func(h plan.Host) error {
		if err := e.checkLock(); err != nil || ctx.Err() != nil {
			return err
		}
		n, _ := h.Node.Get()
		return e.Cluster.NoteHostKey(ctx, n, plan.KeyNote(h.Seen.Key, h.Seen.Fingerprint))
	}) {
		if err != nil {
			failures = append(failures, Failure{Action: *actionOn(&lacking[i], plan.PinHost), Err: e.scrubError(err)})
		}
	}
	return failures
}

// pin stores pins durably. It never replaces a pin with another key: someone else has
// connected to the host since the plan, and one of the two met an impostor.
func (e *Engine) pin(fresh ...plan.Pin) error {
	var strange *plan.Trouble
	err := e.Pins.Update(func(all []plan.Pin) []plan.Pin {
		strange = nil // the store calls again after a conflict
		out := slices.Clone(all)
		for _, f := range fresh {
			i := slices.IndexFunc(out, func(p plan.Pin) bool { return p.ServerID == f.ServerID })
			switch {
			case i < 0:
				out = append(out, f)
			case out[i].Stage == plan.Released:
				out[i] = f.Replaces(out[i])
			case out[i].Key != f.Key:
				strange = plan.CodeWrongHostKey.Trouble(fmt.Sprintf("%s showed the key %s when the plan was made, but %s was pinned since",
					f.Name, plan.Fingerprint(f.Key), plan.Fingerprint(out[i].Key)), plan.WrongKeyRemedy(f.Name))
				return all
			default:
				f.Since, f.Serial, f.Pooled = out[i].Since, cmp.Or(out[i].Serial, f.Serial), cmp.Or(f.Pooled, out[i].Pooled)
				f.Earlier, f.Accepted, f.GroupSize = out[i].Earlier, out[i].Accepted, out[i].GroupSize
				out[i] = f
			}
		}
		return out
	})
	if strange != nil {
		return strange
	}
	return err
}

// work performs one host's actions. It returns the host with its updated state.
// left is called once its Node is gone because it leaves.
func (e *Engine) work(ctx context.Context, h plan.Host, actions []plan.Action, left func()) (Result, plan.Host) {
	w := &worker{engine: e, host: h, left: left}
	defer w.close(ctx)
	w.wanted = slices.ContainsFunc(actions, func(a plan.Action) bool { return a.Kind == plan.ClaimServer })
	r := e.perform(ctx, h.Name, actions, w.inWindow, w.attempt)
	w.undoStoppedClaim(ctx, &r)
	if err := w.liftFence(ctx); err != nil {
		r.LeftFenced = append(r.LeftFenced, LeftFenced{h.Name, h.Fleet, e.scrubError(err)})
	}
	if len(r.Failures) == 0 { // else its actions may have left the agent stopped
		w.awaitOnline(ctx)
	}
	r.cordoned, r.uncordoned = w.cordoned, w.uncordoned
	step, ok := plan.NodeStep(e.Steps(h.Spec))
	for i := range r.Failures {
		r.Failures[i].OfNode, r.Failures[i].Remedy = ok && r.Failures[i].Action.Step == step.ID(), w.remedy
	}
	return r, w.host
}

// doing performs an action.
type doing func(context.Context, plan.Action) error

// perform does one action after the other. It stops at a failure, and skips actions whose maintenance
// window has closed.
func (e *Engine) perform(ctx context.Context, host string, actions []plan.Action, late func(plan.Action) *plan.Trouble, do doing) Result {
	var r Result
	for i := range actions {
		a := &actions[i]
		if late != nil && len(r.Failures) == 0 && !e.stopped(ctx) {
			if why := late(*a); why != nil {
				r.Deferred = why
				e.emit(Event{Type: Deferred, Host: host, Action: a, Trouble: why})
				continue
			}
		}
		if len(r.Failures) > 0 || e.stopped(ctx) || !e.emitStart(ctx, Event{Type: Started, Host: host, Action: a}) {
			r.NotStarted++
			e.emit(Event{Type: Skipped, Host: host, Action: a})
			continue
		}
		end := e.act(ctx, host, a, do)
		if end.Err == errStoppedDrain { // if it is wrapped, there is more to report: that is a failure
			r.halted = true
			r.NotStarted++
			e.emit(Event{Type: Skipped, Host: host, Action: a})
			continue
		}
		e.ended(&r, end)
	}
	return r
}

// act performs an action that was announced, and returns its final event. The lock is checked
// again, because showing the first event may have taken long.
func (e *Engine) act(ctx context.Context, host string, a *plan.Action, do doing) Event {
	started, err := e.Now(), e.checkLock()
	if cause := context.Cause(e.Stop); errors.Is(cause, ErrUnrecorded) {
		err = cause
	}
	if err == nil {
		err = e.scrubError(aborted(ctx, do(ctx, *a)))
	}
	end := Event{Type: Done, Host: host, Action: a, Err: err, Seconds: e.Now().Sub(started).Seconds()}
	if err != nil {
		end.Type = Failed
	}
	return end
}

// ended emits and counts an action's final event.
func (e *Engine) ended(r *Result, end Event) {
	if end.Err != nil {
		r.Failures = append(r.Failures, Failure{Action: *end.Action, Err: end.Err})
	} else {
		r.Done++
	}
	e.emit(end)
}

// actionOn returns an action for what the engine does on a host by itself.
func actionOn(h *plan.Host, k plan.Kind) *plan.Action {
	return &plan.Action{Kind: k, Host: h.Name, Fleet: h.Fleet, Group: h.Group, ServerID: h.Server.ID}
}

// aborted replaces the error of an action that was aborted with the run: the connection's
// error would blame the host.
func aborted(ctx context.Context, err error) error {
	cause := context.Cause(ctx)
	if err == nil || cause == nil || !errors.Is(err, cause) && !errors.Is(err, ctx.Err()) {
		return err
	}
	return fmt.Errorf("%w while it ran; it may be half done", cause)
}

// ErrDeadline is the cause of Engine.Stop when the run's time is up.
var ErrDeadline = errors.New("the deadline passed")

// ErrUnrecorded is in the cause of Engine.Stop when the run record cannot be written: no
// action starts unrecorded.
var ErrUnrecorded = errors.New("the run record cannot be written, so no further action starts")
