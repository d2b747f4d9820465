package view_test

import (
	"testing"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/plan/plantest"
)

// TestAdoptionIsOneRow: it counts what drains, reboots or wipes the host, names what restarts, and leaves drift
// and what cannot be read yet to other rows.
func TestAdoptionIsOneRow(t *testing.T) {
	t.Parallel()
	h := member(1, "runners")
	marker := plan.Action{Kind: plan.CreateMarker, Host: h.Name, Fleet: h.Fleet, ServerID: h.Server.ID, Origin: plan.Origin{Pending: true}, Reason: plan.Reason{Code: plan.CodeAdopted}}
	step := func(id plan.StepID, d plan.Disruption) plan.Action {
		a := power(h)
		a.Step, a.Disruption, a.Origin, a.Reason.Code = id, d, plan.Origin{Pending: true}, plan.CodeFirstSetup
		return a
	}
	drift := power(h)
	later := step("tart", plan.NoDisruption)
	later.AfterRoot, later.Reason.Code = true, plantest.Code("known-after-sudo")
	p := &plan.Plan{Owner: fleet.Owner{Name: "acme"}, Fleets: []string{"runners"}, Hosts: []plan.Host{h},
		Actions: []plan.Action{step("sudo", plan.NoDisruption), marker, step("vm_firewall", plan.Drain), step("tart_kubelet", plan.Restart), drift, later}}
	wantRows(t, shortPlan(p), "  NOT COMPARED  ", ": read, and changed where needed, once passwordless sudo works",
		"  1 disruptive action (vm_firewall: drain), restarts tart_kubelet: marker, sudo, vm_firewall, tart_kubelet  [adopted, first-setup]\n", "  DRIFT  ")
	p.Actions = []plan.Action{marker}
	wantRows(t, shortPlan(p), "  ADOPT  ", "  0 disruptive actions: marker  [adopted]\n")
}
