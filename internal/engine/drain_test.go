package engine_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/enginetest"
	"github.com/macfleet/macfleet/internal/rollout"
	"github.com/macfleet/macfleet/plan"
)

// busyInMemory are Nodes that each run a Pod, and will get other tools, for which
// a host is drained.
func busyInMemory(t *testing.T, servers int, r fleet.Rollout, f func(t *testing.T, w *nodesInMemory, names []string)) {
	t.Helper()
	inMemory(t, servers, r, func(t *testing.T, w *nodesInMemory) {
		names := w.atWork(t)
		w.want["tools"] = "t2"
		f(t, w, names)
	})
}

// isOpen finds a host's Node open, with its Pod still there or not.
func (w *nodesInMemory) isOpen(t *testing.T, host string, pods int) {
	t.Helper()
	if n, _ := w.Node(host); n.Cordoned || n.CordonRun != "" || n.CordonedBy != "" {
		t.Errorf("%s is closed: %+v", host, n)
	}
	if on := w.Pods(host); len(on) != pods {
		t.Errorf("%s has the Pods %q", host, on)
	}
}

// oneByOne lets one host be disturbed at a time.
var oneByOne = fleet.Rollout{MaxUnavailable: fleet.Share{Count: 1}}

// TestDrained: tools are exchanged on hosts with running Pods: host after host is closed, drained,
// changed, and opened when it is Ready.
func TestDrained(t *testing.T) {
	t.Parallel()
	busyInMemory(t, 3, oneByOne, func(t *testing.T, w *nodesInMemory, names []string) {
		p := planned(t, w.engine)
		for _, a := range p.Actions {
			if !a.Drains || a.Evicts != 1 || a.Disruption != plan.Drain || len(a.Busy) != 1 || a.Refusal != nil {
				t.Errorf("%+v", a)
			}
		}
		if r := performed(t, w.engine, p); !r.Converged() || len(r.LeftCordoned) > 0 {
			t.Fatalf("failures %+v, left %+v, closed %+v", r.Failures, r.Left, r.LeftCordoned)
		}
		var got []string
		for _, ev := range w.events {
			if slices.Contains([]engine.EventType{engine.HostStarted, engine.Cordoning, engine.Evicting, engine.Done, engine.NodeReady, engine.Uncordoned, engine.HostEnded}, ev.Type) {
				got = append(got, strings.TrimSpace(string(ev.Type)+" "+ev.What))
			}
		}
		one := []string{"begun", "closing", "evicting evicted", "evicting gone", "done", "ready", "opened", "ended"}
		if want := slices.Concat(one, one, one); !slices.Equal(got, want) {
			t.Errorf("events %q", got)
		}
		for _, name := range names {
			w.isOpen(t, name, 0)
		}
	})
}

// TestDrainWaitsForVMs: a virtual machine ends some time after its Pod, and the host is changed only then. One that does not end in
// time leaves the host as it is.
func TestDrainWaitsForVMs(t *testing.T) {
	t.Parallel()
	for name, ends := range map[string]time.Duration{"in time": 30 * time.Second, "never": 24 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			busyInMemory(t, 1, oneByOne, func(t *testing.T, w *nodesInMemory, names []string) {
				m := w.Member(names[0])
				w.OnCall = func(c enginetest.Call) enginetest.Fault {
					if c.What != "evict" {
						return enginetest.Fault{}
					}
					return enginetest.Fault{Before: func() {
						w.Change(func() { m.VMs = []string{"ci-job"} })
						time.AfterFunc(ends, func() { w.Change(func() { m.VMs = nil }) })
					}}
				}
				r := apply(t, w.engine)
				failed := len(r.Failures) == 1 && strings.Contains(r.Failures[0].Err.Error(), "still running: the virtual machine ci-job")
				if changed := m.State["tools"] == "t2"; changed != (name == "in time") || failed == changed {
					t.Errorf("changed %t, failures %+v", changed, r.Failures)
				}
				w.isOpen(t, names[0], 0)
			})
		})
	}
}

// TestDrainLooksAgain: a Pod that was bound to the Node just before the cordon, and whose virtual machine was not started yet, leaves
// the host as it is.
func TestDrainLooksAgain(t *testing.T) {
	t.Parallel()
	busyInMemory(t, 1, oneByOne, func(t *testing.T, w *nodesInMemory, names []string) {
		w.OnCall = func(c enginetest.Call) enginetest.Fault {
			if c.What != "evict" {
				return enginetest.Fault{}
			}
			return enginetest.Fault{After: func() {
				w.AddPod(inventory.Pod{Namespace: "ci", Name: "late", Node: names[0], Phase: "Pending", Controller: "ReplicaSet"})
			}}
		}
		r := apply(t, w.engine)
		if len(r.Failures) != 1 || !strings.Contains(r.Failures[0].Err.Error(), "has Pods: ci/late") || w.Member(names[0]).State["tools"] != "t1" {
			t.Errorf("failures %+v", r.Failures)
		}
		w.isOpen(t, names[0], 1)
	})
}

