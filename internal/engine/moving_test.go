package engine_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/enginetest"
	"github.com/macfleet/macfleet/plan"
)

// moving are Nodes that each run a Pod, and whose fleet gets another name.
func moving(t *testing.T, servers int, r fleet.Rollout, f func(t *testing.T, w *nodesInMemory, names []string)) {
	t.Helper()
	inMemory(t, servers, r, func(t *testing.T, w *nodesInMemory) {
		names := w.atWork(t)
		w.Config.Fleets[0].Name = "jobs"
		w.Config.Moves = []fleet.Move{{From: fleet.Place{Fleet: "f0"}, To: fleet.Place{Fleet: "jobs"}}}
		f(t, w, names)
	})
}

// inJobs is the name that a host gets.
func inJobs(name string) string { return strings.Replace(name, "-f0-", "-jobs-", 1) }

// forgets finds nothing of a host's former name.
func (w *nodesInMemory) forgets(t *testing.T, was string) {
	t.Helper()
	for _, line := range w.Lasting() {
		if strings.Contains(line, was) {
			t.Errorf("this is left: %s", line)
		}
	}
}

// arrived finds a host only as a Node of its new name, with its identity and its pin.
func (w *nodesInMemory) arrived(t *testing.T, was string) {
	t.Helper()
	w.forgets(t, was)
	w.isOpen(t, inJobs(was), 0)
	if n, there := w.Node(inJobs(was)); !there || n.Ready != inventory.Ready {
		t.Errorf("the Node of the new name: %+v", n)
	}
}

// begins lets something happen whenever an action of a kind begins.
func (w *nodesInMemory) begins(kind plan.Kind, happens func()) {
	next := w.engine.Emit
	w.engine.Emit = func(ev engine.Event) {
		next(ev)
		if ev.Type == engine.Started && ev.Action.Kind == kind {
			happens()
		}
	}
}

// TestMoveAtWork: hosts with running Pods get another name one after the other, in the lane of those that
// are disturbed: each is drained as the Node that it was, and Ready as the one that it becomes.
func TestMoveAtWork(t *testing.T) {
	t.Parallel()
	limits := fleet.Rollout{MaxUnavailable: fleet.Share{Count: 1}, Canary: 1, MinReady: 2}
	moving(t, 3, limits, func(t *testing.T, w *nodesInMemory, names []string) {
		p := planned(t, w.engine)
		engine.Bound(w.Config, w.engine.Steps, p, plan.Bounds{AnyTime: true}, engine.Outlook{}, nil)
		if len(p.Rollouts) != 1 || len(p.Rollouts[0].Waves) != 3 || len(p.Runnable()) != 3 {
			t.Errorf("rollouts %+v", p.Rollouts)
		}
		for _, h := range p.Hosts {
			state, _, _ := h.Ready()
			if n, moves := h.MovesFrom(); !moves || inJobs(n.Name) != h.Name || state != inventory.Ready || !p.IsHealthy(h) {
				t.Errorf("%s: Node %+v, ready %s", h.Name, n, state)
			}
		}
		if r := performed(t, w.engine, p); !r.Converged() || len(r.LeftCordoned) > 0 {
			t.Fatalf("failures %+v, left %+v, closed %+v", r.Failures, r.Left, r.LeftCordoned)
		}
		var got []string
		for _, ev := range w.events {
			switch ev.Type {
			case engine.HostStarted, engine.HostEnded:
				got = append(got, string(ev.Type)+" "+ev.Lane)
			case engine.Cordoning, engine.NodeReady, engine.Uncordoned:
				got = append(got, string(ev.Type))
			case engine.Evicting:
				got = append(got, "Pod "+ev.What)
			case engine.Done:
				got = append(got, string(ev.Action.Kind))
			}
		}
		one := []string{string(engine.HostStarted) + " disrupt", "closing", "Pod evicted", "Pod gone", "drain", "rename", "identity", "step", "delete-node", "revoke", "ready", "opened", "ended disrupt"}
		if want := slices.Concat(one, one, one); !slices.Equal(got, want) {
			t.Errorf("events %q", got)
		}
		for _, name := range names {
			w.arrived(t, name)
		}
	})
}

