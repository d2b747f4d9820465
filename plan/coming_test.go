package plan_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
)

// TestOnTheWay: a pool server that is not delivered yet fills the group that it fits, under any pool
// name. The advice is to order only the rest.
func TestOnTheWay(t *testing.T) {
	t.Parallel()
	const waits = "server-on-the-way 1"
	for name, tc := range map[string]struct {
		edit func(*inventory.Server)
		want []string // code and servers of each shortage
	}{
		"it fits":                       {func(*inventory.Server) {}, []string{waits, "pool-too-small 1"}},
		"its system is not known yet":   {func(s *inventory.Server) { s.OSFamily = "" }, []string{waits, "pool-too-small 1"}},
		"of another family":             {func(s *inventory.Server) { s.OSFamily = "Sequoia" }, []string{"pool-too-small 2"}},
		"of another family, our owner":  {func(s *inventory.Server) { s.OSFamily, s.Name = "Sequoia", "acme-pool-acme-prod-1" }, []string{"pool-too-small 2"}},
		"of another type":               {func(s *inventory.Server) { s.Type = "M4-S" }, []string{"pool-too-small 2"}},
		"its deletion is scheduled":     {func(s *inventory.Server) { s.DeletionScheduled = true }, []string{"pool-too-small 2"}},
		"it is not of the pool":         {func(s *inventory.Server) { s.Name = "ci-scratch" }, []string{"pool-too-small 2"}},
		"it is delivered, but starting": {func(s *inventory.Server) { s.Delivered = true }, []string{"pool-too-small 2"}},
	} {
		w := newWorld(2, 0, 0)
		s := w.free(1)
		s.Status, s.Delivered = "starting", false
		tc.edit(s)
		var got []string
		p := w.plan(t)
		if len(tc.want) == 2 && len(p.Rejected) > 0 {
			t.Errorf("%s: it is on its way, and rejected: %q", name, rejected(p))
		}
		for _, lack := range p.Shortages {
			got = append(got, fmt.Sprintf("%s %d", lack.Code, lack.Missing))
			if (lack.Order != nil) != (lack.Code.String() == "pool-too-small") || lack.Order != nil && lack.Order.Count != lack.Missing {
				t.Errorf("%s: the order of %s is %v", name, lack.Code, lack.Order)
			}
		}
		expect(t, name, tc.want, got)
	}
}

// TestShortagesProperty: what is claimed, what is on its way and what the plan advises to order is together what the groups lack. No
// server counts twice.
func TestShortagesProperty(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		cfg := &fleet.Config{Owner: fleet.Owner{Name: "acme", Environment: "production"},
			Scaleway: fleet.Scaleway{Zones: []string{"fr-par-1"}, PoolPrefix: "acme-pool-"}}
		wanted, delivered, coming := 0, 0, 0
		for i := range rapid.IntRange(1, 3).Draw(t, "groups") {
			n := rapid.IntRange(0, 4).Draw(t, "replicas")
			wanted += n
			cfg.Fleets = append(cfg.Fleets, fleet.Fleet{Name: fmt.Sprint("f", i), OS: "Tahoe", Groups: []fleet.Group{{Name: "m2", Type: "M2-L", Replicas: n}}})
		}
		snap := plan.Snapshot{Nodes: inventory.Absent[[]inventory.Node](), Hosts: map[string]plan.HostSeen{}, Catalogue: &inventory.Catalogue{}}
		for i := range rapid.IntRange(0, 6).Draw(t, "servers") {
			s := inventory.Server{ID: fmt.Sprintf("%05x-0", i), Name: fmt.Sprint("acme-pool-", i), Type: "M2-L", Zone: "fr-par-1", OSFamily: "Tahoe", Status: "ready", Delivered: true}
			if rapid.Bool().Draw(t, "coming") {
				s.Status, s.Delivered = "starting", false
				s.OSFamily = rapid.SampledFrom([]string{"Tahoe", "Sequoia", ""}).Draw(t, "os")
				if s.OSFamily != "Sequoia" {
					coming++
				}
			} else {
				delivered++
			}
			snap.Servers = append(snap.Servers, s)
		}
		claims, waits, orders := 0, 0, 0
		p := plan.Compute(cfg, func(fleet.Host) []plan.Step { return nil }, snap, plan.Selection{})
		for _, a := range p.Actions {
			if a.Kind == plan.ClaimServer {
				claims++
			}
		}
		for _, s := range p.Shortages {
			if s.Code.String() == "server-on-the-way" {
				waits += s.Missing
			} else {
				orders += s.Missing
			}
		}
		wantClaims := min(wanted, delivered)
		wantWaits := min(wanted-wantClaims, coming)
		if claims != wantClaims || waits != wantWaits || orders != wanted-wantClaims-wantWaits {
			t.Errorf("%d wanted, %d delivered, %d coming: %d claims, %d on the way, %d to order", wanted, delivered, coming, claims, waits, orders)
		}
	})
}
