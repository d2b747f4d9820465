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
	"github.com/macfleet/macfleet/internal/enginetest"
	"github.com/macfleet/macfleet/plan"
)

var errRefused = errors.New("dial tcp 198.51.100.9:6443: connection refused")

// away lets all calls of a place fail.
func away(place enginetest.Place) func(enginetest.Call) enginetest.Fault {
	return func(c enginetest.Call) (f enginetest.Fault) {
		if c.Place == place {
			f.Err = errRefused
		}
		return f
	}
}

// TestWatchingWithoutACluster takes the cluster away from a fleet of Nodes of which
// one has drifted. Who watches is informed of that drift, of no other drift, and
// that the rest is unknown.
func TestWatchingWithoutACluster(t *testing.T) {
	t.Parallel()
	inMemory(t, 2, everyoneAtOnce, func(t *testing.T, w *nodesInMemory) {
		converges(t, w.engine)
		host := planned(t, w.engine).Hosts[0].Name
		w.Change(func() { w.Member(host).State["plain"] = "edited" })
		before, err := drift.Of(planned(t, w.engine), nil, time.Now())
		if err != nil || len(before.Items) != 1 || !before.Complete {
			t.Fatalf("%v: %+v", err, before)
		}
		w.OnCall, w.engine.Watching = away(enginetest.InCluster), true
		p := planned(t, w.engine)
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
		w.OnCall = nil
		if p := planned(t, w.engine); !p.Summarise().Compared() {
			t.Error("the cluster is back, and not all was compared")
		}
	})
}

// nameless is a cluster that does not say which one it is.
type nameless struct{ engine.Cluster }

func (n nameless) Observe(ctx context.Context, joins bool) (inventory.Seen[[]inventory.Node], inventory.Cluster) {
	nodes, c := n.Cluster.Observe(ctx, joins)
	c.ID = inventory.Unread[inventory.ClusterID]("forbidden")
	return nodes, c
}

// TestNoPlan: without the servers no host can be found, so not even who watches gets a plan, nor in a cluster that is not the
// configured one. A missing cluster is an error only for the others. The error says which provider is away.
func TestNoPlan(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		away     enginetest.Place
		nameless bool
		watching bool
		uid      string // of the configured cluster; empty: the one that answers
		provider string // that is away, as the error says
	}{
		"no cluster":      {away: enginetest.InCluster, provider: engine.Kubernetes},
		"no name":         {nameless: true, provider: engine.Kubernetes},
		"no servers":      {away: enginetest.InCloud, watching: true, provider: engine.Scaleway},
		"another cluster": {uid: "another", watching: true},
	} {
		inMemory(t, 1, everyoneAtOnce, func(t *testing.T, w *nodesInMemory) {
			if w.engine.Watching = tc.watching; tc.away != enginetest.Nowhere {
				w.OnCall = away(tc.away)
			}
			if tc.nameless {
				w.engine.Cluster = nameless{w.engine.Cluster}
			}
			if tc.uid != "" {
				c := *w.Config
				c.ClusterUID, w.engine.Config = tc.uid, &c
			}
			var away *engine.AwayError
			_, err := w.engine.Plan(t.Context())
			if is := errors.As(err, &away); err == nil || is != (tc.provider != "") || is && away.Provider != tc.provider {
				t.Errorf("%s: %v", name, err)
			}
			if tc.uid != "" && troubleOf(err).Code != plan.CodeOtherCluster {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}

// TestSettleLeavesRefusedHosts: a host that was set up for another cluster keeps its stale marker, which is why it is refused.
func TestSettleLeavesRefusedHosts(t *testing.T) {
	t.Parallel()
	inMemory(t, 1, everyoneAtOnce, func(t *testing.T, w *nodesInMemory) {
		converges(t, w.engine)
		w.Config.ClusterUID = "uid-2"
		p := planned(t, w.engine)
		w.OnCall = away(enginetest.OnHost)
		failures, err := w.engine.Settle(t.Context(), p)
		if h := p.Hosts[0]; err != nil || len(failures) > 0 || h.Refused == nil || !h.MarkerStale() {
			t.Errorf("failures %v, %v; refused %v, stale %t", failures, err, h.Refused, h.MarkerStale())
		}
	})
}
