package vmfirewall_test

import (
	"testing"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/steps/stepstest"
)

// TestVMFirewallRolledBack: a run for another configuration started and was taken back. What
// exists is what was verified for the first configuration, so its facts are the same.
func TestVMFirewallRolledBack(t *testing.T) {
	t.Parallel()
	p := stepstest.SettledPacketFilter()
	proven := judged(t, firewalled, p, plan.View{Verified: true})
	other := fleet.Spec{VMFirewall: &fleet.VMFirewall{Block: []string{"10.0.0.0/8"}}}
	f := judged(t, other, p, plan.View{Verified: true, Pending: true})
	stepstest.Expect(t, "facts", proven.Facts, f.Facts)
	if len(f.Changes) != 1 || f.Changes[0].Guard == nil {
		t.Fatalf("%+v", f)
	}
	stepstest.Expect(t, "fields", "blocked_dst: 10.0.0.0/8, 169.254.0.0/16, 172.16.0.0/12 → 10.0.0.0/8, anchor file: of an earlier configuration → as rendered, earlier run: unfinished → finished", stepstest.Moves(f))
	if f := judged(t, firewalled, p, plan.View{Verified: true, Pending: true}); len(f.Changes) != 1 || f.Facts == proven.Facts || f.Changes[0].Reason.Code.String() != "unfinished" {
		t.Errorf("the first configuration again: %+v", f)
	}
}
