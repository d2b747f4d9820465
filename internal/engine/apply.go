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

// Result is what an apply came to.
type Result struct {
	Done        int        // actions that were done and proven
	Failures    []Failure  // in the plan's order of hosts
	NotStarted  int        // actions left because of a failure, a limit or a stop
	Left        []Left     // hosts that a limit of their fleet kept from starting
	NotWaited   int        // hosts whose Nodes were not Ready when somebody asked to stop
	Interrupted bool       // a person, the system, a deadline or a full disk ended the run before its end
	Stopped     error      // why, where it was Interrupted: the cause of Engine.Stop
	Lost        error      // why the lock was lost, and the run stopped; nil: it was not
	After       *plan.Plan // observed afterwards; nil when that failed
	Closed      []Closed   // hosts whose Nodes the run leaves closed to new Pods

	closed, opened bool // of one host: this run closed its Node, which is to be opened; or did so already
}

// Failure is an action that did not come to its end.
type Failure struct {
	Action plan.Action
	Err    error
	OfNode bool // of the step that makes the host a Node: whatever the Node says, it is not as it should be
}

// Converged reports whether nothing is left: the plan that was made afterwards
// is empty and complete.
func (r Result) Converged() bool {
	if r.After == nil || len(r.Failures) > 0 || r.NotStarted+r.NotWaited > 0 || r.Lost != nil {
		return false
	}
	s := r.After.Summarise()
	return s.Changes() == 0 && s.Complete()
}

// Apply performs the plan's actions, the very ones that were shown, as many hosts at
// once as their fleets' rollouts let it, waits until the Nodes of the hosts that it
// worked on are Ready, and then observes again: proof is observation. It returns an error only when the
// second observation fails or ctx ends; what went wrong on hosts is in the
// result.
func (e *Engine) Apply(ctx context.Context, p *plan.Plan) (Result, error) {
	// Keys are pinned when a claim is won. A place that cannot be written to must
	// show before the first change and not after it.
	if err := e.Pins.Update(func(all []plan.Pin) []plan.Pin { return all }); err != nil {
		return Result{}, err
	}
	failures, err := e.Settle(ctx, p)
	if err != nil {
		return Result{}, err
	}
	r := e.execute(ctx, p)
	r.Failures = append(failures, r.Failures...)
	r.Lost = e.may()
	r.Interrupted, r.Stopped = e.Stop.Err() != nil && r.Lost == nil, context.Cause(e.Stop)
	if ctx.Err() != nil {
		return r, context.Cause(ctx)
	}
	after, err := e.Plan(ctx)
	if err != nil {
		return r, fmt.Errorf("the run could not be proven: %w", err)
	}
	r.After = after
	return r, nil
}

// Settle enters what a plan has shown without a difference: the keys of members
// that were reached for the first time, and proofs that their markers lack,
// because a run broke off before it could write them. Without the proofs a later
// drift would look like configuration that was never applied. A host on which
// that fails is a failure and harms no other; the error is about the keys.
func (e *Engine) Settle(ctx context.Context, p *plan.Plan) ([]Failure, error) {
	if err := e.may(); err != nil {
		return nil, err
	}
	if err := e.raise(ctx, p); err != nil {
		return nil, err
	}
	var fresh []plan.Pin
	for _, h := range Unpinned(p) {
		// Where the marker is missing, its writing pins: a pin says that this
		// configuration has had the host.
		if !h.Seen.Marker.IsAbsent() {
			fresh = append(fresh, e.pinOf(h))
		}
	}
	if len(fresh) > 0 {
		if err := e.pin(fresh...); err != nil {
			return nil, err
		}
	}
	var g errgroup.Group
	g.SetLimit(e.Parallelism)
	errs := make([]error, len(p.Hosts))
	for i, h := range p.Hosts {
		if h.Member && h.Refused == nil && h.Unknown == nil && h.MarkerStale() {
			g.Go(func() error {
				errs[i] = e.scrubError(e.enterProof(ctx, h))
				return nil
			})
		}
	}
	_ = g.Wait() // the errors are in errs, by host
	var failures []Failure
	for i, h := range p.Hosts {
		if errs[i] != nil {
			failures = append(failures, Failure{Err: fmt.Errorf("enter what was proven: %w", errs[i]), Action: *actionOn(&h, plan.CreateMarker)})
		}
	}
	return failures, nil
}

// enterProof writes the marker of a host whose steps match.
func (e *Engine) enterProof(ctx context.Context, h plan.Host) error {
	w := &worker{engine: e, host: h}
	defer w.close(ctx)
	if err := w.connect(ctx); err != nil {
		return err
	}
	return w.enter(ctx, w.currentMarker(), "")
}

