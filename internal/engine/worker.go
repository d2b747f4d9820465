package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/secret"
	"github.com/macfleet/macfleet/internal/wire"
	"github.com/macfleet/macfleet/plan"
)

// worker performs one host's actions over one connection, opened when first needed.
type worker struct {
	engine     *Engine
	host       plan.Host
	conn       Host
	claimed    bool          // the claim on the host is this run's
	password   secret.Value  // the host's login password, once accepted
	refused    secret.Value  // a password that the host refused in this run
	marker     *plan.Marker  // the marker on the host
	holding    bool          // the worker sets or removes a hold, so no hold stops it
	held       *plan.Trouble // a hold was set during the run; nil: none
	cordoning  bool          // this run started to cordon its Node
	cordoned   bool          // and cordoned it itself
	changed    bool          // and changed something since
	remedy     string        // the fix for the failed change, if it has one
	uncordoned bool          // and uncordoned it, because nothing was changed
	awaited    string        // the wait that was emitted last
	left       func()        // called once the Node of a host that leaves is gone
	// disturbed says that an action that drains, reboots or wipes has started.
	disturbed bool
	fence     *fence   // of its CI agent; nil: this run fenced none
	unfenced  *fence   // the fence that liftFence removed, of an agent that was online before
	admitted  admitted // what the running script has; zero: nothing
	deleted   []string // ids of entries that this run deleted at services
	revoked   []string // ids of keys that this run revoked
	// late are actions, and those that depend on them, whose maintenance window has closed.
	late    []plan.Action
	lateFor *plan.Trouble
	claiming
}

// close closes the connection.
func (w *worker) close(ctx context.Context) {
	if w.conn != nil {
		w.conn.Close(ctx)
	}
}

// perform does one action and verifies it.
func (w *worker) perform(ctx context.Context, a plan.Action) error {
	if w.held != nil {
		return w.held
	}
	if err := w.mayClaim(ctx); err != nil {
		return err
	}
	if a.Kind == plan.ReinstallServer {
		if err := w.engine.checkKey(ctx); err != nil {
			return err
		}
	}
	if err := w.startLeaving(); err != nil {
		return err
	}
	// Record on the Node which run disturbs the work on its host.
	if n, known := w.host.Node.Get(); known && a.Disruption >= plan.Restart && w.engine.AddNodeEvent != nil {
		w.engine.AddNodeEvent(ctx, n, a)
	}
	switch a.Kind {
	case plan.PinHost:
		return w.connect(ctx)
	case plan.ClaimServer:
		return w.claim(ctx)
	case plan.RenameServer:
		s := w.host.Server
		if err := w.engine.Servers.Rename(ctx, s.Zone, s.ID, s.Name, a.Host); err != nil {
			return err
		}
		w.host.Server.Name = a.Host
		return w.engine.renamePins(map[string]string{s.ID: a.Host})
	case plan.CreateMarker:
		return w.mark(ctx)
	case plan.AuthorizeKey, plan.RetireKey:
		return w.rotateKey(ctx, a)
	case plan.RebootServer:
		return w.reboot(ctx, a)
	case plan.RunStep, plan.RemoveStep:
		return w.step(ctx, a)
	case plan.DrainNode:
		return w.vacate(ctx, a)
	case plan.RetirePeer:
		return w.retirePeer(ctx, a)
	case plan.ReinstallServer:
		return w.reinstall(ctx, a)
	case plan.ReleaseServer:
		return w.toPool(ctx, a)
	case plan.IdentifyHost, plan.RenewToken, plan.RetireTokens, plan.SetProviderID, plan.TaintNode, plan.ReplaceNode, plan.DeleteNode, plan.RevokeHost, plan.ReleasePods:
		return w.inCluster(ctx, a)
	}
	return fmt.Errorf("unknown kind of action %q", a.Kind)
}

