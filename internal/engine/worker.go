package engine

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/secret"
	"github.com/macfleet/macfleet/internal/wire"
	"github.com/macfleet/macfleet/plan"
)

// worker performs one host's actions, over one connection that is opened when
// it is first needed.
type worker struct {
	engine   *Engine
	host     plan.Host
	conn     Host
	claimed  bool          // the claim on the host is ours
	password secret.Value  // the host's login password, once the host has taken it
	refused  secret.Value  // the one that the host refused in this run
	marker   *plan.Marker  // as it is on the host now
	holding  bool          // it is here to set or take away a hold, and no hold stops it
	held     *plan.Trouble // somebody holds the host since the run is on it; nil: nobody
	closing  bool          // this run has begun to close its Node to new Pods
	closed   bool          // and has closed it; nobody else had
	changed  bool          // and something was changed since
	remedy   string        // what helps with the change that failed, where it knows
	opened   bool          // and opened it again, as nothing was
	// disturbed says that something began here that drains, reboots or wipes.
	disturbed bool
	// late are the actions for which the window has closed meanwhile, with what needs them.
	late    []plan.Action
	lateFor *plan.Trouble
	claiming
}

// close leaves the host.
func (w *worker) close(ctx context.Context) {
	if w.conn != nil {
		w.conn.Close(ctx)
	}
}

// perform does one action and proves it.
func (w *worker) perform(ctx context.Context, a plan.Action) error {
	if w.held != nil {
		return w.held
	}
	if err := w.mayClaim(ctx); err != nil {
		return err
	}
	// Whoever looks at the Node finds who disturbs the work on its host.
	if n, known := w.host.Node.Get(); known && a.Disruption >= plan.Restart && w.engine.Tell != nil {
		w.engine.Tell(ctx, n, a)
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
		return w.engine.renamePins(map[string]string{s.ID: a.Host})
	case plan.CreateMarker:
		return w.mark(ctx)
	case plan.RunStep, plan.RemoveStep:
		return w.step(ctx, a)
	case plan.DrainNode:
		return w.vacate(ctx, a)
	case plan.IdentifyHost, plan.RenewToken, plan.RetireTokens, plan.SetProviderID, plan.TaintNode, plan.ReplaceNode, plan.DeleteNode, plan.RevokeHost, plan.ReleasePods:
		return w.inCluster(ctx, a)
	}
	return fmt.Errorf("nothing performs an action of kind %q", a.Kind)
}

