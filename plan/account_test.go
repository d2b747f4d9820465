package plan_test

import (
	"strings"
	"testing"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
)

// TestHoldingsElsewhere: what the account holds outside the zones and the project of the
// configuration is read where servers are missing, and only there.
func TestHoldingsElsewhere(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		edit func(*world)
		want bool
	}{
		"nothing is configured":    {func(w *world) { w.cfg.Fleets[0].Groups[0].Replicas = 0 }, false},
		"a member":                 {func(w *world) { w.member("macos", "m2", 1) }, false},
		"the pool has enough":      {func(w *world) { w.free(1) }, false},
		"the pool has none":        {func(*world) {}, true},
		"the pool has other types": {func(w *world) { w.free(1).Type = "M4-M" }, true},
		"a pinned server is gone":  {func(w *world) { w.member("macos", "m2", 1); w.pin(2, "acme-prod-macos-m2-00002") }, true},
		"only one step":            {func(w *world) { w.sel.Steps = []plan.StepID{"alpha"} }, false},
	} {
		w := newWorld(1, 0, 0)
		tc.edit(w)
		if got := plan.ServersMissing(w.cfg, w.snap, w.sel); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestServersElsewhere: a plan that lacks servers names where it searched and what other zones and projects hold.
func TestServersElsewhere(t *testing.T) {
	t.Parallel()
	account := &inventory.Account{Project: "p-1", Holds: []inventory.Holding{{Zone: "fr-par-3", Project: "p-1", Servers: 2}}}
	const said = "searched project p-1, zones fr-par-1; elsewhere the API key sees 2 servers in fr-par-3)"
	w := newWorld(1, 0, 0)
	w.snap.Account = account
	if s := w.plan(t).Shortages[0]; !strings.Contains(s.Text, said) || !strings.HasPrefix(s.Remedy, "correct zones") {
		t.Errorf("the shortage says %q, fix: %q", s.Text, s.Remedy)
	}
	w = newWorld(1, 0, 0)
	w.snap.Account = account
	w.member("macos", "m2", 1)
	w.pin(2, "acme-prod-macos-m2-00002")
	if p := w.plan(t); !strings.Contains(p.Lost[0].Text, said) {
		t.Errorf("of the lost one it says %q", p.Lost[0].Text)
	}
	w = newWorld(1, 0, 0)
	w.snap.Account = account
	w.pin(2, "acme-prod-macos-m2-00002")
	err := plan.CheckInventory(w.cfg, w.snap)
	if err == nil || !strings.Contains(err.Error(), "wrong-project: the inventory of zones fr-par-1 has none of the 1 servers known from earlier runs (acme-prod-macos-m2-00002); searched: project p-1; elsewhere the API key sees 2 servers in fr-par-3") {
		t.Errorf("error %v", err)
	}
	// Nothing elsewhere, and servers here: where it looked is right.
	w = newWorld(2, 0, 0)
	w.snap.Account = &inventory.Account{Project: "p-1"}
	w.free(1)
	if p := w.plan(t); strings.Contains(p.Shortages[0].Text, "p-1") {
		t.Errorf("the shortage says %q", p.Shortages[0].Text)
	}
}