// Unpinned returns the members whose keys an apply would pin. A server that is
// being claimed is pinned when its marker is written.
func Unpinned(p *plan.Plan) []plan.Host {
	var out []plan.Host
	for _, h := range p.Hosts {
		if h.Member && h.Unknown == nil && h.Refused == nil && !h.Seen.Pinned && h.Writable() {
			out = append(out, h)
		}
	}
	return out
}

func (e *Engine) pinOf(h plan.Host) plan.Pin {
	return plan.Pin{ServerID: h.Server.ID, Name: h.Name, Key: h.Seen.Key, Since: e.Now().UTC()}
}

// pin enters pins in the place of those that their servers had.
func (e *Engine) pin(fresh ...plan.Pin) error {
	return e.Pins.Update(func(all []plan.Pin) []plan.Pin { return append(without(all, fresh), fresh...) })
}

// without drops the pins of the given ones' servers.
func without(all, drop []plan.Pin) []plan.Pin {
	ids := make(map[string]bool, len(drop))
	for _, p := range drop {
		ids[p.ServerID] = true
	}
	return slices.DeleteFunc(all, func(p plan.Pin) bool { return ids[p.ServerID] })
}

// work performs one host's actions. It returns the host with what is known of it
// since then.
func (e *Engine) work(ctx context.Context, h plan.Host, actions []plan.Action) (Result, plan.Host) {
	w := &worker{engine: e, host: h}
	defer w.close(ctx)
	r := e.perform(ctx, h.Name, actions, w.perform)
	r.closed, r.opened = w.closed, w.opened
	if step, ok := plan.NodeStep(e.Steps(h.Spec)); ok {
		for i := range r.Failures {
			r.Failures[i].OfNode = r.Failures[i].Action.Step == step.ID()
		}
	}
	return r, w.host
}

// perform does actions one after the other, and leaves those behind one that
// failed.
func (e *Engine) perform(ctx context.Context, host string, actions []plan.Action, do func(context.Context, plan.Action) error) Result {
	var r Result
	for i := range actions {
		a := &actions[i]
		started := e.Now()
		if len(r.Failures) > 0 || e.stopped(ctx) || !e.begin(ctx, Event{Type: Started, Host: host, Action: a}) {
			r.NotStarted++
			e.emit(Event{Type: Skipped, Host: host, Action: a})
			continue
		}
		// Whoever shows the event may take their time.
		err := cmp.Or(e.unrecorded(), e.may())
		if err == nil {
			err = e.scrubError(broken(ctx, do(ctx, *a)))
		}
		elapsed := e.Now().Sub(started)
		if err != nil {
			r.Failures = append(r.Failures, Failure{Action: *a, Err: err})
			e.emit(Event{Type: Failed, Host: host, Action: a, Err: err, Seconds: elapsed.Seconds()})
			continue
		}
		r.Done++
		e.emit(Event{Type: Done, Host: host, Action: a, Seconds: elapsed.Seconds()})
	}
	return r
}

// actionOn is what the engine does for a host by itself, as an action.
func actionOn(h *plan.Host, k plan.Kind) *plan.Action {
	return &plan.Action{Kind: k, Host: h.Name, Fleet: h.Fleet, Group: h.Group, ServerID: h.Server.ID}
}

// broken says of an action that ended with the run's own end, as by a second
// Ctrl-C, that it was that: what the connection says of it then would accuse the
// host.
func broken(ctx context.Context, err error) error {
	cause := context.Cause(ctx)
	if err == nil || cause == nil || !errors.Is(err, cause) && !errors.Is(err, ctx.Err()) {
		return err
	}
	return fmt.Errorf("%w while it ran; it may be half done", cause)
}

// ErrDeadline is the cause of Engine.Stop when a run had only so long.
var ErrDeadline = errors.New("the deadline passed")

// UnrecordedError is the cause of Engine.Stop when a run can no longer be recorded.
// No action begins that stands in no record.
type UnrecordedError struct{ Err error }

// Error names the cause.
func (e *UnrecordedError) Error() string {
	return "the run record cannot be written, so nothing more is started: " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *UnrecordedError) Unwrap() error { return e.Err }

// unrecorded returns why an action that was just told of does not begin, or nil.
func (e *Engine) unrecorded() error {
	var lost *UnrecordedError
	if errors.As(context.Cause(e.Stop), &lost) {
		return lost
	}
	return nil
}