// inWindow returns why an action must not begin at this time of the day, or nil. A host
// that was disturbed in time is brought to its end: half done it would serve nobody until
// the next window.
func (w *worker) inWindow(a plan.Action) *plan.Trouble {
	if b := w.engine.Bounds; b != nil && !w.disturbed {
		why := b.Closed(w.host, a, w.engine.Now())
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

// connect opens the connection where there is none. The host must show the key that
// the plan saw, pinned or not, and must still be ours to touch.
func (w *worker) connect(ctx context.Context) error {
	if w.conn != nil {
		return nil
	}
	// The server keeps its present name here, so that the same line of the ssh
	// configuration counts as when the plan was made.
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

// pin keeps the key of a host that is met for the first time, before anything is sent to it:
// whatever breaks off from here on, another machine in its place is noticed.
func (w *worker) pin() error {
	if w.host.Seen.Pinned {
		return nil
	}
	pin := *w.engine.PinOf(w.host)
	if t := w.host.Trust(); t.Pin != nil {
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

// reread reads again whose the host is, and returns why it must not be touched any more.
func (w *worker) reread(ctx context.Context) *plan.Trouble {
	now := wire.Clean(w.engine.Scrub, w.conn.Observe(ctx, nil))
	if now.Trouble != nil {
		return now.Trouble
	}
	w.host.Seen.Marker, w.host.Seen.Claim, w.host.Seen.Serial = now.Marker, now.Claim, now.Serial
	w.host.Seen.Refusals = now.Refusals // another run may have tried a password meanwhile
	return plan.NotOurs(w.engine.Config, &w.host)
}

// ErrClaimLost says that another run claimed the host first. The next run takes
// another server.
var ErrClaimLost = errors.New("another run claimed the host first")

// claim takes a server from the pool: first on the host, where two runs cannot
// both win, then by its name. A server that left the pool since the plan is not
// touched.
func (w *worker) claim(ctx context.Context) error {
	if err := w.asPlanned(ctx); err != nil {
		return err
	}
	ours, err := w.claimHost(ctx)
	if err != nil {
		return err
	}
	w.ours = &ours
	if err := w.engine.may(); err != nil {
		return err
	}
	return w.take(ctx)
}

// claimHost creates the claim on the host, or finds our own from an earlier run.
func (w *worker) claimHost(ctx context.Context) (plan.Claim, error) {
	if err := w.connect(ctx); err != nil {
		return plan.Claim{}, err
	}
	ours := plan.ClaimOf(w.engine.Config.Owner, w.host.Name, w.host.Server.ID)
	ours.Nonce = rand.Text()
	found := ours
	if _, err := w.conn.Do(ctx, TakeClaim{&found}); err != nil {
		return plan.Claim{}, err
	}
	if w.lost = !found.Same(ours); w.lost {
		owner := fleet.Owner{Name: found.Configuration, Environment: found.Environment}
		return plan.Claim{}, fmt.Errorf("%w, as %s of %s; apply again to take another server", ErrClaimLost, found.Name, owner)
	}
	w.claimed = true
	return found, nil
}

// mark writes the host's marker with the proofs of all steps that already match,
// and notes on its pin that the claim is finished.
func (w *worker) mark(ctx context.Context) error {
	if !w.claimed {
		if _, err := w.claimHost(ctx); err != nil {
			return err
		}
	}
	if err := w.enter(ctx, w.currentMarker(), ""); err != nil {
		return err
	}
	return w.engine.pin(*w.engine.PinOf(w.host))
}

// enter writes the host's marker, with the proof of a step if one is named. Where another
// marker stands there by now, what that says of a hold is carried over, and the host is left
// alone from there on.
func (w *worker) enter(ctx context.Context, m plan.Marker, proven plan.StepID) error {
	if err := w.engine.may(); err != nil {
		return err
	}
	_, err := w.conn.Do(ctx, WriteMarker{m, proven})
	if errors.Is(err, plan.ErrMarkerMoved) {
		if t := w.reread(ctx); t != nil {
			return t
		}
		there, _ := w.host.Seen.Marker.Get()
		m.Hold, w.held = w.standing(there.Hold), w.heldSince()
		_, err = w.conn.Do(ctx, WriteMarker{m, proven})
	}
	if err == nil {
		w.marker = &m
	}
	return err
}

// unmarked reports whether the host has no marker yet.
func (w *worker) unmarked() bool { return w.marker == nil && w.host.Seen.Marker.IsAbsent() }

// step runs a step's changes in order, asks its probes again, and enters the
// proof into the marker. A step that still differs has failed.
func (w *worker) step(ctx context.Context, a plan.Action) error {
	if err := w.connect(ctx); err != nil {
		return err
	}
	all := w.engine.Steps(w.host.Spec)
	i := slices.IndexFunc(all, func(s plan.Step) bool { return s.ID() == a.Step })
	if i < 0 {
		return fmt.Errorf("no step is called %q", a.Step)
	}
	step := all[i]
	changes := a.Changes
	if a.AfterRoot {
		// What differs showed to nobody before there was root.
		f, err := w.look(ctx, step, false)
		if err != nil {
			return err
		}
		if changes = f.Changes; len(f.Busy) > 0 && !w.host.ForceBusy {
			return w.notDrained(a, fmt.Errorf("there is at work: %s", plan.TaskTexts(f.Busy)))
		}
	}
	if err := w.idle(ctx, a, step); err != nil {
		return err
	}
	for _, c := range changes {
		if err := w.change(ctx, a, c); err != nil {
			return err
		}
	}
	f, err := w.look(ctx, step, true)
	var refused *plan.Trouble
	switch {
	case errors.As(err, &refused) && w.unmarked():
		return err
	case errors.As(err, &refused): // only a person can do the rest: nothing of it is half done
		return errors.Join(err, w.enter(ctx, w.currentMarker(), a.Step))
	case err != nil:
		return fmt.Errorf("look again: %w", err)
	case len(f.Changes) > 0:
		return fmt.Errorf("the change had no effect: %s: %s", f.Changes[0].Reason.Code, f.Changes[0].Reason.Text)
	}
	if m, is := step.(plan.NodeMaker); is && m.MakesNode() {
		w.moved()
	}
	if err := w.prove(ctx, step, f); err != nil {
		return err
	}
	if slices.ContainsFunc(changes, func(c plan.Change) bool { return c.Delivery != nil }) {
		_, _ = w.conn.Do(ctx, PruneArtifacts{}) // what cannot be dropped now the next one drops
	}
	return nil
}

// look asks a step's probes and judges the answers. done says that its changes were just made,
// so nothing is pending. What the step refuses to change, or could not read, is an error.
func (w *worker) look(ctx context.Context, step plan.Step, done bool) (plan.Finding, error) {
	facts, root, err := w.conn.Probe(ctx, step.Probes())
	if err != nil {
		return plan.Finding{}, err
	}
	v := w.host.View(step.ID())
	v.Facts, v.Root, v.At = wire.Clean(w.engine.Scrub, facts), root, w.engine.Now().UTC()
	_, v.Proven = w.currentMarker().Steps[step.ID()]
	if done {
		v.Pending = false
		v.Node = inventory.Unread[inventory.Node]("it was asked before the change; the end of the run waits for it")
	}
	f := step.Diff(v)
	if !f.Kubelet.IsUnread() {
		w.host.Kubelet = f.Kubelet // it may be another one than the plan saw
	}
	switch {
	case len(f.Unread) > 0:
		return f, fmt.Errorf("%s: %s", f.Unread[0].Probe, f.Unread[0].Why)
	case f.Refused != nil:
		return f, f.Refused
	}
	return f, nil
}

// change runs one change, with what it needs: an artifact on the host, a password.
func (w *worker) change(ctx context.Context, a plan.Action, c plan.Change) error {
	if err := w.engine.may(); err != nil {
		return err
	}
	if c.Delivery != nil {
		if err := w.deliver(ctx, *c.Delivery); err != nil {
			return err
		}
	}
	if err := w.engine.may(); err != nil {
		return err // a delivery takes long
	}
	task := RunChange{Step: a.Step, Change: c}
	if c.Input != plan.NoInput {
		var err error
		if task.Input, err = w.input(ctx, c.Input); err != nil {
			return err
		}
	}
	if err := w.stillIdle(ctx, a, c); err != nil {
		return err
	}
	w.changed = w.closed
	w.granted = w.granted || c.GrantsRoot
	answer, err := w.conn.Do(ctx, task)
	if err != nil && answer.Exit == plan.NotStaying {
		w.remedy = c.Remedy
	}
	return err
}

// prove enters what was seen of a step without a difference. A host that has no
// marker yet gets it with all proofs when it is claimed.
func (w *worker) prove(ctx context.Context, step plan.Step, f plan.Finding) error {
	id, wanted := step.ID(), step.Wanted()
	if w.unmarked() {
		proven := make(map[plan.StepID]plan.Digest) // the plan's own stays as it is
		maps.Copy(proven, w.host.Proven)
		proven[id] = plan.DigestOf(wanted, f.Facts)
		w.host.Proven = proven
		return nil
	}
	m := w.currentMarker()
	if wanted == "" {
		m = m.Without(id)
	} else {
		m = m.With(id, w.proof(plan.DigestOf(wanted, f.Facts)))
	}
	return w.enter(ctx, m, id)
}

// proof dates a digest.
func (w *worker) proof(d plan.Digest) plan.Digest {
	d.At = w.engine.Now().UTC().Truncate(time.Second)
	return d
}

// currentMarker returns the host's marker as it is now, brought up to date with
// where the host belongs and with what this run saw matching.
func (w *worker) currentMarker() plan.Marker {
	if w.marker != nil {
		return *w.marker
	}
	c := w.engine.Config
	serial, _ := w.host.Seen.Serial.Get()
	m := plan.Marker{Configuration: c.Name, Environment: c.Environment, Name: w.host.Name, Fleet: w.host.Fleet,
		Group: w.host.Group, ServerID: w.host.Server.ID, Serial: serial, Version: fleet.Version, Run: w.engine.Run.Marked(),
		Steps: make(map[plan.StepID]plan.Digest)}
	old, marked := w.host.Seen.Marker.Get()
	m.ClusterUID, m.Cluster = cmp.Or(old.ClusterUID, c.ClusterUID), old.Cluster
	if in := w.host.Cluster; in != nil && (old.ClusterUID != in.UID || old.Cluster == "") {
		m.ClusterUID, m.Cluster = in.UID, in.Name() // the name stays as it is as long as the cluster does
	}
	if marked {
		for id, d := range old.Steps {
			m = m.With(id, d)
		}
		m.Hold = w.standing(old.Hold)
	}
	for id, d := range w.host.Proven {
		m = m.With(id, w.proof(d))
	}
	return m
}
