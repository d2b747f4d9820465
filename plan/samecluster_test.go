package plan_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
)

var (
	hereCluster = inventory.ClusterID{UID: "0b1f4c52-6a0e-4d0b-9a55-3f1f5d2c7e10", Context: "prod", Server: "https://api.acme.dev:6443"}
	oldCluster  = "5a4d6b3c-0000-4000-8000-000000000002"
)

// sees lets the world's cluster be read, with what is known of which one it is.
func (w *world) sees(id inventory.Seen[inventory.ClusterID]) {
	w.noNodes()
	w.snap.Cluster = inventory.Present(inventory.Cluster{ID: id, Machines: inventory.Absent[[]inventory.Machine](),
		Pods: inventory.Present([]inventory.Pod{}), Identities: inventory.Present([]inventory.Identity{})})
}

// setUpIn lets a member's marker name a cluster.
func (w *world) setUpIn(n int, uid string) {
	w.mark(n, func(m *plan.Marker) { m.ClusterUID, m.Cluster = uid, "old (https://old.acme.dev)" })
}

// TestOtherCluster refuses a host that was set up in another cluster, with both clusters'
// names, and claims nothing into this one meanwhile.
func TestOtherCluster(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		marker, from string
		seen         inventory.Seen[inventory.ClusterID]
		refused      string // of the host
		stale        bool
		claim        string // why it is refused; empty: it is not
		moves        bool
	}{
		"the same":                            {marker: hereCluster.UID, seen: inventory.Present(hereCluster)},
		"an older macfleet's marker":          {seen: inventory.Present(hereCluster), stale: true},
		"another one":                         {marker: oldCluster, seen: inventory.Present(hereCluster), refused: "other-cluster", claim: "other-cluster", stale: true},
		"another one, and moved from a third": {marker: oldCluster, from: "5a4d", seen: inventory.Present(hereCluster), refused: "other-cluster", claim: "other-cluster", stale: true},
		"moved from it":                       {marker: oldCluster, from: oldCluster, seen: inventory.Present(hereCluster), stale: true, moves: true},
		"not known":                           {marker: oldCluster, seen: inventory.Unread[inventory.ClusterID]("forbidden"), claim: "cluster-unknown"},
		"recorded by an older macfleet":       {marker: oldCluster},
	} {
		w := members(2, 1)
		w.free(9)
		w.sees(tc.seen)
		w.setUpIn(1, tc.marker)
		w.sel.MovedFrom = tc.from
		p := w.plan(t)
		i := slices.IndexFunc(p.Hosts, func(h plan.Host) bool { return h.Member })
		h := p.Hosts[i]
		code := ""
		if h.Refused != nil {
			code = h.Refused.Code.String()
			for _, want := range []string{"old (https://old.acme.dev), uid 5a4d6b3c", "prod (https://api.acme.dev:6443), uid 0b1f4c52", "--moved-from-cluster " + oldCluster} {
				if !strings.Contains(h.Refused.Error(), want) {
					t.Errorf("%s: %v does not name %q", name, h.Refused, want)
				}
			}
		}
		if code != tc.refused || h.MarkerStale() != tc.stale {
			t.Errorf("%s: refused %q, stale %t", name, code, h.MarkerStale())
		}
		claims, moves := 0, false
		for _, a := range p.Actions {
			if a.ServerID == h.Server.ID {
				moves = moves || a.Kind == plan.CreateMarker && a.Reason.Code.String() == "cluster-moved"
				continue
			}
			claims++
			refusal := codeOf(a.Refusal)
			if refusal != tc.claim {
				t.Errorf("%s: %s of the claimed host is refused for %q, want %q", name, a.Kind, refusal, tc.claim)
			}
		}
		if claims == 0 || moves != tc.moves {
			t.Errorf("%s: %d actions of a claim, the host moves %t", name, claims, moves)
		}
	}
}

