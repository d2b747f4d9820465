package rollout

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/plan"
)

// TestPlay plays runs by the scheduler's own rules.
func TestPlay(t *testing.T) {
	t.Parallel()
	for name, x := range map[string]struct {
		limits   Limits
		work     []Work
		workers  int
		cordoned map[string]bool
		starts   []string
		left     Reason
		takes    time.Duration
	}{
		"the canary soaks, then two at a time": {limits: Limits{MaxUnavailable: 2, Canary: 1, Soak: time.Minute}, work: in(Disrupt, ids(5)...), workers: 32,
			starts: []string{"0 1 0s", "1 2 1m15s", "2 2 1m15s", "3 3 1m30s", "4 3 1m30s"}, takes: 105 * time.Second},
		"a wait for a Node takes no worker": {limits: Limits{MaxUnavailable: 9}, work: in(Disrupt, ids(3)...), workers: 1,
			starts: []string{"0 1 0s", "1 1 10s", "2 1 20s"}, takes: 35 * time.Second},
		"a change that cannot be repaired stops the others": {limits: Limits{MaxUnavailable: 2, Canary: 1}, workers: 32,
			work: append(in(Disrupt, "0", "1"), Work{ID: "x", Fleet: "runners", Trial: true, Stuck: true}), left: TrialFailed},
		"a person's cordon keeps a place": {limits: Limits{MaxUnavailable: 1}, work: in(Disrupt, "0", "1"), workers: 32, cordoned: map[string]bool{"8": true}, left: Cordoned},
		"min_ready":                       {limits: Limits{MaxUnavailable: 9, MinReady: 9}, work: in(Disrupt, "0"), workers: 32, left: TooFewReady},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			jobs := make(map[string]Job)
			for _, w := range x.work {
				jobs[w.ID] = Job{Work: 10 * time.Second, Settle: 5 * time.Second}
			}
			c := New(x.work, map[string]Limits{"runners": x.limits}, map[string][]string{"runners": ids(9)}, x.workers).Play(jobs, x.cordoned)
			var starts []string
			for _, s := range c.Starts {
				starts = append(starts, s.ID+" "+string(rune('0'+s.Wave))+" "+s.At.String())
			}
			if diff := cmp.Diff(x.starts, starts); diff != "" || c.Takes != x.takes {
				t.Errorf("takes %s, starts (-want +got):\n%s", c.Takes, diff)
			}
			if (len(c.Left) > 0) != (x.left != "") || len(c.Left) > 0 && c.Left[0].Why != x.left {
				t.Errorf("left %+v", c.Left)
			}
		})
	}
}

// TestTiming: what runs recorded counts; the rest takes its default, with its bytes and its drain.
func TestTiming(t *testing.T) {
	t.Parallel()
	a := plan.Action{Kind: plan.RunStep, Step: "tart", Disruption: plan.Drain, Drains: true, Evicts: 2,
		Changes: []plan.Change{{Delivery: &plan.Delivery{Artifact: fleet.Artifact{Size: 60e6}}}}}
	got := Timing{}.Of([]plan.Action{a, {Kind: plan.ClaimServer}}, false)
	if want := (Estimate{Time: realMacs.step + realMacs.drain + 6*time.Second + realMacs.call, Default: true, Pods: true}); got != want {
		t.Errorf("by default %+v, want %+v", got, want)
	}
	got = Timing{Recorded: map[Task]time.Duration{TaskOf(a): 90 * time.Second}, Runs: 1}.Of([]plan.Action{a}, true)
	forced := a
	forced.Forced = true
	longer := func(all ...plan.Action) time.Duration {
		return Timing{}.Of(all, true).Time - Timing{}.Of(all, false).Time
	}
	if twice, never := longer(a, a), longer(forced, plan.Action{Kind: plan.ClaimServer}); twice != realMacs.quiet || never != 0 {
		t.Errorf("a CI agent adds %s to two drains, and %s to none", twice, never)
	}
	if want := (Estimate{Time: 90 * time.Second, Recorded: true}); got != want {
		t.Errorf("as recorded %+v, want %+v", got, want)
	}
}

// BenchmarkPlay plays ten thousand hosts, so that a plan of them stays fast.
func BenchmarkPlay(b *testing.B) {
	work := in(Disrupt, ids(10_000)...)
	jobs := make(map[string]Job)
	for i, w := range work {
		jobs[w.ID] = Job{Work: time.Duration(10+i%7) * time.Second, Settle: 5 * time.Second}
	}
	for b.Loop() {
		New(work, map[string]Limits{"runners": {MaxUnavailable: 100, Canary: 1}}, map[string][]string{"runners": ids(10_000)}, 32).Play(jobs, nil)
	}
}
