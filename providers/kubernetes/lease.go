package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/macfleet/macfleet/internal/lock"
	"github.com/macfleet/macfleet/plan"
)

// LeaseName names the Lease of a configuration and environment; a configuration
// without environments has an empty one. No two have the same: neither holds a dot.
func LeaseName(configuration, environment string) string {
	name := "macfleet." + configuration
	if environment != "" {
		name += "." + environment
	}
	return name
}

// What a Lease says in addition to its own fields, behind the configuration's prefix.
const (
	leaseRun     = "run"         // id
	leaseWho     = "who"         // for people
	leaseMachine = "machine"     // so here
	leaseStarted = "started"     // when the run started, RFC 3339
	leaseUID     = "cluster-uid" // of the cluster that the run saw; absent: not known, or an older version wrote it
	leaseCluster = "cluster"     // what that cluster was called then, for people
)

// Lease is a Lease as the store of a lock. A Lease without a holder is kept: its
// transitions are the epoch.
type Lease struct {
	client *Client
	name   string
}

var _ lock.Store = Lease{}

// Lease returns the Lease of a name in macfleet's namespace, as a store.
func (c *Client) Lease(name string) Lease { return Lease{client: c, name: name} }

// String says where the Lease is.
func (l Lease) String() string { return "lease " + l.client.options.Namespace + "/" + l.name }

// Get returns the record, and an empty version where there is no Lease.
func (l Lease) Get(ctx context.Context) (lock.Record, string, error) {
	have, err := l.client.api.CoordinationV1().Leases(l.client.options.Namespace).Get(ctx, l.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return lock.Record{}, "", nil
	}
	if err != nil {
		return lock.Record{}, "", fmt.Errorf("read %s: %w", l, explain(err))
	}
	return l.record(have), versionOf(have), nil
}

// Put replaces the Lease of a version, or makes it. Where the namespace is missing
// the error wraps ErrUnprepared.
func (l Lease) Put(ctx context.Context, r lock.Record, version string) (string, error) {
	leases, next := l.client.api.CoordinationV1().Leases(l.client.options.Namespace), l.lease(r)
	var done *coordinationv1.Lease
	var err error
	if version == "" {
		done, err = leases.Create(ctx, next, metav1.CreateOptions{FieldManager: manager})
	} else {
		uid, rv, _ := strings.Cut(version, " ")
		next.UID, next.ResourceVersion = types.UID(uid), rv
		done, err = leases.Update(ctx, next, metav1.UpdateOptions{FieldManager: manager})
	}
	switch {
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err), version != "" && apierrors.IsNotFound(err):
		return "", fmt.Errorf("write %s: %w", l, lock.ErrConflict)
	case apierrors.IsNotFound(err):
		return "", fmt.Errorf("write %s: %w (%w)", l, ErrUnprepared, lock.ErrRefused)
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err), apierrors.IsInvalid(err):
		return "", fmt.Errorf("write %s: %w (%w)", l, explain(err), lock.ErrRefused)
	case err != nil:
		return "", fmt.Errorf("write %s: %w", l, explain(err))
	}
	return versionOf(done), nil
}

// versionOf names a Lease and its version. Without the uid an update of one that was
// deleted would recreate it.
func versionOf(l *coordinationv1.Lease) string { return string(l.UID) + " " + l.ResourceVersion }

// ErrUnprepared says that the cluster has no namespace of macfleet's as yet.
var ErrUnprepared = errors.New("the namespace does not exist; fix: macfleet init cluster")

func (l Lease) record(have *coordinationv1.Lease) lock.Record {
	note := func(name string) string { return have.Annotations[l.client.label(name)] }
	started, _ := time.Parse(time.RFC3339, note(leaseStarted)) // one that cannot be read is not known
	r := lock.Record{Run: plan.Run{ID: note(leaseRun), Who: note(leaseWho), Epoch: int64(value(have.Spec.LeaseTransitions)), Started: started},
		Machine: note(leaseMachine), Lasts: time.Duration(value(have.Spec.LeaseDurationSeconds)) * time.Second,
		Since: value(have.Spec.AcquireTime).Time, Renewed: value(have.Spec.RenewTime).Time,
		Place: lock.Place{ID: note(leaseUID), Name: note(leaseCluster)}}
	if holder := value(have.Spec.HolderIdentity); holder != "" {
		// A holder without macfleet's notes is named by its identity.
		r.Held = true
		if r.Run.ID == "" || r.Run.ID != holder {
			r.Run.ID, r.Run.Who, r.Run.Started, r.Machine = holder, holder, time.Time{}, "an unknown machine"
		}
	}
	return r
}

func (l Lease) lease(r lock.Record) *coordinationv1.Lease {
	note := map[string]string{l.client.label(leaseRun): r.Run.ID, l.client.label(leaseWho): r.Run.Who, l.client.label(leaseMachine): r.Machine,
		l.client.label(leaseStarted): r.Run.Started.UTC().Format(time.RFC3339)}
	if r.Place.ID != "" {
		note[l.client.label(leaseUID)], note[l.client.label(leaseCluster)] = r.Place.ID, r.Place.Name
	}
	holder, epoch, lasts := "", int32(min(r.Run.Epoch, 1<<31-1)), int32(max(1, (r.Lasts+time.Second-1)/time.Second))
	if r.Held {
		holder = r.Run.ID
	}
	since, renewed := metav1.NewMicroTime(r.Since), metav1.NewMicroTime(r.Renewed)
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: l.client.options.Namespace, Name: l.name, Labels: l.client.marks(false), Annotations: note},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &lasts, LeaseTransitions: &epoch, AcquireTime: &since, RenewTime: &renewed}}
}

func value[T any](p *T) (out T) {
	if p != nil {
		out = *p
	}
	return out
}

// grace is how late a renewal may come until Look takes the holder for gone: it
// judges by the cluster's clock and the holder's, which may differ by seconds.
const grace = 15 * time.Second

// Look returns the lock as one read shows it; nil if it has no holder and names no
// cluster. It changes nothing: only Acquire knows whether a lock is dead.
func (l Lease) Look(ctx context.Context) (*plan.Lock, error) {
	r, version, err := l.Get(ctx)
	if err != nil || version == "" || !r.Held && r.Place.ID == "" {
		return nil, err
	}
	return &plan.Lock{Run: r.Run, Since: r.Since.UTC(), Renewed: r.Renewed.UTC(), Alive: r.Held && l.Age(r) < r.Lasts+grace,
		Free: !r.Held, ClusterUID: r.Place.ID, Cluster: r.Place.Name}, nil
}

// Age returns how long ago a record was renewed, by the cluster's clock.
func (l Lease) Age(r lock.Record) time.Duration { return max(0, l.client.clock.now().Sub(r.Renewed)) }