// TestMoveLooksAgain: between the plan and each step of the apply someone opens the old Node,
// and Pods come. None of them is lost.
func TestMoveLooksAgain(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		at    plan.Kind // the action that begins then; empty: none has
		fails bool
	}{
		"before the drain":      {},
		"before the name":       {plan.RenameServer, false},
		"before the identity":   {plan.IdentifyHost, false},
		"before the kubelet":    {plan.RunStep, false},
		"before the Node goes":  {plan.DeleteNode, true},
		"before the token goes": {plan.RevokeHost, false},
	} {
		parallel(t, name, func(t *testing.T) {
			moving(t, 1, everyoneAtOnce, func(t *testing.T, w *nodesInMemory, names []string) {
				p := planned(t, w.engine)
				comes := sync.OnceFunc(func() {
					if _, there := w.Node(names[0]); there {
						w.Uncordon(names[0])
						w.RunPod(names[0], "late")
					}
				})
				if w.begins(tc.at, comes); tc.at == "" {
					comes()
				}
				r := performed(t, w.engine, p)
				evicted := slices.ContainsFunc(w.events, func(ev engine.Event) bool {
					return ev.Type == engine.Evicting && ev.What == "gone" && ev.Pod == "ci/late"
				})
				if (len(r.Failures) > 0) != tc.fails {
					t.Errorf("failures %+v", r.Failures)
				}
				if tc.fails {
					if on := w.Pods(names[0]); len(on) != 1 || !strings.Contains(r.Failures[0].Err.Error(), "ci/late") {
						t.Errorf("Pods %q, failures %+v", on, r.Failures)
					}
					refused := r.After.Actions[0].Refusal
					if refused == nil || refused.Code.String() != "pods-on-node" || !strings.Contains(refused.Remedy, names[0]) {
						t.Errorf("afterwards: %+v", r.After.Actions)
					}
					w.EndPods(names[0])
					if r = apply(t, w.engine); !r.Converged() {
						t.Errorf("failures %+v", r.Failures)
					}
				} else if tc.at != plan.RevokeHost && !evicted {
					t.Error("the Pod was not evicted")
				}
				w.arrived(t, names[0])
			})
		})
	}
}

// TestMoveNotDrained: what keeps a Pod keeps its host as it is. Its Node is open again, and
// nothing has its new name.
func TestMoveNotDrained(t *testing.T) {
	t.Parallel()
	moving(t, 1, everyoneAtOnce, func(t *testing.T, w *nodesInMemory, names []string) {
		before := w.Lasting()
		w.Held["job-of-"+names[0]] = true
		w.engine.Drain.Within = time.Minute
		r := apply(t, w.engine)
		if len(r.Failures) != 1 || !strings.Contains(r.Failures[0].Err.Error(), "the move not started") || len(r.LeftCordoned) > 0 || r.Done != 0 {
			t.Errorf("failures %+v, closed %+v, done %d", r.Failures, r.LeftCordoned, r.Done)
		}
		if got := w.Lasting(); !slices.Equal(got, before) {
			t.Errorf("before %q\nafter  %q", before, got)
		}
		w.isOpen(t, names[0], 1)
	})
}

// TestMoveOfAnAPIThatRefuses: a name that the provider refuses costs the host no more than its
// drain: its Node is open again.
func TestMoveOfAnAPIThatRefuses(t *testing.T) {
	t.Parallel()
	moving(t, 1, everyoneAtOnce, func(t *testing.T, w *nodesInMemory, names []string) {
		w.OnCall = faultAt("rename", enginetest.Fault{Err: fmt.Errorf("403 %w", inventory.ErrDenied)})
		if r := apply(t, w.engine); len(r.Failures) != 1 || len(r.LeftCordoned) > 0 || r.Failures[0].Action.Kind != plan.RenameServer {
			t.Errorf("failures %+v, closed %+v", r.Failures, r.LeftCordoned)
		}
		w.isOpen(t, names[0], 0)
		w.OnCall = nil
		if r := apply(t, w.engine); !r.Converged() {
			t.Errorf("failures %+v", r.Failures)
		}
		w.arrived(t, names[0])
	})
}