// TestWorkSeenAfterRoot: without root the plan cannot see what runs on a host. What is found later is not interrupted.
func TestWorkSeenAfterRoot(t *testing.T) {
	t.Parallel()
	busyInMemory(t, 1, oneByOne, func(t *testing.T, w *nodesInMemory, names []string) {
		m := w.Member(names[0])
		w.Change(func() { m.Root = false })
		r := apply(t, w.engine)
		if len(r.Failures) != 1 || r.Failures[0].Action.Step != "tools" || !strings.Contains(r.Failures[0].Err.Error(), "running work") || m.State["tools"] != "t1" {
			t.Errorf("tools %s, failures %+v", m.State["tools"], r.Failures)
		}
		w.isOpen(t, names[0], 1)
	})
}

// TestStoppedInDrain: the first Ctrl-C ends a drain and the Node is uncordoned again. Nothing was changed, so nothing failed.
func TestStoppedInDrain(t *testing.T) {
	t.Parallel()
	busyInMemory(t, 1, oneByOne, func(t *testing.T, w *nodesInMemory, names []string) {
		w.Held["job-of-"+names[0]] = true
		stop, halt := context.WithCancel(t.Context())
		defer halt()
		w.engine.Stop = stop
		w.on(engine.Evicting, names[0], halt)
		r := apply(t, w.engine)
		if r.Done != 0 || r.NotStarted != 1 || !r.Interrupted || len(r.Failures) > 0 || len(r.LeftCordoned) > 0 || r.Finished() {
			t.Errorf("%+v", r)
		}
		w.isOpen(t, names[0], 1)
	})
}

// TestNotDrained: what holds a Pod is named, nothing is changed, and the Node is open again.
func TestNotDrained(t *testing.T) {
	t.Parallel()
	busyInMemory(t, 1, oneByOne, func(t *testing.T, w *nodesInMemory, names []string) {
		w.Held["job-of-"+names[0]], w.engine.Drain.Within = true, time.Minute
		r := apply(t, w.engine)
		if len(r.Failures) != 1 || r.Done > 0 || len(r.LeftCordoned) > 0 {
			t.Fatalf("done %d, failures %+v, closed %+v", r.Done, r.Failures, r.LeftCordoned)
		}
		if why := troubleOf(r.Failures[0].Err); why.Code != engine.CodeNotDrained || !strings.Contains(why.Text, "ci/job-of-"+names[0]+" is held by a disruption budget") {
			t.Errorf("%+v", why)
		}
		w.isOpen(t, names[0], 1)
		w.Held = nil
		converges(t, w.engine)
		w.isOpen(t, names[0], 0)
	})
}

// TestIdleWithoutNode: a host whose Node is not Ready cannot be drained. It is changed once no machine runs on it, and its Node is
// not touched.
func TestIdleWithoutNode(t *testing.T) {
	t.Parallel()
	busyInMemory(t, 1, oneByOne, func(t *testing.T, w *nodesInMemory, names []string) {
		w.Change(func() { w.Machines[0].Silent = "v1" })
		time.Sleep(time.Minute) // on the virtual clock
		if said := codesOf(planned(t, w.engine), names[0]); !slices.Contains(said, "refused waits-for-idle") {
			t.Errorf("it says %q", said)
		}
		w.EndPods(names[0])
		w.on(engine.Done, names[0], func() { w.Change(func() { w.Machines[0].Silent = "" }) })
		if r := apply(t, w.engine); !r.Converged() || r.Done != 1 || len(w.happened(engine.Cordoning)) > 0 {
			t.Errorf("done %d, %q, failures %+v", r.Done, w.happened(engine.Cordoning), r.Failures)
		}
	})
}

// TestForced changes a busy host that someone names, and leaves the other to be drained.
func TestForced(t *testing.T) {
	t.Parallel()
	busyInMemory(t, 2, everyoneAtOnce, func(t *testing.T, w *nodesInMemory, names []string) {
		w.Held["job-of-"+names[0]] = true
		w.engine.Selection.ForceBusy = names[:1]
		p := planned(t, w.engine)
		for _, a := range p.Actions {
			if forced := a.Host == names[0]; a.Forced != forced || a.Drains == forced || len(a.Busy) != 1 {
				t.Errorf("%+v", a)
			}
		}
		if r := performed(t, w.engine, p); !r.Converged() {
			t.Fatalf("failures %+v", r.Failures)
		}
		w.isOpen(t, names[0], 1)
		w.isOpen(t, names[1], 0)
	})
}

