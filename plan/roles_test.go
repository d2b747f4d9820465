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

// TestRenamedByHand: a server that someone renamed is still a member when
// any source knows it, and nothing is claimed instead.
func TestRenamedByHand(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name    string
		witness func(*world)
		want    []string
	}{
		{"pin", func(w *world) { w.unmark(1); w.pin(1, first) }, []string{first + " rename renamed-by-hand D", first + " marker marker-missing D"}},
		{"Node", func(w *world) { w.unmark(1); w.node(1, first, inventory.Ready) }, []string{first + " rename renamed-by-hand D", first + " marker marker-missing D"}},
		{"marker", func(*world) {}, []string{first + " rename renamed-by-hand D"}},
		{"all three", func(w *world) { w.pin(1, first); w.node(1, first, inventory.Ready) }, []string{first + " rename renamed-by-hand D"}},
		{"the marker against the pin", func(w *world) { w.pin(1, "acme-prod-runners-m2-00001") }, []string{first + " rename renamed-by-hand D"}},
		{"the pin against the Node", func(w *world) { w.unmark(1); w.node(1, "acme-prod-runners-m2-00001", inventory.Ready); w.pin(1, first) },
			[]string{first + " rename renamed-by-hand D", first + " marker marker-missing D"}},
	} {
		for _, name := range []string{"renamed", "acme-prod-macos-m4-00001", "acme-staging-macos-m2-00001", "acme-prod-macos-m2-99999", "acme-pool-00"} {
			t.Run(tc.name+"/"+name, func(t *testing.T) {
				t.Parallel()
				w := newWorld(1, 0, 0)
				w.member("macos", "m2", 1).Name = name
				w.free(9)
				tc.witness(w)
				p := w.plan(t)
				// Where the new name is an owned one too, the next free server is not better.
				expect(t, "actions", tc.want, lines(p))
				expect(t, "field", []plan.Field{{Name: "name", Before: name, After: first}}, p.Actions[0].Fields)
				if h := oneHost(t, p); !h.Member || h.Name != first || len(p.Strays)+len(p.Shortages)+len(p.Lost) != 0 {
					t.Errorf("host %q, member %t, strays %v, shortages %v, lost %v", h.Name, h.Member, strays(p), p.Shortages, p.Lost)
				}
			})
		}
	}
}

// TestFalseWitness: what names another server or another owner says nothing.
func TestFalseWitness(t *testing.T) {
	t.Parallel()
	for name, witness := range map[string]func(*world){
		"pin of another id":          func(w *world) { w.pin(1, "acme-prod-macos-m2-00002") },
		"pin of another environment": func(w *world) { w.pin(1, "acme-staging-macos-m2-00001") },
		"Node of another provider": func(w *world) {
			w.snap.Nodes = inventory.Present([]inventory.Node{{Name: first, ProviderID: "aws:///" + serverID(1)}})
		},
		"Node without provider id": func(w *world) { w.snap.Nodes = inventory.Present([]inventory.Node{{Name: first}}) },
		"foreign marker": func(w *world) {
			m := w.marker("macos", "m2", 1)
			m.Environment = "staging"
			w.marked(1, m)
		},
		"marker of another server": func(w *world) {
			m := w.marker("macos", "m2", 1)
			m.ServerID = serverID(2)
			w.marked(1, m)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(1, 0, 0)
			w.outside(1, "renamed")
			w.free(9)
			witness(w)
			p := w.plan(t)
			expect(t, "claims", []string{"acme-pool-09 > acme-prod-macos-m2-00009"}, claimed(p))
			expect(t, "strays", []string{"renamed"}, strays(p))
		})
	}
}

