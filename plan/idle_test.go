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

// hurtful is a step whose change would interrupt work on the host.
type hurtful struct {
	busy    []plan.Task
	removes bool
}

func (hurtful) ID() plan.StepID { return "alpha" }

func (hurtful) Probes() []plan.Probe { return nil }

func (hurtful) Wanted() string { return "2" }

func (h hurtful) Diff(plan.View) plan.Finding {
	return plan.Finding{Facts: "1", Busy: h.busy, Changes: []plan.Change{{Reason: plan.Reason{Code: plantest.Code("old")}, Disruption: plan.Drain, Removes: h.removes}}}
}

// TestIdle: work that a drain ends is drained, any other is waited for, and a host named by --force-busy is not waited for.
func TestIdle(t *testing.T) {
	t.Parallel()
	vm, push := plan.Task{VM: "ci-a", Text: "tart run ci-a (pid 7)"}, plan.Task{Text: "tart push image (pid 8)"}
	pod := inventory.Pod{Namespace: "ci", Name: "a", Node: first, Phase: "Running", Controller: "ReplicaSet"}
	csi := inventory.Pod{Namespace: "kube-system", Name: "csi", Node: first, Phase: "Running", Controller: "DaemonSet"}
	alone := pod
	alone.Controller = ""
	for name, tc := range map[string]struct {
		busy   []plan.Task
		pods   []inventory.Pod
		ready  inventory.Readiness // of its Node; "": it has none
		spec   func(*fleet.Spec)
		force  bool
		evicts int    // -1: it is not drained
		waits  string // what the refusal names; "": it is not refused
	}{
		"a running Pod":               {busy: []plan.Task{vm}, pods: []inventory.Pod{pod, csi}, ready: inventory.Ready, evicts: 1},
		"an idle Node":                {ready: inventory.Ready, evicts: 0},
		"a Pod that nothing replaces": {busy: []plan.Task{vm}, pods: []inventory.Pod{alone}, ready: inventory.Ready, evicts: -1, waits: "ci/a"},
		"a machine of no Pod":         {busy: []plan.Task{vm}, ready: inventory.Ready, evicts: -1, waits: vm.Text},
		"a push and a Pod":            {busy: []plan.Task{vm, push}, pods: []inventory.Pod{pod}, ready: inventory.Ready, evicts: -1, waits: push.Text},
		"a push on a builder":         {busy: []plan.Task{push}, ready: inventory.Ready, spec: func(s *fleet.Spec) { s.GithubRunner = &fleet.GithubRunner{} }, evicts: -1, waits: "GitHub"},
		"forced":                      {busy: []plan.Task{push}, ready: inventory.Ready, force: true, evicts: -1},
		"a dead Node, a machine runs": {busy: []plan.Task{vm}, pods: []inventory.Pod{pod}, ready: inventory.NotReady, evicts: -1, waits: "not Ready"},
		"a dead Node":                 {pods: []inventory.Pod{pod}, ready: inventory.NotReady, evicts: -1},
		"no Node, a machine runs":     {busy: []plan.Task{vm}, evicts: -1, waits: vm.Text},
		"no Node":                     {evicts: -1},
	} {
		w := members(1, 1)
		spec := &w.cfg.Fleets[0].Groups[0].Spec
		spec.TartKubelet = &fleet.TartKubelet{}
		if tc.spec != nil {
			tc.spec(spec)
		}
		w.noNodes()
		if tc.ready != "" {
			w.node(1, first, tc.ready)
		}
		w.snap.Cluster = inventory.Present(inventory.Cluster{Pods: inventory.Present(tc.pods), Machines: inventory.Absent[[]inventory.Machine](),
			Identities: inventory.Present([]inventory.Identity{{Host: first, ServiceAccount: "sa", Secret: "s", Issued: true, Bound: true}}),
			Objects:    inventory.Present([]inventory.Object{}), Join: inventory.Present(inventory.Join{Server: "https://api", CA: "pem"})})
		if tc.force {
			w.sel.ForceBusy = []string{first}
		}
		w.plan(t) // which asks the hosts
		p := plan.Compute(w.cfg, func(fleet.Host) []plan.Step { return []plan.Step{hurtful{busy: tc.busy}} }, w.snap, w.sel)
		i := slices.IndexFunc(p.Actions, func(a plan.Action) bool { return a.Step == "alpha" })
		if i < 0 {
			t.Errorf("%s: %v", name, lines(p))
			continue
		}
		a := p.Actions[i]
		if a.Disruption != plan.Drain || a.Drains != (tc.evicts >= 0) || a.Evicts != max(0, tc.evicts) || a.Forced != tc.force || (a.Refusal != nil) != (tc.waits != "") {
			t.Errorf("%s: %+v, refused %+v", name, a, a.Refusal)
		}
		if a.Refusal != nil {
			explained(t, a.Refusal)
			if a.Refusal.Code.String() != "waits-for-idle" || !strings.Contains(a.Refusal.Text+a.Refusal.Remedy, tc.waits) {
				t.Errorf("%s: %+v", name, a.Refusal)
			}
		}
	}
}

// TestLeftCordoned: a cordon that a run left behind is taken back, and no other. A run that was
// killed on the host has not left it: where the cluster keeps the lock, that does not show a running apply.
func TestLeftCordoned(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		edit func(*inventory.Node)
		want bool
	}{
		"a run's":          {func(n *inventory.Node) { n.CordonedBy, n.CordonRun = "ci", "r1" }, true},
		"a killed run's":   {func(n *inventory.Node) { n.CordonedBy, n.CordonRun = "ci", "killed" }, true},
		"one's running":    {func(n *inventory.Node) { n.CordonedBy, n.CordonRun = "ci", "alone" }, false},
		"a person's":       {func(n *inventory.Node) { n.CordonedBy = "mona" }, false},
		"another tool's":   {func(*inventory.Node) {}, false},
		"another server's": {func(n *inventory.Node) { n.CordonRun, n.ProviderID = "r1", "scw-applesilicon://fr-par-1/other" }, false},
	} {
		w := members(1, 1)
		w.cfg.Fleets[0].Groups[0].Spec.TartKubelet = &fleet.TartKubelet{}
		w.node(1, first, inventory.Ready)
		all, _ := w.snap.Nodes.Get()
		all[0].Cordoned = true
		tc.edit(&all[0])
		for id, seen := range w.hosts {
			seen.Entered = &plan.Entered{ID: all[0].CordonRun, Held: true, Alone: all[0].CordonRun == "alone"}
			w.hosts[id] = seen
		}
		p := w.plan(t)
		if got := slices.ContainsFunc(p.Actions, func(a plan.Action) bool { return a.Kind == plan.UncordonNode }); got != tc.want {
			t.Errorf("%s: %v", name, lines(p))
		}
	}
}
