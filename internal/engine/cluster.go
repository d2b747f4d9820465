package engine

import (
	"context"
	"time"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/secret"
	"github.com/macfleet/macfleet/plan"
)

// Cluster is the Kubernetes cluster whose Nodes the hosts are. Changes apply only to the
// object that the plan saw: a Node or Pod that was recreated under the same name is left
// unchanged, with an error.
type Cluster interface {
	Nodes
	Identities
	Drainer
	Objects
}

// Nodes are the cluster's view of the hosts.
type Nodes interface {
	// ID identifies the cluster.
	ID(context.Context) (inventory.ClusterID, error)
	// Nodes lists all Nodes. Their readiness takes their heartbeats into account.
	Nodes(context.Context) ([]inventory.Node, error)
	// Macs returns the Nodes labelled as macOS.
	Macs(ctx context.Context) ([]inventory.Node, error)
	// Observe reads the Nodes and everything else. What only joining hosts need is read if
	// joins is set. What cannot be read is unread in the result.
	Observe(ctx context.Context, joins bool) (inventory.Seen[[]inventory.Node], inventory.Cluster)
	// SetProviderID sets the provider id of a Node without one.
	SetProviderID(ctx context.Context, n inventory.Node, id string) error
	// Taint sets a taint on a Node and replaces others with the same key.
	Taint(ctx context.Context, n inventory.Node, t inventory.Taint) error
	// NoteHostKey writes its host's key onto a Node.
	NoteHostKey(ctx context.Context, n inventory.Node, key string) error
	// SetRepairs writes its host's failed repairs onto a Node; nil removes them.
	SetRepairs(ctx context.Context, n inventory.Node, r *inventory.Repairs) error
	// DeleteNode deletes a Node. A running kubelet registers a new one.
	DeleteNode(ctx context.Context, n inventory.Node) error
}

// Identities are who the hosts' kubelets are to the cluster.
type Identities interface {
	// Identify creates what a host's identity lacks: ServiceAccount, token Secret, binding.
	// It changes nothing that is already right.
	Identify(ctx context.Context, host string) (inventory.Identity, error)
	// RenewToken creates a new token for a host's kubelet and keeps the current one.
	RenewToken(ctx context.Context, host string) (inventory.Identity, error)
	// RetireTokens revokes all tokens of a host's kubelet except the one of the Secret keep, which must exist.
	RetireTokens(ctx context.Context, host, keep string) error
	// Token returns the newest token of a host's complete identity.
	Token(ctx context.Context, host string) (secret.Value, error)
	// Revoke deletes a host's identity: the binding, then the token, then the account. Already
	// deleted: nothing to do.
	Revoke(ctx context.Context, host string) error
}

// Drainer drains Nodes.
type Drainer interface {
	// CordonNode cordons a Node in the name of a run. The result says whether the cordon belongs to
	// macfleet: this run's, or an earlier run's that it takes over. Any other cordon is kept.
	CordonNode(ctx context.Context, n inventory.Node, run plan.Run) (ours bool, err error)
	// UncordonNode removes macfleet's cordon. Any other cordon is kept.
	UncordonNode(ctx context.Context, n inventory.Node) error
	// EvictPods evicts the Pods of a Node, except those of DaemonSets, and respects disruption
	// budgets. Pods without a controller are evicted only if unmanaged is set. The error names the Pods that stay and why.
	// report is called for each Pod (NAMESPACE/NAME), from several goroutines at once: evicted,
	// held with the reason, gone.
	EvictPods(ctx context.Context, n inventory.Node, within time.Duration, unmanaged bool, report func(pod, what, why string)) error
	// PodsOn lists the Pods of one Node.
	PodsOn(ctx context.Context, n inventory.Node) ([]inventory.Pod, error)
	// ReleasePod removes the kubelet's finalizer from a terminating Pod.
	ReleasePod(ctx context.Context, p inventory.Pod) error
}

// Objects are the cluster's own objects that macfleet manages.
type Objects interface {
	// Keep creates or updates an object.
	Keep(ctx context.Context, o inventory.Object) error
	// Remove deletes an object that is still macfleet's.
	Remove(ctx context.Context, o inventory.Object) error
}
