package kubernetes

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"

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
		wg.Go(func() {
			objects, _, err := c.standing(ctx, c.wanted())
			out.Objects = seen(objects, err)
		})
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
