package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
)

// Reboot holds the time limits of a restart. A zero field means the default.
type Reboot struct {
	Within time.Duration // until the server is ready and the host answers; 0 = DefaultReboot
	Every  time.Duration // polling interval; 0 = DefaultEvery
}

// DefaultReboot is the time for a server to restart.
const DefaultReboot = 15 * time.Minute

// reboot restarts the host once, and waits until it answers. One that answers restarts itself: the provider's call is like pulling the plug,
// which can corrupt the disk. The host is idle first, unless the action is forced.
func (w *worker) reboot(ctx context.Context, a plan.Action) error {
	if err := w.asMember(ctx); err != nil {
		return err
	}
	if err := w.idleForReboot(ctx, a); err != nil {
		return err
	}
	if err := w.engine.checkLock(); err != nil {
		return err
	}
	waiting, cancel := context.WithTimeout(ctx, cmp.Or(w.engine.Reboot.Within, DefaultReboot))
	defer cancel()
	if !a.PullsPlug {
		return w.restart(waiting)
	}
	w.disconnect(ctx)
	w.changed = w.cordoned // from here on the Node stays cordoned until the host is verified
	s := w.host.Server
	if err := w.engine.Servers.Reboot(ctx, s.Zone, s.ID); err != nil && !w.providerRestarts(ctx) {
		return err
	}
	if err := w.awaitServer(waiting); err != nil {
		return err
	}
	return w.awaitAnswer(waiting)
}

// restart lets the host restart itself, and waits until it answers from another boot.
func (w *worker) restart(ctx context.Context) error {
	before, err := w.boot(ctx)
	if err != nil {
		return err
	}
	w.changed = w.cordoned // from here on the Node stays cordoned until the host is verified
	if _, err := w.conn.Do(ctx, RestartHost{}); err != nil {
		return err
	}
	for {
		w.disconnect(ctx)
		if !w.again(ctx) {
			return errors.New("the host was to restart, and still answers from the same boot; check why: macfleet ssh " + w.host.Name)
		}
		if err := w.awaitAnswer(ctx); err != nil {
			return err
		}
		now, err := w.boot(ctx)
		if err == nil && now != before {
			return nil
		}
	}
}

// boot returns what names the host's present boot.
func (w *worker) boot(ctx context.Context) (boot string, err error) {
	if err := w.connect(ctx); err != nil {
		return "", err
	}
	_, err = w.conn.Do(ctx, ReadBoot{&boot})
	return boot, err
}

// disconnect ends the connection, if there is one.
func (w *worker) disconnect(ctx context.Context) {
	if w.conn != nil {
		w.conn.Close(ctx)
		w.conn = nil
	}
}

// asMember returns an error if the server changed since the plan.
func (w *worker) asMember(ctx context.Context) error {
	s := w.host.Server
	now, err := w.engine.Servers.Get(ctx, s.Zone, s.ID)
	if err == nil && (now.Name != s.Name && now.Name != w.host.Name || !now.Usable()) {
		err = fmt.Errorf("the server changed since the plan: name %s, status %s; plan again", now.Name, now.Status)
	}
	return err
}

// providerRestarts reports whether the provider restarts the server, although the answer to the request was lost.
func (w *worker) providerRestarts(ctx context.Context) bool {
	s := w.host.Server
	now, err := w.engine.Servers.Get(ctx, s.Zone, s.ID)
	return err == nil && now.Status == "rebooting"
}

