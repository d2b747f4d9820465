package plan_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/plan/plantest"
)

// TestTokenActions: which tokens are made and ended, and when.
func TestTokenActions(t *testing.T) {
	t.Parallel()
	edit := func(change func(*inventory.Identity)) func(*world) {
		return func(w *world) {
			w.observe(func(c *inventory.Cluster) {
				all, _ := c.Identities.Get()
				change(&all[0])
			})
		}
	}
	outdated := func(w *world) { w.answers(1, "old") }
	rotate := func(w *world) { w.sel.NewTokens = true }
	left := edit(func(i *inventory.Identity) { i.Token, i.Spent = "t-2", []string{"t"} })
	finds := func(change func(*plan.Finding)) func(*world) {
		return func(w *world) {
			before := w.kubelet
			w.kubelet = func(v plan.View, f *plan.Finding) {
				if before != nil {
					before(v, f)
				}
				change(f)
			}
		}
	}
	uses := finds(func(f *plan.Finding) { f.Kubelet = inventory.Present(plan.Kubelet{Token: "t-2"}) })
	restart := finds(func(f *plan.Finding) { // its file has the new token, and its process does not
		f.Kubelet = inventory.Present(plan.Kubelet{Token: "t-2"})
		f.Changes = []plan.Change{{Reason: plan.Reason{Code: plan.CodeUnfinished, Text: "t"}, Disruption: plan.Restart}}
	})
	busy := finds(func(f *plan.Finding) {
		f.Changes[0].Disruption, f.Busy = plan.Drain, []plan.Task{{Text: "tart push image (pid 8)"}}
	})
	full := finds(func(f *plan.Finding) { f.Refused = plantest.Code("disk-full").Trouble("the disk is full") })
	unprepared := func(w *world) { w.objects(prepared("ClusterRole", "", "macfleet-tart-kubelet", inventory.GateNodes)) }
	unread := func(w *world) {
		w.change(1, func(h *plan.HostSeen) { h.Facts["alpha.get"] = inventory.Unread[plan.Answer]("a strange answer") })
	}
	for _, tc := range []struct {
		name  string
		edits []func(*world)
		want  []string
	}{
		{"nothing is requested", nil, nil},
		{"rotate", []func(*world){rotate}, []string{"renew-token token-rotation P", "gamma token-rotation P", "old-tokens token-rotation P"}},
		{"a rotation was interrupted before the host had the new one", []func(*world){edit(func(i *inventory.Identity) { i.Token, i.Spent = "t-2", []string{"t"} }), outdated},
			[]string{"gamma kubeconfig-differs D", "old-tokens old-tokens D"}},
		{"a rotation was interrupted, and rotate", []func(*world){rotate, edit(func(i *inventory.Identity) { i.Token, i.Spent = "t-2", []string{"t"} }), outdated},
			[]string{"gamma kubeconfig-differs D", "old-tokens old-tokens D"}},
		{"a rotation was interrupted, and the host has the older one", []func(*world){left, finds(func(f *plan.Finding) { f.Kubelet = inventory.Present(plan.Kubelet{Token: "t"}) })}, nil},
		{"no one knows which token the host has", []func(*world){edit(func(i *inventory.Identity) { i.Token, i.Spent = "t-2", []string{"t"} })}, nil},
		{"an identity that is not complete", []func(*world){rotate, edit(func(i *inventory.Identity) { i.Bound = false })}, []string{"identity token-revoked D", "gamma config-changed P"}},
		{"the host is silent", []func(*world){rotate, func(w *world) {
			w.change(1, func(h *plan.HostSeen) { h.Trouble = plantest.Code("unreachable").Trouble("no route to host") })
		}}, nil},
		{"the restart is left", []func(*world){left, restart}, []string{"gamma config-changed P", "old-tokens old-tokens D"}},
		{"the restart is left, and refused", []func(*world){left, restart, full}, []string{"gamma config-changed P !disk-full"}},
		{"the restart is left, and must wait", []func(*world){left, restart, busy}, []string{"gamma config-changed P !waits-for-idle"}},
		{"the restart is left, and the agents' role is missing", []func(*world){left, restart, unprepared},
			[]string{"gamma config-changed P !cluster-not-prepared", "old-tokens old-tokens D !cluster-not-prepared"}},
		{"a rotation is left, and the agents' role is missing", []func(*world){left, outdated, unprepared},
			[]string{"gamma kubeconfig-differs D !cluster-not-prepared", "old-tokens old-tokens D !cluster-not-prepared"}},
		{"only the older tokens are left", []func(*world){left, uses}, []string{"old-tokens old-tokens D"}},
		{"rotate, and the step is refused", []func(*world){rotate, full}, []string{"gamma config-changed P !disk-full"}},
		{"rotate, and the agents' role is missing", []func(*world){rotate, unprepared},
			[]string{"renew-token token-rotation P !cluster-not-prepared", "gamma token-rotation P !cluster-not-prepared",
				"old-tokens token-rotation P !cluster-not-prepared"}},
		{"rotate, and another step is unread", []func(*world){rotate, unread}, nil},
		{"rotate, another step is unread, and the kubelet differs anyway", []func(*world){rotate, unread, outdated}, []string{"gamma kubeconfig-differs D"}},
	} {
		w := joined()
		for _, edit := range tc.edits {
			edit(w)
		}
		p := w.plan(t)
		var got []string
		for _, line := range lines(p) {
			if !strings.HasPrefix(line, " object ") {
				got = append(got, strings.TrimPrefix(line, first+" "))
			}
		}
		expect(t, tc.name, tc.want, got)
	}
}

