package load

import (
	"testing"

	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/internal/secret"
)

const legacyID = "0a1b2c3d-0000-4000-8000-000000000001"

// hostBlocks are of two environments, adopted and overridden.
const hostBlocks = `
variable "sleep" {
  default = 5
}
environment "production" {}
environment "staging" {}
host "acme-production-macos-m2-8f1c2" {
  power {
    sleep = var.sleep
  }
}
host "acme-staging-macos-m2-8f1c2" {
  group       = fleet.macos.group.m2
  environment = "staging"
  hostname {}
}
host "legacy-01" {
  server_id   = "0a1b2c3d-0000-4000-8000-000000000001"
  group       = fleet["macos"].group.m2
  environment = "production"
  password    = secret("op://acme/LEGACY/password")
}
host "legacy-02" {
  server_id   = "0a1b2c3d-0000-4000-8000-000000000002"
  group       = fleet.macos.group.m2
  environment = "staging"
}
host "acme-production-macos-m2-0a1b3" {
  server_id = "0a1b3c3d-0000-4000-8000-000000000003"
  password  = secret("env://ACME_PASSWORD")
}
`

func TestHosts(t *testing.T) {
	t.Parallel()
	inherited := fleet.Spec{Power: &fleet.Power{}}
	override := fleet.Spec{Power: &fleet.Power{Sleep: new(5)}}
	tests := map[string][]fleet.Listed{
		"production": {
			{Name: "acme-production-macos-m2-8f1c2", Fleet: "macos", Group: "m2", Spec: override.WithBuiltIn().WithDefaults()},
			{Name: "legacy-01", ServerID: legacyID, Fleet: "macos", Group: "m2", Password: secret.Ref{Scheme: secret.OnePass, Path: "acme/LEGACY/password"}, Spec: inherited.WithBuiltIn().WithDefaults()},
			{Name: "acme-production-macos-m2-0a1b3", ServerID: "0a1b3c3d-0000-4000-8000-000000000003", Fleet: "macos", Group: "m2", Password: secret.Ref{Scheme: secret.Env, Path: "ACME_PASSWORD"}, Spec: inherited.WithBuiltIn().WithDefaults()},
		},
		"staging": {
			{Name: "acme-staging-macos-m2-8f1c2", Fleet: "macos", Group: "m2", Spec: fleet.Spec{Hostname: &fleet.Hostname{}, Power: &fleet.Power{}}.WithBuiltIn().WithDefaults()},
			{Name: "legacy-02", ServerID: "0a1b2c3d-0000-4000-8000-000000000002", Fleet: "macos", Group: "m2", Spec: inherited.WithBuiltIn().WithDefaults()},
		},
	}
	for environment, want := range tests {
		got := mustLoad(t, one(small+hostBlocks), Options{Environment: environment}).Config
		equal(t, environment, want, got.Hosts, cmpopts.IgnoreFields(fleet.Listed{}, "Sources"))
		for _, h := range want {
			if l, ok := got.Listed(h.Name); !ok || l.ServerID != h.ServerID {
				t.Errorf("%s is listed as %+v", h.Name, l)
			}
		}
		if g := got.Fleets[0].Groups[0]; *g.Spec.Power.Sleep != 0 || g.Sources.Of("power.sleep").Level != fleet.BuiltIn {
			t.Errorf("%s: a host's value reached its group: %+v", environment, g)
		}
	}
	if _, diags := Dir(one(small+hostBlocks), Options{}); len(diags) != 1 || diags[0].Summary != "No environment chosen" {
		t.Errorf("without an environment: %v", diags)
	}
}