// inWindow returns why an action must not start outside the maintenance window, or nil. A host
// whose disruption started in time is finished.
func (w *worker) inWindow(a plan.Action) *plan.Trouble {
	if b := w.engine.Bounds; b != nil && !w.disturbed {
		why := b.OutsideWindow(w.host, a, w.engine.Now())
		for _, earlier := range w.late {
			if why == nil && w.host.Needs(a, earlier, w.engine.Steps) {
				why = w.lateFor
			}
		}
		if why != nil {
			w.late, w.lateFor = append(w.late, a), why
			return why
		}
	}
	w.disturbed = w.disturbed || a.Disruption >= plan.Drain
	return nil
}

// connect opens the connection if there is none. The host must show the key that the plan saw
// and must still be changeable by macfleet.
func (w *worker) connect(ctx context.Context) error {
	if w.conn != nil {
		return nil
	}
	// Use the server's current name, so that the same entry of the ssh configuration applies
	// as for the plan.
	if err := w.pin(); err != nil {
		return err
	}
	target := Target{Server: w.host.Server, Name: w.host.Name, Trust: plan.Trust{Pin: w.engine.PinOf(w.host)}}
	if run := w.engine.Run; run.ID != "" {
		target.Run = &run
	}
	conn, err := w.engine.Hosts.Connect(ctx, target)
	if err != nil {
		return err
	}
	w.conn = conn
	t := w.reread(ctx)
	if t == nil && !w.holding {
		t = w.heldSince()
	}
	if t != nil {
		conn.Close(ctx)
		w.conn = nil
		return t
	}
	return nil
}

// pin stores the key of a new host before anything is sent to it, so that another machine in
// its place is detected from now on.
func (w *worker) pin() error {
	if w.host.Seen.Pinned {
		return nil
	}
	pin := *w.engine.PinOf(w.host)
	if w.wanted {
		pin.Pooled = w.host.Server.Name
	}
	if t := w.host.Trust(); t.Pin != nil && !w.wanted {
		pin.Unfinished = t.Pin.Unfinished
	} else {
		pin.Unfinished = w.unmarked()
	}
	if err := w.engine.pin(pin); err != nil {
		return err
	}
	w.host.Seen.Pinned = true
	return nil
}

// reread reads the host's owner again, and returns why the host must not be changed any more.
func (w *worker) reread(ctx context.Context) *plan.Trouble {
	now := wire.Clean(w.engine.Scrub, w.conn.Observe(ctx, nil))
	if now.Trouble != nil {
		return now.Trouble
	}
	w.host.Seen.Marker, w.host.Seen.Claim, w.host.Seen.Serial = now.Marker, now.Claim, now.Serial
	w.host.Seen.Refusals = now.Refusals // another run may have tried a password since
	return plan.MarkerForbids(w.engine.Config, &w.host)
}

// step runs a step's changes in order, runs its probes again, and records the result in the
// marker. A step that still differs has failed.
func (w *worker) step(ctx context.Context, a plan.Action) error {
	if err := w.connect(ctx); err != nil {
		return err
	}
	step := w.stepOf(a)
	if step == nil {
		return fmt.Errorf("unknown step %q", a.Step)
	}
	changes := a.Changes
	if a.AfterRoot {
		// Without root, the differences were not visible before.
		f, err := w.probe(ctx, step)
		if err != nil {
			return err
		}
		if changes = f.Changes; len(f.Busy) > 0 && !w.host.ForceBusy {
			return w.notDrained(a, fmt.Errorf("running work: %s", plan.TaskTexts(f.Busy)))
		}
	}
	if err := w.drainFor(ctx, a, step); err != nil {
		return err
	}
	for _, c := range changes {
		if p, joins := step.(plan.Peer); joins && c.Input == plan.Admission { // before the old entry goes: the host would be left without any
			if err := w.engine.mayJoin(ctx, p); err != nil {
				return err
			}
		}
	}
	for _, c := range changes {
		if err := w.change(ctx, a, c); err != nil {
			return err
		}
	}
	f, err := w.settled(ctx, step, step.Diff)
	var refused *plan.Trouble
	switch {
	case errors.As(err, &refused) && w.unmarked():
		return err
	case errors.As(err, &refused): // only a person can do the rest
		return errors.Join(err, w.writeMarker(ctx, w.currentMarker(), a.Step))
	case err != nil:
		return fmt.Errorf("verify: %w", err)
	case len(f.Changes) > 0:
		return fmt.Errorf("the change had no effect: %s: %s", f.Changes[0].Reason.Code, f.Changes[0].Reason.Text)
	}
	if m, is := step.(plan.NodeMaker); is && m.MakesNode() {
		w.moved()
	}
	if step.Wanted() == "" { // before the step counts as removed: later nothing would do it
		if _, err := w.conn.Do(ctx, PruneArtifacts{Removed: true}); err != nil {
			return err
		}
	}
	if err := w.markVerified(ctx, step, f); err != nil {
		return err
	}
	if slices.ContainsFunc(changes, func(c plan.Change) bool { return c.Delivery != nil }) {
		_, _ = w.conn.Do(ctx, PruneArtifacts{}) // best effort: a later run retries
	}
	return nil
}

