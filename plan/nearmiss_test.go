package plan_test

import (
	"strings"
	"testing"
)

// TestNearMisses: a server whose name a person would take for one of the pool is named, in one line for all.
func TestNearMisses(t *testing.T) {
	t.Parallel()
	for name, near := range map[string]bool{
		"acme-pool-04": false, "ACME-POOL-04": true, "Acme-Pool-4": true, "acme-p00l-04": true, "acme-pooI-04": true, "acme_pool_04": true, " acme-pool-04": true,
		"acme-p\u043eol-04": true, "acme-pool04": true, "acme-pol-04": false, "ci-acme-pool-04": false, "scratch": false,
	} {
		w := members(1, 1)
		w.server(7, name)
		w.server(8, "ACME-pool-08")
		var found []string
		for _, x := range w.plan(t).Warnings {
			if x.Code.String() == "pool-near-miss" {
				explained(t, &x)
				found = append(found, x.Text)
			}
		}
		if len(found) != 1 || strings.Contains(found[0], "2 servers") != near {
			t.Errorf("%q: %q", name, found)
		}
	}
}
