package plan_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/plan/plantest"
)

// kubeletStep reads a token when its one answer is wrong. The answer ends in the
// virtual machines that are on the host, behind "vms".
type kubeletStep struct {
	desired string
	edit    func(plan.View, *plan.Finding) // what it finds; nil: as it is
}

func (kubeletStep) ID() plan.StepID { return "gamma" }

func (s kubeletStep) MakesNode() bool { return s.desired != "" }

func (kubeletStep) Probes() []plan.Probe { return []plan.Probe{{ID: "gamma.get"}} }

func (s kubeletStep) Wanted() string { return s.desired }

func (s kubeletStep) Diff(v plan.View) plan.Finding {
	a, ok := v.Facts.Get("gamma.get").Get()
	if !ok {
		return plan.Finding{Unread: []plan.Unread{{Probe: "gamma.get", Why: "not read"}}}
	}
	if v.Identity.IsUnread() {
		return plan.Finding{Unread: []plan.Unread{{Probe: "gamma.get", Why: v.Identity.Why()}}}
	}
	state, vms, _ := strings.Cut(a.Stdout, " vms ")
	f := plan.Finding{Facts: state, VMs: inventory.Present(strings.Fields(vms)), NoSession: state == "no session"}
	for _, vm := range strings.Fields(vms) {
		f.Busy = append(f.Busy, plan.Task{VM: vm, Text: "the virtual machine " + vm})
	}
	if v.NewToken {
		f.Changes = []plan.Change{{Reason: plan.Reason{Code: plan.CodeTokenRotation, Text: "t"}, Input: plan.Kubeconfig}}
	}
	if i, _ := v.Identity.Get(); state != s.desired || !i.Complete() {
		f.Changes = []plan.Change{{Reason: plan.Reason{Code: plantest.Code("kubeconfig-differs"), Text: "t"}, Input: plan.Kubeconfig}}
	}
	if s.edit != nil {
		s.edit(v, &f)
	}
	return f
}

// join makes the hosts of macos.m2 Nodes of a cluster that has all they need.
func (w *world) join() {
	w.cfg.Kubernetes = &fleet.Kubernetes{Namespace: "macfleet", LabelPrefix: "acme.dev"}
	w.cfg.Fleets[0].Groups[0].Spec = fleet.Spec{TartKubelet: &fleet.TartKubelet{}}
	w.desired["gamma"] = good
	w.snap.Cluster = inventory.Present(inventory.Cluster{Pods: inventory.Present([]inventory.Pod{}), Identities: inventory.Present([]inventory.Identity{}),
		Join: inventory.Present(inventory.Join{Server: "https://api.acme.dev:6443", CA: "pem"}), Objects: inventory.Present([]inventory.Object{}),
		Machines: inventory.Absent[[]inventory.Machine]()})
}

// observe edits what was seen of the cluster.
func (w *world) observe(edit func(*inventory.Cluster)) {
	c, _ := w.snap.Cluster.Get()
	edit(&c)
	w.snap.Cluster = inventory.Present(c)
}

// identity gives a host a complete identity.
func (w *world) identity(host string) {
	w.observe(func(c *inventory.Cluster) {
		all, _ := c.Identities.Get()
		c.Identities = inventory.Present(append(all, inventory.Identity{Host: host, ServiceAccount: "sa", Secret: "s", Issued: true, Bound: true}))
	})
}

// partly gives the first host an identity and no other host one.
func partly(i inventory.Identity) func(*world) {
	i.Host = first
	return func(w *world) {
		w.observe(func(c *inventory.Cluster) { c.Identities = inventory.Present([]inventory.Identity{i}) })
	}
}

func (w *world) podsUnread() {
	w.observe(func(c *inventory.Cluster) { c.Pods = inventory.Unread[[]inventory.Pod]("forbidden") })
}

func (w *world) noIdentities() {
	w.observe(func(c *inventory.Cluster) { c.Identities = inventory.Present([]inventory.Identity{}) })
}

// noNodes is a cluster without Nodes.
func (w *world) noNodes() { w.snap.Nodes = inventory.Present([]inventory.Node{}) }

