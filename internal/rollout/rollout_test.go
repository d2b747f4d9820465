package rollout

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

var start = time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC)

func all(string) bool { return true }

func ids(n int) []string {
	var out []string
	for i := range n {
		out = append(out, strconv.Itoa(i))
	}
	return out
}

func disrupt(ids ...string) []Work {
	var out []Work
	for _, id := range ids {
		out = append(out, Work{ID: id, Fleet: "runners", Lane: Disrupt})
	}
	return out
}

// nine returns the progress of nine healthy runners.
func nine(l Limits, work ...Work) *Rollout {
	return New(work, map[string]Limits{"runners": l}, map[string][]string{"runners": ids(9)}, 32)
}

// TestCanary lets one host go first, watches it, and lets the others follow.
func TestCanary(t *testing.T) {
	t.Parallel()
	r := nine(Limits{MaxUnavailable: 2, Canary: 1, Soak: time.Minute}, disrupt(ids(9)...)...)
	step := func(now time.Time, want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, r.Next(now, all)); diff != "" {
			t.Errorf("starts (-want +got):\n%s", diff)
		}
	}
	step(start, "0")
	step(start)
	r.AwaitReady("0")
	step(start)
	r.Finished("0", start)
	step(start.Add(time.Minute - 1))
	if got := r.Waiting(start, all)[0]; got.ID != "1" || got.Why != Soaking {
		t.Errorf("left: %+v", got)
	}
	step(start.Add(time.Minute), "1", "2")
	r.Finished("2", start)
	step(start.Add(time.Minute), "3")
}

// TestCanaryStops leaves eight of nine alone.
func TestCanaryStops(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(*Rollout) func(string) bool{
		"it failed": func(r *Rollout) func(string) bool { r.Failed("0"); return all },
		"it did not stay Ready": func(r *Rollout) func(string) bool {
			r.Finished("0", start)
			return func(id string) bool { return id != "0" }
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := nine(Limits{MaxUnavailable: 9, Canary: 1, Soak: time.Minute, FailureBudget: 5}, disrupt(ids(9)...)...)
			r.Next(start, all)
			ready := fail(r)
			for range 3 {
				if got := r.Next(start.Add(time.Second), ready); got != nil {
					t.Errorf("starts %v", got)
				}
				ready = all // it is back, and still did not stay
			}
			left := r.Waiting(start.Add(time.Hour), all)
			if len(left) != 8 || left[0].Why != CanaryFailed || r.Running() != 0 {
				t.Errorf("left: %+v", left)
			}
		})
	}
}

// TestOneOfTwoCanaries: where one canary fails, the other does not start either.
func TestOneOfTwoCanaries(t *testing.T) {
	t.Parallel()
	r := nine(Limits{MaxUnavailable: 1, Canary: 2, FailureBudget: 5}, disrupt(ids(9)...)...)
	if got := r.Next(start, all); !slices.Equal(got, []string{"0"}) {
		t.Errorf("starts %v", got)
	}
	r.Failed("0")
	if got := r.Next(start, all); got != nil {
		t.Errorf("starts %v", got)
	}
	if left := r.Waiting(start, all); len(left) != 8 || left[0].Why != CanaryFailed {
		t.Errorf("left: %+v", left)
	}
}

// TestLiveReadiness counts hosts that went away by themselves, whenever.
func TestLiveReadiness(t *testing.T) {
	t.Parallel()
	r := nine(Limits{MaxUnavailable: 2}, disrupt(ids(4)...)...)
	gone := func(id string) bool { return id != "8" }
	if got := r.Next(start, gone); !slices.Equal(got, []string{"0"}) {
		t.Errorf("starts %v", got)
	}
	r.Finished("0", start)
	if got := r.Next(start, func(id string) bool { return id != "8" && id != "0" }); got != nil {
		t.Errorf("starts %v", got)
	}
	if got := r.Next(start, all); !slices.Equal(got, []string{"1", "2"}) {
		t.Errorf("starts %v", got)
	}
}

// TestMinReady keeps the configured number of Ready hosts.
func TestMinReady(t *testing.T) {
	t.Parallel()
	r := nine(Limits{MaxUnavailable: 5, MinReady: 8}, disrupt(ids(4)...)...)
	if got := r.Next(start, all); !slices.Equal(got, []string{"0"}) {
		t.Errorf("starts %v", got)
	}
	if got := r.Waiting(start, all)[0].Why; got != TooFewReady {
		t.Errorf("left for %q", got)
	}
}

