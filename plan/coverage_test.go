package plan_test

import (
	"testing"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/plan/plantest"
)

// TestCoverage: a plan says what it does not cover, host by host and by reason, and what
// it was limited to.
func TestCoverage(t *testing.T) {
	t.Parallel()
	w := newWorld(4, 0, 1)
	for n := 1; n <= 4; n++ {
		w.member("macos", "m2", n)
	}
	w.member("runners", "m2", 5)
	w.change(1, func(h *plan.HostSeen) { h.Trouble = plantest.Code("unreachable").Trouble("no route to host") })
	w.marked(2, plan.Marker{Configuration: "globex", Name: "x", ServerID: serverID(2)})
	w.change(3, func(h *plan.HostSeen) { h.Facts = nil })
	w.sel.On = only("fleet=macos,type=M2-L", "name="+first)
	p := w.plan(t)
	c := p.Coverage()
	expect(t, "on", []string{"fleet=macos,type=M2-L", "name=" + first}, c.On)
	expect(t, "hosts", 4, c.Hosts)
	expect(t, "left out", 1, c.LeftOut)
	gaps := func(all []plan.Gap) []string {
		out := []string{}
		for _, g := range all {
			for _, h := range g.Hosts {
				out = append(out, g.Code.String()+" "+h)
			}
		}
		return out
	}
	expect(t, "not compared", []string{"unreachable " + first, "foreign-marker " + second}, gaps(c.NotCompared))
	expect(t, "in part", []string{"unread " + third}, gaps(c.Partly))
	if c.Complete() || !c.Limited() {
		t.Errorf("gapless %t, limited %t", c.Complete(), c.Limited())
	}
	s := p.Summarise()
	expect(t, "counts", [3]int{2, 1, 1}, [3]int{s.NotCompared, s.Partly, s.LeftOut})
}

// TestCoverageOfAVanishedServer: what is in no inventory was not compared either.
func TestCoverageOfAVanishedServer(t *testing.T) {
	t.Parallel()
	p := &plan.Plan{Lost: []plan.Lost{{Name: "a9", Trouble: plan.Trouble{Code: plantest.Code("server-vanished")}}},
		Unread: []plan.Unread{{Probe: "cluster.pods"}}, NotContacted: []plan.NotContacted{{Replicas: 3}, {Replicas: 4}}}
	c := p.Coverage()
	if c.Complete() || c.Limited() || c.Hosts != 1 || plan.HostsOf(c.NotCompared) != 1 || c.NotContacted != 7 || len(c.ClusterUnread) != 1 || c.ClusterUnread[0] != "pods" {
		t.Errorf("%+v", c)
	}
}

// TestNotComparedIsNotPending: a step that shows only to root, or whose record was lost with the marker, is neither drift nor pending configuration.
func TestNotComparedIsNotPending(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(*world){
		"no root, verified":  func(*world) {},
		"no root, no marker": func(w *world) { w.unmark(1) },
	} {
		w := members(1, 1)
		w.change(1, func(h *plan.HostSeen) {
			h.Root = false
			h.Facts["power.settings"] = inventory.Unread[plan.Answer](plan.NeedsRoot)
			m, _ := h.Marker.Get()
			h.Marker = inventory.Present(m.With("power", verifiedAs(good, good)).With("sudo", verifiedAs(good, "root")))
		})
		damage(w)
		w.plan(t)
		p := plan.Compute(w.cfg, func(fleet.Host) []plan.Step {
			return []plan.Step{rootGiver{fakeStep{id: "sudo", desired: good}}, rootedPower{good}}
		}, w.snap, plan.Selection{})
		for _, a := range p.Actions {
			if a.AfterRoot && a.Origin != (plan.Origin{NotKnown: true}) {
				t.Errorf("%s: %+v", name, a.Origin)
			}
		}
		if s := p.Summarise(); s.Pending != 0 || len(p.Actions) < 2 {
			t.Errorf("%s: %d pending of %v", name, s.Pending, lines(p))
		}
	}
}