// TestWitnessesThatDisagree: of two pins the latest counts, and of two Nodes, which a server may have after a rename, the
// same one, whatever the order of the lists.
func TestWitnessesThatDisagree(t *testing.T) {
	t.Parallel()
	const other = "acme-prod-runners-m2-00001"
	pins := []plan.Pin{{ServerID: serverID(1), Name: other, Since: noon}, {ServerID: serverID(1), Name: first, Since: noon.Add(time.Hour)}}
	nodes := []inventory.Node{{Name: first, ProviderID: serverProvider(1), Ready: inventory.NotReady}, {Name: other, ProviderID: serverProvider(1), Ready: inventory.Ready}}
	for range 2 {
		w := newWorld(1, 0, 1)
		w.outside(1, "renamed")
		w.snap.Pins = pins
		expect(t, "the host of two pins", first, oneHost(t, w.plan(t)).Name)
		w.snap.Pins, w.snap.Nodes = nil, inventory.Present(nodes)
		h := oneHost(t, w.plan(t))
		n, _ := h.Node.Get()
		expect(t, "the host of two Nodes, and its Node", []string{other, other}, []string{h.Name, n.Name})
		slices.Reverse(pins)
		slices.Reverse(nodes)
	}
}

// TestKnownByPins: by the latest pin a server that vanished is a member, unless its claim or release says otherwise.
func TestKnownByPins(t *testing.T) {
	t.Parallel()
	const again = "acme-prod-runners-m2-00001"
	old, started := plan.Pin{Name: first, Stage: plan.Wiped}, plan.Pin{Name: again, Unfinished: true}
	for name, tc := range map[string]struct {
		pins []plan.Pin // oldest first
		want string     // the lost member
	}{
		"it is leaving":               {[]plan.Pin{{Name: first, Stage: plan.Leaving}}, first},
		"a claim started":             {[]plan.Pin{started}, ""},
		"being released":              {[]plan.Pin{{Name: again}, old}, first},
		"released and claimed":        {[]plan.Pin{old, {Name: again}}, again},
		"released, and claim started": {[]plan.Pin{old, started}, ""},
	} {
		w, got := newWorld(0, 0, 0), ""
		for i, p := range tc.pins {
			p.ServerID, p.Since = serverID(1), noon.Add(time.Duration(i)*time.Hour)
			w.snap.Pins = append(w.snap.Pins, p)
		}
		for _, l := range w.plan(t).Lost {
			got += l.Name
		}
		expect(t, name, tc.want, got)
	}
	w := newWorld(0, 0, 0)
	w.snap.Remembered = []plan.Pin{{ServerID: serverID(1), Name: first}}
	if lost := w.plan(t).Lost; len(lost) > 0 {
		t.Errorf("a copy by itself, whose server another machine may have forgotten: %+v", lost)
	}
}

// TestTwoLostServersOfOneName: they are listed in one order, however often the plan is made.
func TestTwoLostServersOfOneName(t *testing.T) {
	t.Parallel()
	w := newWorld(3, 0, 0)
	w.member("macos", "m2", 2)
	w.pin(1, first)
	w.snap.Pins = append(w.snap.Pins, plan.Pin{ServerID: "00001fff-0000-4000-8000-000000000000", Name: first})
	want := w.plan(t).Lost
	if len(want) != 2 || want[0].ServerID != serverID(1) {
		t.Fatalf("lost %+v", want)
	}
	for range 50 {
		expect(t, "lost", want, w.compute().Lost)
	}
}

func TestReleases(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name     string
		replicas int
		edit     func(*world)
		want     []string // servers to release
	}{
		{"the newest goes", 2, func(*world) {}, []string{third}},
		{"two go", 1, func(*world) {}, []string{second, third}},
		{"all go", 0, func(*world) {}, []string{first, second, third}},
		{"unknown counts as not Ready", 2, func(w *world) { w.node(2, second, inventory.ReadyUnknown) }, []string{second}},
		{"of two made at once the first by name", 2, func(w *world) {
			for i := range w.snap.Servers {
				w.snap.Servers[i].Created = time.Time{}
			}
		}, []string{first}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			w := members(tc.replicas, 3)
			tc.edit(w)
			p := w.plan(t)
			for _, a := range p.Actions {
				if !a.Origin.Pending || a.Kind == plan.ReinstallServer && a.Disruption != plan.Wipe {
					t.Errorf("action %s of %s: %+v", a.Kind, a.Host, a)
				}
			}
			expect(t, "releases", tc.want, released(p))
		})
	}
}