// TestRepair heals hosts that are not Ready though nothing may be disturbed.
func TestRepair(t *testing.T) {
	t.Parallel()
	work := append(disrupt("0", "1"), Work{ID: "x", Fleet: "runners", Lane: Repair}, Work{ID: "y", Fleet: "runners", Lane: Repair}, Work{ID: "z", Fleet: "runners", Lane: Repair}, Work{ID: "w", Fleet: "runners", Lane: Repair})
	r := New(work, map[string]Limits{"runners": {MaxUnavailable: 1}}, map[string][]string{"runners": ids(4)}, 32)
	if got := r.Next(start, all); !slices.Equal(got, []string{"x", "y", "z", "0"}) {
		t.Errorf("starts %v", got)
	}
	for _, id := range []string{"x", "y", "z"} {
		r.Failed(id)
	}
	want := []Waiting{{"w", RepairsFailing, []string{"x", "y", "z"}}, {"1", Unavailable, nil}}
	if diff := cmp.Diff(want, r.Waiting(start, all)); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
	r.Finished("0", start) // failed repairs are not the healthy hosts' affair
	if got := r.Next(start, all); !slices.Equal(got, []string{"1"}) {
		t.Errorf("starts %v", got)
	}
}

// TestParallelism starts no more than there are workers, and none waits for the
// slowest of a batch.
func TestParallelism(t *testing.T) {
	t.Parallel()
	var work []Work
	for _, id := range ids(5) {
		work = append(work, Work{ID: id, Fleet: "runners", Lane: Plain})
	}
	r := New(work, nil, nil, 2)
	if got := r.Next(start, all); !slices.Equal(got, []string{"0", "1"}) {
		t.Errorf("starts %v", got)
	}
	r.AwaitReady("1") // its Node is waited for, and that takes no worker
	if got := r.Next(start, all); !slices.Equal(got, []string{"2"}) {
		t.Errorf("starts %v", got)
	}
	r.Failed("2")
	if got := r.Next(start, all); !slices.Equal(got, []string{"3"}) {
		t.Errorf("starts %v", got)
	}
}

// TestLimitsHold draws fleets, work and what happens, and counts by itself.
func TestLimitsHold(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 30).Draw(t, "hosts")
		limits := Limits{
			MaxUnavailable: rapid.IntRange(1, 6).Draw(t, "max unavailable"), Canary: rapid.IntRange(0, 3).Draw(t, "canary"),
			Soak: time.Duration(rapid.IntRange(0, 3).Draw(t, "soak")) * time.Second, FailureBudget: rapid.IntRange(0, 3).Draw(t, "budget"),
			MinReady: rapid.IntRange(0, 10).Draw(t, "min ready"),
		}
		workers := rapid.IntRange(1, 8).Draw(t, "workers")
		var work []Work
		var healthy []string
		lane := make(map[string]Lane)
		for _, id := range ids(n) {
			l := rapid.SampledFrom([]Lane{Repair, Join, Plain, Disrupt, Disrupt, Disrupt}).Draw(t, "lane")
			if l == Plain || l == Disrupt {
				healthy = append(healthy, id)
			}
			lane[id] = l
			work = append(work, Work{ID: id, Fleet: "f", Lane: l})
		}
		r := New(work, map[string]Limits{"f": limits}, map[string][]string{"f": healthy}, workers)
		now, down := start, make(map[string]bool)
		ready := func(id string) bool { return !down[id] }
		running, settle, ended, started := make(map[string]bool), make(map[string]bool), make(map[string]time.Time), make(map[string]bool)
		failed, canaries := 0, 0
		canaryOf := make(map[string]bool)
		for range 200 {
			for _, id := range r.Next(now, ready) {
				if started[id] {
					t.Fatalf("%s starts twice", id)
				}
				started[id], running[id] = true, true
				if lane[id] != Disrupt {
					continue
				}
				away := 0
				for _, h := range healthy {
					if lane[h] == Disrupt && (running[h] || settle[h]) || down[h] {
						away++
					}
				}
				if away > limits.MaxUnavailable && !down[id] {
					t.Fatalf("%d of at most %d are away", away, limits.MaxUnavailable)
				}
				if limits.MinReady > 0 && len(healthy)-away < limits.MinReady && !down[id] {
					t.Fatalf("%d of %d are away, and %d must stay", away, len(healthy), limits.MinReady)
				}
				if failed > limits.FailureBudget {
					t.Fatalf("%d failed of at most %d, and %s starts", failed, limits.FailureBudget, id)
				}
				if canaries < limits.Canary {
					canaries++
					canaryOf[id] = true
					continue
				}
				for c := range canaryOf {
					if at, ok := ended[c]; !ok || now.Sub(at) < limits.Soak {
						t.Fatalf("%s starts before the canary %s is through", id, c)
					}
				}
			}
			if len(running) > workers {
				t.Fatalf("%d of %d workers", len(running), workers)
			}
			now = now.Add(500 * time.Millisecond)
			var busy []string
			for _, w := range work {
				if running[w.ID] || settle[w.ID] {
					busy = append(busy, w.ID)
				}
			}
			if len(healthy) > 0 && rapid.IntRange(0, 9).Draw(t, "weather") == 0 {
				id := rapid.SampledFrom(healthy).Draw(t, "whose")
				down[id] = !down[id]
			}
			if len(busy) == 0 {
				continue
			}
			id := rapid.SampledFrom(busy).Draw(t, "who")
			switch rapid.IntRange(0, 5).Draw(t, "what") {
			case 0:
				r.Failed(id)
				delete(running, id)
				delete(settle, id)
				if lane[id] == Disrupt {
					failed++
				}
			case 1, 2:
				r.AwaitReady(id)
				delete(running, id)
				settle[id] = true
			default:
				r.Finished(id, now)
				delete(running, id)
				delete(settle, id)
				ended[id] = now
			}
		}
		for _, w := range work {
			if !started[w.ID] && (w.Lane == Join || w.Lane == Plain) && len(running) == 0 {
				t.Fatalf("nothing keeps %s and it never started", w.ID)
			}
		}
	})
}

