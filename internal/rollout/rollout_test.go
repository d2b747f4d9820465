package rollout

import (
	"slices"
	"strconv"
	"strings"
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

// nine returns the progress of nine healthy runners.
func nine(l Limits, work ...Work) *Rollout {
	return New(work, map[string]Limits{"runners": l}, map[string][]string{"runners": ids(9)}, 32)
}

// in returns work of one lane in the fleet runners.
func in(l Lane, ids ...string) []Work {
	var out []Work
	for _, id := range ids {
		out = append(out, Work{ID: id, Fleet: "runners", Lane: l})
	}
	return out
}

// script plays the lines of a run on nine healthy runners, 0 to 8. Lines are separated by semicolons:
// "+59s" lets time pass, "gone 8" and "cordoned 3" are all that are not Ready or cordoned from now on,
// "ends", "fails", "awaits" and "deferred" tell the result of a host, "starts 1 2" expects these starts,
// "wave 1 2" that host 1 is in wave 2, "running 0" as many busy hosts, and "left 1 2: soak, 3: canary-failed by 0" who is left and why.
func script(t *testing.T, r *Rollout, lines string) {
	t.Helper()
	now, gone := start, map[string]bool{}
	ready := func(id string) bool { return !gone[id] }
	set := func(ids []string) map[string]bool {
		out := make(map[string]bool)
		for _, id := range ids {
			out[id] = true
		}
		return out
	}
	for line := range strings.SplitSeq(lines, ";") {
		line = strings.TrimSpace(line)
		words := strings.Fields(line)
		got := line
		switch ids := words[1:]; words[0] {
		case "gone":
			gone = set(ids)
		case "cordoned":
			r.SetCordoned(set(ids))
		case "ends":
			r.Finished(ids[0], now)
		case "fails":
			r.Failed(ids[0])
		case "awaits":
			r.AwaitReady(ids[0])
		case "deferred":
			r.Deferred(ids[0])
		case "starts":
			got = strings.TrimSpace("starts " + strings.Join(r.Next(now, ready), " "))
		case "left":
			got = strings.TrimSpace("left " + left(r.Waiting(now, ready)))
		case "wave":
			got = "wave " + ids[0] + " " + strconv.Itoa(r.Wave(ids[0]))
		case "running":
			got = "running " + strconv.Itoa(r.Running())
		default:
			d, err := time.ParseDuration(words[0])
			if err != nil {
				t.Fatal(err)
			}
			now = now.Add(d)
		}
		if got != line {
			t.Errorf("%q, want %q", got, line)
		}
	}
}

// left renders what is left; hosts with the same cause are together.
func left(all []Waiting) string {
	var out []string
	var ids string
	for i, w := range all {
		ids += " " + w.ID
		if i+1 < len(all) && all[i+1].Why == w.Why && slices.Equal(all[i+1].Of, w.Of) {
			continue
		}
		group := ids[1:] + ":"
		if w.Why != "" {
			group += " " + string(w.Why)
		}
		if len(w.Of) > 0 {
			group += " by " + strings.Join(w.Of, " ")
		}
		out, ids = append(out, group), ""
	}
	return strings.Join(out, ", ")
}

// TestRules plays each rule of a rollout block, and what it says of the hosts that wait.
func TestRules(t *testing.T) {
	t.Parallel()
	three, canary := in(Disrupt, "0", "1", "2"), Limits{MaxUnavailable: 2, Canary: 1, Soak: time.Minute, FailureBudget: 5}
	leaving := append(in(Plain, "0"), Work{ID: "a", Fleet: "runners", Lane: Leave, Works: true}, Work{ID: "b", Fleet: "runners", Lane: Leave, Works: true},
		Work{ID: "dead", Fleet: "runners", Lane: Leave})
	trial := Work{ID: "x", Fleet: "runners", Lane: Repair, Trial: true}
	tried := append(in(Disrupt, "0", "1"), trial, in(Plain, "p")[0])
	stuck := append(in(Disrupt, "0", "1", "2"), Work{ID: "x", Fleet: "runners", Lane: Repair, Trial: true, Stuck: true})
	for name, tc := range map[string]struct {
		limits Limits
		work   []Work
		script string
	}{
		"a canary goes first and soaks": {canary, append(three, in(Disrupt, "3", "4")...),
			"starts 0; starts; awaits 0; starts; ends 0; +59s; starts; left 1 2 3 4: soak; +1s; starts 1 2; ends 2; starts 3"},
		"a canary fails": {canary, three, "starts 0; fails 0; starts; +1h; starts; left 1 2: canary-failed by 0; running 0"},
		"a canary does not stay Ready": {canary, three,
			"starts 0; ends 0; gone 0; +1s; starts; gone; starts; +1h; starts; left 1 2: canary-failed by 0; running 0"},
		"one of two canaries fails": {Limits{MaxUnavailable: 1, Canary: 2, FailureBudget: 5}, three,
			"starts 0; fails 0; starts; left 1 2: canary-failed by 0"},
		"a deferred canary": {Limits{MaxUnavailable: 3, Canary: 1}, append(three, in(Disrupt, "3")...),
			"starts 0; deferred 0; starts 1; wave 1 1; ends 1; starts 2 3"},
		"hosts that went away by themselves count": {Limits{MaxUnavailable: 2}, in(Disrupt, "0", "1", "2", "3"),
			"gone 8; starts 0; ends 0; gone 8 0; starts; gone; starts 1 2"},
		"min_ready": {Limits{MaxUnavailable: 5, MinReady: 8}, three, "starts 0; left 1 2: min-ready"},
		"repairs": {Limits{MaxUnavailable: 1}, append(in(Disrupt, "0", "1"), in(Repair, "x", "y", "z", "w")...),
			"starts x y z 0; fails x; fails y; fails z; left w: repairs-failing by x y z, 1: max-unavailable; ends 0; starts 1"},
		"cordoned hosts are unavailable, a host's own work takes no further place": {Limits{MaxUnavailable: 1}, in(Disrupt, "3", "4"),
			"cordoned 3; starts 3; ends 3; starts; left 4: cordoned; gone 7; left 4: max-unavailable; gone; cordoned; starts 4"},
		"a canary that a person cordons has not failed": {Limits{MaxUnavailable: 1, Canary: 1, Soak: time.Minute}, in(Disrupt, "3", "4"),
			"starts 3; ends 3; cordoned 3; +1s; left 4: soak; cordoned 3 7; +1h; starts"},
		"a cordoned host that is not Ready either takes no further place": {Limits{MaxUnavailable: 1}, in(Disrupt, "3", "4"), "cordoned 3; gone 3; starts 3"},
		"hosts that a killed run left cordoned, one after the other": {Limits{MaxUnavailable: 1, Canary: 1, MinReady: 8}, in(Disrupt, "3", "4", "5"),
			"cordoned 3 4; starts 3; starts; ends 3; cordoned 4; starts 4; awaits 4; starts; ends 4; cordoned; starts 5"},

		// A host that already has the change and is not Ready is tried first: otherwise each run would lose one more.
		"a trial is repaired":  {canary, tried, "starts x p; awaits x; left 0 1: trial by x; ends x; starts 0"},
		"a trial fails":        {canary, tried, "starts x p; fails x; left 0 1: trial-failed by x; starts"},
		"without canaries":     {Limits{MaxUnavailable: 1}, tried[1:3], "starts x 1"},
		"a stuck trial":        {Limits{MaxUnavailable: 2, Canary: 1, FailureBudget: 1}, stuck, "left 0 1 2: trial-failed by x; running 0; starts"},
		"verified elsewhere":   {Limits{MaxUnavailable: 2, Canary: 1, FailureBudget: 1, Verified: true}, stuck, "left 0:, 1 2: canary; running 0; starts 0"},
		"none may fail":        {Limits{MaxUnavailable: 2, Canary: 1, Verified: true}, stuck, "left 0 1 2: trial-failed by x; starts"},
		"nothing is tried":     {Limits{MaxUnavailable: 2}, stuck, "left 0 1 2:; running 0; starts 0 1"},
		"stuck and one failed": {Limits{MaxUnavailable: 1, FailureBudget: 1, Canary: 1, Verified: true}, stuck, "starts 0; ends 0; starts 1; fails 1; left 2: failure-budget by 1 x"},

		// Hosts that leave wait for those that stay. One that takes no Pods any more waits for nothing.
		"one that stays is running": {Limits{MaxUnavailable: 1}, leaving, "starts 0 dead; starts; left a b: stay"},
		"one that stays failed":     {Limits{MaxUnavailable: 1}, leaving, "starts 0 dead; fails 0; starts; left a b: stay-failed by 0"},
		"it is done":                {Limits{MaxUnavailable: 1}, leaving, "starts 0 dead; ends 0; starts a; left b: max-unavailable"},
		"two may be unavailable":    {Limits{MaxUnavailable: 2}, leaving, "starts 0 dead; ends 0; starts a b; left"},
		"too few are Ready":         {Limits{MaxUnavailable: 2, MinReady: 8}, leaving, "gone 7 8; starts 0 dead; ends 0; starts; left a b: min-ready"},
		"more than exist must stay": {Limits{MaxUnavailable: 2, MinReady: 12}, leaving, "starts 0 dead; ends 0; starts a b; left"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			script(t, nine(tc.limits, tc.work...), tc.script)
		})
	}
	// No more start than there are workers, none waits for the slowest of a batch, and waiting for a Node takes no worker.
	script(t, New(in(Plain, ids(5)...), nil, nil, 2), "starts 0 1; awaits 1; starts 2; fails 2; starts 3")
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
		r := nine(c.limits, in(Disrupt, ids(6)...)...)
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
	work := in(Disrupt, ids(10_000)...)
	r := New(work, map[string]Limits{"runners": {MaxUnavailable: 2000, FailureBudget: 10_000}}, map[string][]string{"runners": ids(10_000)}, 32)
	for b.Loop() {
		for _, id := range r.Next(start, all) {
			r.Failed(id)
		}
	}
}
