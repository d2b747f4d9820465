package engine_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/macfleet/macfleet/internal/doctor"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/enginetest"
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

// notOK names the checks that are not OK, with their states.
func notOK(c doctor.Checkup) string {
	var states []string
	for _, check := range c.Checks {
		if check.State != doctor.OK {
			states = append(states, check.Name+" "+string(check.State))
		}
	}
	return strings.Join(states, ", ")
}

// TestExamine checks servers of every role, by name and by id, and changes nothing.
func TestExamine(t *testing.T) {
	t.Parallel()
	twoOfThree(t, func(t *testing.T, w *nodesInMemory, names []string) {
		before := w.Lasting()
		for _, m := range w.Machines {
			want := ""
			if !slices.Contains(names, m.Server.Name) { // in the pool, where macfleet is not root
				want = "step tools unknown"
			}
			for _, name := range []string{m.Server.Name, m.Server.ID} {
				c, snap, err := examined(t, w.engine, name)
				if err != nil || c.Healthy != (want == "") || notOK(c) != want || c.ServerID != m.Server.ID || len(c.Checks) < 12 {
					t.Errorf("%s: %v, %q of %+v", name, err, notOK(c), c.Checks)
				}
				if len(snap.Hosts) != 1 || snap.Hosts[m.Server.ID].Trouble != nil {
					t.Errorf("%s: the snapshot holds %+v", name, snap)
				}
			}
		}
		if after := w.Lasting(); !slices.Equal(before, after) {
			t.Errorf("before %q\nafter  %q", before, after)
		}
		if _, _, err := examined(t, w.engine, "acme-pool-9"); err == nil || !strings.Contains(err.Error(), "no server is named acme-pool-9") {
			t.Errorf("a server that is missing: %v", err)
		}
		// By the name that it should have, while the cluster is a different one.
		w.Change(func() { w.Member(names[0]).Server.Name = "mini-7" })
		other := *w.Config
		other.ClusterUID, w.engine.Config = "another", &other
		if c, _, err := examined(t, w.engine, names[0]); err != nil || c.Name != names[0] || c.Server != "mini-7" || notOK(c) != "inventory problem, node unknown, cluster unknown" {
			t.Errorf("%s, server %s: %s, %v", c.Name, c.Server, notOK(c), err)
		}
	})
}

// TestExamineLists reads the lists as every command does: their time is reported, and
// no secret in a provider's words gets out.
func TestExamineLists(t *testing.T) {
	t.Parallel()
	inMemory(t, 1, everyoneAtOnce, func(t *testing.T, w *nodesInMemory) {
		scrubbing(w.engine)
		fails := enginetest.Fault{Err: errors.New("denied: " + planted)}
		w.OnCall = func(c enginetest.Call) (f enginetest.Fault) {
			if c.Place == enginetest.InCluster {
				return fails
			}
			return f
		}
		c, snap, err := examined(t, w.engine, "acme-pool-0")
		must(t, err)
		if got := w.happened(engine.Listed, engine.Observing, engine.Observed); len(got) != 3 || len(w.events) != 3 {
			t.Errorf("events %+v", w.events)
		}
		if why := snap.Nodes.Why(); !snap.Nodes.IsUnread() || why != "denied: "+secret.Scrubbed || notOK(c) != "node unknown, step tools unknown" {
			t.Errorf("the Nodes are unread because %q; not OK: %s", why, notOK(c))
		}
		w.OnCall = faultAt("list", fails)
		if _, _, err := examined(t, w.engine, "acme-pool-0"); err == nil || err.Error() != "denied: "+secret.Scrubbed {
			t.Errorf("the error is: %v", err)
		}
	})
}
