package plan_test

import (
	"strings"
	"testing"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/plan/plantest"
)

// TestAdoption takes a server over: the marker and the steps' first changes, and
// nothing else. It keeps its name and counts as a replica.
func TestAdoption(t *testing.T) {
	t.Parallel()
	for name, present := range map[string]string{
		"a name of no grammar":             legacy,
		"a name of another environment":    "acme-staging-macos-m2-00001",
		"a grammatical name, another's id": "acme-prod-macos-m2-00002",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(1, 0, 0)
			w.outside(1, present)
			w.free(9)
			w.adopt(1, present)
			p := w.plan(t)
			expect(t, "actions", []string{present + " marker adopted P", present + " alpha first-setup P", present + " beta first-setup P"}, lines(p))
			expect(t, "asked", [][]string{{present}}, w.asked)
			h := oneHost(t, p)
			if !h.Member || h.Fleet != "macos" || h.Group != "m2" || h.Spec.Name != present || len(p.Strays)+len(p.Shortages)+len(p.Lost) != 0 {
				t.Errorf("host %+v, strays %v, shortages %v, lost %v", h, strays(p), p.Shortages, p.Lost)
			}
			expect(t, "summary", plan.Summary{Add: 1, Change: 2, Pending: 3, Hosts: 1}, p.Summarise())
			w.perform(p)
			if p = w.compute(); len(p.Actions) != 0 || p.Summarise().Converged != 1 {
				t.Errorf("afterwards %v", lines(p))
			}
		})
	}
}

// TestAdoptedIsNeverDriftAtFirst: what the cluster or an old pin knows of the
// server does not make its missing marker drift. Once an apply had it, it does.
func TestAdoptedIsNeverDriftAtFirst(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		know func(*world)
		want string
	}{
		"Node of that name": {func(w *world) {
			w.node(1, legacy, inventory.Ready)
			w.change(1, func(h *plan.HostSeen) { h.Pinned = true })
		}, "adopted P"},
		"pin of another name": {func(w *world) { w.pin(1, "acme-prod-macos-m2-00001") }, "adopted P"},
		"claimed and interrupted": {func(w *world) {
			w.change(1, func(h *plan.HostSeen) { h.Claim = inventory.Present(plan.ClaimOf(w.cfg.Owner, legacy, serverID(1))) })
		}, "adopted P"},
		"pin of the listed name": {func(w *world) { w.pin(1, legacy) }, "marker-missing D"},
	} {
		w := newWorld(1, 0, 0)
		w.outside(1, legacy)
		w.adopt(1, legacy)
		w.change(1, func(h *plan.HostSeen) { h.Facts, h.Pinned = facts(good, good), len(w.snap.Pins) > 0 })
		tc.know(w)
		expect(t, name, []string{legacy + " marker " + tc.want}, lines(w.plan(t)))
	}
}

// TestAdoptionRefused does not touch what is not the machine that a block means.
func TestAdoptionRefused(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		edit func(*world)
		code string
		says []string
	}{
		{"another name", func(w *world) { w.snap.Servers[0].Name = "globex-mac" }, "name-differs", []string{serverID(1), `host "globex-mac"`}},
		{"a member's name", func(w *world) { w.snap.Servers[0].Name = first }, "name-differs", []string{`host "` + first}},
		{"in the pool", func(w *world) { w.snap.Servers[0].Name = "acme-pool-07" }, "adopted-from-pool", []string{serverID(1), "acme-pool-07"}},
		{"in the pool, released", func(w *world) { w.snap.Servers[0].Name = "acme-pool-07"; w.released(1) }, "adopted-from-pool", nil},
		{"a second server of that name", func(w *world) { w.server(2, legacy).Type = "M1-M" }, "name-taken", []string{serverID(1), serverID(2)}},
		{"only the second has it", func(w *world) { w.snap.Servers[0].Name = "globex-mac"; w.server(2, legacy).Type = "M1-M" }, "name-taken", nil},
		{"a member renamed to it by hand", func(w *world) {
			w.cfg.Fleets[0].Groups[1].Replicas = 1
			w.pin(2, "acme-prod-macos-m4-00002")
			w.member("macos", "m4", 2).Name = legacy
			w.sel.On = only("group=m2")
		}, "name-taken", []string{serverID(2)}},
		{"a foreign marker", func(w *world) {
			m := w.marker("macos", "m2", 1)
			m.Configuration, m.Name = "globex", legacy
			w.marked(1, m)
		}, "foreign-marker", []string{"globex"}},
		{"a marker of this configuration for another server", func(w *world) {
			w.marked(1, w.marker("macos", "m2", 9))
		}, "marker-of-another-server", []string{"00009"}},
		{"a claim of another configuration", func(w *world) {
			w.change(1, func(h *plan.HostSeen) {
				h.Claim = inventory.Present(plan.Claim{Configuration: "globex", Name: "globex-1", ServerID: serverID(1)})
			})
		}, "claimed-by-another", []string{"globex"}},
		{"a marker that cannot be read", func(w *world) {
			w.change(1, func(h *plan.HostSeen) { h.Marker = inventory.Unread[plan.Marker]("garbage") })
		}, "marker-unreadable", nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(1, 0, 0)
			w.outside(1, legacy)
			w.free(9)
			w.adopt(1, legacy)
			tc.edit(w)
			p := w.plan(t)
			h := oneHost(t, p)
			if len(p.Actions) != 0 || h.Refused == nil || h.Refused.Code.String() != tc.code || h.Name != legacy || h.Converged != plan.NotCompared {
				t.Fatalf("actions %v, host %s: %+v", lines(p), h.Name, h.Refused)
			}
			explained(t, h.Refused)
			for _, part := range tc.says {
				if !strings.Contains(h.Refused.Text+h.Refused.Remedy, part) {
					t.Errorf("%+v lacks %q", h.Refused, part)
				}
			}
			expect(t, "summary", plan.Summary{Refused: 1, RefusedHosts: 1, Hosts: 1, NotCompared: 1, LeftOut: len(w.sel.On)}, p.Summarise())
		})
	}
}