// stepOf returns the step of an action, or nil.
func (w *worker) stepOf(a plan.Action) plan.Step {
	for _, s := range w.engine.Steps(w.host.Spec) {
		if s.ID() == a.Step {
			return s
		}
	}
	return nil
}

// probe runs a step's probes and compares the answers.
func (w *worker) probe(ctx context.Context, step plan.Step) (plan.Finding, error) {
	return w.probeAs(ctx, step, false, step.Diff)
}

// probeAs runs a step's probes and judges the answers. done says that its changes were just
// made. A refusal or an unread answer is an error.
func (w *worker) probeAs(ctx context.Context, step plan.Step, done bool, judge func(plan.View) plan.Finding) (plan.Finding, error) {
	facts, root, err := w.conn.Probe(ctx, step.Probes())
	if err != nil {
		return plan.Finding{}, err
	}
	v := w.host.View(step.ID())
	v.Facts, v.Root, v.At = wire.Clean(w.engine.Scrub, facts), root, w.engine.Now().UTC()
	_, v.Verified = w.currentMarker().Steps[step.ID()]
	if done {
		v.Pending = false
		v.Node = inventory.Unread[inventory.Node]("read before the change; the run waits for it at its end")
	}
	if p, is := step.(plan.Peer); is {
		if err := w.viewPeer(ctx, p, &v, done); err != nil {
			return plan.Finding{}, err
		}
	}
	f := judge(v)
	if !f.Kubelet.IsUnread() {
		w.host.Kubelet = f.Kubelet // it may have changed since the plan
	}
	switch {
	case len(f.Unread) > 0:
		return f, fmt.Errorf("%s: %s", f.Unread[0].Probe, f.Unread[0].Why)
	case f.Refused != nil:
		return f, f.Refused
	}
	return f, nil
}

// change runs one change with its artifact and its input.
func (w *worker) change(ctx context.Context, a plan.Action, c plan.Change) error {
	if err := w.engine.checkLock(); err != nil {
		return err
	}
	if c.Peer != nil {
		return w.atService(ctx, a, c)
	}
	if c.Delivery != nil {
		if err := w.deliver(ctx, *c.Delivery); err != nil {
			return err
		}
	}
	if err := w.engine.checkLock(); err != nil {
		return err // a delivery may take long
	}
	task := RunChange{Step: a.Step, Change: c}
	if c.Input != plan.NoInput {
		var err error
		if task.Input, err = w.input(ctx, w.stepOf(a), c.Input); err != nil {
			return err
		}
	}
	if err := w.checkIdle(ctx, a, c); err != nil {
		return err
	}
	w.changed = w.cordoned
	w.granted = w.granted || c.GrantsRoot
	answer, err := w.conn.Do(ctx, task)
	err = w.admissionUsed(ctx, err)
	if err != nil && answer.Exit == plan.NotStaying {
		w.remedy = c.Remedy
	}
	return err
}
