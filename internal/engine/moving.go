package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
)

// vacate drains a host's Node before the host gets another name or is released. If it fails, the Node is
// uncordoned, because nothing on the host has changed yet. A host that leaves may have no place in the
// configuration, so no step makes it a Node.
func (w *worker) vacate(ctx context.Context, a plan.Action) error {
	step, makes := plan.NodeStep(w.engine.Steps(w.host.Spec))
	if !makes && !w.host.Leaves {
		return errors.New("no step makes the host a Node; plan again")
	}
	if err := w.connect(ctx); err != nil {
		return err
	}
	return w.drainFor(ctx, a, step)
}

// checkIdle checks again before a change of a host with a CI agent, and before a kubelet leaves its Node for another: a Pod that was bound
// since the drain would be lost.
func (w *worker) checkIdle(ctx context.Context, a plan.Action, c plan.Change) error {
	if err := w.stillIdleAgent(ctx, a, c); err != nil {
		return err
	}
	n, moves := w.host.MovesFrom()
	if !moves || a.Forced || a.Disruption < plan.Drain || c.Disruption < plan.Restart {
		return nil
	}
	works := inventory.Pod.Stays
	if w.host.Drainable() {
		works = inventory.Pod.Works
	}
	if err := w.checkUnused(ctx, n, works); err != nil {
		return w.notDrained(a, err)
	}
	return nil
}

// moved records that the host's kubelet uses the new name, so the old Node is no longer its Node.
func (w *worker) moved() {
	if _, moves := w.host.MovesFrom(); moves {
		w.host.Node = inventory.Absent[inventory.Node]()
	}
}

// leaveNode deletes a host's old Node once its new one is registered. It checks for Pods that
// were bound to the old one since, and carries over a person's cordon.
func (w *worker) leaveNode(ctx context.Context, a plan.Action, old inventory.Node) error {
	if w.host.Spec.Spec.JoinsCluster() {
		if err := w.arrived(ctx, old); err != nil {
			return fmt.Errorf("the Node %s is kept: %w", old.Name, err)
		}
	}
	if err := w.checkUnused(ctx, old, inventory.Pod.Stays); err != nil && !a.Forced {
		return fmt.Errorf("the Node %s is kept: %w; drain it (kubectl drain %[1]s --ignore-daemonsets) and apply again", old.Name, err)
	}
	if err := w.engine.checkLock(); err != nil {
		return err // the wait may take long
	}
	if err := w.engine.Cluster.DeleteNode(ctx, old); err != nil {
		return err
	}
	w.moved()
	return nil
}

// arrived waits until the host's kubelet has registered its new Node, and cordons that if a
// person cordoned the old one. A failed list is retried.
func (w *worker) arrived(ctx context.Context, old inventory.Node) error {
	e, started := w.engine, w.engine.Now()
	waiting, cancel := context.WithTimeout(ctx, cmp.Or(e.Ready.Within, DefaultWithin))
	defer cancel()
	defer context.AfterFunc(e.Stop, cancel)()
	for {
		nodes, err := e.Cluster.Nodes(ctx)
		n, there := nodeNamed(nodes, w.host.Name)
		if err == nil && there && n.ProviderID == w.host.Server.ProviderID() {
			return w.keepCordon(ctx, nodes, old, n)
		}
		select {
		case <-waiting.Done():
			after := e.Now().Sub(started).Round(time.Second)
			if err != nil {
				return fmt.Errorf("unknown after %s whether its kubelet registered the Node %s: %w", after, w.host.Name, err)
			}
			found, _ := e.lastState(ctx, &w.host)
			return fmt.Errorf("its kubelet has not registered the Node %s after %s; %s", w.host.Name, after, found)
		case <-time.After(cmp.Or(e.Ready.Every, DefaultEvery)):
		}
	}
}

// keepCordon cordons the Node n if a person cordoned the old one.
func (w *worker) keepCordon(ctx context.Context, nodes []inventory.Node, old, n inventory.Node) error {
	was, still := nodeNamed(nodes, old.Name)
	if !still || was.UID != old.UID || !was.Cordoned || was.CordonRun != "" {
		return nil
	}
	if err := w.engine.checkLock(); err != nil {
		return err
	}
	_, err := w.engine.Cluster.CordonNode(ctx, n, plan.Run{Who: cmp.Or(was.CordonedBy, "whoever cordoned "+old.Name)})
	return err
}

func nodeNamed(nodes []inventory.Node, name string) (inventory.Node, bool) {
	i := slices.IndexFunc(nodes, func(n inventory.Node) bool { return n.Name == name })
	if i < 0 {
		return inventory.Node{}, false
	}
	return nodes[i], true
}