func BenchmarkNext(b *testing.B) {
	work := disrupt(ids(10_000)...)
	r := New(work, map[string]Limits{"runners": {MaxUnavailable: 2000, FailureBudget: 10_000}}, map[string][]string{"runners": ids(10_000)}, 32)
	for b.Loop() {
		for _, id := range r.Next(start, all) {
			r.Failed(id)
		}
	}
}

// TestClosed: cordoned hosts are unavailable, no matter who cordoned them, and one's own
// work takes no further place.
func TestClosed(t *testing.T) {
	t.Parallel()
	r := nine(Limits{MaxUnavailable: 1}, disrupt("3", "4")...)
	r.SetCordoned(map[string]bool{"3": true})
	if got := r.Next(start, all); !slices.Equal(got, []string{"3"}) {
		t.Errorf("starts %q", got)
	}
	r.Finished("3", start)
	if got := r.Next(start, all); got != nil {
		t.Errorf("starts %q while the other is closed", got)
	}
	if left := r.Waiting(start, all); len(left) != 1 || left[0].Why != Cordoned {
		t.Errorf("what someone closed may stay so: %+v", left)
	}
	away := func(id string) bool { return id != "7" }
	if left := r.Waiting(start, away); len(left) != 1 || left[0].Why != Unavailable {
		t.Errorf("what is not Ready may come back: %+v", left)
	}
	r.SetCordoned(nil)
	if got := r.Next(start, all); !slices.Equal(got, []string{"4"}) {
		t.Errorf("starts %q", got)
	}
	canary := nine(Limits{MaxUnavailable: 1, Canary: 1, Soak: time.Minute}, disrupt("3", "4")...)
	canary.Next(start, all)
	canary.Finished("3", start)
	canary.SetCordoned(map[string]bool{"3": true})
	if left := canary.Waiting(start.Add(time.Second), all); len(left) != 1 || left[0].Why != Soaking {
		t.Errorf("a canary that a person cordoned has failed: %+v", left)
	}
	canary.SetCordoned(map[string]bool{"3": true, "7": true})
	if got := canary.Next(start.Add(time.Hour), all); got != nil {
		t.Errorf("starts %q while two are cordoned", got)
	}
}

// TestClosedByARun: hosts that a killed run left closed do not wait for each other,
// however few may be disturbed, and are worked on one after the other.
func TestClosedByARun(t *testing.T) {
	t.Parallel()
	r := nine(Limits{MaxUnavailable: 1, Canary: 1, MinReady: 8}, disrupt("3", "4", "5")...)
	starts := func(closed []string, want ...string) {
		t.Helper()
		ids := make(map[string]bool)
		for _, id := range closed {
			ids[id] = true
		}
		r.SetCordoned(ids)
		if diff := cmp.Diff(want, r.Next(start, all)); diff != "" {
			t.Errorf("starts (-want +got):\n%s", diff)
		}
	}
	starts([]string{"3", "4"}, "3")
	starts([]string{"3", "4"})
	r.Finished("3", start)
	starts([]string{"4"}, "4")
	r.AwaitReady("4")
	starts([]string{"4"})
	r.Finished("4", start)
	starts(nil, "5")
}