// idleForReboot makes sure that nothing runs on the host: it drains the Node, or cordons it and checks that it has no
// Pods. A host that answers also has to show no running work itself.
func (w *worker) idleForReboot(ctx context.Context, a plan.Action) error {
	if a.Forced || a.Disruption < plan.Reboot { // nothing runs on a host that this run claims
		return nil
	}
	step, makesNode := plan.NodeStep(w.engine.Steps(w.host.Spec))
	_, _, agent := w.agentFor(a)
	if agent && w.host.Unknown != nil {
		if err := w.silentAgent(ctx, a); err != nil || w.engine.Cluster == nil {
			return err
		}
	}
	switch _, there := w.host.Node.Get(); {
	case w.host.Unknown == nil && (makesNode || agent):
		if err := w.connect(ctx); err != nil {
			return err
		}
		return w.drainFor(ctx, a, step)
	case !there:
		return w.stillNoNode(ctx)
	}
	draining, cancel := context.WithTimeout(ctx, cmp.Or(w.engine.Drain.Within, DefaultDrain))
	defer cancel()
	if err := w.drainNode(draining, w.host.Drainable()); err != nil {
		return w.notDrained(a, err)
	}
	n, _ := w.host.Node.Get()
	if err := w.checkUnused(draining, n, inventory.Pod.Works); err != nil {
		return w.notDrained(a, err)
	}
	return nil
}

// stillNoNode returns an error if the host has become a Node since the plan.
func (w *worker) stillNoNode(ctx context.Context) error {
	nodes, err := w.engine.Cluster.Nodes(ctx)
	for _, n := range nodes {
		if n.Name == w.host.Name || n.ProviderID == w.host.Server.ProviderID() {
			return errors.New("the host has become a Node since the plan; plan again")
		}
	}
	return err
}

// awaitServer waits until the provider reports the server as ready.
func (w *worker) awaitServer(ctx context.Context) error {
	s := w.host.Server
	last := "no status"
	for {
		now, err := w.engine.Servers.Get(ctx, s.Zone, s.ID)
		switch {
		case err == nil && now.Usable():
			w.host.Server = now
			return nil
		case err == nil:
			last = now.Status
		case ctx.Err() == nil:
			last = err.Error()
		}
		if !w.again(ctx) {
			return fmt.Errorf("the server is not ready after its restart (%s): %w", last, context.Cause(ctx))
		}
	}
}

// awaitAnswer waits until the host answers over SSH, with the key that is known of it.
func (w *worker) awaitAnswer(ctx context.Context) error {
	e := w.engine
	target := Target{Server: w.host.Server, Name: w.host.Name, Trust: w.host.Trust()}
	if w.host.Seen.Key != "" {
		target.Trust.Pin = e.PinOf(w.host)
	}
	if h, remembers := e.Hosts.(Restarting); remembers {
		h.Restarted(ctx, target)
	}
	for {
		seen := e.look(ctx, target, nil)
		switch {
		case seen.Trouble == nil:
			w.host.Unknown, w.host.Seen = nil, seen
			return w.readKubelet(ctx)
		case seen.Trouble.Code != plan.CodeUnreachable && !transient(seen.Trouble):
			return seen.Trouble // a refused login must not be tried again
		}
		if !w.again(ctx) {
			return fmt.Errorf("the host does not answer after its restart: %w", seen.Trouble)
		}
	}
}

// readKubelet reads the kubelet that the restart has started, so that the run waits for its heartbeat and not for
// the one before. It also checks the host's owner, who was unknown if the host did not answer before.
func (w *worker) readKubelet(ctx context.Context) error {
	w.host.Kubelet = inventory.Absent[plan.Kubelet]()
	if err := w.connect(ctx); err != nil {
		return err
	}
	if step, makesNode := plan.NodeStep(w.engine.Steps(w.host.Spec)); makesNode {
		_, _ = w.probe(ctx, step) // what it finds is for the comparison at the end
	}
	return nil
}

// transient reports whether a host that starts may show a trouble for a while.
func transient(t *plan.Trouble) bool {
	return t.Code.String() == "no-ssh-answer" || t.Code.String() == "connection-lost"
}

// again waits for the next poll, and reports whether there is time left.
func (w *worker) again(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(cmp.Or(w.engine.Reboot.Every, DefaultEvery)):
		return true
	}
}
