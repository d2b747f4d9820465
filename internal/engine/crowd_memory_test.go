package engine_test

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/enginetest"
	"github.com/macfleet/macfleet/plan"
)

// TestCrowd sets 500 hosts up in five fleets of different limits and rolls them, while a
// fifth of them fails at random and the kubelets of a tenth have died: the record
// shows that every limit held at every moment, and nothing is left behind.
func TestCrowd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const n = 500
		var rollouts []fleet.Rollout
		for _, f := range crowded(n).Fleets {
			rollouts = append(rollouts, f.Rollout)
		}
		w := enginetest.New(n, n/len(rollouts), rollouts...)
		agent, breaks := "v1", make(map[string]int)
		w.Things = func(h fleet.Host) []enginetest.Thing {
			at, fails := breaks[h.Name]
			return []enginetest.Thing{{Key: "sudo", Value: "yes", Input: plan.LoginPassword, Grants: true},
				{Key: "tools", Value: agent, Class: plan.Restart, Root: true, Breaks: fails && at == 0},
				{Key: "agent", Value: agent, Class: plan.Restart, Root: true, Brought: true, Node: true, Input: plan.Kubeconfig, Breaks: fails && at == 1}}
		}
		e := w.Engine()
		e.Parallelism, e.Run = 32, named("crowd", 1)
		p := planned(t, e)
		record := recordOf(t, e, p, func(bool) bool { return false })
		r := performed(t, e, p)
		record.end(t, r)
		record.check(t, 0, false)
		e.Emit = func(engine.Event) {}
		if !r.Converged() || r.Done < n {
			t.Fatalf("they do not join: %q, left %d, %+v", whatFailed(r), len(r.Left), r.After.Summarise())
		}
		random := rand.New(rand.NewPCG(6, 1))
		for _, h := range p.Hosts {
			if random.IntN(5) == 0 {
				breaks[h.Name] = random.IntN(3)
			}
			if random.IntN(10) == 0 {
				w.StopKubelet(h.Name)
			}
		}
		time.Sleep(2 * time.Minute) // on the virtual clock: the cluster knows of the dead ones
		agent, e.Run = "v2", named("crowd", 2)
		p = planned(t, e)
		for _, h := range p.Hosts {
			if at, fails := breaks[h.Name]; fails && at == 2 {
				w.Change(func() { w.Member(h.Name).Away = true })
			}
		}
		record = recordOf(t, e, p, func(bool) bool { return false })
		r = performed(t, e, p)
		record.end(t, r)
		record.check(t, 1, false)
		e.Emit = func(engine.Event) {}
		if len(r.Failures) < n/25 || r.Done < n/2 {
			t.Errorf("only %d failures and %d actions, left %d", len(r.Failures), r.Done, len(r.Left))
		}
		for _, f := range r.Failures {
			if _, fails := breaks[f.Action.Host]; !fails {
				t.Errorf("%s fails: %v", f.Action.Host, f.Err)
			}
		}
		if open, _ := w.Connections(); open != 0 {
			t.Errorf("%d connections are left", open)
		}
		t.Logf("%d actions done, %d failures, %d hosts not started", r.Done, len(r.Failures), len(r.Left))
	})
}
