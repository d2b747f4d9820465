package plan_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
)

// TestWhatIf says what another number of servers needs: of the pool, of the provider, and of the limits.
func TestWhatIf(t *testing.T) {
	t.Parallel()
	offer := func(stock inventory.Stock) []plan.WhatIfOffer {
		return []plan.WhatIfOffer{{Type: "M2-L", Zone: "fr-par-1", Stock: stock, MinLease: 86400, PriceClass: fleet.MediumPrice}}
	}
	for name, tc := range map[string]struct {
		to   int
		want plan.WhatIf
	}{
		"more than the pool has": {6, plan.WhatIf{Members: 2, Claims: 3, ToOrder: 1, Later: 1, Limit: "too-many-hosts", Offers: offer(inventory.LowStock)}},
		"some of the pool":       {3, plan.WhatIf{Members: 2, Claims: 1, Free: 2, Offers: offer(inventory.LowStock)}},
		"as many as now":         {2, plan.WhatIf{Members: 2, Free: 3, Offers: offer(inventory.LowStock)}},
		"fewer":                  {0, plan.WhatIf{Members: 2, Leaving: 2, Free: 3, Offers: offer(inventory.LowStock)}},
	} {
		w := members(2, 2)
		for n := 11; n <= 13; n++ {
			w.free(n)
		}
		w.free(14).Type = "M4-M"
		w.free(15).Status = "starting"
		w.snap.Catalogue = offers("M2-L fr-par-1 low_stock")
		var err error
		w.cfg, w.sel.WhatIf, err = w.cfg.WhatIf([]string{"macos.m2=" + string(rune('0'+tc.to))})
		if err != nil {
			t.Fatal(err)
		}
		p := w.plan(t)
		p.Defer(plan.Bounds{Guardrails: fleet.Guardrails{MaxHosts: 2}, Now: noon}, w.steps, nil)
		tc.want.Fleet, tc.want.Group, tc.want.Configured, tc.want.Replicas = "macos", "m2", 2, tc.to
		if diff := cmp.Diff([]plan.WhatIf{tc.want}, p.WhatIf); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if !plan.NeedsCatalogue(w.cfg, w.snap, w.sel) {
			t.Errorf("%s: the catalogue is not read", name)
		}
	}
}
