package engine

import (
	"context"
	"errors"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
)

// The providers that can be away.
const (
	Scaleway   = "scaleway"
	Kubernetes = "kubernetes"
)

// AwayError says that a provider could not be asked. What it would have said is not
// known: that is neither a difference nor the absence of one.
type AwayError struct {
	Provider string
	Err      error
}

// Error returns what the provider, or the way to it, said.
func (e *AwayError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *AwayError) Unwrap() error { return e.Err }

// otherClusterError says that the cluster answers and is not the wanted one.
type otherClusterError struct{ text string }

// Error says which it is.
func (e *otherClusterError) Error() string { return e.text }

func away(provider string, err error) error {
	var other *otherClusterError
	if err == nil || errors.As(err, &other) {
		return err
	}
	return &AwayError{provider, err}
}

// listsOrAway is lists for Observe. Where the engine watches, hosts are looked at
// also while the cluster is away: what it knows of them is unread then.
func (e *Engine) listsOrAway(ctx context.Context) (plan.Snapshot, error) {
	snap, err := e.lists(ctx, false)
	var gone *AwayError
	if !e.Watching || !errors.As(err, &gone) || gone.Provider != Kubernetes || ctx.Err() != nil {
		return snap, err
	}
	why := err.Error()
	if snap, err = e.lists(ctx, true); err != nil {
		return snap, err
	}
	if snap.Nodes.IsUnread() { // else it is back
		snap.Nodes, snap.Cluster = inventory.Unread[[]inventory.Node](why), inventory.Unread[inventory.Cluster](why)
	}
	return snap, nil
}
