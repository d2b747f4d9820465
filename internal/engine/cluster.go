package engine

import (
	"context"
	"time"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/secret"
	"github.com/macfleet/macfleet/plan"
)

// Cluster is the Kubernetes cluster whose Nodes the hosts are. What changes
// something changes what the plan saw or nothing: a Node or Pod that was made
// anew under the same name is left alone, with an error.
type Cluster interface {
	Nodes
	Identities
	Drainer
	Objects
}

// Nodes are the cluster's view of the hosts.
type Nodes interface {
	// ID says which cluster it is.
	ID(context.Context) (inventory.ClusterID, error)
	// Nodes lists all Nodes. Their readiness is judged with their heartbeats.
	Nodes(context.Context) ([]inventory.Node, error)
	// Macs returns the Nodes that say that they run macOS.
	Macs(ctx context.Context) ([]inventory.Node, error)
	// Observe reads the Nodes and all else; what only a host that joins needs is read
	// where joins says so. What cannot be read is unread in the result.
	Observe(ctx context.Context, joins bool) (inventory.Seen[[]inventory.Node], inventory.Cluster)
	// SetProviderID sets the provider id of a Node that has none.
	SetProviderID(ctx context.Context, n inventory.Node, id string) error
	// Taint gives a Node a taint, in place of those of its key.
	Taint(ctx context.Context, n inventory.Node, t inventory.Taint) error
	// NoteHostKey writes onto a Node which key its host has.
	NoteHostKey(ctx context.Context, n inventory.Node, key string) error
	// DeleteNode deletes a Node, so that its kubelet registers another where there is
	// one.
	DeleteNode(ctx context.Context, n inventory.Node) error
}

// Identities are who the hosts' kubelets are to the cluster.
type Identities interface {
	// Identify completes a host's identity: ServiceAccount, token Secret, binding.
	// It makes nothing twice and takes back nothing that is right.
	Identify(ctx context.Context, host string) (inventory.Identity, error)
	// RenewToken makes another token for a host's kubelet, beside the one that it has.
	RenewToken(ctx context.Context, host string) (inventory.Identity, error)
	// RetireTokens ends all tokens of a host's kubelet but the one of the Secret keep, which must be there.
	RetireTokens(ctx context.Context, host, keep string) error
	// Token returns the newest token of a host's identity, which must be complete.
	Token(ctx context.Context, host string) (secret.Value, error)
	// Revoke takes a host's identity away: the binding first, then the token, then the
	// account. What is gone is no error.
	Revoke(ctx context.Context, host string) error
}

// Drainer makes Nodes idle.
type Drainer interface {
	// CloseNode lets no new Pod onto a Node, in the name of a run. ours says whether the
	// Node is a run's then, this one's or an earlier one's that it takes over; one that
	// anybody else closed stays theirs.
	CloseNode(ctx context.Context, n inventory.Node, run plan.Run) (ours bool, err error)
	// OpenNode takes back what CloseNode did. What anybody else closed stays closed.
	OpenNode(ctx context.Context, n inventory.Node) error
	// EmptyNode evicts the Pods of a Node, all but those of DaemonSets, with respect for
	// their disruption budgets; those that nothing makes again only where unmanaged says so. Its error names the Pods that stay, and what holds them.
	// tell hears of each Pod (NAMESPACE/NAME), from several goroutines at once: evicted,
	// held with the reason, gone.
	EmptyNode(ctx context.Context, n inventory.Node, within time.Duration, unmanaged bool, tell func(pod, what, why string)) error
	// PodsOn lists the Pods of one Node.
	PodsOn(ctx context.Context, n inventory.Node) ([]inventory.Pod, error)
	// ReleasePod takes the kubelet's finalizer off a Pod that is being deleted.
	ReleasePod(ctx context.Context, p inventory.Pod) error
}

// Objects are what the cluster itself must hold.
type Objects interface {
	// Keep brings an object of the cluster to what is wanted.
	Keep(ctx context.Context, o inventory.Object) error
	// Remove takes an object away that is not wanted any more, if it is still macfleet's.
	Remove(ctx context.Context, o inventory.Object) error
}
