package engine_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/enginetest"
	"github.com/macfleet/macfleet/internal/rollout"
	"github.com/macfleet/macfleet/plan"
)

// runEverywhere finds the kubelets of hosts at a version, and each one's Pod running.
func (w *nodesInMemory) runEverywhere(t *testing.T, hosts []string, version string) {
	t.Helper()
	for _, host := range hosts {
		if got := w.Member(host).State["agent"]; got != version {
			t.Errorf("%s runs %s, want %s", host, got, version)
		}
		if pods := w.Pods(host); !slices.Equal(pods, []string{"job-of-" + host}) {
			t.Errorf("%s has the Pods %q", host, pods)
		}
	}
}

// atWork lets all hosts join and gives each a Pod.
func (w *nodesInMemory) atWork(t *testing.T) (names []string) {
	t.Helper()
	converges(t, w.engine)
	names = hostNames(planned(t, w.engine))
	for _, name := range names {
		w.RunPod(name, "job-of-"+name)
	}
	w.events = nil
	return names
}

// TestCanaryStopsRoll rolls a kubelet to nine runners that dies on each: the first
// host stops the run, and eight keep the old one. Their Pods run on.
func TestCanaryStopsRoll(t *testing.T) {
	t.Parallel()
	const runners = 9
	inMemory(t, runners, fleet.DefaultRollout(), func(t *testing.T, w *nodesInMemory) {
		names := w.atWork(t)
		w.everyMac(func(m *enginetest.Machine) { m.Refuses = "v2" })
		w.want["agent"] = "v2"
		r := apply(t, w.engine)
		if len(r.Failures) != 1 || r.Failures[0].Action.Host != names[0] || r.Converged() {
			t.Fatalf("failures %+v", r.Failures)
		}
		if len(r.Left) != runners-1 || r.Left[0].Why != rollout.CanaryFailed || r.NotStarted != runners-1 {
			t.Errorf("left %+v, %d actions", r.Left, r.NotStarted)
		}
		w.runEverywhere(t, names[1:], "v1")

		// Nor does the next apply lose another one.
		r = apply(t, w.engine)
		if len(r.Failures) != 1 || r.Failures[0].Action.Host != names[0] || len(r.Left) != runners-1 ||
			r.Left[0].Why != rollout.TrialFailed || !slices.Equal(r.Left[0].Of, names[:1]) {
			t.Errorf("failures %+v, left %+v", r.Failures, r.Left)
		}
		w.runEverywhere(t, names[1:], "v1")

		w.want["agent"] = "v1"
		converges(t, w.engine)
		w.runEverywhere(t, names, "v1")
	})
}

// everyMac changes all Macs.
func (w *nodesInMemory) everyMac(change func(*enginetest.Machine)) {
	w.Change(func() {
		for _, m := range w.Machines {
			change(m)
		}
	})
}

// holds holds a host for an hour.
func (w *nodesInMemory) holds(t *testing.T, host plan.Host) {
	t.Helper()
	hold := anHour()
	for _, x := range w.engine.Hold(t.Context(), []plan.Host{host}, hold, nil) {
		if !x.Done(hold) {
			t.Fatalf("%+v", x)
		}
	}
}

func anHour() *inventory.Hold {
	return &inventory.Hold{Who: "sam@desk", Reason: "its fan", Since: time.Now(), Until: time.Now().Add(time.Hour)}
}

