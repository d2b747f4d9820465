package plan_test

import (
	"testing"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/plan/plantest"
)

// rootGiver is a step whose change sets up root.
type rootGiver struct{ fakeStep }

func (rootGiver) Diff(plan.View) plan.Finding {
	return plan.Finding{Facts: "no root", Changes: []plan.Change{{Reason: plan.Reason{Code: plantest.Code("sudo-missing"), Text: "t"}, GrantsRoot: true}}}
}

// TestNeedsRoot plans a fresh host that gives no root yet: a step whose answers only
// root can have is put off, and stays in the plan; one without a desired state does not.
func TestNeedsRoot(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		desired string
		want    int
	}{{good, 1}, {"", 0}} {
		w := newWorld(1, 0, 0)
		w.free(1)
		w.cfg.Fleets[0].Groups[0].Spec = fleet.Spec{}.WithBuiltIn()
		seen := w.hosts[serverID(1)]
		seen.Root = false
		seen.Facts["power.settings"] = inventory.Unread[plan.Answer](plan.NeedsRoot)
		w.hosts[serverID(1)] = seen
		w.desired["power"] = tc.desired
		stepsFor := func(fleet.Host) []plan.Step {
			return []plan.Step{rootGiver{fakeStep{id: "sudo", desired: good}}, rootedPower{w.desired["power"]}}
		}
		w.plan(t)
		p := plan.Compute(w.cfg, stepsFor, w.snap, plan.Selection{})
		put := 0
		for _, a := range p.Actions {
			if a.Step == "power" && a.AfterRoot && a.Reason.Code.String() == "known-after-sudo" {
				put++
			}
		}
		if put != tc.want {
			t.Errorf("configured %q: put off %d times, want %d: %v", tc.desired, put, tc.want, lines(p))
		}
	}
}

// rootedPower is a step like power whose probe needs root, written without a thought
// of that: where an answer is unread that is reported, and nothing else.
type rootedPower struct{ desired string }

func (rootedPower) ID() plan.StepID { return "power" }

func (p rootedPower) Wanted() string { return p.desired }

func (rootedPower) Probes() []plan.Probe {
	return []plan.Probe{{ID: "power.settings", Command: plan.Command{As: plan.Root}}}
}

func (rootedPower) Diff(v plan.View) plan.Finding {
	seen := v.Facts.Get("power.settings")
	a, ok := seen.Get()
	if !ok {
		return plan.Finding{Unread: []plan.Unread{{Probe: "power.settings", Why: seen.Why()}}}
	}
	return plan.Finding{Facts: a.Stdout}
}
