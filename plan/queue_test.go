package plan_test

import (
	"slices"
	"testing"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
)

// severalTypes lets macos.m2 accept M2-L and then M4-M, in two zones.
func severalTypes(replicas int) *world {
	w := newWorld(replicas, 0, 0)
	w.cfg.Scaleway.Zones = []string{"fr-par-1", "fr-par-3"}
	w.cfg.Fleets[0].Groups[0].Also = []string{"M4-M"}
	return w
}

// TestClaimsFollowTheTypesAndSpreadOverZones: the preferred type first, in the zone with the fewest members, then by
// name; a claim that an earlier run started comes before all.
func TestClaimsFollowTheTypesAndSpreadOverZones(t *testing.T) {
	t.Parallel()
	type server struct{ kind, zone string }
	const l, m, one, three = "M2-L", "M4-M", "fr-par-1", "fr-par-3"
	for name, tc := range map[string]struct {
		replicas int
		edit     func(*world)
		pool     []server // acme-pool-11 and following
		want     []string // names of those claimed
	}{
		"the first type":          {2, nil, []server{{m, one}, {l, one}, {l, one}}, []string{"12", "13"}},
		"the second for the rest": {3, nil, []server{{m, one}, {l, one}, {l, one}}, []string{"11", "12", "13"}},
		"never a third":           {2, nil, []server{{"M1-M", one}, {l, one}}, []string{"12"}},
		"over zones":              {2, nil, []server{{l, one}, {l, one}, {l, three}}, []string{"11", "13"}},
		"where members are few":   {2, func(w *world) { w.member("macos", "m2", 1) }, []server{{l, one}, {l, three}}, []string{"12"}},
		"the type before the zone": {3, func(w *world) { w.member("macos", "m2", 1) },
			[]server{{l, one}, {l, one}, {m, three}}, []string{"11", "12"}},
		"by name": {3, nil, []server{{l, three}, {l, one}, {l, three}, {l, one}}, []string{"11", "12", "13"}},
		"a started claim first": {1, func(w *world) {
			w.snap.Pins = append(w.snap.Pins, plan.Pin{ServerID: serverID(13), Name: w.cfg.HostName("macos", "m2", serverID(13)), Key: "ssh-ed25519 13", Unfinished: true})
		}, []server{{l, one}, {l, three}, {m, one}}, []string{"13"}},
		"the started claim of another group": {1, func(w *world) {
			w.snap.Pins = append(w.snap.Pins, plan.Pin{ServerID: serverID(13), Name: w.cfg.HostName("runners", "m2", serverID(13)), Key: "ssh-ed25519 13", Unfinished: true})
		}, []server{{l, one}, {l, three}, {m, one}}, []string{"11"}},
	} {
		w := severalTypes(tc.replicas)
		for i, s := range tc.pool {
			free := w.free(11 + i)
			free.Type, free.Zone = s.kind, s.zone
		}
		if tc.edit != nil {
			tc.edit(w)
		}
		got := each(claimed(w.plan(t)), func(s string) string { return s[len("acme-pool-"):len("acme-pool-11")] })
		slices.Sort(got)
		expect(t, name, tc.want, got)
	}
}

// TestMembersOfAnyListedTypeStay: a member of the second type is as good as one of the first.
func TestMembersOfAnyListedTypeStay(t *testing.T) {
	t.Parallel()
	w := severalTypes(2)
	w.member("macos", "m2", 1)
	w.member("macos", "m2", 2).Type = "M4-M"
	w.free(3)
	expect(t, "actions", []string(nil), lines(w.plan(t)))
	w.cfg.Fleets[0].Groups[0].Also = nil
	if p := w.plan(t); len(p.Actions) != 1 || p.Actions[0].Reason.Code.String() != "wrong-type" {
		t.Errorf("with one type: %v", lines(p))
	}
}

// TestMovesIntoAGroupOfSeveralTypes: a moved block may bring a member of any listed type.
func TestMovesIntoAGroupOfSeveralTypes(t *testing.T) {
	t.Parallel()
	w := severalTypes(1)
	w.cfg.Moves = []fleet.Move{{From: fleet.Place{Fleet: "old", Group: "m4"}, To: fleet.Place{Fleet: "macos", Group: "m2"}}}
	w.member("old", "m4", 1).Type = "M4-M"
	p := w.plan(t)
	if len(p.Orphans) != 0 || len(p.Hosts) != 1 || !p.Hosts[0].Member {
		t.Errorf("orphans %+v, hosts %d", p.Orphans, len(p.Hosts))
	}
}

// TestShortageOfSeveralTypes names all types, and orders the first one that is in stock.
func TestShortageOfSeveralTypes(t *testing.T) {
	t.Parallel()
	w := severalTypes(1)
	w.snap.Catalogue = offers("M2-L fr-par-1 no_stock", "M2-L fr-par-3 no_stock", "M4-M fr-par-1 no_stock", "M4-M fr-par-3 low_stock")
	s := w.plan(t).Shortages[0]
	expect(t, "order", "order 1 x M4-M in fr-par-3 with Tahoe, named acme-pool-…", s.Order.String())
	expect(t, "text", "macos.m2 has replicas = 1, and the pool acme-pool-… has no more M2-L or M4-M with Tahoe", s.Text)
	w.snap.Catalogue.Offers[3].Stock = inventory.NoStock
	s = w.plan(t).Shortages[0]
	expect(t, "code", "out-of-stock", s.Code.String())
	expect(t, "order", "order 1 x M2-L in fr-par-1 with Tahoe, named acme-pool-…", s.Order.String())
	for _, on := range []string{"type=M4-M", "type=M2-L"} {
		w.sel.On = only(on)
		if p := w.plan(t); len(p.Shortages) != 1 || p.LeftOut != 0 {
			t.Errorf("--on %s: %d shortages, %d left out", on, len(p.Shortages), p.LeftOut)
		}
	}
}
