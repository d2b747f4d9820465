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

// TestUnprepared lets the cluster lack one object after the other, with a host on which
// everything has drifted: its settings are compared and repaired anyway, and only
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
			if tc.pod { // running, but for the Node's sake not on it
				w.pods(inventory.Pod{Namespace: "ci", Name: "a", Node: first, Phase: "Running", Controller: "DaemonSet"})
			}
			partly(inventory.Identity{})(w)
			w.editNode(func(n *inventory.Node) { n.ProviderID = serverProvider(9) })
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
			if h.Refused != nil || !h.Compared {
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
				refused = append(refused, what(a))
			}
			if got := strings.Join(refused, " "); got != tc.refused {
				t.Errorf("refused %q, want %q", got, tc.refused)
			}
		})
	}
}

// TestUnpreparedClaims: no server is claimed for a cluster in which its kubelet could not work.
func TestUnpreparedClaims(t *testing.T) {
	t.Parallel()
	w := joined()
	w.cfg.Fleets[0].Groups[0].Replicas = 2
	w.free(9)
	w.objects(prepared("ClusterRole", "", "macfleet-tart-kubelet", inventory.GateNodes))
	p := w.plan(t)
	for _, a := range p.Actions {
		if a.ServerID == serverID(9) && codeOf(a.Refusal) != "cluster-not-prepared" {
			t.Errorf("%s of the pool server is refused by %q", a.Kind, codeOf(a.Refusal))
		}
	}
	if len(claimed(p)) != 1 {
		t.Errorf("claims %v, rejected %v", claimed(p), rejected(p))
	}
}

// TestOriginOfObjects distinguishes an object that someone deleted or changed from one that the
// configuration or the version wants otherwise.
func TestOriginOfObjects(t *testing.T) {
	t.Parallel()
	fresh := func(w *world) {
		w.noIdentities()
		w.noNodes()
		w.marked(1, w.marker("macos", "m2", 1))
	}
	after := func(edit func(*world)) func(*world) { return func(w *world) { fresh(w); edit(w) } }
	identities := func(w *world) { w.identity(first) }
	node := func(w *world) { w.node(1, first, inventory.NotReady) }
	proven := func(w *world) { w.marked(1, w.marker("macos", "m2", 1).With("gamma", plan.DigestOf(good, good))) }
	missing, differs := inventory.ObjectMissing, inventory.ObjectDiffers
	const gone, changed = "prepared-object-missing", "prepared-object-changed"
	for _, tc := range []struct {
		name  string
		edit  func(*world)
		state inventory.ObjectState
		made  inventory.Made
		void  bool
		want  string
	}{
		{"a cluster that was never prepared", fresh, missing, inventory.MadeUnknown, false, "object-missing P"},
		{"prepared by another configuration", fresh, differs, inventory.MadeUnknown, false, "object-differs P"},
		{"missing, and an identity exists", after(identities), missing, inventory.MadeUnknown, false, gone + " D"},
		{"missing, and a Node exists", after(node), missing, inventory.MadeUnknown, false, gone + " D"},
		{"missing, and a marker records a kubelet", after(proven), missing, inventory.MadeUnknown, false, gone + " D"},
		{"missing, noted as wanted", fresh, missing, inventory.MadeAsWanted, false, gone + " D"},
		{"missing, noted otherwise", fresh, missing, inventory.MadeOtherwise, false, gone + " DP"},
		{"not served any more", fresh, inventory.ObjectUnserved, inventory.MadeAsWanted, false, gone + " D"},
		{"not served any more, noted otherwise", fresh, inventory.ObjectUnserved, inventory.MadeOtherwise, false, gone + " DP"},
		{"missing, never made", identities, missing, inventory.MadeNever, false, "object-missing P"},
		{"changed by hand", identities, differs, inventory.MadeAsWanted, false, changed + " D"},
		{"changed by hand, and wanted otherwise", identities, differs, inventory.MadeMoved, false, changed + " DP"},
		{"wanted otherwise", identities, differs, inventory.MadeOtherwise, false, "object-differs P"},
		{"differs, and nothing is noted", identities, differs, inventory.MadeUnknown, false, "object-differs DP"},
		{"empty, and nothing is noted", identities, differs, inventory.MadeUnknown, true, changed + " DP"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			w := joined()
			tc.edit(w)
			o := prepared("ClusterRole", "", "macfleet-tart-kubelet", inventory.GateNothing)
			o.State, o.Made, o.Void = tc.state, tc.made, tc.void
			w.objects(o)
			if got, _, _ := strings.Cut(lines(w.plan(t))[0], " !"); got != " object "+tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

// TestDisconnected: what connects the Cluster API has gone where a part of it is left or a
// Machine is bound, and was never made where nothing is.
func TestDisconnected(t *testing.T) {
	t.Parallel()
	secret := inventory.Object{Kind: "Secret", Namespace: "default", Name: "acme-kubeconfig", State: inventory.ObjectMissing}
	rest := inventory.Object{Kind: "ServiceAccount", Namespace: "macfleet", Name: "capi-remote", State: inventory.ObjectKept}
	for want, edit := range map[string]func(*world){
		" object object-missing P": func(w *world) { w.objects(secret) },
		" object object-missing D": func(w *world) { w.objects(secret, rest) },
	} {
		w := joined()
		edit(w)
		expect(t, "actions", []string{want}, lines(w.plan(t)))
	}
	w := joined()
	w.objects(secret)
	w.observe(func(c *inventory.Cluster) {
		c.Machines = inventory.Present([]inventory.Machine{{Name: "m", NodeRef: "n"}})
	})
	expect(t, "actions", []string{" object object-missing D"}, lines(w.plan(t)))
}

// TestUnreadObject: what macfleet's account may not read is reported, and nothing is done about it.
func TestUnreadObject(t *testing.T) {
	t.Parallel()
	w := joined()
	w.objects(inventory.Object{Kind: "Secret", Namespace: "web", Name: "acme-kubeconfig", State: inventory.ObjectUnread, Prepared: true, Why: "W"})
	p := w.plan(t)
	if len(p.Actions) != 0 || len(p.Warnings) != 1 || p.Warnings[0].Code.String() != "object-unread" || !strings.Contains(p.Warnings[0].Text, "Secret web/acme-kubeconfig still exists: W") {
		t.Errorf("%v, %+v", lines(p), p.Warnings)
	}
}

// TestReleaseInListedNamespaces: Pods of a namespace that is not listed any more are shown,
// and refused: macfleet's account may not change them.
func TestReleaseInListedNamespaces(t *testing.T) {
	t.Parallel()
	w := joined()
	w.cfg.Kubernetes.PodNamespaces = []string{"ci"}
	other := stuckPod("b", "Failed")
	other.Namespace = "web"
	w.pods(stuckPod("a", "Failed"), other)
	p := w.plan(t)
	expect(t, "actions", []string{first + " pods stuck-terminating-pods D", first + " pods stuck-terminating-pods D !pod-namespace-not-listed"}, lines(p))
	if len(p.Actions) == 2 && (len(p.Actions[0].Pods) != 1 || p.Actions[1].Pods[0].Name != "b") {
		t.Errorf("%+v", p.Actions)
	}
}