// TestMoveAsksForNodesAgain: a list of Nodes that fails once does not end a move whose kubelet has its name
// already, and one that fails all the time ends it with the reason.
func TestMoveAsksForNodesAgain(t *testing.T) {
	t.Parallel()
	errReset := errors.New("connection reset by peer")
	for name, times := range map[string]int{"once": 1, "for ever": 1 << 20} {
		parallel(t, name, func(t *testing.T) {
			moving(t, 1, everyoneAtOnce, func(t *testing.T, w *nodesInMemory, names []string) {
				left := 0
				w.begins(plan.DeleteNode, func() { left = times })
				w.OnCall = func(c enginetest.Call) enginetest.Fault {
					if c.What != "nodes" || left == 0 {
						return enginetest.Fault{}
					}
					left--
					return enginetest.Fault{Err: errReset}
				}
				r := apply(t, w.engine)
				if times == 1 {
					if !r.Converged() {
						t.Errorf("failures %+v", r.Failures)
					}
					w.arrived(t, names[0])
					return
				}
				if len(r.Failures) != 1 || !errors.Is(r.Failures[0].Err, errReset) || !strings.Contains(r.Failures[0].Err.Error(), "after 5m") {
					t.Errorf("failures %+v", r.Failures)
				}
				if _, there := w.Node(names[0]); !there {
					t.Error("the old Node is gone")
				}
			})
		})
	}
}

// TestMoveUnderAnotherServersNode: a Node of the new name that is another server's is not the host's, so the old one is kept.
func TestMoveUnderAnotherServersNode(t *testing.T) {
	t.Parallel()
	moving(t, 1, everyoneAtOnce, func(t *testing.T, w *nodesInMemory, names []string) {
		p := planned(t, w.engine)
		w.on(engine.Started, inJobs(names[0]), func() {
			w.AddNode(inventory.Node{Name: inJobs(names[0]), UID: "another", ProviderID: "scw-applesilicon://fr-par-1/another", LastHeartbeat: time.Now().Add(time.Hour)})
		})
		r := performed(t, w.engine, p)
		if len(r.Failures) != 1 || r.Failures[0].Action.Kind != plan.DeleteNode || !strings.Contains(r.Failures[0].Err.Error(), "has not registered") {
			t.Errorf("failures %+v", r.Failures)
		}
		if _, there := w.Node(names[0]); !there {
			t.Error("the old Node is gone")
		}
	})
}

// TestMoveAsksForTheLockAgain: a lock that is lost while a move waits for its Node keeps the Nodes as they
// are: the run that has it now continues.
func TestMoveAsksForTheLockAgain(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		closed bool   // a person closed the old Node
		not    string // what must not be done after the loss
	}{
		"before the new Node is closed":  {true, "close"},
		"before the old Node is deleted": {false, "delete"},
	} {
		parallel(t, name, func(t *testing.T) {
			moving(t, 1, everyoneAtOnce, func(t *testing.T, w *nodesInMemory, names []string) {
				if tc.closed {
					w.Cordon(names[0], "mona@desk", "")
				}
				var lost atomic.Bool
				last := false
				w.engine.Guard = heldWhile(func() bool { return !lost.Load() })
				w.begins(plan.DeleteNode, func() { last = true })
				w.OnCall = func(c enginetest.Call) enginetest.Fault {
					if last && c.Place == enginetest.InCluster {
						if lost.Load() && c.What == tc.not {
							t.Errorf("%s %s after the loss", c.What, c.Name)
						}
						if c.What == "nodes" {
							lost.Store(true)
						}
					}
					return enginetest.Fault{}
				}
				if r := apply(t, w.engine); r.Lost == nil {
					t.Errorf("%+v", r)
				}
				if _, there := w.Node(names[0]); !there {
					t.Error("the old Node is gone")
				}
				if n, _ := w.Node(inJobs(names[0])); n.Cordoned {
					t.Errorf("the new Node: %+v", n)
				}
			})
		})
	}
}

