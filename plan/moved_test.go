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
// a member all the time, wherever a run was interrupted.
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
				// It has a name of this configuration and a marker of another: the owner is unknown, and nothing is done.
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
	if len(p.Actions) != 0 || len(p.Orphans) != 1 || !strings.Contains(p.Orphans[0].Text, "needs type M4-M, and this server has type M2-L") {
		t.Errorf("actions %v, orphans %+v", lines(p), p.Orphans)
	}
}

// TestMovedUnderAFormerName: a moved block takes no host that the configuration had under its former name.
func TestMovedUnderAFormerName(t *testing.T) {
	t.Parallel()
	w := newWorld(0, 0, 0)
	w.moves()
	beta := fleet.Owner{Name: "beta", Environment: "prod"}
	w.snap.Former = []string{beta.String()}
	w.snap.Servers[0].Name = "beta-prod-deleted-m2-00001"
	w.markedAs(1, beta, w.snap.Servers[0].Name, "deleted", "m2")
	if p := w.plan(t); len(p.Actions) != 0 || len(p.Orphans) != 1 {
		t.Errorf("actions %v, orphans %+v", lines(p), p.Orphans)
	}
}

// movedNode makes the moved host a Node of the cluster, as which it was verified.
func (w *world) movedNode(cordoned bool, pods ...inventory.Pod) {
	w.moves()
	w.join()
	w.cfg.Fleets[2].Groups[0].Spec = w.cfg.Fleets[0].Groups[0].Spec
	w.node(1, deleted, inventory.Ready)
	w.editNode(func(n *inventory.Node) { n.Cordoned = cordoned })
	w.pods(pods...)
	w.identity(deleted)
	w.answers(1, "old")
}

// TestMovedNode: a Node cannot be renamed, so the one that a host was is drained first, the host
// joins under its new name, and what it was goes last. One that cannot be drained keeps it.
func TestMovedNode(t *testing.T) {
	t.Parallel()
	pod := inventory.Pod{Name: "ci", Namespace: "default", Node: deleted, Phase: "Running", Controller: "ReplicaSet"}
	alone, going := pod, pod
	alone.Controller, going.Due = "", noon
	drain, uncordon := newPlace+" drain moved P", newPlace+" uncordon left-cordoned D"
	whole := []string{drain, newPlace + " rename moved P", newPlace + " identity identity-missing P", newPlace + " gamma first-setup P",
		newPlace + " delete-node moved P", newPlace + " revoke moved P"}
	closedBy := func(w *world, run string) { w.editNode(func(n *inventory.Node) { n.CordonRun = run }) }
	inState := func(w *world, ready inventory.Readiness, id string) {
		w.editNode(func(n *inventory.Node) { n.Ready, n.ProviderID = ready, id })
	}
	server := serverProvider(1)
	for name, tc := range map[string]struct {
		edit    func(*world)
		refused string // the code of why nothing is done, and part of the text
		want    []string
	}{
		"running":             {func(w *world) { w.movedNode(false, pod) }, "", whole},
		"idle":                {func(w *world) { w.movedNode(false) }, "", whole},
		"drained by a person": {func(w *world) { w.movedNode(true) }, "", whole},
		"closed by a run that was killed": {func(w *world) { w.movedNode(true); closedBy(w, "r0") }, "",
			slices.Concat(whole[:4], []string{uncordon}, whole[4:])},
		"renamed, interrupted":                   {func(w *world) { w.movedNode(true); w.snap.Servers[0].Name = newPlace }, "", slices.Concat(whole[:1], whole[2:])},
		"not Ready, idle":                        {func(w *world) { w.movedNode(false); inState(w, inventory.NotReady, server) }, "", whole},
		"a Pod that nothing makes":               {func(w *world) { w.movedNode(false, alone) }, "waits-for-idle default/ci", nil},
		"not Ready":                              {func(w *world) { w.movedNode(false, pod); inState(w, inventory.NotReady, server) }, "move-needs-drain is not Ready", nil},
		"not Ready, its Pod is deleted":          {func(w *world) { w.movedNode(false, going); inState(w, inventory.NotReady, server) }, "", whole},
		"no provider id":                         {func(w *world) { w.movedNode(false, pod); inState(w, inventory.Ready, "") }, "move-needs-drain no provider id", nil},
		"Nodes cannot be read":                   {func(w *world) { w.movedNode(true); w.snap.Nodes = inventory.Unread[[]inventory.Node]("no rights") }, "move-needs-drain unknown", nil},
		"Pods cannot be listed":                  {func(w *world) { w.movedNode(false); w.podsUnread() }, "move-needs-drain unknown which Pods run", nil},
		"its kubelet has left":                   {func(w *world) { w.movedNode(true); closedBy(w, "r0"); w.arrives(false) }, "", whole[4:]},
		"no Node, and a machine":                 {func(w *world) { w.movedNode(false); w.runsVM(); w.noNodes() }, "waits-for-idle", nil},
		"no Node any more":                       {func(w *world) { w.movedNode(false); w.cfg.Fleets[2].Groups[0].Spec = fleet.Spec{} }, "move-needs-drain not drained", nil},
		"it joined":                              {func(w *world) { w.movedNode(true); w.arrives(true) }, "", whole[4:]},
		"another server's Node has its new name": {func(w *world) { w.movedNode(false); w.node(2, newPlace, inventory.Ready) }, "", whole},
		"another server's Node has its old name": {func(w *world) {
			w.movedNode(true)
			w.arrives(true)
			w.editNode(func(n *inventory.Node) { n.ProviderID = serverProvider(2) })
		}, "", whole[5:]},
		"only another server's Node has its old name": {func(w *world) {
			w.movedNode(false, pod)
			w.editNode(func(n *inventory.Node) { n.ProviderID = serverProvider(2) })
		}, "", slices.Concat(whole[1:4], whole[5:])},
		"it joined, and a Pod goes": {func(w *world) { w.movedNode(true, going); w.arrives(true) }, "", whole[4:]},
		"it joined, and a Pod is stuck": {func(w *world) {
			held := going
			held.Overdue, held.Finalizers = true, []string{inventory.VMFinalizer}
			w.movedNode(true, held)
			w.arrives(true)
			nodes, _ := w.snap.Nodes.Get()
			w.snap.Nodes = inventory.Present(nodes[1:])
		}, "", append([]string{newPlace + " revoke moved P"}, newPlace+" pods stuck-terminating-pods D")},
		"it joined, and a Pod came": {func(w *world) { w.movedNode(true, pod); w.arrives(true) }, "pods-on-node", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(0, 0, 0)
			tc.edit(w)
			p := w.plan(t)
			h := oneHost(t, p)
			if code, text, _ := strings.Cut(tc.refused, " "); code != "" {
				if h.Refused != nil || len(p.Actions) == 0 || p.Runnable() != nil {
					t.Errorf("refused %+v, actions %v", h.Refused, lines(p))
				}
				for _, a := range p.Actions {
					if x := a.Refusal; x == nil || x.Code.String() != code || !strings.Contains(x.Text, text) || strings.Contains(x.Remedy, "NAME") {
						t.Errorf("%s: %+v", a.Address(), x)
					}
				}
				return
			}
			expect(t, "actions", tc.want, lines(p))
			if h.Refused != nil || len(p.Warnings) != 0 || h.Repairs() != (name == "its kubelet has left" || strings.HasPrefix(name, "not Ready, ")) {
				t.Errorf("refused %v, warnings %v, repairs %t", h.Refused, p.Warnings, h.Repairs())
			}
			if first := p.Actions[0]; first.Kind == plan.DrainNode {
				evicts := 0
				if name == "running" {
					evicts = 1
				}
				if first.Was != deleted || first.Disruption != plan.Drain || first.Evicts != evicts || first.Drains == strings.HasPrefix(name, "not Ready, ") {
					t.Errorf("%+v", first)
				}
			}
		})
	}
}

