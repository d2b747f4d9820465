package plan_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
)

// TestAnInventoryOfAnotherProject: a list that is empty, or of servers of another project, stops with an error when
// servers are known from pins or Nodes. And if the plan were computed from it anyway, it would claim and release
// nothing: the known servers keep their places.
func TestAnInventoryOfAnotherProject(t *testing.T) {
	t.Parallel()
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		known := 1 + r.IntN(5)
		w := newWorld(known, 0, 0)
		for n := 1; n <= known; n++ {
			name := w.cfg.HostName("macos", "m2", serverID(n))
			by := r.IntN(3)
			if by != 0 {
				w.pin(n, name)
			}
			if by != 1 {
				w.node(n, name, []inventory.Readiness{inventory.Ready, inventory.NotReady, inventory.ReadyUnknown}[r.IntN(3)])
			}
		}
		for n := range r.IntN(4) { // servers that look like a pool, or like members with other ids
			if s := w.free(100 + n); r.IntN(3) == 0 {
				s.Name = w.cfg.HostName("macos", "m2", serverID(1+r.IntN(known)))
			}
		}
		if err := plan.CheckInventory(w.cfg, w.snap); err == nil {
			t.Fatalf("seed %d: %d known servers are all missing, and it is not an error", seed, known)
		}
		for _, a := range w.plan(t).Actions {
			if slices.Contains([]plan.Kind{plan.ClaimServer, plan.ReleaseServer, plan.DeleteNode, plan.ReinstallServer, plan.RevokeHost}, a.Kind) {
				t.Fatalf("seed %d: planned %s of %s", seed, a.Kind, a.Host)
			}
		}
	}
}
