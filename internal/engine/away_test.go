package engine_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/drift"
	"github.com/macfleet/macfleet/internal/engine"
)

// gone is a cluster that no request reaches.
type gone struct{ engine.Cluster }

func (gone) ID(context.Context) (inventory.ClusterID, error) {
	return inventory.ClusterID{}, errGone()
}

func (gone) Observe(context.Context, bool) (inventory.Seen[[]inventory.Node], inventory.Cluster) {
	return inventory.Unread[[]inventory.Node](errGone().Error()), inventory.Cluster{}
}

func errGone() error { return errors.New("dial tcp 198.51.100.9:6443: connection refused") }

// empty is a provider that no request reaches.
type empty struct{ engine.Servers }

func (empty) List(context.Context) ([]inventory.Server, error) { return nil, errGone() }

// TestWatchingWithoutACluster takes the cluster away from a fleet of Nodes of which
// one has drifted. Who watches is informed of that drift, of no other drift, and
// that the rest is unknown; anyone else gets an error.
func TestWatchingWithoutACluster(t *testing.T) {
	t.Parallel()
	w, e := converged(t, 4, nodes(2))
	host := planned(t, e).Hosts[0].Name
	inject(t, w, host, "plist-changed-under-job")
	before, err := drift.Of(planned(t, e), nil, time.Now())
	if err != nil || len(before.Items) != 1 || !before.Complete {
		t.Fatalf("%v: %+v", err, before)
	}
	there := e.Cluster
	e.Cluster = gone{there}
	var away *engine.AwayError
	if _, err := e.Plan(t.Context()); !errors.As(err, &away) || away.Provider != engine.Kubernetes {
		t.Errorf("without watching: %v", err)
	}
	e.Watching = true
	p, err := e.Plan(t.Context())
	must(t, err)
	r, err := drift.Of(p, nil, time.Now())
	must(t, err)
	if r.Complete || p.Summarise().Compared() {
		t.Error("all was compared without the cluster")
	}
	for _, i := range r.Items {
		if i.Fingerprint != before.Items[0].Fingerprint {
			t.Errorf("the cluster is away, and %s %s (%s) drifted", i.Host, i.Step, i.Code)
		}
	}
	if r := r.After(before.Items); len(r.Since.New)+len(r.Since.Recovered) > 0 || r.Fingerprint != before.Fingerprint {
		t.Errorf("new %d, recovered %d, fingerprint %s, was %s", len(r.Since.New), len(r.Since.Recovered), r.Fingerprint, before.Fingerprint)
	}
	if !slices.ContainsFunc(r.Unseen, func(u drift.Unseen) bool { return u.Host == host && u.Code.String() == "cluster-unread" }) {
		t.Errorf("nothing is reported to be unknown of %s: %+v", host, r.Unseen)
	}
	e.Cluster = there
	if p := planned(t, e); !p.Summarise().Compared() {
		t.Error("the cluster is back, and not all was compared")
	}
}

// TestWatchingAnotherCluster ends with an error: that is no cluster that is away.
func TestWatchingAnotherCluster(t *testing.T) {
	t.Parallel()
	w, _ := world(t, 4)
	c := config("production", 1)
	e := run(t, w, c)
	e.Watching = true
	c.ClusterUID = "another"
	var away *engine.AwayError
	if _, err := e.Plan(t.Context()); err == nil || errors.As(err, &away) {
		t.Errorf("%v", err)
	}
}

// TestWatchingWithoutAnInventory ends with an error that says who is away: without
// the servers no host can be found.
func TestWatchingWithoutAnInventory(t *testing.T) {
	t.Parallel()
	w, _ := world(t, 4)
	e := run(t, w, config("production", 1))
	e.Watching, e.Servers = true, empty{e.Servers}
	var away *engine.AwayError
	if _, err := e.Plan(t.Context()); !errors.As(err, &away) || away.Provider != engine.Scaleway {
		t.Errorf("%v", err)
	}
}
