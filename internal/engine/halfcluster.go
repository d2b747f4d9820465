package engine

import (
	"context"
	"errors"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/secret"
)

// HalfCluster makes a Cluster of a client that only lists Nodes.
type HalfCluster struct {
	Lists interface {
		UID(context.Context) (string, error)
		Nodes(context.Context) ([]inventory.Node, error)
	}
}

var errHalf = errors.New("this client only lists Nodes")

// UID is the client's.
func (h HalfCluster) UID(ctx context.Context) (string, error) { return h.Lists.UID(ctx) }

// Nodes is the client's.
func (h HalfCluster) Nodes(ctx context.Context) ([]inventory.Node, error) { return h.Lists.Nodes(ctx) }

// Observe sees nothing.
func (HalfCluster) Observe(context.Context) inventory.Cluster { return inventory.Cluster{} }

// Identify is refused, as is all that follows.
func (HalfCluster) Identify(context.Context, string) (inventory.Identity, error) {
	return inventory.Identity{}, errHalf
}

// Token is refused.
func (HalfCluster) Token(context.Context, string) (secret.Value, error) {
	return secret.Value{}, errHalf
}

// SetProviderID is refused.
func (HalfCluster) SetProviderID(context.Context, inventory.Node, string) error { return errHalf }

// DeleteNode is refused.
func (HalfCluster) DeleteNode(context.Context, inventory.Node) error { return errHalf }

// ReleasePod is refused.
func (HalfCluster) ReleasePod(context.Context, inventory.Pod) error { return errHalf }

// Keep is refused.
func (HalfCluster) Keep(context.Context, inventory.Object) error { return errHalf }
