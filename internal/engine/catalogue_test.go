package engine_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/enginetest"
)

// TestTheCatalogueIsReadOnceForAShortage: a plan without a shortage does not ask for it, and one that cannot read it
// says why.
func TestTheCatalogueIsReadOnceForAShortage(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		replicas, asked int
		err             error
		says            string // of the shortage
	}{
		"the pool has enough": {replicas: 3},
		"a shortage":          {replicas: 4, asked: 1, says: "low stock; minimum lease 24h"},
		"it cannot be read":   {replicas: 4, asked: 1, err: errors.New("the service is away"), says: "the service is away"},
	} {
		inMemory(t, 3, everyoneAtOnce, func(t *testing.T, w *nodesInMemory) {
			w.Config.Fleets[0].Groups[0].Replicas = tc.replicas
			w.Catalogue.Offers = []inventory.Offer{{Type: "M2-L", Zone: "fr-par-1", Stock: inventory.LowStock, MinLease: 24 * time.Hour}}
			asked := 0
			w.OnCall = func(c enginetest.Call) enginetest.Fault {
				if c.What != "catalogue" {
					return enginetest.Fault{}
				}
				asked++
				return enginetest.Fault{Err: tc.err}
			}
			p := planned(t, w.engine)
			said := ""
			for _, s := range p.Shortages {
				said += s.Text + "; " + s.Remedy
			}
			if asked != tc.asked || len(p.Shortages) != tc.asked || !strings.Contains(said, tc.says) {
				t.Errorf("%s: asked %d times, shortages: %s", name, asked, said)
			}
		})
	}
}