func (w *world) pods(pods ...inventory.Pod) {
	w.observe(func(c *inventory.Cluster) { c.Pods = inventory.Present(pods) })
}

func (w *world) objects(objects ...inventory.Object) {
	w.observe(func(c *inventory.Cluster) { c.Objects = inventory.Present(objects) })
}

// answers sets what the host's kubelet step hears.
func (w *world) answers(n int, gamma string) {
	w.change(n, func(h *plan.HostSeen) { h.Facts["gamma.get"] = inventory.Present(plan.Answer{Stdout: gamma}) })
}

// pod is one running on the first host.
func pod(phase string) inventory.Pod {
	return inventory.Pod{Namespace: "ci", Name: "a", Node: first, Phase: phase}
}

// returning are Pods of the first host that come back by themselves.
func returning() []inventory.Pod {
	return []inventory.Pod{{Node: first, Phase: "Running", Controller: "DaemonSet"}, {Node: first, Phase: "Running", Mirror: true}}
}

// stuckPod is one that only the kubelet's finalizer holds.
func stuckPod(name, phase string) inventory.Pod {
	return inventory.Pod{Namespace: "ci", Name: name, UID: "u-" + name, Node: first, Phase: phase, Controller: "ReplicaSet",
		Finalizers: []string{inventory.VMFinalizer}, Overdue: true}
}

// joined is a converged host of a cluster.
func joined() *world {
	w := newWorld(1, 0, 0)
	w.join()
	w.member("macos", "m2", 1)
	m := w.marker("macos", "m2", 1).With("gamma", plan.DigestOf(good, good))
	w.marked(1, m)
	w.answers(1, good+" vms ci-old")
	w.identity(first)
	w.node(1, first, inventory.Ready)
	return w
}

func (w *world) editNode(edit func(*inventory.Node)) {
	list, _ := w.snap.Nodes.Get()
	list = slices.Clone(list)
	edit(&list[0])
	w.snap.Nodes = inventory.Present(list)
}

// expectOnFirst compares the actions of a plan, which are all on the first host.
func expectOnFirst(t *testing.T, want []string, p *plan.Plan) {
	t.Helper()
	expect(t, "actions", each(want, func(line string) string { return first + " " + line }), lines(p))
	for _, a := range p.Actions {
		if a.Refusal != nil {
			explained(t, a.Refusal)
		}
	}
}

