package plan_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
)

// left is a host whose configuration no longer makes it a Node.
func left() *world {
	w := joined()
	w.cfg.Fleets[0].Groups[0].Spec = fleet.Spec{}
	delete(w.desired, "gamma")
	return w
}

// TestLeaving: a host without a kubelet leaves the cluster too, its Node first: only
// the identity shows that the Node was macfleet's doing.
func TestLeaving(t *testing.T) {
	t.Parallel()
	whole := []string{"delete-node block-removed P", "revoke block-removed P"}
	for _, tc := range []struct {
		name string
		edit func(*world)
		want []string
	}{
		{"Node and identity", func(*world) {}, whole},
		{"killed after the Node", (*world).noNodes, whole[1:]},
		{"killed after the binding", partly(inventory.Identity{ServiceAccount: "sa", Secret: "s", Issued: true}), whole},
		{"nothing of macfleet's", partly(inventory.Identity{}), nil},
		{"a Node that a foreign kubelet made", (*world).noIdentities, nil},
		{"a Node without a provider id", func(w *world) { w.editNode(func(n *inventory.Node) { n.ProviderID = "" }) },
			[]string{whole[0] + " !node-not-proven"}},
		{"a running Pod", func(w *world) { w.pods(pod("Pending")) },
			[]string{whole[0] + " !pods-on-node"}},
		{"what comes back by itself", func(w *world) { w.pods(returning()...) }, whole},
		{"a host that is silent", func(w *world) { w.away(1, plan.CodeUnreachable) }, nil},
		{"Pods that are stuck", func(w *world) { w.pods(stuckPod("a", "Succeeded")) }, append(slices.Clone(whole), "pods stuck-terminating-pods D")},
		{"Pods that are stuck, and has left", func(w *world) {
			w.pods(stuckPod("a", "Succeeded"), stuckPod("b", "Running"))
			w.noIdentities()
			w.noNodes()
		}, []string{"pods stuck-terminating-pods D"}},
		{"Pods of a foreign kubelet", func(w *world) {
			w.pods(stuckPod("a", "Succeeded"))
			w.noIdentities()
		}, nil},
		{"a host without root", func(w *world) {
			w.change(1, func(h *plan.HostSeen) {
				h.Root = false
				h.Facts["alpha.get"] = inventory.Unread[plan.Answer](plan.NeedsRoot)
			})
		}, nil},
		{"a step that is unread", func(w *world) {
			w.change(1, func(h *plan.HostSeen) { h.Facts["alpha.get"] = inventory.Unread[plan.Answer]("lost") })
		}, nil},
		{"limited to a step", func(w *world) { w.sel.Steps = []plan.StepID{"alpha"} }, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			w := left()
			tc.edit(w)
			expectOnFirst(t, tc.want, w.plan(t))
		})
	}
}

// TestOrphanedIdentities: only what certainly has no host any more is revoked, and
// in no run that is limited.
func TestOrphanedIdentities(t *testing.T) {
	t.Parallel()
	const gone = "acme-prod-macos-m2-fffff"
	for _, tc := range []struct {
		name, host    string
		edit          func(*world)
		revoked, said bool
	}{
		{"server gone", gone, func(*world) {}, true, false},
		{"a Node is left", gone, func(w *world) {
			list, _ := w.snap.Nodes.Get()
			w.snap.Nodes = inventory.Present(append(slices.Clone(list), inventory.Node{Name: gone}))
		}, false, true},
		{"a key is pinned", gone, func(w *world) { w.snap.Pins = append(w.snap.Pins, plan.Pin{ServerID: "0", Name: gone, Key: "k"}) }, false, true},
		{"its server has another name", gone, func(w *world) { w.server(7, "someones-mac").ID = "fffff000-0000-4000-8000-000000000000" }, false, true},
		{"an adopted host's", "acme-legacy-01", func(*world) {}, false, true},
		{"limited to hosts", gone, func(w *world) { w.sel.Steps = []plan.StepID{"alpha"} }, false, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			w := joined()
			w.identity(tc.host)
			tc.edit(w)
			p := w.plan(t)
			revoked := slices.ContainsFunc(p.Actions, func(a plan.Action) bool { return a.Kind == plan.RevokeHost && a.Host == tc.host && a.OfCluster() })
			said := slices.ContainsFunc(p.Warnings, func(x plan.Trouble) bool {
				return x.Code.String() == "identity-left-over" && strings.Contains(x.Remedy, "kubectl -n macfleet-agents delete secret/tart-kubelet-"+tc.host+"-token")
			})
			if revoked != tc.revoked || said != tc.said {
				t.Errorf("revoked %t, said %t: %+v %+v", revoked, said, p.Actions, p.Warnings)
			}
		})
	}
}

