package plan_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
)

// TestServiceTrouble: each class of a CI service's errors has a code, and the fix of the error counts.
func TestServiceTrouble(t *testing.T) {
	t.Parallel()
	for class, code := range map[inventory.Class]string{
		inventory.Unauthenticated: "runner-credentials-rejected", inventory.Denied: "runner-right-missing", inventory.NotFound: "runner-scope-missing",
		inventory.RateLimited: "rate-limited", inventory.ServerFault: "provider-away", inventory.NetworkFault: "provider-away", inventory.UnexpectedAnswer: "provider-away",
	} {
		err := fmt.Errorf("list the runners: %w", &inventory.ProviderError{Class: class, Text: "it says no; fix: do this", RequestID: "4f2c"})
		got := plan.ServiceTrouble(err)
		if got.Code.String() != code || got.Remedy != "do this" || got.Text == err.Error() {
			t.Errorf("%s: %+v", class, got)
		}
	}
	if got := plan.ServiceTrouble(errors.New("without a fix")); got.Remedy == "" || got.Text != "without a fix" {
		t.Errorf("%+v", got)
	}
}

// TestMayInclude: a selection that names another configured place leaves a specification out, and nothing else does.
func TestMayInclude(t *testing.T) {
	t.Parallel()
	cfg := &fleet.Config{Owner: fleet.Owner{Name: "acme", Environment: "production"}, Fleets: []fleet.Fleet{
		{Name: "builders", Groups: []fleet.Group{{Name: "m2"}, {Name: "m4"}}}, {Name: "runners", Groups: []fleet.Group{{Name: "m2"}}}},
		Hosts: []fleet.Listed{{Name: "acme-legacy-01", Fleet: "builders", Group: "m2"}}}
	builders := cfg.Specs()[0]
	for on, want := range map[string]bool{
		"fleet=builders": true, "fleet=build*": true, "fleet=runners": false, "fleet=former": true,
		"group=m2": true, "group=m4": false, "fleet=builders,group=m4": false,
		"name=acme-production-builders-m2-0bccd": true, "name=acme-production-builders-m4-0bccd": false, "name=acme-production-runners-m2-0bccd": false,
		"name=acme-production-former-m2-0bccd": true, "name=acme-legacy-01": true, "name=0bccd": true, "ready=false": true, "zone=fr-par-1": true,
	} {
		if got := (plan.Selection{On: only(on)}).MayInclude(cfg, builders); got != want {
			t.Errorf("--on %s: %t", on, got)
		}
	}
	if !(plan.Selection{}).MayInclude(cfg, builders) {
		t.Error("without --on it is left out")
	}
}