// TestALostServerHoldsItsPlace: until a person says that it is gone, nothing is claimed instead, and nothing is released for it.
func TestALostServerHoldsItsPlace(t *testing.T) {
	t.Parallel()
	for name, know := range map[string]func(*world){
		"pin":  func(w *world) { w.pin(2, second) },
		"Node": func(w *world) { w.node(2, second, inventory.NotReady) },
		"both": func(w *world) { w.pin(2, second); w.node(2, second, inventory.NotReady) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := members(2, 1)
			w.pin(1, first)
			w.free(9)
			know(w)
			if err := plan.CheckInventory(w.cfg, w.snap); err != nil {
				t.Fatal(err)
			}
			p := w.plan(t)
			if len(p.Actions)+len(p.Shortages) != 0 || len(p.Lost) != 1 {
				t.Fatalf("actions %v, shortages %v, lost %v", lines(p), p.Shortages, p.Lost)
			}
			l := p.Lost[0]
			explained(t, &l.Trouble)
			if l.Name != second || l.Fleet != "macos" || l.ServerID != serverID(2) || !strings.Contains(l.Trouble.Remedy, second) {
				t.Errorf("lost %+v", l)
			}
			expect(t, "summary", plan.Summary{Refused: 1, RefusedHosts: 1, Hosts: 1, Converged: 1, NotCompared: 1}, p.Summarise())
			w.cfg.Fleets[0].Groups[0].Replicas = 3
			expect(t, "claims of one more", []string{"acme-pool-09 > acme-prod-macos-m2-00009"}, claimed(w.plan(t)))
		})
	}
}

func TestCheckInventory(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name  string
		edit  func(*world)
		names string // what the error names; "": it is none
	}{
		{"nothing known, nothing there", func(*world) {}, ""},
		{"nothing known, servers there", func(w *world) { w.free(1); w.member("macos", "m2", 2) }, ""},
		{"all known are gone", func(w *world) { w.pin(1, first); w.node(2, second, inventory.Ready) }, first},
		{"all known are gone, strangers there", func(w *world) { w.pin(1, first); w.free(5) }, first},
		{"most known are gone", func(w *world) {
			w.pin(1, first)
			w.pin(2, second)
			w.pin(3, third)
			w.member("macos", "m2", 4)
			w.pin(4, w.snap.Servers[0].Name)
		}, ""},
		{"one exists under another name", func(w *world) { w.pin(1, first); w.pin(2, second); w.server(2, "renamed") }, ""},
		{"known, and another's", func(w *world) { w.pin(1, "acme-staging-macos-m2-00001") }, ""},
		{"known, and of a deleted group", func(w *world) { w.pin(1, "acme-prod-deleted-m2-00001") }, ""},
		{"Nodes of no server", func(w *world) { w.snap.Nodes = inventory.Present([]inventory.Node{{Name: "control-plane"}}) }, ""},
		{"Nodes unread", func(w *world) { w.snap.Nodes = inventory.Unread[[]inventory.Node]("no rights") }, ""},
		{"of many, the first few are named", func(w *world) {
			for n := 9; n > 0; n-- {
				w.pin(n, w.cfg.HostName("macos", "m2", serverID(n)))
			}
		}, first + ", " + second + ", " + third + ", …)"},
		// A mistyped id says nothing about the project.
		{"an adopted server, never known", func(w *world) { w.adopt(1, legacy); w.free(9) }, ""},
		{"an adopted server, known and gone", func(w *world) { w.adopt(1, legacy); w.free(9); w.pin(1, legacy) }, legacy},
	} {
		w := newWorld(9, 0, 0)
		tc.edit(w)
		err := plan.CheckInventory(w.cfg, w.snap)
		if (err != nil) != (tc.names != "") || err != nil && (!strings.Contains(err.Error(), tc.names) || !strings.Contains(err.Error(), "fr-par-1")) {
			t.Errorf("%s: error %v, want one with %q and the zone", tc.name, err, tc.names)
		}
	}
}

