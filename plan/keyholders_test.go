package plan_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
)

// TestTraces finds hosts that trust a key by each single source, and takes no other
// configuration's Nodes and servers for them.
func TestTraces(t *testing.T) {
	t.Parallel()
	const id, host = "0a1b2c3d-0000-4000-8000-000000000001", "acme-production-gone-m2-0a1b2"
	cfg := &fleet.Config{Owner: fleet.Owner{Name: "acme", Environment: "production"}, Hosts: []fleet.Listed{{Name: "old-mini"}}}
	for name, tc := range map[string]struct {
		traces plan.Traces
		want   []plan.Trace
	}{
		"nothing": {},
		"a pin, under whatever name": {plan.Traces{Pins: []plan.Pin{{Name: "studio"}}},
			[]plan.Trace{{Host: "studio", By: []string{"its pinned host key"}}}},
		"an identity": {plan.Traces{Identities: []inventory.Identity{{Host: host}}},
			[]plan.Trace{{Host: host, By: []string{"its identity in the cluster"}}}},
		"a Node of a group that the configuration lacks": {plan.Traces{Nodes: []inventory.Node{{Name: host}, {Name: "linux-1"}}},
			[]plan.Trace{{Host: host, By: []string{"its Node"}}}},
		"a Node of an adopted server": {plan.Traces{Nodes: []inventory.Node{{Name: "old-mini"}}},
			[]plan.Trace{{Host: "old-mini", By: []string{"its Node"}}}},
		"a claimed server": {plan.Traces{Servers: []inventory.Server{{ID: id, Name: host}, {ID: id, Name: "acme-pool-1"}}},
			[]plan.Trace{{Host: host, By: []string{"its server's name"}}}},
		"another's name, or another server's": {plan.Traces{Nodes: []inventory.Node{{Name: "acme-staging-gone-m2-0a1b2"}},
			Servers: []inventory.Server{{ID: "ffffffff-0000", Name: host}, {ID: id, Name: "acme-staging-gone-m2-0a1b2"}}}, nil},
		"several witnesses of one": {plan.Traces{Pins: []plan.Pin{{Name: host}}, Nodes: []inventory.Node{{Name: host}}, Servers: []inventory.Server{{ID: id, Name: host}}},
			[]plan.Trace{{Host: host, By: []string{"its pinned host key", "its Node", "its server's name"}}}},
	} {
		if diff := cmp.Diff(tc.want, tc.traces.Hosts(cfg)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
