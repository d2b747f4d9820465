package plan_test

import (
	"slices"
	"testing"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
)

// TestMoveIsWhole: whatever refuses the drain or the kubelet of a host that gets another name keeps it as
// it is: neither its server is renamed, nor what it was to the cluster removed.
func TestMoveIsWhole(t *testing.T) {
	t.Parallel()
	atWork := inventory.Pod{Name: "ci", Namespace: "ci", Node: deleted, Phase: "Running", Controller: "ReplicaSet"}
	lacks := func(o inventory.Object) func(*world) { return func(w *world) { w.objects(o) } }
	agents := lacks(prepared("ClusterRole", "", "macfleet-tart-kubelet", inventory.GateNodes))
	named := func(w *world) { // a run was interrupted after the marker got the new name
		w.arrives(false)
		w.answers(1, "old")
		agents(w)
	}
	unknown := func(w *world) {
		w.observe(func(c *inventory.Cluster) { c.ID = inventory.Unread[inventory.ClusterID]("forbidden") })
	}
	for name, tc := range map[string]struct {
		edit    func(*world)
		pods    []inventory.Pod
		noNode  bool // the cluster has none of the host any more
		refused string
	}{
		"the role of agents is gone":                        {agents, []inventory.Pod{atWork}, false, "cluster-not-prepared"},
		"the role of agents is gone, idle":                  {agents, nil, false, "cluster-not-prepared"},
		"the role of agents is gone, no Node":               {agents, nil, true, "cluster-not-prepared"},
		"the role of agents is gone, the host has its name": {named, nil, true, "cluster-not-prepared"},
		"the role that ends Pods is gone":                   {lacks(prepared("RoleBinding", "ci", "pods", inventory.GatePods)), []inventory.Pod{atWork}, false, "cluster-not-prepared"},
		"the role that ends Pods is gone, idle":             {lacks(prepared("RoleBinding", "ci", "pods", inventory.GatePods)), nil, false, ""},
		"the cluster is unknown":                            {unknown, []inventory.Pod{atWork}, false, "cluster-unknown"},
		"the cluster is unknown, idle":                      {unknown, nil, false, "cluster-unknown"},
		"the cluster is unknown, and no Node":               {unknown, nil, true, "cluster-unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(0, 0, 0)
			w.movedNode(false, tc.pods...)
			if tc.noNode {
				w.noNodes()
			}
			tc.edit(w)
			for _, a := range w.plan(t).Actions {
				code := codeOf(a.Refusal)
				if !a.OfCluster() && code != tc.refused {
					t.Errorf("%s is refused by %q; want %q", a.Address(), code, tc.refused)
				}
			}
		})
	}
}

// TestMoveInSpiteOfOtherRefusals: what has nothing to do with a move keeps no part of it back. The host
// moves, so its old Node and identity go, and what a person closed stays closed.
func TestMoveInSpiteOfOtherRefusals(t *testing.T) {
	t.Parallel()
	want := []plan.Kind{plan.DrainNode, plan.RenameServer, plan.IdentifyHost, plan.RunStep, plan.DeleteNode, plan.RevokeHost}
	for name, edit := range map[string]func(*world){
		"nothing":                 func(*world) {},
		"another family of macOS": func(w *world) { w.cfg.Fleets[2].OS = "Sequoia" },
		"a step for a person": func(w *world) {
			w.desired["beta"] = good
			w.change(1, func(h *plan.HostSeen) { h.Facts["beta.get"] = inventory.Present(plan.Answer{Stdout: "full", Exit: 1}) })
		},
		"a step that cannot be read": func(w *world) {
			w.desired["beta"] = good
			w.change(1, func(h *plan.HostSeen) { h.Facts["beta.get"] = inventory.Unread[plan.Answer]("timeout") })
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(0, 0, 0)
			w.movedNode(true)
			edit(w)
			var got []plan.Kind
			for _, a := range w.plan(t).Actions {
				if a.Refusal == nil {
					got = append(got, a.Kind)
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("done %v, want %v", got, want)
			}
		})
	}
}
