package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
)

// errNoCluster reports a plan that needs a cluster, in a configuration without one.
var errNoCluster = errors.New("the configuration has no cluster")

// inCluster performs an action on the host's objects in the cluster, or on the cluster's own. It needs no
// connection to the host.
func (w *worker) inCluster(ctx context.Context, a plan.Action) error {
	cluster := w.engine.Cluster
	if cluster == nil {
		return errNoCluster
	}
	node, known := w.host.Node.Get()
	for _, f := range w.host.Former {
		if f.Name == a.Was {
			node, known = f.Node.Get()
		}
	}
	switch a.Kind {
	case plan.IdentifyHost:
		i, err := cluster.Identify(ctx, w.host.Name)
		if err == nil {
			w.host.Identity = inventory.Present(i)
		}
		return err
	case plan.RenewToken:
		i, err := cluster.RenewToken(ctx, w.host.Name)
		if err == nil {
			have, _ := w.host.Identity.Get()
			have.Secret, have.Issued, have.Token, have.Since, have.Spent = i.Secret, i.Issued, i.Token, i.Since, i.Spent
			w.host.Identity, w.host.NewToken = inventory.Present(have), false
		}
		return err
	case plan.RetireTokens:
		return w.retireTokens(ctx)
	case plan.RevokeHost:
		if err := w.mayRevoke(ctx); err != nil {
			return err
		}
		err := cluster.Revoke(ctx, cmp.Or(a.Was, w.host.Name))
		if err == nil && a.Was == "" {
			w.host.Identity = inventory.Absent[inventory.Identity]()
		}
		return err
	case plan.ReleasePods:
		if a.OfCluster() {
			if err := w.checkGone(ctx); err != nil {
				return err
			}
		}
		return w.releasePods(ctx, a.Pods)
	case plan.KeepObject:
		return cluster.Keep(ctx, *a.Object)
	case plan.RemoveObject:
		return cluster.Remove(ctx, *a.Object)
	}
	switch {
	case !known:
		return errors.New("the host's Node is unknown; plan again")
	case a.Kind == plan.SetProviderID:
		return cluster.SetProviderID(ctx, node, w.host.Server.ProviderID())
	case a.Kind == plan.DeleteNode && a.Was != "":
		return w.leaveNode(ctx, a, node)
	case a.Kind == plan.TaintNode:
		return cluster.Taint(ctx, node, inventory.AgentTaint())
	case a.Kind != plan.ReplaceNode && a.Kind != plan.DeleteNode:
		return fmt.Errorf("unknown kind of action in the cluster: %s", a.Kind)
	}
	err := cluster.DeleteNode(ctx, node)
	if err == nil && a.Was == "" {
		w.host.Node = inventory.Absent[inventory.Node]()
	}
	return err
}

// checkGone returns an error unless the host is certainly gone: otherwise the virtual machines
// of its Pods would keep running unmanaged. It asks again, as the plan may be old.
func (w *worker) checkGone(ctx context.Context) error {
	servers, err := w.engine.Servers.List(ctx)
	if err != nil {
		return err
	}
	nodes, err := w.engine.Cluster.Nodes(ctx)
	if err != nil {
		return err
	}
	if why := plan.MayExist(w.engine.Config.Owner, w.host.Name, servers, nodes); why != "" {
		return fmt.Errorf("the Pods of %s are kept: %s; plan again", w.host.Name, why)
	}
	return nil
}

// atOnce is how many Pods of one host are released at the same time: a dead kubelet can leave
// hundreds.
const atOnce = 8

// releasePods releases Pods. A failure does not stop the others.
func (w *worker) releasePods(ctx context.Context, pods []inventory.Pod) error {
	failed := each(pods, atOnce, func(p inventory.Pod) error {
		if err := w.engine.checkLock(); err != nil || w.engine.Stop.Err() != nil || ctx.Err() != nil {
			return err
		}
		return w.engine.Cluster.ReleasePod(ctx, p)
	})
	failed = slices.DeleteFunc(failed, func(err error) bool { return err == nil })
	if len(failed) == 0 {
		return nil
	}
	return fmt.Errorf("%d of %d Pods were not released: %w", len(failed), len(pods), failed[0])
}

// mayRevoke looks again at the Node of a host that leaves: without its identity, its kubelet cannot end the Pods that came to
// a Node which someone uncordoned or made again. From then on the Node stays cordoned.
func (w *worker) mayRevoke(ctx context.Context) error {
	planned, isNode := w.host.Node.Get()
	if !w.host.Leaves || !isNode || !w.cordoned {
		return nil
	}
	nodes, err := w.engine.Cluster.Nodes(ctx)
	if err != nil {
		return err
	}
	if n, there := nodeNamed(nodes, planned.Name); there && (!n.Cordoned || n.UID != planned.UID) {
		return fmt.Errorf("the Node %s was uncordoned or made again since the drain; plan again", n.Name)
	}
	w.changed = true
	return nil
}