// TestJoinActions: what is done in the cluster for a host, and where among its
// steps.
func TestJoinActions(t *testing.T) {
	t.Parallel()
	const ready = inventory.Ready
	other := serverProvider(9)
	for _, tc := range []struct {
		name string
		edit func(*world)
		want []string
	}{
		{"all is well", func(*world) {}, nil},
		{"no identity, verified before", func(w *world) { partly(inventory.Identity{})(w) }, []string{"identity token-revoked D", "gamma config-changed P"}},
		{"half an identity", partly(inventory.Identity{ServiceAccount: "sa", Secret: "s", Issued: true}), []string{"identity token-revoked D", "gamma config-changed P"}},
		{"a binding of an earlier version", partly(inventory.Identity{ServiceAccount: "sa", Secret: "s", Issued: true, Bound: true, Former: true}), []string{"identity binding-renamed P"}},
		{"a binding of an earlier version that gives no rights", partly(inventory.Identity{ServiceAccount: "sa", Secret: "s", Issued: true, Former: true}),
			[]string{"identity token-revoked D", "gamma config-changed P"}},
		{"no identity, never verified", func(w *world) {
			partly(inventory.Identity{})(w)
			w.marked(1, w.marker("macos", "m2", 1))
		}, []string{"identity identity-missing P", "gamma first-setup P"}},
		{"no marker", func(w *world) {
			partly(inventory.Identity{})(w)
			w.unmark(1)
		}, []string{"marker marker-missing D", "identity identity-missing P", "gamma kubeconfig-differs ?"}},
		{"identities unread", func(w *world) {
			w.observe(func(c *inventory.Cluster) { c.Identities = inventory.Unread[[]inventory.Identity]("forbidden") })
		}, nil},
		{"Node without a provider id", func(w *world) { w.editNode(func(n *inventory.Node) { n.ProviderID = "" }); w.answers(1, "old") },
			[]string{"gamma kubeconfig-differs D", "provider-id empty-provider-id D"}},
		{"Node of another server", func(w *world) { w.editNode(func(n *inventory.Node) { n.ProviderID = other }); w.answers(1, "old") },
			[]string{"node different-provider-id D", "gamma kubeconfig-differs D"}},
		{"Node of another server, with a Pod", func(w *world) {
			w.editNode(func(n *inventory.Node) { n.ProviderID = other })
			w.pods(pod("Running"))
		}, []string{"node different-provider-id D !pods-on-node"}},
		{"Node of another server, with what comes back by itself", func(w *world) {
			w.editNode(func(n *inventory.Node) { n.ProviderID = other })
			w.pods(append(returning(), inventory.Pod{Node: first, Phase: "Failed"}, inventory.Pod{Node: "elsewhere", Phase: "Running"})...)
		}, []string{"node different-provider-id D"}},
		{"Node of another server, Pods unread", func(w *world) {
			w.editNode(func(n *inventory.Node) { n.ProviderID = other })
			w.podsUnread()
		}, []string{"node different-provider-id D !pods-unread"}},
		{"no Node", (*world).noNodes, nil},
		{"a host that joins nothing", func(w *world) {
			w.cfg.Fleets[0].Groups[0].Spec = fleet.Spec{}
			delete(w.desired, "gamma")
			w.editNode(func(n *inventory.Node) { n.ProviderID = "" })
			w.pods(stuckPod("a", "Failed"))
			partly(inventory.Identity{})(w)
		}, nil},
		{"limited to another step", func(w *world) {
			w.sel.Steps = []plan.StepID{"alpha"}
			partly(inventory.Identity{})(w)
			w.editNode(func(n *inventory.Node) { n.ProviderID = "" })
			w.pods(stuckPod("a", "Failed"))
		}, nil},
		{"limited to its step", func(w *world) {
			w.sel.Steps = []plan.StepID{"gamma"}
			partly(inventory.Identity{})(w)
			w.editNode(func(n *inventory.Node) { n.ProviderID = "" })
		}, []string{"identity token-revoked D", "gamma config-changed P"}},
		{"its own Node and a stale one", func(w *world) { w.node(1, "acme-old", ready) }, nil},
		{"a Node of another name", func(w *world) { w.editNode(func(n *inventory.Node) { n.Name = "acme-old" }) }, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			w := joined()
			tc.edit(w)
			p := w.plan(t)
			expectOnFirst(t, tc.want, p)
		})
	}
}

// TestMisjoined: a machine with two Nodes, or with one under another name, is refused with
// what to do.
func TestMisjoined(t *testing.T) {
	t.Parallel()
	for code, edit := range map[string]func(*world){
		"node-twice":        func(w *world) { w.node(1, "acme-old", inventory.NotReady) },
		"node-name-differs": func(w *world) { w.editNode(func(n *inventory.Node) { n.Name = "acme-old" }) },
	} {
		w := joined()
		edit(w)
		h := oneHost(t, w.plan(t))
		explained(t, h.Refused)
		if h.Refused == nil || h.Refused.Code.String() != code {
			t.Errorf("%s: refused %+v", code, h.Refused)
		}
	}
}

