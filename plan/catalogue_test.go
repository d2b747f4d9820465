package plan_test

import (
	"strings"
	"testing"
	"time"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
)

// offers makes a catalogue: "TYPE ZONE STOCK", each with a lease of a day.
func offers(of ...string) *inventory.Catalogue {
	var c inventory.Catalogue
	for _, text := range of {
		f := strings.Fields(text)
		c.Offers = append(c.Offers, inventory.Offer{Type: f[0], Zone: f[1], Stock: inventory.Stock(f[2]), MinLease: 24 * time.Hour})
	}
	return &c
}

// TestWhatToOrder: a shortage names one order, in a zone that has stock, and of these the one where the group has
// the fewest members.
func TestWhatToOrder(t *testing.T) {
	t.Parallel()
	const one, three = "order 2 x M2-L in fr-par-1 with Tahoe, named acme-pool-…, in the Scaleway console ",
		"order 2 x M2-L in fr-par-3 with Tahoe, named acme-pool-…, in the Scaleway console "
	const lease = "; minimum lease 24h; price class medium, about 0.21 EUR/h)"
	for name, tc := range map[string]struct {
		edit func(*world)
		want string // the order
		code string
		fix  string // how the fix begins
	}{
		"in stock":   {func(w *world) { w.snap.Catalogue = offers("M2-L fr-par-1 high_stock") }, one + "(in stock" + lease, "pool-too-small", "order 2 x"},
		"low stock":  {func(w *world) { w.snap.Catalogue = offers("M2-L fr-par-1 low_stock") }, one + "(low stock" + lease, "pool-too-small", "order 2 x"},
		"none":       {func(w *world) { w.snap.Catalogue = offers("M2-L fr-par-1 no_stock") }, one + "(out of stock" + lease, "out-of-stock", "wait for stock, then order"},
		"not listed": {func(w *world) { w.snap.Catalogue = offers("M4-M fr-par-1 high_stock") }, one + "(out of stock; price class medium, about 0.21 EUR/h)", "out-of-stock", "wait for stock"},
		"not read":   {func(w *world) { w.snap.CatalogueUnread = "timeout" }, one + "(stock unknown; price class medium, about 0.21 EUR/h)", "pool-too-small", "order 2 x"},
		"stock in another zone": {func(w *world) {
			w.cfg.Scaleway.Zones = []string{"fr-par-1", "fr-par-3"}
			w.snap.Catalogue = offers("M2-L fr-par-1 no_stock", "M2-L fr-par-3 low_stock")
		}, three + "(low stock" + lease, "pool-too-small", "order 2 x"},
		"the emptier zone": {func(w *world) {
			w.cfg.Scaleway.Zones = []string{"fr-par-1", "fr-par-3"}
			w.cfg.Fleets[0].Groups[0].Replicas++
			w.member("macos", "m2", 1)
			w.snap.Catalogue = offers("M2-L fr-par-1 high_stock", "M2-L fr-par-3 low_stock")
		}, three + "(low stock" + lease, "pool-too-small", "order 2 x"},
		"of an unknown type": {func(w *world) { w.cfg.Fleets[0].Groups[0].Type = "M9-X" },
			"order 2 x M9-X in fr-par-1 with Tahoe, named acme-pool-…, in the Scaleway console (stock unknown)", "pool-too-small", "order 2 x"},
	} {
		w := newWorld(2, 0, 0)
		tc.edit(w)
		p := w.plan(t)
		if len(p.Shortages) != 1 || p.Shortages[0].Order == nil {
			t.Errorf("%s: shortages %+v", name, p.Shortages)
			continue
		}
		s := p.Shortages[0]
		if s.Code.String() != tc.code || !strings.HasPrefix(s.Remedy, tc.fix) || !strings.HasSuffix(s.Remedy, tc.want+", or lower replicas") {
			t.Errorf("%s:\nwant %s\n%s, fix: %s", name, tc.want, s.Code, s.Remedy)
		}
		if unread := w.snap.CatalogueUnread; !strings.Contains(s.Text, unread) {
			t.Errorf("%s: %s", name, s.Text)
		}
	}
}

// TestOrdersOfAFamilyThatIsGone: an order names only what the provider still installs.
func TestOrdersOfAFamilyThatIsGone(t *testing.T) {
	t.Parallel()
	system := func(family, zone string, types ...string) inventory.System {
		return inventory.System{ID: family + zone, Name: "macos-" + family, Family: family, Version: "1", Zone: zone, Types: types}
	}
	const one, three = "fr-par-1", "fr-par-3"
	for name, tc := range map[string]struct {
		systems []inventory.System
		order   string // empty: none
		code    string
		says    string
	}{
		"installed":                 {[]inventory.System{system("Tahoe", one, "M2-L")}, "M2-L in fr-par-1", "pool-too-small", "has no more M2-L"},
		"installed in another zone": {[]inventory.System{system("Tahoe", three, "M2-L"), system("Sequoia", one, "M2-L")}, "M2-L in fr-par-3", "pool-too-small", "has no more M2-L"},
		"installed on the other type": {[]inventory.System{system("Tahoe", one, "M4-M"), system("Sequoia", one, "M2-L")},
			"M4-M in fr-par-1", "pool-too-small", "has no more M2-L"},
		"gone": {[]inventory.System{system("Sonoma", three, "M4-M"), system("Sequoia", one, "M2-L", "M4-M")}, "", "os-family-gone",
			"no longer installs macOS Tahoe on M2-L or M4-M; it offers Sequoia, Sonoma"},
		"nothing for these types": {[]inventory.System{system("Tahoe", one, "M1-M")}, "", "os-family-gone", "it offers nothing"},
		"no system is listed":     {nil, "M2-L in fr-par-1", "pool-too-small", "has no more M2-L"},
	} {
		w := severalTypes(1)
		w.snap.Catalogue = offers("M2-L fr-par-1 high_stock", "M2-L fr-par-3 high_stock", "M4-M fr-par-1 high_stock", "M4-M fr-par-3 high_stock")
		w.snap.Catalogue.Systems = tc.systems
		s := w.plan(t).Shortages[0]
		if s.Code.String() != tc.code || !strings.Contains(s.Text, tc.says) || (s.Order != nil) != (tc.order != "") {
			t.Errorf("%s: %s %s, order %v", name, s.Code, s.Text, s.Order)
			continue
		}
		if tc.order != "" && !strings.Contains(s.Order.String(), tc.order) || !strings.HasSuffix(s.Remedy, ", or lower replicas") {
			t.Errorf("%s: order %v, fix: %s", name, s.Order, s.Remedy)
		}
	}
}

// TestTheCatalogueIsReadOnlyForAShortage: a plan without a shortage costs no request for the catalogue.
func TestTheCatalogueIsReadOnlyForAShortage(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		edit func(*world)
		want bool
	}{
		"nothing to claim":      {func(w *world) { w.member("macos", "m2", 1) }, false},
		"the pool has one":      {func(w *world) { w.free(1) }, false},
		"the pool has none":     {func(*world) {}, true},
		"only one step":         {func(w *world) { w.sel.Steps = []plan.StepID{"alpha"} }, false},
		"another fleet":         {func(w *world) { w.sel.On = only("fleet=runners") }, false},
		"the one is not usable": {func(w *world) { w.free(1); w.change(1, func(h *plan.HostSeen) { h.Root = false }); w.plan(t) }, true},
	} {
		w := newWorld(1, 0, 0)
		tc.edit(w)
		if got := plan.NeedsCatalogue(w.cfg, w.snap, w.sel); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
