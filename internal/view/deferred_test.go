package view_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/rollout"
	"github.com/macfleet/macfleet/internal/view"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/plan/plantest"
)

// bounded is a plan of three Ready hosts that get another Tart, of which one run changes at most that many.
func bounded(most int) *plan.Plan {
	p := &plan.Plan{Owner: fleet.Owner{Name: "acme"}, Fleets: []string{"runners"}, Healthy: make(map[string][]plan.Healthy)}
	for _, id := range []string{"1", "2", "3"} {
		h := plan.Host{Name: "acme-runners-m2-0a1b" + id, Fleet: "runners", Member: true, Server: inventory.Server{ID: id}}
		p.Hosts = append(p.Hosts, h)
		p.Healthy["runners"] = append(p.Healthy["runners"], plan.Healthy{ServerID: id, Name: h.Name})
		for _, step := range []plan.StepID{"power", "tart"} {
			a := plan.Action{Kind: plan.RunStep, Host: h.Name, Fleet: "runners", ServerID: id, Step: step,
				Reason: plan.Reason{Code: plantest.Code("config-changed")}, Origin: plan.Origin{Pending: true}}
			if step == "tart" {
				a.Disruption = plan.Drain
			}
			p.Actions = append(p.Actions, a)
		}
	}
	p.Defer(plan.Bounds{Guardrails: fleet.Guardrails{MaxDisrupted: fleet.Share{Count: most}}}, func(fleet.Host) []plan.Step { return nil }, nil)
	p.Rollouts = []plan.Rollout{{Fleet: "runners", AtOnce: 1, Canary: 1, Soak: "15m0s", Waves: [][]string{{p.Hosts[0].Name}, {p.Hosts[1].Name}}}}
	return p
}

// TestDeferred: what a limit leaves for a later run is reported for each host, in the summary and at
// the end.
func TestDeferred(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	text := view.NewText(&b, 0, false)
	p := bounded(2)
	text.Plan(p, view.PlanForm{})
	text.Plan(p, view.PlanForm{Full: true})
	for _, want := range []string{
		"tart; one run drains, reboots or wipes at most 2 of the 3 Ready hosts of runners  [config-changed, too-many-disrupted]\n",
		"\nPlan: 3 hosts to change (5 actions, 1 deferred).",
		"    deferred to a later run: tart: too-many-disrupted: one run drains, reboots or wipes at most 2 of the 3 Ready hosts of runners\n",
		"Actions: 0 to add, 5 to change, 0 to remove; 1 host deferred.\n",
	} {
		has(t, b.String(), want)
	}
	b.Reset()
	p.Actions = p.Actions[5:]
	showApplied(text, engine.Result{Done: 5, After: p})
	if got := b.String(); !strings.Contains(got, "1 host deferred to a later run (too-many-disrupted)") || strings.Contains(got, "Did not converge") {
		t.Errorf("after the run:\n%s", got)
	}
}

// TestLeftNamesHosts: the hosts that keep others from starting are named, and only a canary is called one.
func TestLeftNamesHosts(t *testing.T) {
	t.Parallel()
	var got []string
	for _, why := range []rollout.Reason{rollout.CanaryFailed, rollout.TrialFailed, rollout.BudgetSpent, rollout.RepairsFailing} {
		var b bytes.Buffer
		showApplied(view.NewText(&b, 0, false), engine.Result{NotStarted: 1, Left: []engine.Left{{Host: "h2", Fleet: "runners", Why: why, Of: []string{"h1"}}}})
		for _, line := range strings.Split(b.String(), "\n") {
			if strings.Contains(line, string(why)) || strings.HasPrefix(line, "      or") {
				got = append(got, strings.TrimSpace(line))
			}
		}
	}
	want := []string{
		"· 1 host of runners not started (canary-failed): h2: the canary h1 failed or did not stay Ready",
		"· 1 host of runners not started (trial-failed): h2: h1 is not Ready and could not be repaired",
		"or      continue without it: macfleet hold h1 --until 3d --reason REASON  ·  macfleet apply --exclude name=h1",
		"· 1 host of runners not started (failure-budget): h2: more hosts failed than failure_budget allows: h1",
		"· 1 host of runners not started (repairs-failing): h2: the repairs of h1 failed, so no other repair is tried",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestRolloutOrder: a plan shows which hosts go first, which follow together, and counts the waves that it does not name.
func TestRolloutOrder(t *testing.T) {
	t.Parallel()
	p := bounded(3)
	name := func(i string) string { return "acme-runners-m2-0a1b" + i }
	for _, id := range []string{"0", "4", "5", "6", "7", "8"} {
		p.Hosts = append(p.Hosts, plan.Host{Name: name(id), Fleet: "runners", Member: true, Server: inventory.Server{ID: id}})
	}
	p.Rollouts = []plan.Rollout{
		{Fleet: "macos", AtOnce: 1, Waves: [][]string{{"acme-macos-m2-00000"}}},
		{Fleet: "runners", AtOnce: 2, Canary: 1, Soak: "15m0s", Trials: []string{name("0")},
			Waves: [][]string{{name("1")}, {name("2"), name("3")}, {name("4"), name("5")}, {name("6"), name("7")}, {name("8")}}}}
	var b bytes.Buffer
	view.NewText(&b, 0, false).Plan(p, view.PlanForm{})
	want := "\n  Rollout  macos    acme-macos-m2-00000\n           runners  repair 0a1b0 → canary 0a1b1 (soak 15m0s) → 0a1b2, 0a1b3 → 0a1b4, 0a1b5 → 0a1b6, 0a1b7 → 1 more wave   (7 hosts, 2 at a time)\n" +
		"                    at most 3 drains\n"
	has(t, b.String(), want)

	p.Rollouts = []plan.Rollout{{Fleet: "runners", AtOnce: 2, Waves: [][]string{}, Left: []string{name("1"), name("2")}, LeftReason: string(rollout.TooFewReady)}}
	b.Reset()
	text := view.NewText(&b, 0, false)
	text.Plan(p, view.PlanForm{})
	text.Plan(p, view.PlanForm{Full: true})
	for _, want := range []string{"\n  Rollout  runners  not started: 2 hosts (0a1b1, 0a1b2): fewer hosts would be Ready than min_ready requires  [min-ready]\n",
		"\nRollout of runners: 2 hosts not started (min-ready): fewer hosts would be Ready than min_ready requires.\n"} {
		has(t, b.String(), want)
	}
}