// TestTrial: a host that already dies of what the others are to get is tried first, and
// by itself. Without that each run would lose one healthy host more.
func TestTrial(t *testing.T) {
	t.Parallel()
	begun := func(l Limits) *Rollout {
		t.Helper()
		work := append(disrupt("0", "1"), Work{ID: "x", Fleet: "runners", Lane: Repair, Trial: true}, Work{ID: "p", Fleet: "runners", Lane: Plain})
		r := nine(l, work...)
		if got := r.Next(start, all); !slices.Equal(got, []string{"x", "p"}) {
			t.Errorf("starts %q", got)
		}
		return r
	}
	one := Limits{MaxUnavailable: 1, Canary: 1, FailureBudget: 3}
	r := begun(one)
	r.AwaitReady("x")
	if left := r.Waiting(start, all); len(left) != 2 || left[0].Why != TrialRunning || !slices.Equal(left[0].Of, []string{"x"}) {
		t.Errorf("left %+v", left)
	}
	r.Finished("x", start)
	if got := r.Next(start, all); !slices.Equal(got, []string{"0"}) {
		t.Errorf("starts %q", got)
	}
	r = begun(one)
	r.Failed("x")
	if left := r.Waiting(start, all); len(left) != 2 || left[0].Why != TrialFailed || !slices.Equal(left[1].Of, []string{"x"}) || r.Next(start, all) != nil {
		t.Errorf("left %+v", left)
	}
	without := nine(Limits{MaxUnavailable: 1}, append(disrupt("0"), Work{ID: "x", Fleet: "runners", Lane: Repair, Trial: true})...)
	if got := without.Next(start, all); !slices.Equal(got, []string{"x", "0"}) {
		t.Errorf("without canaries starts %q", got)
	}
}

// TestStuckTrial: where nothing can be done on a host that is not Ready with what the others are
// to get, it has failed: no other is tried. Once Ready hosts show that it works, it counts as one
// failed host.
func TestStuckTrial(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		limits Limits
		want   Reason
	}{
		"nothing is verified":               {Limits{MaxUnavailable: 2, Canary: 1, FailureBudget: 1}, TrialFailed},
		"it is verified, and one may fail":  {Limits{MaxUnavailable: 2, Canary: 1, FailureBudget: 1, Verified: true}, ""},
		"it is verified, and none may fail": {Limits{MaxUnavailable: 2, Canary: 1, Verified: true}, TrialFailed},
		"without canaries no one is tried":  {Limits{MaxUnavailable: 2}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := nine(c.limits, append(disrupt("0", "1"), Work{ID: "x", Fleet: "runners", Lane: Repair, Trial: true, Stuck: true})...)
			left := r.Waiting(start, all)
			if len(left) != 2 || left[0].Why != c.want || r.Running() != 0 {
				t.Fatalf("left %+v", left)
			}
			if got := r.Next(start, all); (len(got) == 0) != (c.want != "") {
				t.Errorf("starts %q", got)
			}
			if c.want != "" && !slices.Equal(left[0].Of, []string{"x"}) {
				t.Errorf("left because of %q", left[0].Of)
			}
		})
	}
	// Together with another that fails, there are more than may.
	r := nine(Limits{MaxUnavailable: 1, FailureBudget: 1, Canary: 1, Verified: true}, append(disrupt("0", "1", "2"), Work{ID: "x", Fleet: "runners", Trial: true, Stuck: true})...)
	r.Next(start, all)
	r.Finished("0", start)
	r.Next(start, all)
	r.Failed("1")
	if left := r.Waiting(start, all); len(left) != 1 || left[0].Why != BudgetSpent || !slices.Equal(left[0].Of, []string{"1", "x"}) {
		t.Errorf("left %+v", left)
	}
}

// TestWaves: the canary is the first wave, and the others have as many hosts as may be disturbed.
func TestWaves(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		limits Limits
		want   []int
	}{
		{Limits{MaxUnavailable: 2, Canary: 1}, []int{1, 2, 2, 3, 3, 4}}, {Limits{MaxUnavailable: 1}, []int{1, 2, 3, 4, 5, 6}},
		{Limits{MaxUnavailable: 3, Canary: 2}, []int{1, 1, 2, 2, 2, 3}}, {Limits{MaxUnavailable: 1, Canary: 9}, []int{1, 1, 1, 1, 1, 1}},
	} {
		r := nine(c.limits, disrupt(ids(6)...)...)
		var got []int
		for range c.want {
			for _, id := range r.Next(start, all) {
				got = append(got, r.Wave(id))
				r.Finished(id, start)
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", c.limits, diff)
		}
	}
}

// TestDeferredCanary: where the canary is left for a later run, the next host is the canary.
func TestDeferredCanary(t *testing.T) {
	t.Parallel()
	r := nine(Limits{MaxUnavailable: 3, Canary: 1}, disrupt(ids(4)...)...)
	for _, want := range [][]string{{"0"}, {"1"}} {
		if diff := cmp.Diff(want, r.Next(start, all)); diff != "" {
			t.Fatalf("starts (-want +got):\n%s", diff)
		}
		if want[0] == "0" {
			r.Deferred("0")
		}
	}
	if r.Wave("1") != 1 {
		t.Errorf("it is in wave %d", r.Wave("1"))
	}
	r.Finished("1", start)
	if got := r.Next(start, all); !slices.Equal(got, []string{"2", "3"}) {
		t.Errorf("starts %q", got)
	}
}