// serverProvider is the provider id of a server.
func serverProvider(n int) string {
	s := inventory.Server{ID: serverID(n), Zone: "fr-par-1"}
	return s.ProviderID()
}

// arrives lets the kubelet of the moved host go by its new name, and perhaps be registered.
func (w *world) arrives(registered bool) {
	if registered {
		w.node(1, newPlace, inventory.Ready)
	}
	w.snap.Servers[0].Name = newPlace
	w.markedAs(1, w.cfg.Owner, newPlace, "jobs", "m2")
	w.answers(1, good)
	w.identity(newPlace)
}

// runsVM lets a virtual machine run on the moved host.
func (w *world) runsVM() {
	w.answers(1, "old vms default-ci")
}

// TestAMovingHostIsFoundByBothNames: a person who reads the cluster's Nodes, or the provider's console,
// knows only the old name, until the host has left it.
func TestAMovingHostIsFoundByBothNames(t *testing.T) {
	t.Parallel()
	w := newWorld(0, 0, 0)
	w.movedNode(false)
	w.member("macos", "m2", 2)
	for name, want := range map[string]string{newPlace: newPlace, deleted: newPlace, second: second} {
		w.sel.On = only("name=" + name)
		if err := plan.CheckSelection(w.cfg, w.snap, w.sel); err != nil {
			t.Error(err)
		}
		if p := w.plan(t); len(p.Hosts) != 1 || p.Hosts[0].Name != want || !w.sel.On[0].Keeps(p.Hosts[0]) {
			t.Errorf("%s: %d hosts", name, len(p.Hosts))
		}
	}
	w.arrives(true)
	w.noNodes()
	if err := plan.CheckSelection(w.cfg, w.snap, plan.Selection{On: only("name=" + deleted)}); err == nil {
		t.Error("it is found by a name that nothing has any more")
	}
}

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

// TestMovesFrom: only a Node under a former name is one that the host moves from. A host that is compared as it was has its Node.
func TestMovesFrom(t *testing.T) {
	t.Parallel()
	former := []plan.Former{{Name: "old"}}
	for name, tc := range map[string]struct {
		host  plan.Host
		moves bool
	}{
		"its former Node": {plan.Host{Name: "new", Former: former, Node: inventory.Present(inventory.Node{Name: "old"})}, true},
		"its own Node":    {plan.Host{Name: "new", Former: former, Node: inventory.Present(inventory.Node{Name: "new"})}, false},
		"as it was":       {plan.Host{Name: "old", Former: former, Node: inventory.Present(inventory.Node{Name: "old"})}, false},
		"no Node":         {plan.Host{Name: "new", Former: former, Node: inventory.Absent[inventory.Node]()}, false},
	} {
		if _, got := tc.host.MovesFrom(); got != tc.moves {
			t.Errorf("%s: moves %t, want %t", name, got, tc.moves)
		}
		if node, has := tc.host.View("alpha").Node.Get(); has != (!tc.moves && !tc.host.Node.IsAbsent()) {
			t.Errorf("%s: its step has the Node %+v", name, node)
		}
	}
}