// TestMoveOfAClosedNode: what a person closed stays closed under the new name.
func TestMoveOfAClosedNode(t *testing.T) {
	t.Parallel()
	for _, who := range []string{"mona@desk", ""} {
		moving(t, 1, everyoneAtOnce, func(t *testing.T, w *nodesInMemory, names []string) {
			w.Cordon(names[0], who, "")
			p := planned(t, w.engine)
			if said := p.Actions[len(p.Actions)-2].Reason.Text; !strings.Contains(said, "the new one is cordoned too") {
				t.Errorf("it says %q", said)
			}
			if r := performed(t, w.engine, p); len(r.Failures) > 0 {
				t.Fatalf("failures %+v", r.Failures)
			}
			if n, _ := w.Node(inJobs(names[0])); !n.Cordoned || n.CordonRun != "" || n.CordonedBy == "" || who != "" && n.CordonedBy != who {
				t.Errorf("%+v", n)
			}
			if said := codesOf(planned(t, w.engine), inJobs(names[0])); !slices.Equal(said, []string{"warning node-cordoned"}) {
				t.Errorf("it says %q", said)
			}
		})
	}
}

// TestMoveOfARemadeNode: the cordon of a Node that someone made again under the old name is not the host's.
func TestMoveOfARemadeNode(t *testing.T) {
	t.Parallel()
	moving(t, 1, everyoneAtOnce, func(t *testing.T, w *nodesInMemory, names []string) {
		w.begins(plan.DeleteNode, func() {
			w.AddNode(inventory.Node{Name: names[0], UID: "again", Cordoned: true, CordonedBy: "mona@desk"})
		})
		r := apply(t, w.engine)
		if n, _ := w.Node(inJobs(names[0])); len(r.Failures) != 1 || n.Cordoned && n.CordonRun == "" {
			t.Errorf("failures %+v, the new Node %+v", r.Failures, n)
		}
	})
}

// TestMoveOfHostsThatAreTooMany: a host that moves and is surplus is released when a person releases surplus hosts, under whatever name it still runs, and
// the other moves. Nothing is left of the old names.
func TestMoveOfHostsThatAreTooMany(t *testing.T) {
	t.Parallel()
	moving(t, 2, everyoneAtOnce, func(t *testing.T, w *nodesInMemory, names []string) {
		w.Config.Fleets[0].Groups[0].Replicas = 1
		w.engine.Selection.ReleaseSurplus = 1
		converges(t, w.engine)
		if pooled := w.poolNames(); len(pooled) != 1 {
			t.Errorf("in the pool are %q, want 1", pooled)
		}
		for _, name := range names {
			w.forgets(t, name)
		}
	})
}

// TestMoveOfADeadNodeLooksAgain: a Node that no drain can empty had no Pods when the plan was made. One that came since keeps its host.
func TestMoveOfADeadNodeLooksAgain(t *testing.T) {
	t.Parallel()
	moving(t, 1, everyoneAtOnce, func(t *testing.T, w *nodesInMemory, names []string) {
		w.EndPods(names[0])
		w.StopKubelet(names[0])
		time.Sleep(time.Minute) // on the virtual clock
		p := planned(t, w.engine)
		w.on(engine.Started, inJobs(names[0]), func() {
			w.AddPod(inventory.Pod{Namespace: "ci", Name: "late", Node: names[0], Phase: "Pending", Controller: "ReplicaSet"})
		})
		r := performed(t, w.engine, p)
		if r.Done > 0 || len(r.Failures) != 1 || !strings.Contains(r.Failures[0].Err.Error(), "has Pods: ci/late") {
			t.Errorf("%d done, failures %+v", r.Done, r.Failures)
		}
	})
}

// TestMovedPinIsNamed: a run that was interrupted between the server's name and its pin's leaves the
// pin its old name. The next apply gives it the new one, also where it has nothing else to do.
func TestMovedPinIsNamed(t *testing.T) {
	t.Parallel()
	moving(t, 1, everyoneAtOnce, func(t *testing.T, w *nodesInMemory, names []string) {
		converges(t, w.engine)
		w.Unpin()
		w.Pin(w.Machines[0], names[0])
		p := planned(t, w.engine)
		if len(p.Actions) > 0 {
			t.Fatalf("%+v", p.Actions)
		}
		if failures, err := w.engine.Settle(t.Context(), p); err != nil || len(failures) > 0 {
			t.Fatal(err, failures)
		}
		w.arrived(t, names[0])
	})
}