// TestAdoptedRenamedByHand gives an adopted server its name back on the word of
// what knew it by that name.
func TestAdoptedRenamedByHand(t *testing.T) {
	t.Parallel()
	rename := legacy + " rename renamed-by-hand D"
	for _, tc := range []struct {
		name, present string
		witness       func(*world)
		want          []string
	}{
		{"marker", "globex-mac", func(*world) {}, []string{rename}},
		{"marker, under a pool name", "acme-pool-07", func(*world) {}, []string{rename}},
		{"pin", "globex-mac", func(w *world) { w.unmark(1); w.pin(1, legacy) }, []string{rename, legacy + " marker marker-missing D"}},
		{"Node", "globex-mac", func(w *world) { w.unmark(1); w.node(1, legacy, inventory.Ready) }, []string{rename, legacy + " marker adopted P"}},
		{"not renamed, of another type", legacy, func(w *world) { w.snap.Servers[0].Type = "M4-S" }, []string{legacy + " replace wrong-type P !replace-not-possible"}},
	} {
		w := newWorld(1, 0, 0)
		w.adoptedMember(1, legacy).Name = tc.present
		w.free(9)
		tc.witness(w)
		expect(t, tc.name, tc.want, lines(w.plan(t)))
	}
}

// TestAdoptedServerMissing: nothing is claimed in its place until the block is
// gone.
func TestAdoptedServerMissing(t *testing.T) {
	t.Parallel()
	for code, know := range map[string]func(*world){
		"adopted-server-missing": func(*world) {},
		"server-vanished":        func(w *world) { w.pin(1, legacy) },
	} {
		w := newWorld(2, 0, 0)
		w.member("macos", "m2", 2)
		w.pin(2, second)
		w.free(9)
		w.adopt(1, legacy)
		know(w)
		if err := plan.CheckInventory(w.cfg, w.snap); err != nil {
			t.Errorf("%s: %v", code, err)
		}
		p := w.plan(t)
		if len(p.Actions)+len(p.Shortages) != 0 || len(p.Lost) != 1 {
			t.Fatalf("%s: actions %v, shortages %v, lost %v", code, lines(p), p.Shortages, p.Lost)
		}
		l := p.Lost[0]
		explained(t, &l.Trouble)
		if l.Name != legacy || l.Fleet != "macos" || l.ServerID != serverID(1) || l.Trouble.Code.String() != code || strings.Contains(l.Trouble.Remedy, "trust") {
			t.Errorf("%s: lost %+v", code, l)
		}
		w.cfg.Hosts = nil
		expect(t, "claims without the block", []string{"acme-pool-09 > acme-prod-macos-m2-00009"}, claimed(w.plan(t)))
	}
}

