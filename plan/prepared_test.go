package plan_test

import (
	"strings"
	"testing"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
)

// drainStep is a step whose one change drains its host.
type drainStep struct{ fakeStep }

func (s drainStep) Diff(v plan.View) plan.Finding {
	f := s.fakeStep.Diff(v)
	for i := range f.Changes {
		f.Changes[i].Disruption = plan.Drain
	}
	return f
}

// prepared returns an object that init cluster makes, as it is missing.
func prepared(kind, namespace, name string, gates inventory.Gate) inventory.Object {
	return inventory.Object{Kind: kind, Namespace: namespace, Name: name, State: inventory.ObjectMissing, Prepared: true, Gates: gates}
}

// TestUnprepared lets the cluster lack one object after the other, beside a host on which
// everything has drifted: its settings are compared and repaired all the same, and only
// what cannot end well without the object is refused.
func TestUnprepared(t *testing.T) {
	t.Parallel()
	agents := prepared("ClusterRole", "", "macfleet-tart-kubelet", inventory.GateNodes)
	pods := prepared("ClusterRole", "", "macfleet-tart-kubelet-pods", inventory.GatePods)
	inCI := prepared("RoleBinding", "ci", "macfleet-tart-kubelet-acme", inventory.GatePods)
	own := prepared("Role", "macfleet", "macfleet", inventory.GateNothing)
	kept, void, other := agents, agents, agents
	kept.State = inventory.ObjectKept
	void.State, void.Why, void.Void = inventory.ObjectDiffers, "rules", true
	other.State, other.Why = inventory.ObjectDiffers, "rules"
	for _, tc := range []struct {
		name    string
		object  inventory.Object
		pod     bool
		refused string
	}{
		{"nothing", kept, true, ""},
		{"the role of agents", agents, false, "identity node beta gamma"},
		{"the role of agents without rules", void, false, "identity node beta gamma"},
		{"the role of agents with other rules", other, true, ""},
		{"what ends Pods, on a host without any", pods, false, ""},
		{"what ends Pods", pods, true, "beta"},
		{"what ends Pods of the namespace", inCI, true, "beta"},
		{"what ends Pods of another namespace", prepared("RoleBinding", "web", "macfleet-tart-kubelet-acme", inventory.GatePods), true, ""},
		{"macfleet's own role", own, true, ""},
		{"what init cluster does not make", inventory.Object{Kind: "Secret", Name: "s", State: inventory.ObjectMissing, Gates: inventory.GateNodes}, true, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			w := joined()
			w.objects(tc.object)
			if tc.pod { // at work, but for the Node's sake not on it
				w.pods(inventory.Pod{Namespace: "ci", Name: "a", Node: first, Phase: "Running", Controller: "DaemonSet"})
			}
			partly(inventory.Identity{})(w)
			w.editNode(func(n *inventory.Node) {
				n.ProviderID = inventory.Server{ID: serverID(9), Zone: "fr-par-1"}.ProviderID()
			})
			w.change(1, func(h *plan.HostSeen) {
				h.Facts["alpha.get"], h.Facts["beta.get"] = inventory.Present(plan.Answer{Stdout: "bad"}), inventory.Present(plan.Answer{Stdout: "bad"})
			})
			w.answers(1, "old")
			w.plan(t) // asks the host
			p := plan.Compute(w.cfg, func(h fleet.Host) []plan.Step {
				out := w.steps(h)
				out[1] = drainStep{out[1].(fakeStep)}
				return out
			}, w.snap, w.sel)
			h := oneHost(t, p)
			if h.Refused != nil || !h.Asked {
				t.Fatalf("the host is not compared: %+v", h.Refused)
			}
			var refused []string
			for _, a := range p.Actions {
				if a.OfCluster() {
					continue
				}
				if a.Step == "alpha" && (a.Refusal != nil || !a.Origin.Drift) {
					t.Errorf("the drifted setting: %+v", a)
				}
				if a.Refusal == nil {
					continue
				}
				if explained(t, a.Refusal); a.Refusal.Code != plan.CodeClusterNotPrepared {
					t.Errorf("%s is refused by %s", a.Kind, a.Refusal.Code)
				}
				what := string(a.Kind)
				if a.Kind == plan.RunStep {
					what = string(a.Step)
				}
				refused = append(refused, what)
			}
			if got := strings.Join(refused, " "); got != tc.refused {
				t.Errorf("refused %q, want %q", got, tc.refused)
			}
		})
	}
}
