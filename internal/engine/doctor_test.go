package engine_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/doctor"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/secret"
	"github.com/macfleet/macfleet/plan"
)

// examined returns the check list of a server.
func examined(t *testing.T, e *engine.Engine, name string) (doctor.Checkup, plan.Snapshot, error) {
	t.Helper()
	server, snap, p, err := e.Examine(t.Context(), name, doctor.ClockProbe())
	if err != nil {
		return doctor.Checkup{}, snap, err
	}
	return doctor.Examine(e.Config, e.Steps, snap, server.ID, p), snap, nil
}

// TestExamine checks servers of every role and changes nothing.
func TestExamine(t *testing.T) {
	t.Parallel()
	_, e := converged(t, 4, config("production", 1))
	before, err := e.Pins.All()
	must(t, err)
	servers, err := e.Servers.List(t.Context())
	must(t, err)
	for _, s := range servers {
		for _, name := range []string{s.Name, s.ID} {
			c, snap, err := examined(t, e, name)
			must(t, err)
			if !c.Healthy || c.ServerID != s.ID || len(c.Checks) < 12 {
				t.Errorf("%s: %+v", name, c.Checks)
			}
			if len(snap.Hosts) != 1 || snap.Hosts[s.ID].Trouble != nil {
				t.Errorf("%s: the snapshot holds %+v", name, snap)
			}
		}
	}
	after, err := e.Pins.All()
	if err != nil || !slices.Equal(before, after) {
		t.Errorf("pins were %v, are %v, %v", before, after, err)
	}
	if _, _, _, err := e.Examine(t.Context(), "acme-pool-9"); err == nil || !strings.Contains(err.Error(), "no server is named acme-pool-9") {
		t.Errorf("a server that is missing: %v", err)
	}
}

// TestExamineRenamed finds a server by the name that it should have, and continues
// while the cluster is a different one.
func TestExamineRenamed(t *testing.T) {
	t.Parallel()
	c := config("production", 1)
	w, e := converged(t, 4, c)
	name := planned(t, e).Hosts[0].Name
	inject(t, w, name, "renamed-by-hand")
	c.ClusterUID = "another"
	got, _, err := examined(t, e, name)
	must(t, err)
	var states []string
	for _, check := range got.Checks {
		if check.State != doctor.OK {
			states = append(states, check.Name+" "+string(check.State))
		}
	}
	if got.Name != name || got.Server == name || strings.Join(states, ", ") != "inventory problem, node unknown" {
		t.Errorf("%s, server %s: %v", got.Name, got.Server, states)
	}
}

// TestExamineLists reads the lists as every command does: their time is reported, and
// no secret in a provider's words gets out.
func TestExamineLists(t *testing.T) {
	t.Parallel()
	w, _ := world(t, 4)
	e := run(t, w, config("production", 1))
	scrubbing(e)
	e.Cluster = broken{err: errors.New("the cluster says " + planted)}
	var types []engine.EventType
	e.Emit = func(ev engine.Event) { types = append(types, ev.Type) }
	servers, err := e.Servers.List(t.Context())
	must(t, err)
	c, snap, err := examined(t, e, servers[0].Name)
	must(t, err)
	if want := []engine.EventType{engine.Listed, engine.Observing, engine.Observed}; !slices.Equal(types, want) {
		t.Errorf("events %v", types)
	}
	if why := snap.Nodes.Why(); !snap.Nodes.IsUnread() || why != "the cluster says "+secret.Scrubbed {
		t.Errorf("the Nodes are unread because %q", why)
	}
	i := slices.IndexFunc(c.Checks, func(c doctor.Check) bool { return c.Name == "node" })
	if i < 0 || c.Checks[i].State != doctor.Unknown || c.Count(doctor.Unknown) != 1 {
		t.Errorf("checks %+v", c.Checks)
	}
	if _, _, err := e.Observe(t.Context()); err == nil {
		t.Error("a plan was made without its cluster")
	}
	e.Servers = failing{Servers: e.Servers, list: errors.New("denied: " + planted)}
	if _, _, _, err := e.Examine(t.Context(), servers[0].Name); err == nil || err.Error() != "denied: "+secret.Scrubbed {
		t.Errorf("the error is: %v", err)
	}
}

// broken is a cluster that cannot be read.
type broken struct {
	engine.Cluster
	err error
}

func (b broken) ID(context.Context) (inventory.ClusterID, error) {
	return inventory.ClusterID{}, b.err
}
func (b broken) Nodes(context.Context) ([]inventory.Node, error) { return nil, b.err }
func (b broken) Observe(context.Context, bool) (inventory.Seen[[]inventory.Node], inventory.Cluster) {
	return inventory.Unread[[]inventory.Node](b.err.Error()), inventory.Cluster{}
}