// TestHostBlockRemoved: an adopted server whose block is gone is an orphan. It is
// not touched, and while its marker says that it belongs there, no other is
// claimed in its place.
func TestHostBlockRemoved(t *testing.T) {
	t.Parallel()
	w := newWorld(2, 0, 0)
	w.adoptedMember(1, legacy)
	w.member("macos", "m2", 2)
	w.pin(1, legacy)
	w.node(1, legacy, inventory.Ready)
	w.free(9)
	w.cfg.Hosts = nil
	p := w.plan(t)
	if len(p.Actions)+len(p.Lost) != 0 || len(p.Shortages) != 1 {
		t.Fatalf("actions %v, lost %v, shortages %v", lines(p), p.Lost, p.Shortages)
	}
	s := p.Shortages[0]
	explained(t, &s.Trouble)
	if s.Trouble.Code.String() != "host-block-removed" || s.Missing != 1 || !strings.Contains(s.Trouble.Text, legacy) {
		t.Errorf("shortage %+v", s)
	}
	expect(t, "orphans", []string{legacy}, orphans(p))

	w.cfg.Fleets[0].Groups[0].Replicas = 3
	expect(t, "claims of one more", []string{"acme-pool-09 > acme-prod-macos-m2-00009"}, claimed(w.plan(t)))
	w.cfg.Fleets[0].Groups[0].Replicas = 1
	if p = w.plan(t); len(p.Actions)+len(p.Shortages) != 0 {
		t.Errorf("with one replica less: actions %v, shortages %v", lines(p), p.Shortages)
	}

	w.cfg.Fleets[0].Groups[0].Replicas = 2
	w.snap.Servers[0].Name, w.snap.Pins, w.snap.Nodes = second+"x", nil, inventory.Absent[[]inventory.Node]()
	if p = w.compute(); len(p.Actions) != 0 || len(p.Shortages) != 1 {
		t.Errorf("renamed by hand: actions %v, shortages %v", lines(p), p.Shortages)
	}
	w.sel.AllowOrphans = true
	expect(t, "claims when that is allowed", []string{"acme-pool-09 > acme-prod-macos-m2-00009"}, claimed(w.plan(t)))
	w.sel.AllowOrphans = false
	w.snap.Servers[0].Name = legacy
	copied := w.marker("macos", "m2", 2)
	w.marked(1, copied)
	clear(w.snap.Hosts)
	expect(t, "claims with another's marker", []string{"acme-pool-09 > acme-prod-macos-m2-00009"}, claimed(w.plan(t)))

	w.unmark(1)
	clear(w.snap.Hosts)
	p = w.plan(t)
	expect(t, "claims without its marker", []string{"acme-pool-09 > acme-prod-macos-m2-00009"}, claimed(p))
	expect(t, "strays", []string{legacy}, strays(p))
}

// TestAnAdoptedNameIsTaken: a pool server whose name would be one that a block
// gives to another is not claimed.
func TestAnAdoptedNameIsTaken(t *testing.T) {
	t.Parallel()
	w := newWorld(2, 0, 0)
	w.outside(5, "acme-prod-macos-m2-00009")
	w.adopt(5, "acme-prod-macos-m2-00009")
	w.free(9)
	p := w.plan(t)
	expect(t, "rejected", []string{"acme-pool-09 name-taken"}, rejected(p))
	expect(t, "claims", []string(nil), claimed(p))
}

// TestNotOursKnowsAdopted: it is checked again before a host is changed.
func TestNotOursKnowsAdopted(t *testing.T) {
	t.Parallel()
	w := newWorld(1, 0, 0)
	w.adoptedMember(1, legacy)
	h := oneHost(t, w.plan(t))
	if x := plan.MarkerForbids(w.cfg, &h); x != nil {
		t.Errorf("it is taken for a member: %+v", x)
	}
	h.Seen.Marker = inventory.Present(w.marker("macos", "m2", 1))
	if x := plan.MarkerForbids(w.cfg, &h); x != nil || !h.MarkerStale() {
		t.Errorf("renamed at the provider and in its block: %+v, stale %t", x, h.MarkerStale())
	}
	h.Server.Name = "someones-mac"
	if x := plan.MarkerForbids(w.cfg, &h); x == nil || x.Code.String() != "marker-of-another-server" {
		t.Errorf("a block that gives it a name that it does not have: %+v", x)
	}
	h.Server.Name = h.Name
	h.Seen.Marker = inventory.Present(w.marker("macos", "m2", 9))
	if x := plan.MarkerForbids(w.cfg, &h); x == nil || x.Code.String() != "marker-of-another-server" {
		t.Errorf("a marker of another server: %+v", x)
	}
}

