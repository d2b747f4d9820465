package plan_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
)

// leaver is a world with three Ready members of macos.m2, of which the third leaves.
func leaver() *world {
	w := newWorld(2, 0, 0)
	w.join()
	w.snap.Catalogue = offered("Tahoe", "Sequoia")
	for n := 1; n <= 3; n++ {
		w.member("macos", "m2", n)
		w.node(n, w.cfg.HostName("macos", "m2", serverID(n)), inventory.Ready)
		w.pinned(n, plan.Stays, "")
	}
	return w
}

// pinned replaces a member's pin.
func (w *world) pinned(n int, stage plan.Stage, pooled string) {
	w.snap.Pins = slices.DeleteFunc(w.snap.Pins, func(p plan.Pin) bool { return p.ServerID == serverID(n) })
	w.snap.Pins = append(w.snap.Pins, plan.Pin{ServerID: serverID(n), Name: w.snap.Servers[n-1].Name, Key: "ssh-ed25519 x", Stage: stage, Pooled: pooled})
}

// dropNode removes a member's Node.
func (w *world) dropNode(n int) {
	w.snap.Nodes = without(w.snap.Nodes, func(o inventory.Node) bool { return o.ServerID() == serverID(n) })
}

// leaving are the kinds of the actions of the third server, with the code of what refuses them.
func leaving(p *plan.Plan) []string { return of(p, 3) }

// TestReleaseOrder: the Node goes after its kubelet's identity, and the name in the pool comes last, as the server had it.
func TestReleaseOrder(t *testing.T) {
	t.Parallel()
	w := leaver()
	w.identity(third)
	w.pinned(3, plan.Stays, "acme-pool-03")
	p := w.plan(t)
	expect(t, "actions", []string{"drain", "revoke", "delete-node", "reinstall", "release"}, leaving(p))
	last := p.Actions[len(p.Actions)-1]
	if last.Reset == nil || last.Reset.Pool != "acme-pool-03" || last.Reset.SystemID != "os-Tahoe" {
		t.Errorf("reset %+v", last.Reset)
	}
	if h, _ := p.HostByServer(serverID(3)); !h.Leaves || h.Converged != plan.Differs {
		t.Errorf("host %+v", h)
	}
	if got := len(p.Healthy["macos"]); got != 2 {
		t.Errorf("%d hosts of the fleet are counted, want the 2 that stay", got)
	}
	w.server(9, "acme-pool-03") // another server got the name meanwhile
	p = w.plan(t)
	if last := p.Actions[len(p.Actions)-1]; last.Reset == nil || last.Reset.Pool != "acme-pool-00003" {
		t.Errorf("reset %+v", last.Reset)
	}
}

