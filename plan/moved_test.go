package plan_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
)

// newPlace is the name of the first server after its move.
const newPlace = "acme-prod-jobs-m2-00001"

// moves gives the world a fleet "jobs" to which the fleet "deleted" moved, and a converged
// host of the latter.
func (w *world) moves() {
	w.cfg.Fleets = append(w.cfg.Fleets, fleet.Fleet{Name: "jobs", OS: "Tahoe", Groups: []fleet.Group{{Name: "m2", Type: "M2-L", Replicas: 1}}})
	w.cfg.Moves = []fleet.Move{{From: fleet.Place{Fleet: "deleted"}, To: fleet.Place{Fleet: "jobs"}}}
	w.member("deleted", "m2", 1)
}

// TestMoved: a host whose group is another now gets its name, and its marker follows. It is
// a member all the time, wherever a run broke off.
func TestMoved(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		edit func(*world)
		want []string
	}{
		"nothing done yet":                     {func(*world) {}, []string{newPlace + " rename moved P"}},
		"the server is renamed":                {func(w *world) { w.snap.Servers[0].Name = newPlace }, nil},
		"renamed by hand, its marker knows it": {func(w *world) { w.snap.Servers[0].Name = "renamed" }, []string{newPlace + " rename moved P"}},
		"the marker is new": {func(w *world) {
			w.snap.Servers[0].Name = newPlace
			w.markedAs(1, w.cfg.Owner, newPlace, "jobs", "m2")
		}, nil},
		"another's marker": {func(w *world) { w.markedAs(1, fleet.Owner{Name: "beta"}, deleted, "deleted", "m2") }, nil},
		"over another move": {func(w *world) {
			w.cfg.Moves = append(w.cfg.Moves, fleet.Move{From: fleet.Place{Fleet: "older", Group: "m2"}, To: fleet.Place{Fleet: "deleted", Group: "m2"}})
			w.snap.Servers[0].Name = "acme-prod-older-m2-00001"
			w.markedAs(1, w.cfg.Owner, "acme-prod-older-m2-00001", "older", "m2")
		}, []string{newPlace + " rename moved P"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(0, 0, 0)
			w.moves()
			w.free(9)
			tc.edit(w)
			p := w.plan(t)
			if name == "another's marker" {
				// It bears a name of ours, and says that it is not: nobody knows, and nothing is done.
				if slices.ContainsFunc(p.Actions, func(a plan.Action) bool { return a.ServerID == serverID(1) }) {
					t.Errorf("actions %v", lines(p))
				}
				return
			}
			expect(t, "actions", tc.want, lines(p))
			h := oneHost(t, p)
			stale := w.snap.Servers[0].Name == newPlace && name != "the marker is new"
			if h.Name != newPlace || !h.Member || h.Refused != nil || h.MarkerStale() != stale || len(p.Orphans)+len(p.Shortages)+len(p.Strays) != 0 {
				t.Errorf("host %s, refused %v, stale %t; orphans %v, shortages %v", h.Name, h.Refused, h.MarkerStale(), orphans(p), p.Shortages)
			}
		})
	}
}

// TestMovedToAnotherType: a group of another server type takes no host.
func TestMovedToAnotherType(t *testing.T) {
	t.Parallel()
	w := newWorld(0, 0, 0)
	w.moves()
	w.cfg.Fleets[2].Groups[0].Type = "M4-M"
	p := w.plan(t)
	if len(p.Actions) != 0 || len(p.Orphans) != 1 || !strings.Contains(p.Orphans[0].Text, "servers of type M4-M, and this one is of type M2-L") {
		t.Errorf("actions %v, orphans %+v", lines(p), p.Orphans)
	}
}

// movedNode makes the moved host a Node of the cluster, as which it was proven.
func (w *world) movedNode(cordoned bool, pods ...inventory.Pod) {
	w.moves()
	w.join()
	w.cfg.Fleets[2].Groups[0].Spec = w.cfg.Fleets[0].Groups[0].Spec
	w.node(1, deleted, inventory.Ready)
	nodes, _ := w.snap.Nodes.Get()
	nodes[0].Cordoned = cordoned
	c, _ := w.snap.Cluster.Get()
	c.Pods = inventory.Present(pods)
	c.Identities = inventory.Present([]inventory.Identity{{Host: deleted, ServiceAccount: "uid", Secret: "uid", Issued: true, Bound: true}})
	w.snap.Cluster = inventory.Present(c)
	w.change(1, func(h *plan.HostSeen) { h.Facts["gamma.get"] = inventory.Present(plan.Answer{Stdout: "old"}) })
}

// TestMovedNode: a Node cannot be renamed, so a host at work waits until it was drained, and
// then joins under its new name; what it was goes last.
func TestMovedNode(t *testing.T) {
	t.Parallel()
	pod := inventory.Pod{Name: "ci", Namespace: "default", Node: deleted, Phase: "Running", Controller: "ReplicaSet"}
	whole := []string{newPlace + " rename moved P", newPlace + " identity identity-missing P", newPlace + " gamma first-setup P",
		newPlace + " delete-node moved P", newPlace + " revoke moved P"}
	for name, tc := range map[string]struct {
		edit    func(*world)
		refused string // part of why nothing is done
		want    []string
	}{
		"at work":            {func(w *world) { w.movedNode(true, pod) }, "1 Pod at work", nil},
		"open to Pods":       {func(w *world) { w.movedNode(false) }, "takes Pods", nil},
		"nobody can look":    {func(w *world) { w.movedNode(true); w.snap.Nodes = inventory.Unread[[]inventory.Node]("no rights") }, "nobody knows", nil},
		"drained":            {func(w *world) { w.movedNode(true) }, "", whole},
		"renamed, broke off": {func(w *world) { w.movedNode(true); w.snap.Servers[0].Name = newPlace }, "", whole[1:]},
		"it joined, and its old Node is left": {func(w *world) {
			w.movedNode(true)
			w.node(1, newPlace, inventory.Ready)
			w.snap.Servers[0].Name = newPlace
			w.markedAs(1, w.cfg.Owner, newPlace, "jobs", "m2")
			w.change(1, func(h *plan.HostSeen) { h.Facts["gamma.get"] = inventory.Present(plan.Answer{Stdout: good}) })
			c, _ := w.snap.Cluster.Get()
			all, _ := c.Identities.Get()
			c.Identities = inventory.Present(append(all, inventory.Identity{Host: newPlace, ServiceAccount: "uid", Secret: "uid", Issued: true, Bound: true}))
			w.snap.Cluster = inventory.Present(c)
		}, "", whole[3:]},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(0, 0, 0)
			tc.edit(w)
			p := w.plan(t)
			h := oneHost(t, p)
			if tc.refused != "" {
				if h.Refused != nil || h.MarkerStale() || len(p.Actions) == 0 || p.Runnable() != nil {
					t.Errorf("refused %+v, stale %t, actions %v", h.Refused, h.MarkerStale(), lines(p))
				}
				for _, a := range p.Actions {
					if x := a.Refusal; x == nil || x.Code.String() != "move-needs-drain" || !strings.Contains(x.Text, tc.refused) {
						t.Errorf("%s: %+v", a.Address(), x)
					}
				}
				return
			}
			expect(t, "actions", tc.want, lines(p))
			if h.Refused != nil || len(p.Warnings) != 0 {
				t.Errorf("refused %v, warnings %v", h.Refused, p.Warnings)
			}
		})
	}
}