// TestMarkerFollowsItsGroup: a host that moves to another group shows it itself,
// or it would be missed in the wrong one when its block is lost.
func TestMarkerFollowsItsGroup(t *testing.T) {
	t.Parallel()
	w := newWorld(1, 1, 0)
	w.adoptedMember(1, legacy)
	if h := oneHost(t, w.plan(t)); h.MarkerStale() {
		t.Errorf("the marker is stale at once: %+v", h.Seen.Marker)
	}
	w.cfg.Hosts[0].Group = "m4"
	w.snap.Servers[0].Type = "M4-M"
	if h := oneHost(t, w.plan(t)); !h.MarkerStale() || h.Refused != nil {
		t.Errorf("the marker of another group is not stale; refused %+v", h.Refused)
	}
}

// TestSilentStrayHoldsAPlace: a host that was adopted once, lost its block and reboots just now costs no other server a claim.
func TestSilentStrayHoldsAPlace(t *testing.T) {
	t.Parallel()
	for name, disturb := range map[string]func(*world){
		"not ready": func(w *world) { w.snap.Servers[0].Status = "rebooting" },
		"unreachable": func(w *world) {
			w.change(1, func(h *plan.HostSeen) { *h = plan.HostSeen{Trouble: &plan.Trouble{Code: plantest.Code("unreachable")}} })
		},
		"marker unread": func(w *world) {
			w.change(1, func(h *plan.HostSeen) { h.Marker = inventory.Unread[plan.Marker]("cut") })
		},
		"of another type":  func(w *world) { w.snap.Servers[0].Type = "M1-M" },
		"elsewhere, free":  func(w *world) { w.snap.Servers[0].Status, w.cfg.Elsewhere = "rebooting", []string{serverID(1)} },
		"to release, free": func(w *world) { w.snap.Servers[0].Status, w.snap.Pins[0].Stage = "rebooting", plan.Leaving },
	} {
		w := newWorld(1, 0, 0)
		w.adoptedMember(1, legacy)
		w.snap.Pins = []plan.Pin{{ServerID: serverID(1), Name: legacy, Key: "ssh-ed25519 1"}}
		w.cfg.Hosts = nil
		w.free(9)
		disturb(w)
		p, holds := w.plan(t), !strings.HasSuffix(name, ", free")
		expect(t, name+": no claim", holds, len(claimed(p)) == 0)
		if holds && (len(p.Shortages) != 1 || p.Shortages[0].Trouble.Code.String() != "host-block-removed") {
			t.Errorf("%s: shortages %+v", name, p.Shortages)
		}
	}
}

// TestElsewhere: what another environment adopts is neither contacted nor claimed.
func TestElsewhere(t *testing.T) {
	t.Parallel()
	w := newWorld(1, 0, 0)
	w.outside(1, legacy)
	w.free(9)
	w.cfg.Elsewhere = []string{serverID(1), serverID(9)}
	p := w.plan(t)
	if got := claimed(p); len(got) != 0 {
		t.Errorf("claims %v", got)
	}
	if len(w.asked) != 0 {
		t.Errorf("asked %v", w.asked)
	}
}

// TestAdoptOnly plans the markers of adopted servers and nothing else: no step, no claim, no other member.
func TestAdoptOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(3, 0, 0)
	w.outside(1, legacy)
	w.adopt(1, legacy)
	w.member("macos", "m2", 2)
	w.found(2, "bad", "bad")
	w.free(9)
	w.sel = plan.Selection{Decisions: plan.Decisions{AdoptOnly: true}, Steps: []plan.StepID{"alpha"}}
	p := w.plan(t)
	expect(t, "actions", []string{legacy + " marker adopted P"}, lines(p))
	expect(t, "asked", [][]string{{legacy}}, w.asked)
	if p.LeftOut != 1 || !p.AdoptOnly || len(p.Shortages) != 0 {
		t.Errorf("left out %d, adopt only %t, shortages %v", p.LeftOut, p.AdoptOnly, p.Shortages)
	}
	w.perform(p)
	if p = w.compute(); len(p.Actions) != 0 || p.Summarise().Converged != 1 {
		t.Errorf("afterwards %v", lines(p))
	}
	w.sel = plan.Selection{}
	if p = w.plan(t); len(p.Actions) < 4 {
		t.Errorf("without the limit %v", lines(p))
	}

	w = newWorld(1, 0, 0)
	w.member("macos", "m2", 2)
	err := plan.CheckSelection(w.cfg, w.snap, plan.Selection{Decisions: plan.Decisions{AdoptOnly: true}})
	if err == nil || !strings.Contains(err.Error(), "macfleet import") {
		t.Errorf("nothing is adopted: %v", err)
	}
}
