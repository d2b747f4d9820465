package engine_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/macfleet/macfleet/plan"
)

// TestExamine looks at servers of every role and changes nothing.
func TestExamine(t *testing.T) {
	t.Parallel()
	w, _ := world(t, 4)
	e := run(t, w, config("production", 1))
	apply(t, e)
	before, err := e.Pins.All()
	if err != nil {
		t.Fatal(err)
	}
	servers, err := e.Servers.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range servers {
		for _, name := range []string{s.Name, s.ID} {
			c, snap, err := e.Examine(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}
			if !c.Healthy() || c.Server.ID != s.ID || len(c.Checks) < 12 {
				t.Errorf("%s: %+v", name, c.Checks)
			}
			if len(snap.Servers) != 1 || len(snap.Hosts) != 1 || snap.Hosts[s.ID].Trouble != nil {
				t.Errorf("%s: the snapshot holds %+v", name, snap)
			}
		}
	}
	after, err := e.Pins.All()
	if err != nil || !slices.Equal(before, after) {
		t.Errorf("pins were %v, are %v, %v", before, after, err)
	}
	if _, _, err := e.Examine(t.Context(), "acme-pool-9"); err == nil || !strings.Contains(err.Error(), "no server of the inventory is called acme-pool-9") {
		t.Errorf("a server that is not there: %v", err)
	}
}

// TestExamineRenamed finds a server by the name that it should bear, and goes
// on while the cluster is another one.
func TestExamineRenamed(t *testing.T) {
	t.Parallel()
	w, _ := world(t, 4)
	c := config("production", 1)
	e := run(t, w, c)
	apply(t, e)
	name := planned(t, e).Hosts[0].Name
	if err := w.Inject(name, "renamed-by-hand"); err != nil {
		t.Fatal(err)
	}
	c.ClusterUID = "another"
	got, _, err := e.Examine(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	var states []string
	for _, check := range got.Checks {
		if check.State != plan.CheckOK {
			states = append(states, check.Name+" "+string(check.State))
		}
	}
	if got.Name != name || got.Server.Name == name || strings.Join(states, ", ") != "inventory problem, node unknown" {
		t.Errorf("%s, server %s: %v", got.Name, got.Server.Name, states)
	}
}