// TestCanaryNeverReady rolls a kubelet that runs on the first host, and of which the cluster never
// hears: no later apply tries it on another host, until the first one is Ready or a person holds it.
func TestCanaryNeverReady(t *testing.T) {
	t.Parallel()
	const runners = 5
	for name, held := range map[string]bool{"it becomes Ready": false, "it is held": true} {
		parallel(t, name, func(t *testing.T) {
			inMemory(t, runners, fleet.DefaultRollout(), func(t *testing.T, w *nodesInMemory) {
				names := w.atWork(t)
				w.everyMac(func(m *enginetest.Machine) { m.Silent = "v2" })
				w.want["agent"] = "v2"
				if r := apply(t, w.engine); len(r.Failures) != 1 || r.Failures[0].Action.Kind != plan.AwaitNode || len(r.Left) != runners-1 {
					t.Fatalf("failures %+v, left %+v", r.Failures, r.Left)
				}
				for range 2 {
					w.engine.Bounds = new(plan.Bounds)
					p := planned(t, w.engine)
					if len(p.Rollouts) != 1 || !slices.Equal(p.Rollouts[0].Trials, names[:1]) {
						t.Errorf("planned %+v", p.Rollouts)
					}
					r := performed(t, w.engine, p)
					if len(r.Left) != runners-1 || r.Left[0].Why != rollout.TrialFailed || !slices.Equal(r.Left[0].Of, names[:1]) || r.Finished() {
						t.Errorf("failures %+v, left %+v", r.Failures, r.Left)
					}
					w.runEverywhere(t, names[1:], "v1")
				}
				if held {
					w.holds(t, planned(t, w.engine).Hosts[0])
				}
				w.everyMac(func(m *enginetest.Machine) {
					if !held || m.Server.Name != names[0] {
						m.Silent = ""
					}
				})
				if r := apply(t, w.engine); len(r.Failures)+len(r.Left) > 0 || !held && !r.Converged() {
					t.Errorf("failures %+v, left %+v", r.Failures, r.Left)
				}
				w.runEverywhere(t, names, "v2")
			})
		})
	}
}

// TestRolloutOrder rolls to five Nodes in one run and checks every beginning and end: the waves are the planned ones.
func TestRolloutOrder(t *testing.T) {
	t.Parallel()
	const soak = 10 * time.Minute
	limits := fleet.Rollout{MaxUnavailable: fleet.Share{Percent: 40}, Canary: 1, Soak: soak}
	inMemory(t, 5, limits, func(t *testing.T, w *nodesInMemory) {
		names := w.atWork(t)
		w.engine.Bounds = new(plan.Bounds)
		w.want["agent"] = "v2"
		p := planned(t, w.engine)
		want := [][]string{names[:1], names[1:3], names[3:]}
		if len(p.Rollouts) != 1 || !slices.EqualFunc(p.Rollouts[0].Waves, want, slices.Equal) {
			t.Errorf("planned %+v", p.Rollouts)
		}
		if r := performed(t, w.engine, p); !r.Converged() || len(r.Left) > 0 {
			t.Fatalf("failures %+v, left %+v", r.Failures, r.Left)
		}
		running, most, canary, got := 0, 0, time.Time{}, make([][]string, len(want))
		var soaking engine.Event
		for _, ev := range w.events {
			switch ev.Type {
			case engine.HostStarted:
				running++
				most = max(most, running)
				got[ev.Wave-1] = append(got[ev.Wave-1], ev.Host)
				if ev.Lane != "disrupt" || ev.Worst != plan.Restart.String() || ev.Fleet != "f0" {
					t.Errorf("%+v", ev)
				}
				if canary.IsZero() && running > 1 || !canary.IsZero() && ev.Time.Sub(canary) < soak {
					t.Errorf("%s begins %s after the canary", ev.Host, ev.Time.Sub(canary))
				}
			case engine.HostEnded:
				running--
				if canary.IsZero() {
					canary = ev.Time
				}
			case engine.Soaking:
				soaking = ev
			}
		}
		if running != 0 || most != 2 || soaking.Fleet != "f0" || soaking.Until.Before(canary) || !slices.EqualFunc(got, want, slices.Equal) {
			t.Errorf("%d are at it, %d were at the most, the soak was %+v, and the waves %q", running, most, soaking, got)
		}
		w.runEverywhere(t, names, "v2")
	})
}

