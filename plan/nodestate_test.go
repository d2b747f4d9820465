package plan_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/plan/plantest"
)

// TestTaintsAndCordons: what keeps Pods off a Node is reported with who and since, and distinguished from what Kubernetes sets itself.
func TestTaintsAndCordons(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 2, 11, 42, 0, 0, time.UTC)
	own := inventory.AgentTaint()
	taints := func(all ...inventory.Taint) func(*inventory.Node) {
		return func(n *inventory.Node) { n.Taints = inventory.Present(append([]inventory.Taint{own}, all...)) }
	}
	condition := func(kind, status string) func(*inventory.Node) {
		return func(n *inventory.Node) {
			n.Conditions = append(n.Conditions, inventory.Condition{Type: kind, Status: status, Since: at, Why: "because"})
		}
	}
	both := func(edits ...func(*inventory.Node)) func(*inventory.Node) {
		return func(n *inventory.Node) {
			for _, edit := range edits {
				edit(n)
			}
		}
	}
	pressure := inventory.Taint{Key: "node.kubernetes.io/memory-pressure", Effect: "NoSchedule"}
	for name, tc := range map[string]struct {
		edit func(*inventory.Node)
		want []string // codes of warnings, and of actions of the Node
		says []string
	}{
		"nothing":           {taints(), nil, nil},
		"an older snapshot": {func(n *inventory.Node) { n.Taints = inventory.Seen[[]inventory.Taint]{} }, nil, nil},
		"our taint is gone": {func(n *inventory.Node) { n.Taints = inventory.Present([]inventory.Taint{}) }, []string{"taint taint-missing"}, nil},
		"our taint has changed": {func(n *inventory.Node) {
			n.Taints = inventory.Present([]inventory.Taint{{Key: own.Key, Value: own.Value, Effect: "NoExecute"}})
		}, []string{"taint taint-missing"}, nil},
		"another build's Node": {func(n *inventory.Node) { n.Taints, n.Labels = inventory.Present([]inventory.Taint{}), nil }, nil, nil},
		"a person's taint": {taints(inventory.Taint{Key: "acme.dev/x", Value: "y", Effect: "NoSchedule", Since: at}), []string{"foreign-taint"},
			[]string{"acme.dev/x=y:NoSchedule since 2026-03-02 11:42:00 UTC"}},
		"one that only discourages": {taints(inventory.Taint{Key: "acme.dev/x", Effect: "PreferNoSchedule"}), nil, nil},
		"one of a cloud provider":   {taints(inventory.Taint{Key: "node.cloudprovider.kubernetes.io/uninitialized", Effect: "NoSchedule"}), []string{"foreign-taint"}, nil},
		"one of a condition":        {both(taints(pressure), condition("MemoryPressure", "True")), []string{"node-condition"}, []string{"MemoryPressure is True since 2026-03-02 11:42:00 UTC (because)"}},
		"one that outlived it":      {both(taints(pressure), condition("MemoryPressure", "False")), []string{"foreign-taint"}, []string{"though the condition MemoryPressure is good"}},
		"an unknown one":            {condition("acme.dev/Lamp", "Unknown"), []string{"node-condition"}, nil},
		"one that may mean both":    {condition("acme.dev/Lamp", "True"), nil, nil},
		"one that is good":          {both(condition("DiskPressure", "False"), condition("GuestsHealthy", "True")), nil, nil},
		"one of our own":            {condition("GuestsHealthy", "False"), []string{"node-condition"}, nil},
		"a silent Node": {both(condition("DiskPressure", "Unknown"), taints(inventory.Taint{Key: "node.kubernetes.io/unreachable", Effect: "NoExecute"}),
			func(n *inventory.Node) { n.Ready = inventory.ReadyUnknown }), nil, nil},
		"a person's cordon": {func(n *inventory.Node) { n.Cordoned, n.CordonClient, n.CordonSince = true, "kubectl-cordon", at }, []string{"node-cordoned"},
			[]string{"since 2026-03-02 11:42:00 UTC", "kubectl-cordon"}},
		"with its taint": {both(func(n *inventory.Node) { n.Cordoned = true }, taints(inventory.Taint{Key: "node.kubernetes.io/unschedulable", Effect: "NoSchedule"})), []string{"node-cordoned"}, nil},
		"macfleet cordon": {func(n *inventory.Node) { n.Cordoned, n.CordonedBy = true, "sam@desk" }, []string{"node-cordoned"},
			[]string{"by sam@desk with macfleet cordon"}},
		"a run that was killed": {func(n *inventory.Node) { n.Cordoned, n.CordonedBy, n.CordonRun = true, "sam@desk", "dead" }, []string{"uncordon left-cordoned"}, nil},
		"a run that was killed, of a silent host": {func(n *inventory.Node) { n.Cordoned, n.CordonedBy, n.CordonRun = true, "sam@desk", "dead" }, []string{"node-cordoned"},
			[]string{"by run dead (sam@desk), which did not uncordon it"}},
		"another server's Node": {func(n *inventory.Node) {
			n.ProviderID, n.Taints, n.Cordoned = serverProvider(2), inventory.Present([]inventory.Taint{}), true
		}, nil, nil},
		"a running apply": {func(n *inventory.Node) { n.Cordoned, n.CordonedBy, n.CordonRun = true, "sam@desk", "live" }, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := joined()
			w.answers(1, good)
			w.editNode(func(n *inventory.Node) {
				n.Labels = map[string]string{inventory.AgentLabel: "tart"}
				tc.edit(n)
			})
			if strings.HasSuffix(name, "silent host") {
				w.change(1, func(h *plan.HostSeen) { h.Trouble = plantest.Code("unreachable").Trouble("no route to host") })
			}
			w.snap.Taken = at.Add(time.Hour)
			w.snap.Lock = &plan.Lock{Run: plan.Run{ID: "live", Who: "ann@desk"}, Alive: true}
			p := w.plan(t)
			h := oneHost(t, p)
			var got, texts []string
			for _, a := range p.Actions {
				if a.Kind == plan.TaintNode || a.Kind == plan.UncordonNode {
					got = append(got, string(a.Kind)+" "+a.Reason.Code.String())
				}
			}
			for _, warning := range h.Warnings {
				if !warning.Drift || len(warning.Fields) == 0 {
					t.Errorf("%s is not drift: %+v", warning.Code, warning)
				}
				got, texts = append(got, warning.Code.String()), append(texts, warning.Text)
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("got %q, want %q: %q", got, tc.want, texts)
			}
			for _, part := range tc.says {
				if !strings.Contains(strings.Join(texts, "\n"), part) {
					t.Errorf("%q lacks %q", texts, part)
				}
			}
		})
	}
}

// TestHeldHostsRaiseNoAlarm: a person who holds a host knows that it does no work.
func TestHeldHostsRaiseNoAlarm(t *testing.T) {
	t.Parallel()
	w := joined()
	w.snap.Taken = time.Date(2026, 3, 2, 11, 42, 0, 0, time.UTC)
	w.editNode(func(n *inventory.Node) {
		n.Cordoned, n.Hold = true, &inventory.Hold{Who: "sam@desk", Reason: "fan", Until: w.snap.Taken.Add(time.Hour)}
	})
	h := oneHost(t, w.plan(t))
	if len(h.Warnings) != 1 || h.Warnings[0].Drift || h.Warnings[0].Code.String() != "node-cordoned" {
		t.Errorf("%+v", h.Warnings)
	}
}
