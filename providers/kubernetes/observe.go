package kubernetes

import (
	"cmp"
	"context"
	"fmt"
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
	selector := klabels.Set{labelManagedBy: manager, labelComponent: component, c.label(labelOwner): c.options.Owner}.String()
	ns := c.options.AgentNamespace
	g, ctx := errgroup.WithContext(ctx)
	list := func(what string, one func(o metav1.ListOptions) (string, error)) {
		g.Go(func() error {
			err := pages(func(o metav1.ListOptions) (string, error) {
				o.LabelSelector = selector
				return one(o)
			})
			if err != nil {
				return fmt.Errorf("list the %s of hosts: %w", what, explain(err))
			}
			return nil
		})
	}
	list("service accounts", func(o metav1.ListOptions) (string, error) {
		l, err := c.api.CoreV1().ServiceAccounts(ns).List(ctx, o)
		if err != nil {
			return "", err
		}
		parts.accounts = append(parts.accounts, pointers(l.Items)...)
		return l.Continue, nil
	})
	list("secrets", func(o metav1.ListOptions) (string, error) {
		l, err := c.meta.Resource(corev1.SchemeGroupVersion.WithResource("secrets")).Namespace(ns).List(ctx, o)
		if err != nil {
			return "", err
		}
		parts.secrets = append(parts.secrets, pointers(l.Items)...)
		return l.Continue, nil
	})
	list("role bindings", func(o metav1.ListOptions) (string, error) {
		l, err := c.api.RbacV1().ClusterRoleBindings().List(ctx, o)
		if err != nil {
			return "", err
		}
		parts.bindings = append(parts.bindings, pointers(l.Items)...)
		return l.Continue, nil
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