// TestDuplicateNames: two servers under one name, one of which is its own.
func TestDuplicateNames(t *testing.T) {
	t.Parallel()
	w := members(2, 1)
	w.outside(2, first) // whose id is another
	w.free(9)
	p := w.plan(t)
	expect(t, "claims", []string{"acme-pool-09 > acme-prod-macos-m2-00009"}, claimed(p))
	expect(t, "strays", []string{first}, strays(p))
	if p.Strays[0].ID != serverID(2) {
		t.Errorf("the stray is %s", p.Strays[0].ID)
	}
}

// TestIDsThatBeginAlike: two members may have one name by right. Both count,
// and each keeps its own host, Node and marker.
func TestIDsThatBeginAlike(t *testing.T) {
	t.Parallel()
	w := members(2, 1)
	twin := w.member("macos", "m2", 1)
	twin.ID = "00001fff-0000-4000-8000-000000000000"
	m := w.marker("macos", "m2", 1)
	m.ServerID = twin.ID
	seen := w.hosts[serverID(1)]
	seen.Marker = inventory.Present(m)
	w.hosts[twin.ID] = seen
	w.free(9)
	w.node(1, first, inventory.NotReady)
	p := w.plan(t)
	if len(p.Actions) != 0 || len(p.Hosts) != 2 || p.Hosts[0].Server.ID != serverID(1) {
		t.Fatalf("actions %v, hosts %d", lines(p), len(p.Hosts))
	}
	if _, has := p.Hosts[0].Node.Get(); !has || !p.Hosts[1].Node.IsAbsent() {
		t.Errorf("Nodes: %+v, %+v", p.Hosts[0].Node, p.Hosts[1].Node)
	}
}

func TestNodes(t *testing.T) {
	t.Parallel()
	named := inventory.Node{Name: first, Ready: inventory.Ready}
	byID := inventory.Node{Name: "elsewhere", ProviderID: "scw-applesilicon://fr-par-1/" + serverID(1), Ready: inventory.NotReady}
	other := inventory.Node{Name: first, ProviderID: "scw-applesilicon://fr-par-1/" + serverID(2), Ready: inventory.Ready}
	for _, tc := range []struct {
		name    string
		nodes   inventory.Seen[[]inventory.Node]
		want    inventory.Seen[inventory.Node]
		cluster bool
	}{
		{"no cluster", inventory.Absent[[]inventory.Node](), inventory.Absent[inventory.Node](), false},
		{"unread", inventory.Unread[[]inventory.Node]("no rights"), inventory.Unread[inventory.Node]("no rights"), false},
		{"none", inventory.Present([]inventory.Node{}), inventory.Absent[inventory.Node](), true},
		{"by name", inventory.Present([]inventory.Node{named}), inventory.Present(named), true},
		{"by provider id", inventory.Present([]inventory.Node{named, byID}), inventory.Present(byID), true},
		{"of another server", inventory.Present([]inventory.Node{other}), inventory.Absent[inventory.Node](), true},
	} {
		w := members(1, 1)
		w.server(2, "somebody-else")
		w.snap.Nodes = tc.nodes
		p := w.plan(t)
		expect(t, tc.name, tc.want, oneHost(t, p).Node)
		if !tc.nodes.IsUnread() && p.Cluster != tc.cluster || len(p.Actions) != 0 {
			t.Errorf("%s: cluster %t, actions %v", tc.name, p.Cluster, lines(p))
		}
	}
}

// TestOwnersOfOnePrefix: an environment's servers are strays to the
// configuration without one, and the other way round.
func TestOwnersOfOnePrefix(t *testing.T) {
	t.Parallel()
	for _, owner := range []fleet.Owner{{Name: "acme"}, {Name: "acme", Environment: "prod"}} {
		w := newWorld(0, 0, 0)
		w.cfg.Owner = owner
		w.server(1, "acme-macos-m2-00001")
		w.server(2, second)
		p := w.plan(t)
		if len(p.Hosts) != 1 || len(p.Strays) != 1 || p.Hosts[0].Name != owner.String()+"-macos-m2-"+p.Hosts[0].Server.ID[:5] {
			t.Errorf("%s: hosts %v, strays %v", owner, p.Hosts, strays(p))
		}
	}
}
