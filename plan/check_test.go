package plan_test

import (
	"strings"
	"testing"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/plan/plantest"
)

func TestGaps(t *testing.T) {
	t.Parallel()
	w := newWorld(1, 0, 1)
	member := w.member("macos", "m2", 1)
	w.free(2)
	w.free(3).OSFamily = "Sequoia"
	expect(t, "before any host is contacted", plan.Gaps{Hosts: []string{"acme-pool-03", member.Name}}, plan.GapsOf(w.cfg, w.steps, w.snap, w.sel))
	w.plan(t)
	expect(t, "after all hosts are contacted", plan.Gaps{}, plan.GapsOf(w.cfg, w.steps, w.snap, w.sel))

	former := w.snap.Hosts[serverID(1)]
	former.Facts = plan.Facts{"alpha.get": former.Facts["alpha.get"]}
	w.snap.Hosts[serverID(1)] = former
	expect(t, "of an earlier version", plan.Gaps{Probes: []string{"beta.get"}}, plan.GapsOf(w.cfg, w.steps, w.snap, w.sel))
	former.Trouble, former.Facts = &plan.Trouble{Code: plantest.Code("unreachable")}, nil
	w.snap.Hosts[serverID(1)] = former
	expect(t, "of an unreachable host", plan.Gaps{}, plan.GapsOf(w.cfg, w.steps, w.snap, w.sel))
}

func probeID(p plan.Probe) string { return p.ID }

func TestProbes(t *testing.T) {
	t.Parallel()
	w := newWorld(1, 1, 1)
	expect(t, "each probe once", []string{"alpha.get", "beta.get"}, each(plan.Probes(w.cfg, w.steps, plan.Selection{}), probeID))
	if got := plan.Probes(&fleet.Config{}, w.steps, plan.Selection{}); got != nil {
		t.Errorf("no host to contact: %v", got)
	}
}

// choosy asks much of the hosts that have its block, and little of the others.
type choosy struct{ wanted bool }

func (choosy) ID() plan.StepID { return "gamma" }

func (s choosy) Probes() []plan.Probe {
	if s.wanted {
		return []plan.Probe{{ID: "gamma.state"}}
	}
	return []plan.Probe{{ID: "gamma.traces", Unless: "gamma.state"}}
}

func (choosy) Wanted() string { return "" }

func (choosy) Diff(plan.View) plan.Finding { return plan.Finding{} }

// TestProbesStandBack: one script serves all hosts, so where one host needs the
// full answer the others do not get a shorter query.
func TestProbesStandBack(t *testing.T) {
	t.Parallel()
	stepsFor := func(h fleet.Host) []plan.Step { return []plan.Step{choosy{h.Spec.Power != nil}} }
	snap := plan.Snapshot{Hosts: map[string]plan.HostSeen{"a": {Facts: plan.Facts{"gamma.state": {}}}}}
	for _, tc := range []struct {
		specs []fleet.Spec
		asked string
	}{
		{[]fleet.Spec{{}, {}}, "gamma.traces"},
		{[]fleet.Spec{{}, {Power: &fleet.Power{}}}, "gamma.state"},
		{[]fleet.Spec{{Power: &fleet.Power{}}, {}}, "gamma.state"},
	} {
		var cfg fleet.Config
		for _, spec := range tc.specs {
			cfg.Fleets = append(cfg.Fleets, fleet.Fleet{Groups: []fleet.Group{{Spec: spec}}})
		}
		expect(t, "asked", []string{tc.asked}, each(plan.Probes(&cfg, stepsFor, plan.Selection{}), probeID))
		expect(t, "gaps of a host that was read completely", plan.Gaps{}, plan.GapsOf(&cfg, stepsFor, snap, plan.Selection{}))
	}
	snap.Hosts["a"] = plan.HostSeen{Facts: plan.Facts{"gamma.traces": {}}}
	cfg := fleet.Config{Fleets: []fleet.Fleet{{Groups: []fleet.Group{{Spec: fleet.Spec{Power: &fleet.Power{}}}}}}}
	expect(t, "traces are not the full answer", plan.Gaps{Probes: []string{"gamma.state"}}, plan.GapsOf(&cfg, stepsFor, snap, plan.Selection{}))
}

// TestCheckLeavesHostsAside judges a recorded observation as the lists were
// judged before any host was contacted: a candidate that turned out unfit afterwards
// may still be named.
func TestCheckLeavesHostsAside(t *testing.T) {
	t.Parallel()
	w := newWorld(1, 0, 0)
	w.free(1)
	w.change(1, func(h *plan.HostSeen) { h.Root = false })
	w.sel.On = only("name=" + w.cfg.HostName("macos", "m2", serverID(1)))
	if _, err := plan.CheckLists(w.cfg, w.snap, w.sel); err != nil {
		t.Errorf("before it is contacted: %v", err)
	}
	w.plan(t)
	if _, err := plan.CheckLists(w.cfg, w.snap, w.sel); err != nil {
		t.Errorf("after it was contacted: %v", err)
	}
	w.pin(9, w.cfg.HostName("macos", "m2", serverID(9)))
	if _, err := plan.CheckLists(w.cfg, w.snap, w.sel); err == nil || !strings.Contains(err.Error(), "known from earlier runs") {
		t.Errorf("a lost inventory: %v", err)
	}
}
