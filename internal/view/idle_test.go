package view_test

import (
	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/view"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/plan/plantest"
)

// exchange is a step whose change would disturb the work on the host.
type exchange struct{ busy []plan.Task }

func (exchange) ID() plan.StepID { return "tart" }

func (exchange) Probes() []plan.Probe { return nil }

func (exchange) Wanted() string { return "2.33.0" }

func (x exchange) Diff(plan.View) plan.Finding {
	return plan.Finding{Facts: "2.32.1", Busy: x.busy, Changes: []plan.Change{{Reason: plan.Reason{Code: plantest.Code("tart-outdated"), Text: "Tart is 2.32.1"},
		Fields: []plan.Field{{Name: "bundle", Before: "2.32.1", After: "2.33.0"}}, Disruption: plan.Drain, Command: plan.Command{Name: "tart-install", As: plan.Root}}}}
}

// exchanges gives the scene's hosts that step, and the Node of the member a Pod.
func (s *scene) exchanges(busy ...plan.Task) {
	s.joins(func(c *inventory.Cluster, _ *inventory.Node) {
		c.Pods = inventory.Present([]inventory.Pod{{Namespace: "ci", Name: "a", Node: memberOf, Phase: "Running", Controller: "ReplicaSet"}})
	})
	s.steps = func(fleet.Host) []plan.Step { return []plan.Step{exchange{busy}} }
}

func pushing() plan.Task { return plan.Task{Text: "tart push image (pid 77)"} }

func running() plan.Task { return plan.Task{VM: "ci-a", Text: "tart run ci-a (pid 7)"} }

// drains shows what a plan reports about hosts that are drained, and the prompt.
func drains(v *view.Text) {
	for _, force := range []bool{false, true} {
		s := newScene()
		s.exchanges(running())
		var sel plan.Selection
		if force {
			sel.ForceBusy = []string{memberOf}
		}
		p := plan.Compute(s.cfg, s.steps, s.snap, sel)
		v.Plan(p, view.PlanForm{})
		v.Say(view.Question(p, s.cfg.Fleets))
	}
	s := newScene()
	s.joins(func(_ *inventory.Cluster, n *inventory.Node) {
		n.Cordoned, n.CordonedBy, n.CordonRun = true, "ci@acme", "r1"
	})
	v.Plan(plan.Compute(s.cfg, s.steps, s.snap, plan.Selection{}), view.PlanForm{})
}
