package engine_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/enginetest"
	"github.com/macfleet/macfleet/internal/rollout"
	"github.com/macfleet/macfleet/plan"
)

// TestRunKeepsToItsForecast: in generated fleets, a run starts the hosts in the waves that the plan shows, and leaves
// those that the plan says it would leave. The hosts differ in speed, which the forecast does not know.
func TestRunKeepsToItsForecast(t *testing.T) {
	t.Parallel()
	for seed := range uint64(40) {
		parallel(t, fmt.Sprint(seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 2))
			n := 2 + random.IntN(8)
			limits := fleet.Rollout{MaxUnavailable: fleet.Share{Count: 1 + random.IntN(3)}, Canary: random.IntN(3), MinReady: random.IntN(2) * random.IntN(n),
				FailureBudget: random.IntN(2), Soak: time.Duration(random.IntN(2)) * time.Minute}
			if random.IntN(3) == 0 {
				limits.Order = fleet.ByIdle
			}
			inMemory(t, n, limits, func(t *testing.T, w *nodesInMemory) {
				names := w.atWork(t)
				updated, plain := make(map[string]bool), make(map[string]bool)
				for _, name := range names {
					m := w.Member(name)
					switch random.IntN(6) {
					case 0:
						w.Cordon(name, "ana", "")
					case 1:
						w.StopKubelet(name)
					case 2:
						w.RunPod(name, "second-job-of-"+name)
					}
					w.Change(func() {
						m.Slow, m.Late = time.Duration(random.IntN(9))*time.Second, time.Duration(random.IntN(9))*time.Second
					})
					updated[name], plain[name] = random.IntN(3) > 0, random.IntN(3) == 0
				}
				time.Sleep(2 * time.Minute) // in a bubble: the cluster notices
				things := w.Things
				w.Things = func(h fleet.Host) []enginetest.Thing {
					all := things(h)
					for i := range all {
						if all[i].Key == "agent" && updated[h.Name] || all[i].Key == "plain" && plain[h.Name] {
							all[i].Value += "-new"
						}
					}
					return all
				}
				w.engine.Bounds, w.engine.Parallelism = new(plan.Bounds), 1+random.IntN(4)
				p := planned(t, w.engine)
				r := performed(t, w.engine, p)
				var waves [][]string
				for _, ev := range w.events {
					if ev.Type == engine.HostStarted && ev.Wave > 0 {
						for len(waves) < ev.Wave {
							waves = append(waves, nil)
						}
						waves[ev.Wave-1] = append(waves[ev.Wave-1], ev.Host)
					}
				}
				var left []string
				for _, x := range r.Left {
					left = append(left, x.Host)
				}
				var shown plan.Rollout
				if len(p.Rollouts) > 0 {
					shown = p.Rollouts[0]
				}
				if len(r.Failures) > 0 {
					t.Fatalf("failures: %+v", r.Failures)
				}
				if diff := cmp.Diff(slices.Concat(shown.Waves, [][]string{shown.Left}), slices.Concat(waves, [][]string{left})); diff != "" {
					t.Errorf("%d hosts, %+v: shown (-) and run (+), the last row not started:\n%s\n%+v", n, limits, diff, r.Left)
				}
			})
		})
	}
}

// TestForecastOfWindow: a plan counts the hosts that would start after the end of the maintenance window.
func TestForecastOfWindow(t *testing.T) {
	t.Parallel()
	inMemory(t, 4, fleet.Rollout{MaxUnavailable: fleet.Share{Count: 1}}, func(t *testing.T, w *nodesInMemory) {
		w.atWork(t)
		now := time.Now().UTC().Truncate(time.Minute).Add(time.Minute)
		time.Sleep(time.Until(now))
		window, err := fleet.ParseWindow("daily " + now.Format("15:04") + "-" + now.Add(2*time.Minute).Format("15:04"))
		must(t, err)
		w.engine.Bounds = &plan.Bounds{Guardrails: fleet.Guardrails{Windows: []fleet.Window{window}}}
		w.want["tools"] = "t2"
		p := planned(t, w.engine) // a host takes more than a minute by default, and less than two
		if f := p.Forecast; f == nil || f.Late != 2 {
			t.Errorf("forecast %+v", f)
		}
	})
}

// TestPartlyBlockedCanary: a host that gets only a part of the change is not the canary.
func TestPartlyBlockedCanary(t *testing.T) {
	t.Parallel()
	inMemory(t, 3, fleet.DefaultRollout(), func(t *testing.T, w *nodesInMemory) {
		names := w.atWork(t)
		w.want["agent"] = "v2"
		p := planned(t, w.engine)
		blocked := p.Actions[slices.IndexFunc(p.Actions, func(a plan.Action) bool { return a.Host == names[0] })]
		blocked.Step, blocked.Refusal = "tools", &plan.Trouble{Text: "disk full"}
		p.Actions = append(p.Actions, blocked)
		engine.Bound(w.engine.Config, w.engine.Steps, p, plan.Bounds{}, engine.Outlook{Parallelism: 3}, nil)
		if len(p.Rollouts) != 1 || p.Rollouts[0].Waves[0][0] != names[1] {
			t.Errorf("%+v", p.Rollouts)
		}
	})
}

// TestForecastIsRight: with the durations of the run before, a roll takes about as long as its plan says, whatever its
// waves and its soak are.
func TestForecastIsRight(t *testing.T) {
	t.Parallel()
	limits := fleet.Rollout{MaxUnavailable: fleet.Share{Count: 2}, Canary: 1, Soak: time.Minute}
	inMemory(t, 7, limits, func(t *testing.T, w *nodesInMemory) {
		for _, name := range w.atWork(t) {
			m := w.Member(name)
			w.Change(func() { m.Slow, m.Late = 2*time.Second, 4*time.Second })
		}
		w.engine.Bounds, w.engine.Parallelism = new(plan.Bounds), 32
		w.want["agent"], w.want["tools"] = "v2", "t2"
		performed(t, w.engine, planned(t, w.engine))
		timing := rollout.Timing{Recorded: make(map[rollout.Task]time.Duration), Runs: 1}
		for _, ev := range w.events { // the hosts are alike, so each duration stands for the median
			took := time.Duration(ev.Seconds * float64(time.Second))
			switch ev.Type {
			case engine.Done:
				timing.Recorded[rollout.TaskOf(*ev.Action)] = took
			case engine.NodeReady:
				timing.Recorded[rollout.Await(rollout.Disrupt)] = took
			}
		}
		w.engine.Timing = func() rollout.Timing { return timing }
		w.want["agent"], w.want["tools"] = "v3", "t3"
		p := planned(t, w.engine)
		began := time.Now()
		if r := performed(t, w.engine, p); !r.Converged() {
			t.Fatalf("failures %+v, left %+v", r.Failures, r.Left)
		}
		took := time.Since(began).Seconds()
		if f := *p.Forecast; f.Runs != 1 || math.Abs(float64(f.Seconds)-took) > took/6 {
			t.Errorf("it took %.0f s, forecast %+v", took, f)
		}
	})
}
