package plan

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
)

// TestOrdersProperty: nothing is ordered without allow_order, never more than what is missing when the servers on their
// way are counted, each under its own name, which no server has. The same world gives the same orders.
func TestOrdersProperty(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		cfg := &fleet.Config{Owner: fleet.Owner{Name: "acme", Environment: "production"},
			Scaleway: fleet.Scaleway{Zones: []string{"fr-par-1", "fr-par-3"}, PoolPrefix: "acme-pool-", AllowOrder: rapid.Bool().Draw(t, "allowed")}}
		wanted := 0
		for i := range rapid.IntRange(1, 3).Draw(t, "groups") {
			n := rapid.IntRange(0, 4).Draw(t, "replicas")
			wanted += n
			cfg.Fleets = append(cfg.Fleets, fleet.Fleet{Name: fmt.Sprint("f", i), OS: "Tahoe", Groups: []fleet.Group{{Name: "m2", Type: "M2-L", Replicas: n}}})
		}
		snap := Snapshot{Nodes: inventory.Absent[[]inventory.Node](), Hosts: map[string]HostSeen{}, Catalogue: &inventory.Catalogue{}}
		stocks := []inventory.Stock{inventory.NoStock, inventory.LowStock, inventory.UnknownStock}
		for _, zone := range cfg.Scaleway.Zones {
			snap.Catalogue.Offers = append(snap.Catalogue.Offers, inventory.Offer{Type: "M2-L", Zone: zone, Stock: rapid.SampledFrom(stocks).Draw(t, zone), MinLease: 24 * time.Hour})
			snap.Catalogue.Systems = append(snap.Catalogue.Systems, inventory.System{ID: zone, Name: "macos-tahoe", Family: "Tahoe", Zone: zone, Types: []string{"M2-L"}})
		}
		rented := rapid.IntRange(0, 6).Draw(t, "rented")
		for i := range rented {
			s := inventory.Server{ID: fmt.Sprintf("%05x-0", i), Name: fmt.Sprint("acme-pool-acme-production-", i+1), Type: "M2-L", Zone: "fr-par-1", OSFamily: "Tahoe", Status: "ready", Delivered: true}
			if rapid.Bool().Draw(t, "coming") { // which may show another system until it is delivered
				s.Status, s.Delivered = "starting", false
				s.OSFamily = rapid.SampledFrom([]string{"Tahoe", "Sequoia", ""}).Draw(t, "os")
			}
			snap.Servers = append(snap.Servers, s)
		}
		p := Compute(cfg, func(fleet.Host) []Step { return nil }, snap, Selection{})
		names := make(map[string]bool)
		for _, s := range snap.Servers {
			names[s.Name] = true
		}
		orders := p.Purchases()
		for _, b := range orders {
			if names[b.Name] || b.Stock == inventory.NoStock || b.MinLease != 86400 {
				t.Errorf("ordered: %+v", b)
			}
			names[b.Name] = true
		}
		if most := max(0, wanted-rented); len(orders) > most || !cfg.Scaleway.AllowOrder && len(orders) > 0 {
			t.Errorf("%d orders, at most %d", len(orders), most)
		}
		if again := Compute(cfg, func(fleet.Host) []Step { return nil }, snap, Selection{}); cmp.Diff(orders, again.Purchases()) != "" {
			t.Errorf("another plan of the same: %s", cmp.Diff(orders, again.Purchases()))
		}
		p.PermitOrders(1, nil)
		if got := len(p.Purchases()); got > 1 {
			t.Errorf("one order is permitted, and %d run", got)
		}
	})
}

// TestOrderDespiteAForeignServer: a server with a pool name that another configuration uses never becomes free, so one is ordered.
func TestOrderDespiteAForeignServer(t *testing.T) {
	t.Parallel()
	cfg := &fleet.Config{Owner: fleet.Owner{Name: "acme", Environment: "prod"}, Scaleway: fleet.Scaleway{Zones: []string{"fr-par-1"}, PoolPrefix: "acme-pool-", AllowOrder: true},
		Fleets: []fleet.Fleet{{Name: "f", OS: "Tahoe", Groups: []fleet.Group{{Name: "m2", Type: "M2-L", Replicas: 1}}}}}
	s := inventory.Server{ID: "00001-0", Name: "acme-pool-01", Type: "M2-L", Zone: "fr-par-1", OSFamily: "Tahoe", Status: "ready", Delivered: true}
	snap := Snapshot{Servers: []inventory.Server{s}, Nodes: inventory.Present([]inventory.Node{{Name: "beta-prod-f-m2-00001", ProviderID: s.ProviderID()}}), Hosts: map[string]HostSeen{},
		Catalogue: &inventory.Catalogue{Offers: []inventory.Offer{{Type: "M2-L", Zone: "fr-par-1", Stock: inventory.LowStock}},
			Systems: []inventory.System{{ID: "a", Name: "macos-tahoe", Family: "Tahoe", Zone: "fr-par-1", Types: []string{"M2-L"}}}}}
	p := Compute(cfg, func(fleet.Host) []Step { return nil }, snap, Selection{})
	if len(p.Purchases()) != 1 || len(p.Rejected) != 1 || p.Rejected[0].Code != codeDirtyPoolHost {
		t.Errorf("orders %+v, rejected %+v", p.Purchases(), p.Rejected)
	}
}

// TestMarkerGuardsTheErase: each rule that reads a marker before a server is erased holds by itself, although MarkerForbids refuses
// such a host first.
func TestMarkerGuardsTheErase(t *testing.T) {
	t.Parallel()
	us := fleet.Owner{Name: "acme", Environment: "prod"}
	c := &computation{census: takeCensus(&fleet.Config{Owner: us}, Snapshot{})}
	mark := func(owner, id string) inventory.Seen[Marker] {
		return inventory.Present(Marker{Configuration: owner, Environment: us.Environment, ServerID: id})
	}
	for name, tc := range map[string]struct {
		marker           inventory.Seen[Marker]
		marks, old, free bool
	}{
		"its own":          {marker: mark("acme", "s"), marks: true, old: true},
		"another server's": {marker: mark("acme", "other")},
		"another owner's":  {marker: mark("globex", "s"), old: true},
		"none":             {marker: inventory.Absent[Marker](), free: true},
	} {
		h := &Host{Stage: Wiping, Server: inventory.Server{ID: "s"}, Seen: HostSeen{Marker: tc.marker, Claim: inventory.Absent[Claim]()}}
		if c.marks(h) != tc.marks || h.notErased() != tc.old || (c.unowned(h) == nil) != tc.free {
			t.Errorf("%s: its own marker %t, its disk is the old one %t, unowned %v", name, c.marks(h), h.notErased(), c.unowned(h))
		}
	}
}