// TestReleaseIsRefused where the server may be someone else's, or work may run on it. Then nothing of it is done.
func TestReleaseIsRefused(t *testing.T) {
	t.Parallel()
	away := func(w *world) { w.away(3, plan.CodeUnreachable) }
	idle := func(w *world) {
		away(w)
		w.dropNode(3)
		w.node(3, w.snap.Servers[2].Name, inventory.NotReady)
	}
	pod := func(w *world) {
		w.pods(inventory.Pod{Namespace: "ci", Name: "job", Node: w.snap.Servers[2].Name, Phase: "Running", Controller: "ReplicaSet"})
	}
	for name, tc := range map[string]struct {
		edit func(*world)
		code string // empty: it is released
	}{
		"no marker and no Node": {func(w *world) {
			w.dropNode(3)
			w.unmark(3)
		}, "release-unsafe"},
		"the marker of another server": {func(w *world) {
			w.dropNode(3)
			w.mark(3, func(m *plan.Marker) { m.ServerID = serverID(2) })
		}, "marker-of-another-server"},
		"its Node is called as a host of another configuration": {func(w *world) {
			w.dropNode(3)
			w.node(3, "other-prod-macos-m2-00003", inventory.Ready)
		}, "release-unsafe"},
		"a name of the pool, and no marker": {func(w *world) {
			w.unmark(3)
			w.snap.Servers[2].Name = "acme-pool-03"
		}, "release-unsafe"},
		"another key": {func(w *world) { w.away(3, plan.CodeWrongHostKey) }, "wrong-host-key"},
		"held": {func(w *world) {
			w.mark(3, func(m *plan.Marker) { m.Hold = hold(noon.Add(time.Hour)) })
			w.snap.Taken = noon
			w.cfg.Fleets[0].Groups[0].Replicas = 0
		}, "held"},
		"its Pods are unread": {func(w *world) {
			w.observe(func(c *inventory.Cluster) { c.Pods = inventory.Unread[[]inventory.Pod]("no rights") })
		}, "release-unsafe"},
		"the Nodes are unread": {func(w *world) { w.snap.Nodes = inventory.Unread[[]inventory.Node]("no rights") }, "release-unsafe"},
		"its identity is unread": {func(w *world) {
			w.observe(func(c *inventory.Cluster) { c.Identities = inventory.Unread[[]inventory.Identity]("no rights") })
		}, "release-unsafe"},
		"a key that the configuration does not name": {func(w *world) {
			w.cfg.SSH.HostKeys = map[string]string{serverID(3): plan.Fingerprint(key(2))}
			w.change(3, func(h *plan.HostSeen) { h.Key, h.Fingerprint = key(1), plan.Fingerprint(key(1)) })
		}, "wrong-host-key"},
		"an image that is not reinstalled": {func(w *world) {
			w.snap.Servers[2].OSFamily, w.snap.Catalogue = inventory.DevOS, offered(inventory.DevOS)
		}, "not-reinstallable"},
		"no such system any more": {func(w *world) { w.snap.Catalogue = offered("Sequoia") }, "os-family-gone"},
		"the catalogue is unread": {func(w *world) { w.snap.Catalogue = nil }, "catalogue-unread"},
		"away, its Node is Ready": {func(w *world) { away(w) }, "release-unsafe"},
		"away, with a Pod": {func(w *world) {
			idle(w)
			pod(w)
		}, "release-unsafe"},
		"away and idle": {idle, ""},
		"away, its Node shows no server": {func(w *world) {
			idle(w)
			nodes, _ := w.snap.Nodes.Get()
			nodes[len(nodes)-1].ProviderID = ""
		}, "release-unsafe"},
		"away, its key is not pinned":  {func(w *world) { idle(w); w.snap.Pins = w.snap.Pins[:2] }, "release-unsafe"},
		"away, a person renamed it":    {func(w *world) { idle(w); w.snap.Servers[2].Name = "by-hand" }, "release-unsafe"},
		"away, and jobs may run there": {func(w *world) { idle(w); w.cfg.Fleets[0].Groups[0].Spec.GithubRunner = &fleet.GithubRunner{} }, "release-unsafe"},
		"another server's Node": {func(w *world) {
			w.dropNode(3)
			w.node(5, w.snap.Servers[2].Name, inventory.Ready)
		}, "node-not-proven"},
		"down": {func(w *world) {
			w.away(3, plan.CodeHostDown)
			w.dropNode(3)
			w.node(3, w.snap.Servers[2].Name, inventory.NotReady)
		}, ""},
		"only its SSH port is away": {func(w *world) {
			w.away(3, plan.CodePortUnreachable)
			w.dropNode(3)
			w.node(3, w.snap.Servers[2].Name, inventory.NotReady)
		}, "ssh-port-unreachable"},
		"away without a Node": {func(w *world) { away(w); w.dropNode(3) }, "release-unsafe"},
		"away without a Node after a run started": {func(w *world) {
			away(w)
			w.dropNode(3)
			w.pinned(3, plan.Leaving, "")
		}, ""},
		"away, leaving, the Nodes unread": {func(w *world) {
			idle(w)
			w.pinned(3, plan.Leaving, "")
			w.snap.Nodes = inventory.Unread[[]inventory.Node]("no rights")
		}, "release-unsafe"},
		"a scheduled deletion": {func(w *world) { due(&w.snap.Servers[2]) }, ""},
		"it restarts":          {func(w *world) { w.snap.Servers[2].Status = "rebooting" }, "server-busy"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := leaver()
			tc.edit(w)
			p := w.plan(t)
			got := leaving(p)
			refused := len(got) > 0 && !slices.ContainsFunc(got, func(s string) bool { return !strings.HasSuffix(s, "!"+tc.code) })
			runs := len(got) > 0 && !slices.ContainsFunc(got, func(s string) bool { return strings.Contains(s, "!") })
			if tc.code != "" && !refused || tc.code == "" && !runs {
				t.Errorf("actions %v, want all refused by %q", got, tc.code)
			}
		})
	}
}

