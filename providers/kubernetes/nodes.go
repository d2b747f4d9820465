package kubernetes

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/macfleet/macfleet/fleet/inventory"
)

// Observe reads the Nodes, as Nodes does, and what else the cluster holds that
// concerns the hosts, all of it at once. What cannot be read is unread in the
// result, each part by itself; without the Nodes it is unknown which Pods are on Mac
// minis. How hosts join, and what the cluster must hold for it, is read where
// joins says that some do.
func (c *Client) Observe(ctx context.Context, joins bool) (inventory.Seen[[]inventory.Node], inventory.Cluster) {
	var out inventory.Cluster
	nodes := sync.OnceValues(func() ([]inventory.Node, error) { return c.Nodes(ctx) })
	var wg sync.WaitGroup
	wg.Go(func() { _, _ = nodes() }) // started now, not after the first page of Pods
	wg.Go(func() { out.Pods = seen(c.pods(ctx, nodes)) })
	wg.Go(func() {
		all, foreign, err := c.Identities(ctx)
		out.Identities, out.Foreign = seen(all, err), foreign
	})
	wg.Go(func() { out.ID = seen(c.ID(ctx)) })
	out.Join, out.Objects = inventory.Unread[inventory.Join](notAsked), inventory.Unread[[]inventory.Object](notAsked)
	if joins {
		wg.Go(func() { out.Join = seen(c.join(ctx)) })
		wg.Go(func() {
			s, err := c.standing(ctx, c.wanted())
			out.Objects, out.Noted = seen(s.objects, err), s.noted
		})
	}
	wg.Go(func() { out.Machines = c.machines(ctx) })
	wg.Wait()
	return seen(nodes()), out
}

// notAsked is why a part that is not needed is unread.
const notAsked = "no host joins the cluster"

func seen[T any](v T, err error) inventory.Seen[T] {
	if err != nil {
		return inventory.Unread[T](err.Error())
	}
	return inventory.Present(v)
}

// The heartbeat of a kubelet: a Lease of 40 s that it renews every 10 s. The
// grace covers a renewal that took its whole time limit, twice.
const (
	leaseDuration = 40 * time.Second
	leaseGrace    = 20 * time.Second
)

// Nodes returns all Nodes of the cluster, ordered by name. A Node that is Ready
// by its condition while its Lease has run out is Unknown: the condition of a
// kubelet that died stands for most of a minute, or for ever where nothing in
// the cluster judges it. Who may not read Leases gets only the conditions.
func (c *Client) Nodes(ctx context.Context) ([]inventory.Node, error) {
	return c.nodesBy(ctx, metav1.ListOptions{})
}

// Macs returns the Nodes that say that they run macOS: a cluster may have thousands of others.
func (c *Client) Macs(ctx context.Context) ([]inventory.Node, error) {
	return c.nodesBy(ctx, metav1.ListOptions{LabelSelector: corev1.LabelOSStable + "=" + inventory.MacOS})
}

func (c *Client) nodesBy(ctx context.Context, o metav1.ListOptions) ([]inventory.Node, error) {
	var nodes []inventory.Node
	var beats map[string]coordinationv1.LeaseSpec
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		return each(gctx, "nodes", c.api.CoreV1().Nodes().List, o, func() func(*corev1.Node) error {
			nodes = nil
			return func(n *corev1.Node) error {
				nodes = append(nodes, c.toNode(n))
				return nil
			}
		})
	})
	g.Go(func() (err error) { beats, err = c.heartbeats(gctx); return })
	if err := g.Wait(); err != nil {
		return nil, err
	}
	now := c.clock.now()
	ahead := now.Sub(c.clock.local())
	for i := range nodes {
		if beat, ok := beats[nodes[i].Name]; ok {
			judge(&nodes[i], beat, now)
		}
		if heard := nodes[i].LastHeartbeat; !heard.IsZero() {
			nodes[i].LastHeartbeat = heard.Add(-ahead).UTC().Truncate(time.Millisecond)
		}
	}
	slices.SortFunc(nodes, func(a, b inventory.Node) int { return cmp.Compare(a.Name, b.Name) })
	return nodes, nil
}

// heartbeats returns the Leases of all kubelets by their Nodes' names.
func (c *Client) heartbeats(ctx context.Context) (map[string]coordinationv1.LeaseSpec, error) {
	out := make(map[string]coordinationv1.LeaseSpec)
	list := c.api.CoordinationV1().Leases(corev1.NamespaceNodeLease).List
	err := each(ctx, "nodes' leases", list, metav1.ListOptions{}, func() func(*coordinationv1.Lease) error {
		clear(out)
		return func(l *coordinationv1.Lease) error {
			out[l.Name] = l.Spec
			return nil
		}
	})
	if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
		return nil, nil
	}
	return out, err
}

// list is a page of a list in client-go.
type list interface {
	metav1.ListInterface
	runtime.Object
}