// TestAdopted: a cordon that a run left behind is opened by the next apply, or used by it.
func TestAdopted(t *testing.T) {
	t.Parallel()
	busyInMemory(t, 2, oneByOne, func(t *testing.T, w *nodesInMemory, names []string) {
		for _, name := range names {
			w.Cordon(name, "laptop", "r0")
		}
		w.want["tools"] = "t1"
		if said := codesOf(planned(t, w.engine), names[0]); !slices.Equal(said, []string{"drift left-cordoned"}) {
			t.Errorf("it says %q", said)
		}
		if r := apply(t, w.engine); !r.Converged() || r.Done != 2 {
			t.Errorf("%d done, failures %+v", r.Done, r.Failures)
		}
		w.isOpen(t, names[0], 1)

		// A run that resumes where another run cordoned.
		w.Cordon(names[0], "laptop", "r0")
		w.want["tools"] = "t2"
		if r := apply(t, w.engine); !r.Converged() {
			t.Fatalf("failures %+v, left %+v", r.Failures, r.Left)
		}
		for _, name := range names {
			w.isOpen(t, name, 0)
		}
	})
}

// TestForeignCordon: what a person closed is drained and changed, and stays closed; it
// counts as a host that is away.
func TestForeignCordon(t *testing.T) {
	t.Parallel()
	busyInMemory(t, 2, oneByOne, func(t *testing.T, w *nodesInMemory, names []string) {
		w.Cordon(names[0], "mona@desk", "")
		r := apply(t, w.engine) // a run does not wait for a person, who may have gone home
		if len(r.Failures) > 0 || len(r.Left) != 1 || r.Left[0].Host != names[1] || r.Left[0].Why != rollout.Cordoned || len(r.LeftCordoned) > 0 {
			t.Errorf("failures %+v, left %+v, closed %+v", r.Failures, r.Left, r.LeftCordoned)
		}
		if n, _ := w.Node(names[0]); !n.Cordoned || n.CordonedBy != "mona@desk" || n.CordonRun != "" {
			t.Errorf("%+v", n)
		}
		w.isOpen(t, names[1], 1)
		if said := codesOf(planned(t, w.engine), names[0]); !slices.Equal(said, []string{"warning node-cordoned"}) {
			t.Errorf("for the cordoned one the plan has %q", said)
		}
	})
}

// TestLeftClosedGoesFirst: hosts that earlier runs left closed take all places of the
// fleet. They go first, one after the other, and the canary is one of them.
func TestLeftClosedGoesFirst(t *testing.T) {
	t.Parallel()
	limits := fleet.Rollout{MaxUnavailable: fleet.Share{Count: 1}, Canary: 1}
	busyInMemory(t, 3, limits, func(t *testing.T, w *nodesInMemory, names []string) {
		for _, name := range names[1:] {
			w.Cordon(name, "laptop", "r0")
		}
		if r := apply(t, w.engine); !r.Converged() {
			t.Errorf("failures %+v, left %+v", r.Failures, r.Left)
		}
		if got, want := w.happened(engine.HostStarted), []string{string(engine.HostStarted) + " " + names[1], string(engine.HostStarted) + " " + names[2], string(engine.HostStarted) + " " + names[0]}; !slices.Equal(got, want) {
			t.Errorf("started: %q", got)
		}
	})
}

// TestHalfChangedStaysCordoned: a host whose change was interrupted takes no Pods until a run has verified it.
func TestHalfChangedStaysCordoned(t *testing.T) {
	t.Parallel()
	busyInMemory(t, 1, oneByOne, func(t *testing.T, w *nodesInMemory, names []string) {
		w.OnCall = faultAt("RunChange", enginetest.Fault{Err: enginetest.ErrLost, Half: true})
		r := apply(t, w.engine)
		if n, _ := w.Node(names[0]); len(r.Failures) != 1 || len(r.LeftCordoned) != 1 || !n.Cordoned || n.CordonRun == "" {
			t.Errorf("failures %+v, left cordoned %+v, Node %+v", r.Failures, r.LeftCordoned, n)
		}
		w.OnCall = nil
		converges(t, w.engine)
		w.isOpen(t, names[0], 0)
	})
}