// TestScaleDownOrder: whom a scale-down takes, one after the other. Of equals the newest goes first, and an adopted host stays.
func TestScaleDownOrder(t *testing.T) {
	t.Parallel()
	w := newWorld(0, 0, 0)
	w.join()
	w.snap.Catalogue, w.snap.Taken = offered("Tahoe"), noon
	var pods []inventory.Pod
	held := func(until time.Time) func(int, *inventory.Node) {
		return func(_ int, n *inventory.Node) { n.Hold = hold(until) }
	}
	members := []struct {
		what string
		last int // its place from the end; 0: it stays
		edit func(n int, node *inventory.Node)
	}{
		{"a run started to release it", 10, func(n int, _ *inventory.Node) { w.pinned(n, plan.Leaving, "") }},
		{"its deletion is scheduled", 8, func(n int, _ *inventory.Node) { due(&w.snap.Servers[n-1]) }},
		{"in quarantine", 9, func(_ int, n *inventory.Node) { n.Repairs = &inventory.Repairs{Failed: 3, Since: noon} }},
		{"its host does not answer", 6, func(n int, _ *inventory.Node) { w.away(n, plan.CodeUnreachable) }},
		{"not Ready", 7, func(_ int, n *inventory.Node) { n.Ready = inventory.NotReady }},
		{"idle", 3, func(int, *inventory.Node) {}},
		{"idle, its hold has expired", 4, held(noon.Add(-time.Minute))},
		{"without a Node", 5, func(_ int, n *inventory.Node) { *n = inventory.Node{} }},
		{"running a Pod", 2, func(_ int, n *inventory.Node) {
			pods = append(pods, inventory.Pod{Namespace: "ci", Name: "job", Node: n.Name, Phase: "Running", Controller: "ReplicaSet"})
		}},
		{"held, not Ready", 1, func(_ int, n *inventory.Node) { n.Ready = inventory.NotReady; held(noon.Add(time.Hour))(0, n) }},
		{"adopted", 0, func(n int, _ *inventory.Node) { w.adopt(n, w.snap.Servers[n-1].Name) }},
	}
	var nodes []inventory.Node
	for i, m := range members {
		s := w.member("macos", "m2", i+1)
		node := inventory.Node{Name: s.Name, ProviderID: s.ProviderID(), Ready: inventory.Ready}
		m.edit(i+1, &node)
		nodes = append(nodes, node)
	}
	w.snap.Nodes = inventory.Present(slices.DeleteFunc(nodes, func(n inventory.Node) bool { return n.Name == "" }))
	w.pods(pods...)
	for replicas := range len(members) - 1 { // quarantine by itself releases no server
		w.cfg.Fleets[0].Groups[0].Replicas = replicas
		p := w.plan(t)
		for i, m := range members {
			if h, _ := p.HostByServer(serverID(i + 1)); h.Leaves != (m.last > 0 && m.last >= replicas) {
				t.Errorf("%d replicas: leaves %t: %s", replicas, h.Leaves, m.what)
			}
		}
	}
}