// TestReleasePods: only what only the kubelet's finalizer holds, and only when
// nothing can run for it any more.
func TestReleasePods(t *testing.T) {
	t.Parallel()
	ended, running, old := stuckPod("ended", "Succeeded"), stuckPod("busy", "Running"), stuckPod("old", "Running")
	due, held, mirror, elsewhere := ended, ended, ended, ended
	due.Overdue, held.Finalizers, mirror.Mirror, elsewhere.Node = false, append(held.Finalizers, "acme.dev/keep"), true, "acme-other"
	built := ended
	built.Name, built.Finalizers = "built", []string{inventory.VMFinalizer, "tart-kubelet.acme.dev/vm-cleanup"}
	alike := ended
	alike.Finalizers = []string{"other-kubelet.acme.dev/vm-cleanup"}
	noNode := (*world).noNodes
	unreachable := func(w *world) { w.away(1, plan.CodeUnreachable) }
	for _, tc := range []struct {
		name string
		edit func(*world)
		pods []inventory.Pod
		want string
	}{
		{"ended", func(*world) {}, []inventory.Pod{ended, running}, "ended"},
		{"ended, and held by kubelets of two builds", func(*world) {}, []inventory.Pod{built}, "built"},
		{"held by a foreign finalizer", func(*world) {}, []inventory.Pod{alike}, ""},
		{"not yet due", func(*world) {}, []inventory.Pod{due}, ""},
		{"held by another too", func(*world) {}, []inventory.Pod{held}, ""},
		{"the kubelet's own", func(*world) {}, []inventory.Pod{mirror}, ""},
		{"of a Node that is no host's", func(*world) {}, []inventory.Pod{elsewhere}, ""},
		{"Node gone, its machine too", noNode, []inventory.Pod{running, old}, "busy"},
		{"Node gone, host silent", func(w *world) { noNode(w); unreachable(w) }, []inventory.Pod{running, ended}, "ended"},
		{"Node gone, machines not shown", func(w *world) {
			noNode(w)
			w.change(1, func(h *plan.HostSeen) { delete(h.Facts, "gamma.get") })
		}, []inventory.Pod{running}, ""},
		{"Node gone, host another's", func(w *world) {
			noNode(w)
			w.mark(1, func(m *plan.Marker) { m.Serial = "another" })
		}, []inventory.Pod{running, ended}, ""},
		{"host silent", unreachable, []inventory.Pod{running, ended}, "ended"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			w := joined()
			tc.edit(w)
			w.pods(tc.pods...)
			p := w.plan(t)
			var got []string
			for _, a := range p.Actions {
				if a.Kind != plan.ReleasePods {
					continue
				}
				if a.Refusal != nil || a.Reason.Code.String() != "stuck-terminating-pods" || !a.Origin.Drift {
					t.Errorf("%+v", a)
				}
				for _, p := range a.Pods {
					got = append(got, p.Name)
				}
			}
			if strings.Join(got, " ") != tc.want {
				t.Errorf("released %q, want %q", got, tc.want)
			}
			if runs := len(p.Runnable()); (runs > 0) != (tc.want != "") {
				t.Errorf("%d hosts are worked on", runs)
			}
		})
	}
}

// TestKeepObjects: actions without a host come first, in a separate list, and not in a run
// that is limited to some hosts.
func TestKeepObjects(t *testing.T) {
	t.Parallel()
	missing := inventory.Object{Kind: "Secret", Namespace: "default", Name: "acme-kubeconfig", State: inventory.ObjectMissing, Why: "it is missing"}
	differs := inventory.Object{Kind: "ClusterRole", Name: "acme-capi", State: inventory.ObjectDiffers, Why: "rules"}
	kept := inventory.Object{Kind: "Namespace", Name: "macfleet", State: inventory.ObjectKept, Prepared: true}
	prepared := inventory.Object{Kind: "ClusterRole", Name: "macfleet-tart-kubelet", State: inventory.ObjectDiffers, Why: "rules", Prepared: true}
	w := joined()
	w.objects(kept, missing, differs, prepared)
	w.answers(1, "old")
	p := w.plan(t)
	expect(t, "actions", []string{" object object-missing D", " object object-differs D", " object object-differs DP !cluster-not-prepared",
		first + " gamma kubeconfig-differs D"}, lines(p))
	work := p.Runnable()
	if len(work) != 2 || len(work[0]) != 2 || *work[0][0].Object != missing || work[1][0].Host != first {
		t.Errorf("runnable %+v", work)
	}
	expect(t, "summary", plan.Summary{Change: 3, Refused: 1, Drift: 4, Pending: 1, Hosts: 1}, p.Summarise())
	w.sel.On = only("fleet=macos")
	expect(t, "actions of a limited run", []string{first + " gamma kubeconfig-differs D"}, lines(w.plan(t)))
}

