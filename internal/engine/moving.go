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

// vacate drains the Node as which a host works before it gets another name. Nothing on the
// host knows of that yet, so where it fails, the Node is opened again.
func (w *worker) vacate(ctx context.Context, a plan.Action) error {
	step, makes := plan.NodeStep(w.engine.Steps(w.host.Spec))
	if !makes {
		return errors.New("no step makes the host a Node; plan again")
	}
	if err := w.connect(ctx); err != nil {
		return err
	}
	return w.idle(ctx, a, step)
}

// stillIdle looks once more before a kubelet leaves its Node for another: bringing it and its
// token takes a while, and a Pod that was bound meanwhile would be lost.
func (w *worker) stillIdle(ctx context.Context, a plan.Action, c plan.Change) error {
	n, moves := w.host.MovesFrom()
	if !moves || a.Forced || a.Disruption < plan.Drain || c.Disruption < plan.Restart {
		return nil
	}
	works := inventory.Pod.Stays
	if w.host.Drainable() {
		works = inventory.Pod.Works
	}
	if err := w.unused(ctx, n, works); err != nil {
		return w.notDrained(a, err)
	}
	return nil
}

// moved notes that the host's kubelet goes by the new name: the Node of the one before is its
// Node no more.
func (w *worker) moved() {
	if _, moves := w.host.MovesFrom(); moves {
		w.host.Node = inventory.Absent[inventory.Node]()
	}
}

// leaveNode deletes the Node that a host was under a name before, once it is there under its
// own. It looks again: Pods that were bound to the old one since would be lost, and what a person
// closed stays closed.
func (w *worker) leaveNode(ctx context.Context, a plan.Action, old inventory.Node) error {
	if w.host.Spec.Spec.JoinsCluster() {
		if err := w.arrived(ctx, old); err != nil {
			return fmt.Errorf("the Node %s stays: %w", old.Name, err)
		}
	}
	if err := w.unused(ctx, old, inventory.Pod.Stays); err != nil && !a.Forced {
		return fmt.Errorf("the Node %s stays: %w; drain it, and apply again: kubectl drain %[1]s --ignore-daemonsets", old.Name, err)
	}
	if err := w.engine.may(); err != nil {
		return err // the wait takes long
	}
	if err := w.engine.Cluster.DeleteNode(ctx, old); err != nil {
		return err
	}
	w.moved()
	return nil
}

// arrived waits until the host's kubelet has registered the Node of its own name, and closes that
// where a person closed the one before. Nodes that cannot be listed are asked for again.
func (w *worker) arrived(ctx context.Context, old inventory.Node) error {
	e, began := w.engine, w.engine.Now()
	waiting, cancel := context.WithTimeout(ctx, cmp.Or(e.Ready.Within, DefaultWithin))
	defer cancel()
	defer context.AfterFunc(e.Stop, cancel)()
	for {
		nodes, err := e.Cluster.Nodes(ctx)
		n, there := nodeNamed(nodes, w.host.Name)
		if err == nil && there && n.ProviderID == w.host.Server.ProviderID() {
			return w.staysClosed(ctx, nodes, old, n)
		}
		select {
		case <-waiting.Done():
			after := e.Now().Sub(began).Round(time.Second)
			if err != nil {
				return fmt.Errorf("nobody knows after %s whether its kubelet has registered the Node %s: %w", after, w.host.Name, err)
			}
			found, _ := e.lastLook(ctx, &w.host)
			return fmt.Errorf("its kubelet has not registered the Node %s after %s; %s", w.host.Name, after, found)
		case <-time.After(cmp.Or(e.Ready.Every, DefaultEvery)):
		}
	}
}

// staysClosed closes the Node n where a person closed the one before.
func (w *worker) staysClosed(ctx context.Context, nodes []inventory.Node, old, n inventory.Node) error {
	was, still := nodeNamed(nodes, old.Name)
	if !still || was.UID != old.UID || !was.Cordoned || was.CordonRun != "" {
		return nil
	}
	if err := w.engine.may(); err != nil {
		return err
	}
	_, err := w.engine.Cluster.CloseNode(ctx, n, plan.Run{Who: cmp.Or(was.CordonedBy, "whoever cordoned "+old.Name)})
	return err
}

func nodeNamed(nodes []inventory.Node, name string) (inventory.Node, bool) {
	i := slices.IndexFunc(nodes, func(n inventory.Node) bool { return n.Name == name })
	if i < 0 {
		return inventory.Node{}, false
	}
	return nodes[i], true
}
