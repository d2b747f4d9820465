package engine_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/internal/drift"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/sandbox"
	"github.com/macfleet/macfleet/plan"
)

// longNode is a host that has been a Node for a while, in its own world.
func longNode(t *testing.T, c *fleet.Config) (*sandbox.World, *engine.Engine, string) {
	t.Helper()
	w, e := converged(t, 3, c)
	return w, e, member(t, w)
}

// TestNotJudged: a Node that is missing under a kubelet that was just started may still
// register. That is neither a difference nor convergence; a minute later it is judged.
func TestNotJudged(t *testing.T) {
	t.Parallel()
	w, e, host := longNode(t, nodes(1))
	m, err := w.Mac(host)
	if err == nil {
		err = m.RestartJob("system/dev.macfleet.tart-kubelet")
	}
	if err == nil {
		planned(t, e) // launchd starts it
		err = m.Advance(10 * time.Second)
	}
	if err == nil {
		err = w.Inject(host, "node-deleted")
	}
	must(t, err)
	r := apply(t, e)
	if s := r.After.Summarise(); r.Done > 0 || len(r.Failures) > 0 || r.Finished() || s.Complete() || s.NotJudged != 1 || s.Partly != 1 {
		t.Errorf("done %d, failures %+v, finished %t, %+v", r.Done, r.Failures, r.Finished(), s)
	}
	report, err := drift.Of(r.After, nil, time.Now())
	if err != nil || report.Complete || len(report.Items) > 0 || len(report.Unseen) != 1 || report.Unseen[0].Code != plan.CodeNodeNotJudged {
		t.Errorf("drift: complete %t, %+v, unseen %+v, %v", report.Complete, report.Items, report.Unseen, err)
	}
	must(t, m.Advance(2*time.Minute))
	if r := apply(t, e); r.Done == 0 || !r.Converged() {
		t.Errorf("a minute later: done %d, failures %+v, of the host %q", r.Done, r.Failures, codesOf(r.After, host))
	}
}

// TestBuilderIncidents: what would be a fault elsewhere is a builder's work.
func TestBuilderIncidents(t *testing.T) {
	t.Parallel()
	c := nodes(1)
	c.Fleets[0].Groups[0].Spec.GithubRunner = &fleet.GithubRunner{}
	w, e, host := longNode(t, c)
	for _, incident := range []string{"orphan-vm", "push-in-progress"} {
		inject(t, w, host, incident)
		if said := codesOf(planned(t, e), host); len(said) > 0 {
			t.Errorf("%s: it says %q", incident, said)
		}
	}
	if r := apply(t, e); !r.Converged() || r.Done > 0 {
		t.Errorf("%d actions, failures %+v", r.Done, r.Failures)
	}
}

// TestBuilderComesAndGoes: the garbage collection is off while a host is a builder,
// and comes back neither under a push nor unseen.
func TestBuilderComesAndGoes(t *testing.T) {
	t.Parallel()
	c := nodes(1)
	spec := &c.Fleets[0].Groups[0].Spec
	spec.GithubRunner = &fleet.GithubRunner{}
	w, e, host := longNode(t, c)
	kubeletCollects(t, w, host, false)
	inject(t, w, host, "push-in-progress")
	spec.GithubRunner = nil
	p := planned(t, e)
	if said := codesOf(p, host); !slices.Equal(said, []string{"refused waits-for-idle"}) {
		t.Errorf("under a push it says %q", said)
	}
	apply(t, e)
	kubeletCollects(t, w, host, false)
	must(t, w.Heal(host, "push-in-progress"))
	inject(t, w, host, "orphan-vm")
	listed := slices.ContainsFunc(planned(t, e).Actions, func(a plan.Action) bool {
		return slices.ContainsFunc(a.Fields, func(f plan.Field) bool {
			return strings.HasPrefix(f.Name, "virtual machine ") && strings.HasPrefix(f.After, "deleted")
		})
	})
	if !listed {
		t.Errorf("what will be deleted is not listed: %+v", planned(t, e).Actions)
	}
	converges(t, e)
	kubeletCollects(t, w, host, true)
}

// kubeletCollects looks on the Mac whether its kubelet deletes machines.
func kubeletCollects(t *testing.T, w *sandbox.World, host string, want bool) {
	t.Helper()
	m := macOf(t, w, host)
	said, err := m.Run(t.Context(), "root", "launchctl print system/dev.macfleet.tart-kubelet")
	must(t, err)
	if got := !strings.Contains(string(said.Stdout), "--disable-vm-gc"); got != want {
		t.Errorf("it collects %t, want %t", got, want)
	}
}

// TestNodeGoes: without its blocks nothing of a Node is left on the Mac.
func TestNodeGoes(t *testing.T) {
	t.Parallel()
	c := nodes(1)
	w, e, host := longNode(t, c)
	spec := &c.Fleets[0].Groups[0].Spec
	spec.Tart, spec.TartKubelet = nil, nil
	p := planned(t, e)
	if kinds := slices.Compact(mapped(p.Actions, func(a plan.Action) plan.Kind { return a.Kind })); !slices.Equal(kinds, []plan.Kind{plan.RemoveStep, plan.DeleteNode, plan.RevokeHost}) {
		t.Errorf("%q", kinds)
	}
	converges(t, e)
	m := macOf(t, w, host)
	said, err := m.Run(t.Context(), "root", "ls /usr/local/bin /usr/local/lib /Library/LaunchDaemons /etc; launchctl print system/dev.macfleet.tart-kubelet")
	must(t, err)
	if text := string(said.Stdout); strings.Contains(text, "tart") {
		t.Errorf("left:\n%s", text)
	}
	seen, cluster := e.Cluster.Observe(t.Context(), true)
	if n, _ := seen.Get(); len(n) > 0 {
		t.Errorf("the cluster still has the Nodes %+v", n)
	}
	if all, ok := cluster.Identities.Get(); !ok || len(all) > 0 {
		t.Errorf("the cluster still knows %+v, %t", all, ok)
	}
}

func mapped[A, B any](all []A, f func(A) B) []B {
	out := make([]B, len(all))
	for i, a := range all {
		out[i] = f(a)
	}
	return out
}