// TestClusterAPI: a Machine that works is another owner, unless the configuration
// connects the Cluster API: then it has to be bound.
func TestClusterAPI(t *testing.T) {
	t.Parallel()
	bound := inventory.Machine{Namespace: "default", Name: "m-1", NodeRef: first, Deployment: "macos", Available: true, Infrastructure: "samm/m-1"}
	edited := func(edit func(*inventory.Machine)) inventory.Machine {
		m := bound
		edit(&m)
		return m
	}
	for _, tc := range []struct {
		name             string
		capi             bool
		machine          inventory.Machine
		edit             func(*world)
		refused, warning string
	}{
		{"it works", false, bound, nil, "kubectl annotate -n default machine/m-1 samm/m-1 cluster.x-k8s.io/paused=true", ""},
		{"all of it is paused", false, edited(func(m *inventory.Machine) { m.Paused, m.InfrastructurePaused = true, true }), nil, "", ""},
		{"the provider's part is paused", false, edited(func(m *inventory.Machine) { m.InfrastructurePaused = true }), nil, "", ""},
		{"only the Machine is paused", false, edited(func(m *inventory.Machine) { m.Paused = true }), nil, "samm/m-1 cluster.x-k8s.io/paused=true", ""},
		{"whether it is paused cannot be read", false, edited(func(m *inventory.Machine) { m.InfrastructureUnread = "forbidden" }), nil, "macfleet init cluster", ""},
		{"another server's", false, edited(func(m *inventory.Machine) { m.ProviderID = "scw-applesilicon://fr-par-1/x" }), nil, "", ""},
		{"bound and available", true, bound, nil, "", ""},
		{"without a deployment", true, edited(func(m *inventory.Machine) { m.Deployment, m.Available = "", false }), nil, "", ""},
		{"not bound", true, edited(func(m *inventory.Machine) { m.NodeRef = "" }), nil, "", "kubectl describe -n default machine m-1"},
		{"bound to another", true, edited(func(m *inventory.Machine) { m.NodeRef = "acme-old" }), nil, "", "kubectl describe -n default machine m-1"},
		{"not available", true, edited(func(m *inventory.Machine) { m.Available = false }), nil, "", "machinedeployment macos"},
		{"not bound and paused", true, edited(func(m *inventory.Machine) { m.NodeRef, m.Paused = "", true }), nil, "", "paused-"},
		{"no provider id", true, edited(func(m *inventory.Machine) { m.NodeRef = "" }),
			func(w *world) { w.editNode(func(n *inventory.Node) { n.ProviderID = "" }) }, "", "macfleet apply --on name=" + first},
		{"no connection", true, edited(func(m *inventory.Machine) { m.NodeRef = "" }), func(w *world) {
			w.objects(inventory.Object{Kind: "Secret", Namespace: "default", Name: "macs-kubeconfig", State: inventory.ObjectMissing})
		}, "", "macfleet apply"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			w := joined()
			if tc.capi {
				w.cfg.Kubernetes.CAPI = &fleet.CAPI{Cluster: "macs", Namespace: "default"}
			}
			if tc.machine.ProviderID == "" {
				tc.machine.ProviderID = serverProvider(1)
			}
			w.observe(func(c *inventory.Cluster) { c.Machines = inventory.Present([]inventory.Machine{tc.machine}) })
			if tc.edit != nil {
				tc.edit(w)
			}
			h := oneHost(t, w.plan(t))
			if (h.Refused != nil) != (tc.refused != "") || h.Refused != nil && (h.Refused.Code.String() != "owned-by-cluster-api" || !strings.Contains(h.Refused.Remedy, tc.refused)) {
				t.Errorf("refused %+v", h.Refused)
			}
			if (len(h.Warnings) > 0) != (tc.warning != "") || len(h.Warnings) > 0 && (h.Warnings[0].Code.String() != "machine-not-bound" || !strings.Contains(h.Warnings[0].Remedy, tc.warning)) {
				t.Errorf("warnings %+v", h.Warnings)
			}
		})
	}
}