// TestClusterUnread: what could not be read and hosts need makes a plan
// incomplete, and asks for nothing.
func TestClusterUnread(t *testing.T) {
	t.Parallel()
	w := joined()
	w.podsUnread()
	p := w.plan(t)
	expect(t, "unread", []plan.Unread{{Probe: "cluster.pods", Why: "forbidden"}}, p.Unread)
	if s := p.Summarise(); s.Complete() || s.Compared() || s.Changes() != 0 {
		t.Errorf("summary %+v", s)
	}
	w.cfg.Fleets[0].Groups[0].Spec = fleet.Spec{}
	delete(w.desired, "gamma")
	if p = w.plan(t); len(p.Unread) > 0 {
		t.Errorf("no host joins, and unread is %v", p.Unread)
	}
	w = joined()
	w.snap.Cluster = inventory.Unread[inventory.Cluster]("no rights")
	expect(t, "unread", []plan.Unread{{Probe: "cluster", Why: "no rights"}}, w.plan(t).Unread)
}

// TestFailingPods: failing Pods are counted on a Ready Node too, and linked to a missing session.
func TestFailingPods(t *testing.T) {
	t.Parallel()
	failed := inventory.Pod{Namespace: "ci", Name: "a", Node: first, Phase: "Pending", Reason: inventory.CreateFailed}
	for answer, want := range map[string]string{good: "of 1 Pod could not be created", "no session": "no user is logged in"} {
		w := joined()
		w.desired["gamma"] = answer
		w.answers(1, answer)
		w.pods(failed, stuckPod("b", "Running"))
		h := oneHost(t, w.plan(t))
		if len(h.Warnings) != 1 || h.Warnings[0].Code.String() != "tart-create-failed" || h.Warnings[0].Step != "" || !strings.Contains(h.Warnings[0].Text, want) {
			t.Errorf("%s: warnings %+v", answer, h.Warnings)
		}
		explained(t, &h.Warnings[0].Trouble)
		if h.PodsFailing() != 1 {
			t.Errorf("%d Pods fail", h.PodsFailing())
		}
	}
}

// TestViewOfAJoiningHost: a step sees all that its host is to the cluster.
func TestViewOfAJoiningHost(t *testing.T) {
	t.Parallel()
	w := joined()
	w.sel.Rollback = true
	w.pods(stuckPod("b", "Running"), inventory.Pod{Node: "elsewhere"})
	h := oneHost(t, w.plan(t))
	v := h.View("gamma")
	i, _ := v.Identity.Get()
	j, _ := v.Join.Get()
	pods, _ := v.Pods.Get()
	if i.Host != first || j.CA != "pem" || len(pods) != 1 || !v.Rollback || !v.Verified || v.Host.LabelPrefix != "acme.dev" {
		t.Errorf("view %+v", v)
	}
	w.sel.Rollback = false
	if h := oneHost(t, w.plan(t)); h.View("gamma").Rollback {
		t.Error("a run that rolls nothing back asks for it")
	}
}

// TestForeignBindings: a foreign binding that is named as a host's was in earlier versions is reported at that host, and nothing is done about it.
func TestForeignBindings(t *testing.T) {
	t.Parallel()
	w := joined()
	w.observe(func(c *inventory.Cluster) {
		for _, host := range []string{first, "another"} {
			c.Foreign = append(c.Foreign, inventory.Object{Kind: "ClusterRoleBinding", Name: inventory.FormerBindingOf(host), State: inventory.ObjectForeign, Why: "its label"})
		}
	})
	p := w.plan(t)
	warned := p.Hosts[0].Warnings
	if len(p.Actions) != 0 || len(p.Warnings) != 0 || len(warned) != 1 || warned[0].Code.String() != "binding-foreign" || warned[0].Drift {
		t.Errorf("actions %+v, warnings %+v, of the host %+v", p.Actions, p.Warnings, warned)
	}
	if want := "kubectl delete clusterrolebinding tart-kubelet-" + first; !strings.HasSuffix(warned[0].Remedy, want) {
		t.Errorf("remedy %q", warned[0].Remedy)
	}
}
