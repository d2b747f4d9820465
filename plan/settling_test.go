package plan_test

import (
	"testing"
	"time"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
)

// TestSettling: a Node may become Ready by itself only while its kubelet is young.
func TestSettling(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 23, 1, 0, 0, 0, time.UTC)
	node := func(heard time.Time) inventory.Seen[inventory.Node] {
		return inventory.Present(inventory.Node{LastHeartbeat: heard})
	}
	runs := func(code plan.Code) inventory.Seen[plan.Kubelet] {
		return inventory.Present(plan.Kubelet{Fault: plan.Reason{Code: code}, Started: at})
	}
	for name, tc := range map[string]struct {
		node    inventory.Seen[inventory.Node]
		kubelet inventory.Seen[plan.Kubelet]
		want    bool
	}{
		"just started":        {node(at.Add(-time.Minute)), runs(plan.Code{}), true},
		"settling":            {inventory.Absent[inventory.Node](), runs(plan.CodeKubeletSettling), true},
		"a heartbeat since":   {node(at.Add(time.Minute)), runs(plan.Code{}), false},
		"crash-looping":       {node(at.Add(-time.Minute)), runs(plan.CodeKubeletCrashLoop), false},
		"no Node":             {inventory.Absent[inventory.Node](), runs(plan.Code{}), false},
		"no kubelet was read": {node(at), inventory.Absent[plan.Kubelet](), false},
	} {
		if got := (plan.Host{Node: tc.node, Kubelet: tc.kubelet}).Settling(); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