// TestClusterAPIElsewhere: a Node that names a Machine which this cluster does not have belongs to controllers in
// another one.
func TestClusterAPIElsewhere(t *testing.T) {
	t.Parallel()
	id := serverProvider(1)
	paused := inventory.Machine{Namespace: "macs", Name: "m-1", ProviderID: id, Paused: true, InfrastructurePaused: true}
	for _, tc := range []struct {
		name     string
		capi     bool
		machines inventory.Seen[[]inventory.Machine]
		refused  string // in the text; empty: not refused
	}{
		{"no Cluster API here", false, inventory.Absent[[]inventory.Machine](), "not in this cluster"},
		{"another Machine here", false, inventory.Present([]inventory.Machine{{Namespace: "default", Name: "m-1", ProviderID: id, InfrastructurePaused: true}}), "not in this cluster"},
		{"the Machines here are unread", false, inventory.Unread[[]inventory.Machine]("forbidden"), "cannot be read: forbidden"},
		{"its own Machine, paused", false, inventory.Present([]inventory.Machine{paused}), ""},
		{"with a capi block", true, inventory.Absent[[]inventory.Machine](), ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			w := joined()
			if tc.capi {
				w.cfg.Kubernetes.CAPI = &fleet.CAPI{Cluster: "macs", Namespace: "default"}
			}
			w.observe(func(c *inventory.Cluster) { c.Machines = tc.machines })
			w.editNode(func(n *inventory.Node) { n.Machine = "macs/m-1" })
			h := oneHost(t, w.plan(t))
			switch r := h.Refused; {
			case (r != nil) != (tc.refused != ""):
				t.Errorf("refused %+v", r)
			case r != nil && (r.Code.String() != "other-controller" || !strings.Contains(r.Text, tc.refused) || !strings.Contains(r.Remedy, "kubectl annotate node "+first+" cluster.x-k8s.io/machine-")):
				t.Errorf("refused %+v", r)
			}
		})
	}
}

// TestPodNamespaces: a Pod where the kubelet may write nothing would wait for ever.
func TestPodNamespaces(t *testing.T) {
	t.Parallel()
	w := joined()
	w.cfg.Kubernetes.PodNamespaces = []string{"ci"}
	w.pods(pod("Running"), inventory.Pod{Namespace: "kube-system", Name: "csi", Node: first, Controller: "DaemonSet"})
	if h := oneHost(t, w.plan(t)); len(h.Warnings) != 0 {
		t.Errorf("warned of Pods in place: %+v", h.Warnings)
	}
	w.pods(inventory.Pod{Namespace: "web", Name: "a", Node: first, Phase: "Pending"})
	if h := oneHost(t, w.plan(t)); len(h.Warnings) != 1 || h.Warnings[0].Code.String() != "pod-namespace-not-listed" {
		t.Errorf("warnings %+v", h.Warnings)
	}
}