// TestTokenKept: where no new token is made, the kubelet's step requires none either, and the plan reports it.
func TestTokenKept(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		root bool
		want []string
	}{
		"another step is unread":         {true, nil},
		"the kubelet shows only to root": {false, []string{first + " alpha sudo-missing D", first + " gamma known-after-sudo ?"}},
	} {
		w := joined()
		w.sel.NewTokens = true
		w.change(1, func(h *plan.HostSeen) {
			if h.Root = tc.root; tc.root {
				h.Facts["beta.get"] = inventory.Unread[plan.Answer]("a strange answer")
			} else {
				h.Facts["gamma.get"] = inventory.Unread[plan.Answer](plan.NeedsRoot)
			}
		})
		steps := func(h fleet.Host) []plan.Step {
			all := w.steps(h)
			if !tc.root {
				all[0], all[2] = rootGiver{all[0].(fakeStep)}, rootedKubelet{all[2].(kubeletStep)}
			}
			return all
		}
		w.plan(t) // asks the host
		p := plan.Compute(w.cfg, steps, w.snap, w.sel)
		expect(t, name, tc.want, slices.DeleteFunc(lines(p), func(l string) bool { return strings.Contains(l, " pods ") }))
		h := oneHost(t, p)
		said := slices.ContainsFunc(h.Warnings, func(w plan.StepWarning) bool { return w.Code.String() == "token-kept" })
		if h.NewToken || h.View("gamma").NewToken || !said {
			t.Errorf("%s: a new token is requested: %t; warnings %+v", name, h.NewToken, h.Warnings)
		}
	}
}

// rootedKubelet is a kubelet's step that says of what is unread what is.
type rootedKubelet struct{ kubeletStep }

func (k rootedKubelet) Diff(v plan.View) plan.Finding {
	if seen := v.Facts.Get("gamma.get"); seen.IsUnread() {
		return plan.Finding{Unread: []plan.Unread{{Probe: "gamma.get", Why: seen.Why()}}}
	}
	return k.kubeletStep.Diff(v)
}

func TestTokenAge(t *testing.T) {
	t.Parallel()
	w := joined()
	if h := oneHost(t, w.plan(t)); h.Token != nil {
		t.Errorf("of an older record: %+v", h.Token)
	}
	w.observe(func(c *inventory.Cluster) {
		all, _ := c.Identities.Get()
		all[0].Since = w.snap.Taken.Add(-50 * time.Hour)
	})
	if h := oneHost(t, w.plan(t)); h.Token == nil || h.Token.Days != 2 {
		t.Errorf("%+v", h.Token)
	}
}

// TestKubeletHeardWith: only a process that runs, with the newest token from its start, and that the cluster has seen,
// lets the older tokens end.
func TestKubeletHeardWith(t *testing.T) {
	t.Parallel()
	well := plan.Kubelet{Token: "t-2", Started: noon}
	heard := inventory.Node{LastHeartbeat: noon.Add(time.Minute)}
	for name, tc := range map[string]struct {
		edit func(*plan.Kubelet, *inventory.Node)
		want bool
	}{
		"it runs, and is seen":           {func(*plan.Kubelet, *inventory.Node) {}, true},
		"it settles, and is seen":        {func(k *plan.Kubelet, _ *inventory.Node) { k.Fault.Code = plan.CodeKubeletSettling }, true},
		"it dies at every start":         {func(k *plan.Kubelet, _ *inventory.Node) { k.Fault.Code = plan.CodeKubeletCrashLoop }, false},
		"no process":                     {func(k *plan.Kubelet, _ *inventory.Node) { k.Started = time.Time{} }, false},
		"its restart is left":            {func(k *plan.Kubelet, _ *inventory.Node) { k.Unfinished = true }, false},
		"an older token":                 {func(k *plan.Kubelet, _ *inventory.Node) { k.Token = "t" }, false},
		"a token that is not known":      {func(k *plan.Kubelet, _ *inventory.Node) { k.Token = "" }, false},
		"seen before it started":         {func(_ *plan.Kubelet, n *inventory.Node) { n.LastHeartbeat = noon.Add(-time.Minute) }, false},
		"no one knows when it was heard": {func(_ *plan.Kubelet, n *inventory.Node) { n.LastHeartbeat = time.Time{} }, false},
	} {
		k, n := well, heard
		tc.edit(&k, &n)
		if got := k.SentHeartbeatWith("t-2", n); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