// each lists a kind page by page and hands each object to what begin returns; what names the kind in the
// error. Where the server forgot its place in the list, which it does after minutes, begin is called again, and
// the list is read in one piece.
func each[T runtime.Object, L list](ctx context.Context, what string, ask func(context.Context, metav1.ListOptions) (L, error), o metav1.ListOptions,
	begin func() func(T) error) error {
	take := begin()
	for o.Limit = pageSize; ; {
		l, err := ask(ctx, o)
		if (apierrors.IsResourceExpired(err) || apierrors.IsGone(err)) && o.Continue != "" {
			o.Limit, o.Continue, take = 0, "", begin()
			continue
		}
		if err == nil {
			err = meta.EachListItem(l, func(item runtime.Object) error { return take(item.(T)) })
		}
		if err != nil {
			return fmt.Errorf("list the %s: %w", what, explain(err))
		}
		if o.Continue = l.GetContinue(); o.Continue == "" {
			return nil
		}
	}
}

// listed is a whole list.
func listed[T runtime.Object, L list](ctx context.Context, what string, ask func(context.Context, metav1.ListOptions) (L, error), o metav1.ListOptions) (out []T, err error) {
	err = each(ctx, what, ask, o, func() func(T) error {
		out = nil
		return func(item T) error {
			out = append(out, item)
			return nil
		}
	})
	return out, err
}

// judge sets a Node's readiness right by its heartbeat.
func judge(n *inventory.Node, beat coordinationv1.LeaseSpec, now time.Time) {
	if beat.RenewTime != nil && beat.RenewTime.After(n.LastHeartbeat) {
		n.LastHeartbeat = beat.RenewTime.Time
	}
	if n.Ready != inventory.Ready || beat.RenewTime == nil {
		return
	}
	lasts := cmp.Or(time.Duration(value(beat.LeaseDurationSeconds))*time.Second, leaseDuration)
	if now.Sub(beat.RenewTime.Time) > lasts+leaseGrace {
		n.Ready = inventory.ReadyUnknown
		n.Why = "no heartbeat since " + beat.RenewTime.UTC().Format("2006-01-02 15:04:05 UTC")
	}
}

func (c *Client) toNode(n *corev1.Node) inventory.Node {
	out := inventory.Node{Name: n.Name, UID: string(n.UID), ProviderID: n.Spec.ProviderID, Labels: n.Labels, Ready: inventory.ReadyUnknown,
		Cordoned: n.Spec.Unschedulable}
	if out.Cordoned {
		out.CordonedBy = n.Annotations[c.label(cordonedBy)]
		out.CordonRun = n.Annotations[c.label(cordonRun)]
		out.CordonClient, out.CordonSince = cordonOf(n)
	}
	out.Taints = inventory.Present(taintsOf(n))
	out.HostKey = n.Annotations[c.label(hostKeyNote)]
	if name := n.Annotations[capiGroup+"/machine"]; name != "" {
		out.Machine = cmp.Or(n.Annotations[capiGroup+"/cluster-namespace"], metav1.NamespaceDefault) + "/" + name
	}
	out.Writers = c.writersOf(n)
	out.Repairs = repairsIn(n.Annotations[c.label(repairsNote)])
	out.Hold, out.HoldUnread = holdOf(n.Annotations[c.label(holdNote)])
	out.Capacity = inventory.Capacity{CPU: int(n.Status.Capacity.Cpu().Value()), Memory: n.Status.Capacity.Memory().Value(),
		Pods: int(n.Status.Capacity.Pods().Value())}
	for _, at := range n.Status.Addresses {
		if at.Type == corev1.NodeInternalIP {
			out.InternalIP = cmp.Or(out.InternalIP, at.Address)
		}
	}
	for _, condition := range n.Status.Conditions {
		out.Conditions = append(out.Conditions, inventory.Condition{Type: string(condition.Type), Status: string(condition.Status),
			Why: cmp.Or(condition.Message, condition.Reason), Since: utc(condition.LastTransitionTime.Time)})
		if condition.Type == corev1.NodeReady {
			out.Ready, out.LastHeartbeat = inventory.Readiness(condition.Status), condition.LastHeartbeatTime.Time
			if condition.Status != corev1.ConditionTrue {
				out.Why = cmp.Or(condition.Message, condition.Reason)
			}
		}
	}
	return out
}

func taintsOf(n *corev1.Node) []inventory.Taint {
	out := []inventory.Taint{}
	for _, t := range n.Spec.Taints {
		taint := inventory.Taint{Key: t.Key, Value: t.Value, Effect: string(t.Effect)}
		if t.TimeAdded != nil {
			taint.Since = utc(t.TimeAdded.Time)
		}
		out = append(out, taint)
	}
	return out
}

// cordonOf says with which program a Node was cordoned, and when: by the cluster's record of
// who wrote the field, and by the taint that its controller adds.
func cordonOf(n *corev1.Node) (client string, since time.Time) {
	for _, m := range n.ManagedFields {
		if m.FieldsV1 != nil && strings.Contains(m.FieldsV1.GetRawString(), `"f:unschedulable":`) {
			client = m.Manager
			if m.Time != nil {
				since = utc(m.Time.Time) // it may have written another field since
			}
		}
	}
	for _, t := range n.Spec.Taints {
		if t.Key == corev1.TaintNodeUnschedulable && t.TimeAdded != nil {
			since = utc(t.TimeAdded.Time)
		}
	}
	return client, since
}

// utc is a time of the cluster's, which knows only whole seconds.
func utc(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t.UTC().Truncate(time.Second)
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