// TestNotedElsewhere compares only the uid: the name of a cluster differs from person to person.
func TestNotedElsewhere(t *testing.T) {
	t.Parallel()
	cfg := newWorld(0, 0, 0).cfg
	cfg.Kubernetes = &fleet.Kubernetes{Namespace: "macfleet"}
	old := inventory.ClusterID{UID: oldCluster, Context: "old", Server: "https://old.acme.dev"}
	same := inventory.ClusterID{UID: hereCluster.UID, Context: "sam", Server: "https://10.0.0.1"}
	for name, tc := range map[string]struct {
		noted   inventory.Seen[inventory.ClusterID]
		from    string
		refused bool
	}{
		"the same, by another name": {noted: inventory.Present(same)},
		"nothing":                   {noted: inventory.Absent[inventory.ClusterID]()},
		"not read":                  {noted: inventory.Unread[inventory.ClusterID]("forbidden")},
		"another":                   {noted: inventory.Present(old), refused: true},
		"another, from a third":     {noted: inventory.Present(old), from: "5a4d6b3c", refused: true},
		"another, from there":       {noted: inventory.Present(old), from: oldCluster},
	} {
		got := plan.PreparedElsewhere(cfg, hereCluster, tc.noted, tc.from)
		if (got != nil) != tc.refused {
			t.Errorf("%s: %v", name, got)
		}
		if got != nil && (!strings.Contains(got.Error(), "old (https://old.acme.dev), uid 5a4d6b3c, but this is prod (https://api.acme.dev:6443), uid 0b1f4c52") ||
			!strings.Contains(got.Error(), "init cluster --moved-from-cluster "+oldCluster)) {
			t.Errorf("%s: %v does not name both, or no way on", name, got)
		}
	}
}

// TestLockedElsewhere holds back what changes the cluster, also where no host has a marker, and reports it for the whole plan.
func TestLockedElsewhere(t *testing.T) {
	t.Parallel()
	run := plan.Run{ID: "k3h7w2mq5a", Who: "sam@desk"}
	for name, tc := range map[string]struct {
		lock    *plan.Lock
		seen    inventory.Seen[inventory.ClusterID]
		from    string
		refused bool
		warned  string
	}{
		"never taken":            {seen: inventory.Present(hereCluster)},
		"by an older version":    {lock: &plan.Lock{Run: run}, seen: inventory.Present(hereCluster), warned: "apply-broke-off"},
		"here":                   {lock: &plan.Lock{Run: run, Free: true, ClusterUID: hereCluster.UID, Cluster: "sam"}, seen: inventory.Present(hereCluster)},
		"elsewhere, and free":    {lock: &plan.Lock{Run: run, Free: true, ClusterUID: oldCluster, Cluster: "old"}, seen: inventory.Present(hereCluster), refused: true},
		"elsewhere, and held":    {lock: &plan.Lock{Run: run, ClusterUID: oldCluster, Cluster: "old"}, seen: inventory.Present(hereCluster), refused: true, warned: "apply-broke-off"},
		"elsewhere, from there":  {lock: &plan.Lock{Run: run, Free: true, ClusterUID: oldCluster}, seen: inventory.Present(hereCluster), from: oldCluster},
		"elsewhere, not certain": {lock: &plan.Lock{Run: run, Free: true, ClusterUID: oldCluster}, seen: inventory.Unread[inventory.ClusterID]("forbidden"), warned: "cluster-unknown"},
		"not read":               {lock: &plan.Lock{Unread: "forbidden"}, seen: inventory.Present(hereCluster), warned: "lock-unread"},
	} {
		w := newWorld(1, 0, 0)
		w.free(9)
		w.sees(tc.seen)
		w.snap.Lock, w.sel.MovedFrom = tc.lock, tc.from
		p := w.plan(t)
		if len(p.Actions) == 0 {
			t.Fatalf("%s: nothing is claimed", name)
		}
		for _, a := range p.Actions {
			if got := a.Refusal != nil && a.Refusal.Code == plan.CodeOtherCluster; got != tc.refused {
				t.Errorf("%s: %s is refused: %v", name, a.Kind, a.Refusal)
			}
		}
		said := slices.ContainsFunc(p.Doubts, func(x plan.Trouble) bool {
			return x.Code == plan.CodeOtherCluster && strings.Contains(x.Error(), "old, uid 5a4d6b3c, by sam@desk (run k3h7w2mq5a), but this is prod") &&
				strings.Contains(x.Error(), "--moved-from-cluster "+oldCluster)
		})
		warned := ""
		for _, x := range p.Warnings {
			warned += x.Code.String()
		}
		if said != tc.refused || warned != tc.warned || tc.refused && p.Summarise().Complete() {
			t.Errorf("%s: in doubt %+v, warned of %q", name, p.Doubts, warned)
		}
	}
}
