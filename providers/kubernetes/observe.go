package kubernetes

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	klabels "k8s.io/apimachinery/pkg/labels"

	"github.com/macfleet/macfleet/fleet/inventory"
)

// Observe reads the Nodes, as Nodes does, and what else the cluster holds that
// concerns the hosts, all of it at once. What cannot be read is unread in the
// result, each part by itself; without the Nodes nobody knows which Pods are on Mac
// minis. How hosts join, and what the cluster must hold for that, is read where
// joins says that some do.
func (c *Client) Observe(ctx context.Context, joins bool) (inventory.Seen[[]inventory.Node], inventory.Cluster) {
	var out inventory.Cluster
	nodes := sync.OnceValues(func() ([]inventory.Node, error) { return c.Nodes(ctx) })
	var wg sync.WaitGroup
	wg.Go(func() { _, _ = nodes() }) // asked at once, and not when the first page of Pods is there
	wg.Go(func() { out.Pods = seen(c.pods(ctx, nodes)) })
	wg.Go(func() { out.Identities = seen(c.identities(ctx)) })
	out.Join, out.Objects = inventory.Unread[inventory.Join](notAsked), inventory.Unread[[]inventory.Object](notAsked)
	if joins {
		wg.Go(func() { out.Join = seen(c.join(ctx)) })
		wg.Go(func() { out.Objects = seen(c.objects(ctx)) })
	}
	wg.Go(func() { out.Machines = c.machines(ctx) })
	wg.Wait()
	return seen(nodes()), out
}

// notAsked is why a part is unread that nobody needs.
const notAsked = "no host joins the cluster"

func seen[T any](v T, err error) inventory.Seen[T] {
	if err != nil {
		return inventory.Unread[T](err.Error())
	}
	return inventory.Present(v)
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

// identityParts is what identities are made of, as the cluster lists it.
type identityParts struct {
	accounts []*corev1.ServiceAccount
	secrets  []*metav1.PartialObjectMetadata
	bindings []*rbacv1.ClusterRoleBinding
}

func (c *Client) identityParts(ctx context.Context) (parts identityParts, err error) {
	ours := metav1.ListOptions{LabelSelector: klabels.Set{labelManagedBy: manager, labelComponent: component, c.label(labelOwner): c.options.Owner}.String()}
	ns := c.options.AgentNamespace
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		return each(ctx, "service accounts of hosts", c.api.CoreV1().ServiceAccounts(ns).List, ours, func(l *corev1.ServiceAccountList) error {
			parts.accounts = append(parts.accounts, pointers(l.Items)...)
			return nil
		})
	})
	g.Go(func() error {
		secrets := c.meta.Resource(corev1.SchemeGroupVersion.WithResource("secrets")).Namespace(ns)
		return each(ctx, "secrets of hosts", secrets.List, ours, func(l *metav1.PartialObjectMetadataList) error {
			parts.secrets = append(parts.secrets, pointers(l.Items)...)
			return nil
		})
	})
	g.Go(func() error {
		return each(ctx, "role bindings of hosts", c.api.RbacV1().ClusterRoleBindings().List, ours, func(l *rbacv1.ClusterRoleBindingList) error {
			parts.bindings = append(parts.bindings, pointers(l.Items)...)
			return nil
		})
	})
	return parts, g.Wait()
}

func pointers[T any](items []T) []*T {
	out := make([]*T, len(items))
	for i := range items {
		out[i] = &items[i]
	}
	return out
}