// TestUnfinishedRelease: from the reinstallation on, the release is finished whatever the configuration says; before, the
// same host leaves, or stays.
func TestUnfinishedRelease(t *testing.T) {
	t.Parallel()
	erased := func(w *world) {
		w.dropNode(3)
		w.away(3, plan.CodeWrongHostKey)
	}
	inUse := func(w *world) { // work started after the run died
		w.dropNode(3)
		w.pods(inventory.Pod{Namespace: "ci", Name: "job", Node: w.snap.Servers[2].Name, Phase: "Running", Controller: "ReplicaSet"})
	}
	for name, tc := range map[string]struct {
		stage    plan.Stage
		replicas int
		edit     func(*world)
		want     []string
		short    int
	}{
		"started, and too many":     {plan.Leaving, 2, func(*world) {}, []string{"drain", "delete-node", "reinstall", "release"}, 0},
		"started, and needed again": {plan.Leaving, 3, func(*world) {}, []string{"identity"}, 0},
		"replaced, none joined":     {plan.Replaced, 3, func(*world) {}, []string{"identity"}, 1},
		"replaced, and cancelled since": {plan.Replaced, 3, func(w *world) {
			w.snap.Pins = append(w.snap.Pins, plan.Pin{ServerID: serverID(3), Name: w.snap.Servers[2].Name, Key: "ssh-ed25519 x", Since: noon})
		}, []string{"identity"}, 0},
		"in quarantine by one of two records, and too many": {plan.Stays, 2, func(w *world) {
			w.mark(3, func(m *plan.Marker) { m.Repairs = &inventory.Repairs{Failed: 1, Last: noon} })
			nodes, _ := w.snap.Nodes.Get()
			nodes[2].Repairs = &inventory.Repairs{Failed: 3, Since: noon}
		}, []string{"identity !quarantined"}, 0},
		"replaced, one joined":      {plan.Replaced, 2, func(*world) {}, []string{"drain", "delete-node", "reinstall", "release"}, 0},
		"erased":                    {plan.Wiping, 2, erased, []string{"reinstall", "release"}, 0},
		"erased, and needed again":  {plan.Wiping, 3, erased, []string{"reinstall", "release"}, 1},
		"erased, being reinstalled": {plan.Wiping, 2, func(w *world) { erased(w); w.snap.Servers[2].Status = "reinstalling" }, []string{"reinstall", "release"}, 0},
		"not erased, and idle":      {plan.Wiping, 2, func(*world) {}, []string{"reinstall", "release"}, 0},
		"not erased, and in use":    {plan.Wiping, 2, inUse, []string{"reinstall !pods-on-node", "release !pods-on-node"}, 0},
		"in use, needing no Node": {plan.Wiping, 2, func(w *world) { inUse(w); w.cfg.Fleets[0].Groups[0].Spec = fleet.Spec{} },
			[]string{"reinstall !pods-on-node", "release !pods-on-node"}, 0},
		"erased, its Pod outlives it": {plan.Wiping, 2, func(w *world) { inUse(w); erased(w) }, []string{"reinstall", "release"}, 0},
		"verified":                    {plan.Wiped, 2, erased, []string{"release"}, 0},
		"verified, and claimed again": {plan.Wiped, 3, func(*world) {}, []string{"identity"}, 0},
		"verified, the group is gone": {plan.Wiped, 2, func(w *world) { erased(w); w.cfg.Fleets = w.cfg.Fleets[1:] }, []string{"release"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := leaver()
			w.cfg.Fleets[0].Groups[0].Replicas = tc.replicas
			w.pinned(3, tc.stage, "")
			w.snap.Pins[len(w.snap.Pins)-1].StageSince, w.snap.Taken = noon.Add(-30*time.Minute), noon
			tc.edit(w)
			p := w.plan(t)
			expect(t, "actions", tc.want, leaving(p))
			expect(t, "missing servers", tc.short, missing(p))
			for _, a := range p.Actions {
				if a.Kind == plan.ReleaseServer && (a.Origin.Drift != tc.stage.Final() || strings.Contains(a.Reason.Text, "11:30:00 UTC (30m ago)") != tc.stage.Final()) {
					t.Errorf("stage %q: %+v, %s", tc.stage, a.Origin, a.Reason.Text)
				}
			}
		})
	}
}

// TestServerVanishesWhileErased: it was in no plan, and drift had nothing to say. It holds no place of its group.
func TestServerVanishesWhileErased(t *testing.T) {
	t.Parallel()
	for _, stage := range []plan.Stage{plan.Wiping, plan.Wiped} {
		w := leaver()
		w.dropNode(3)
		w.pinned(3, stage, "")
		w.snap.Servers = w.snap.Servers[:2]
		w.snap.Pins = append(w.snap.Pins, plan.Pin{ServerID: serverID(7), Name: "other-prod-macos-m2-00007", Key: "ssh-ed25519 x", Stage: stage})
		p := w.plan(t)
		if len(p.Lost) != 1 || p.Lost[0].ServerID != serverID(3) || p.Lost[0].Code.String() != "server-vanished" || len(p.Shortages) != 0 {
			t.Errorf("%s: lost %+v, shortages %+v", stage, p.Lost, p.Shortages)
		}
	}
}

// TestAReleaseOfAnotherIsNotFinished: in one store of pins, the stage of another configuration's server is that one's to finish.
func TestAReleaseOfAnotherIsNotFinished(t *testing.T) {
	t.Parallel()
	for _, stage := range []plan.Stage{plan.Wiping, plan.Wiped} {
		w := newWorld(1, 0, 0)
		w.member("macos", "m2", 1)
		w.outside(2, "other-prod-macos-m2-00002")
		w.pinned(2, stage, "")
		w.away(2, plan.CodeUnreachable)
		if got := of(w.plan(t), 2); len(got) > 0 {
			t.Errorf("%s: %q", stage, got)
		}
	}
}