// TestRolloutWithoutList starts nothing while no one knows how many Nodes are Ready,
// and continues when the cluster answers again.
func TestRolloutWithoutList(t *testing.T) {
	t.Parallel()
	inMemory(t, 2, fleet.DefaultRollout(), func(t *testing.T, w *nodesInMemory) {
		w.atWork(t)
		w.want["agent"] = "v2"
		p := planned(t, w.engine)
		left := 3
		w.OnCall = func(c enginetest.Call) enginetest.Fault {
			if c.What == "nodes" && left > 0 {
				left--
				return enginetest.Fault{Err: errors.New("the api server is away")}
			}
			return enginetest.Fault{}
		}
		w.on(engine.HostStarted, p.Hosts[0].Name, func() {
			if left > 0 {
				t.Error("it begins")
			}
		})
		if r := performed(t, w.engine, p); !r.Converged() || left > 0 {
			t.Fatalf("failures %+v, left %+v, %d", r.Failures, r.Left, left)
		}
	})
}

// dies ends the kubelets of hosts, and waits until the cluster reports it.
func (w *nodesInMemory) dies(names []string) {
	for _, name := range names {
		w.StopKubelet(name)
	}
	time.Sleep(2 * time.Minute) // on the virtual clock
}

// TestFiveOfNine heals four of five dead runners while the fleet gets another kubelet: the
// four healthy ones go one at a time, and the fifth, which is held, stays as it is.
func TestFiveOfNine(t *testing.T) {
	t.Parallel()
	const runners, dead = 9, 5
	inMemory(t, runners, fleet.DefaultRollout(), func(t *testing.T, w *nodesInMemory) {
		names := w.atWork(t)
		w.dies(names[:dead])
		held := planned(t, w.engine).Hosts[0]
		w.holds(t, held)
		w.want["agent"] = "v2"
		r := apply(t, w.engine)
		if len(r.Failures)+len(r.Left) > 0 || r.Converged() {
			t.Errorf("converged: %t, failures %+v, left %+v", r.Converged(), r.Failures, r.Left)
		}
		lanes, disturbed := make(map[string]int), 0
		for _, ev := range w.events {
			switch ev.Type {
			case engine.HostStarted:
				if lanes[ev.Lane]++; ev.Host == held.Name {
					t.Errorf("the held host is touched")
				}
				if ev.Lane == "disrupt" {
					if disturbed++; disturbed > 1 {
						t.Errorf("%s is disturbed while another is", ev.Host)
					}
				}
			case engine.HostEnded:
				if ev.Lane == "disrupt" {
					disturbed--
				}
			}
		}
		if lanes["repair"] != dead-1 || lanes["disrupt"] != runners-dead {
			t.Errorf("lanes %v", lanes)
		}
		for _, h := range r.After.Hosts {
			if n, _ := h.Node.Get(); (n.Ready == inventory.Ready) == (h.Name == held.Name) {
				t.Errorf("%s is %s: %s", h.Name, n.Ready, n.Why)
			}
		}
		w.runEverywhere(t, names[:1], "v1")
		w.runEverywhere(t, names[1:], "v2")
	})
}

// TestAnothersNodeIsAway: a healthy host whose Node gets another server's provider id after the plan takes the place of one that
// may be disturbed.
func TestAnothersNodeIsAway(t *testing.T) {
	t.Parallel()
	busyInMemory(t, 3, oneByOne, func(t *testing.T, w *nodesInMemory, names []string) {
		p := planned(t, w.engine)
		n, _ := w.Node(names[2])
		must(t, w.engine.Cluster.SetProviderID(t.Context(), n, "scw-applesilicon://fr-par-1/another"))
		if r := performed(t, w.engine, p); r.Done > 0 || len(r.Left) != 3 || r.Left[0].Why != rollout.Unavailable {
			t.Errorf("%d done, left %+v, failures %+v", r.Done, r.Left, r.Failures)
		}
	})
}