// TestReleasedServersAreForgotten: the pin of a server that went back to the pool, or to another configuration, says
// nothing any more. The one of a host that stays after all is an ordinary pin.
func TestReleasedServersAreForgotten(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"acme-pool-03", "other-prod-macos-m2-00003"} {
		w := leaver()
		w.cfg.Fleets[0].Groups[0].Replicas = 3
		w.dropNode(3)
		w.pinned(3, plan.Wiped, "")
		w.pinned(2, plan.Leaving, "")
		w.pinned(1, plan.Leaving, "")
		w.dropNode(1)
		w.unmark(1)
		w.snap.Servers[0].Name = "acme-pool-01"
		w.snap.Servers[2].Name = name
		p := w.plan(t)
		expect(t, "left", []string{serverID(3)}, p.Left)
		expect(t, "stay", []string{serverID(1), serverID(2)}, p.Stay) // a name of the pool ends nothing
		w.sel.Steps = []plan.StepID{"alpha"}                          // such a plan cannot tell
		if p := w.plan(t); len(p.Left)+len(p.Stay) > 0 {
			t.Errorf("limited to a step, left %q, stay %q", p.Left, p.Stay)
		}
	}
}

// TestARenamedServerIsKept: a server that a person renamed before it was erased gets its name back, and is not erased then.
func TestARenamedServerIsKept(t *testing.T) {
	t.Parallel()
	w := leaver()
	w.cfg.Fleets[0].Groups[0].Replicas = 3
	w.pinned(3, plan.Wiping, "")
	w.snap.Servers[2].Name = "kept-by-hand"
	p := w.plan(t)
	expect(t, "servers that stay", []string{serverID(3)}, p.Stay)
	if got := leaving(p); slices.Contains(got, "reinstall") {
		t.Errorf("it is erased: %q", got)
	}
}

// TestAnAdoptedHostIsNotReleased: a host block that a person wrote counts, whatever an earlier run stored of the server.
func TestAnAdoptedHostIsNotReleased(t *testing.T) {
	t.Parallel()
	for _, stage := range plan.Stages() {
		w := leaver()
		w.cfg.Fleets[0].Groups[0].Replicas = 4
		w.adoptedMember(5, legacy)
		w.snap.Pins = append(w.snap.Pins, plan.Pin{ServerID: serverID(5), Name: legacy, Key: "ssh-ed25519 x", Stage: stage})
		if got := of(w.plan(t), 5); slices.ContainsFunc(got, func(a string) bool { return strings.HasPrefix(a, "reinstall") || strings.HasPrefix(a, "release") }) {
			t.Errorf("stage %q: actions %q", stage, got)
		}
	}
}

// TestAKeptServerIsWhatThePlanSaid: once the stage is gone, the name in the pin must not move the host to another group.
func TestAKeptServerIsWhatThePlanSaid(t *testing.T) {
	t.Parallel()
	w := leaver()
	w.pinned(3, plan.Wiping, "")
	for i := range w.snap.Pins {
		if w.snap.Pins[i].ServerID == serverID(3) {
			w.snap.Pins[i].Name = "acme-prod-runners-m2-" + serverID(3)[:5]
		}
	}
	w.unmark(3)
	w.snap.Servers[2].Name = "kept-by-hand"
	want := w.cfg.HostName("macos", "m2", serverID(3)) // by its Node
	for range 2 {
		p := w.plan(t)
		if h, ok := p.HostByServer(serverID(3)); !ok || h.Name != want {
			t.Fatalf("the host is %q, want %s", h.Name, want)
		}
		w.settle(p)
	}
}

// TestUnerased: a server that should be erased may stay only if all shows that it has its disk.
func TestUnerased(t *testing.T) {
	t.Parallel()
	for n := range 24 {
		usable, answers, pinned, marker := n&1 > 0, n&2 > 0, n&4 > 0, n/8
		s := inventory.Server{ID: "0a1b2", Status: "ready", Delivered: true}
		if !usable {
			s.Status = "reinstalling"
		}
		seen := plan.HostSeen{Pinned: pinned, Marker: []inventory.Seen[plan.Marker]{inventory.Absent[plan.Marker](),
			inventory.Present(plan.Marker{ServerID: s.ID}), inventory.Present(plan.Marker{ServerID: "fffff"})}[marker]}
		if !answers {
			seen.Trouble = plan.CodeUnreachable.Trouble("no answer")
		}
		if got, want := plan.Unerased(s, seen), usable && answers && pinned && marker == 1; got != want {
			t.Errorf("usable %t, answers %t, pinned %t, marker %d: %t", usable, answers, pinned, marker, got)
		}
	}
}
