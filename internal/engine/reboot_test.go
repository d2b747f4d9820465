package engine_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/enginetest"
	"github.com/macfleet/macfleet/plan"
)

// restarts performs macfleet reboot on a host and returns the plan's action and the result.
func (w *nodesInMemory) restarts(t *testing.T, host string) (plan.Action, engine.Result) {
	t.Helper()
	p := planned(t, w.engine)
	h, _ := p.HostByServer(w.Member(host).Server.ID)
	p.Actions = plan.Rebooting(h, p.Actions, "", nil)
	a := p.Actions[len(p.Actions)-1]
	if a.Refusal != nil {
		return a, engine.Result{}
	}
	return a, performed(t, w.engine, p)
}

// requests counts the restarts that the provider gets.
func (w *nodesInMemory) requests(fault enginetest.Fault) *int {
	n := new(int)
	w.OnCall = func(c enginetest.Call) enginetest.Fault {
		if c.Place != enginetest.InCloud || c.What != "reboot" {
			return enginetest.Fault{}
		}
		*n++
		return fault
	}
	return n
}

// TestReboot: a host that answers is drained, restarted once, Ready again and uncordoned.
func TestReboot(t *testing.T) {
	t.Parallel()
	inMemory(t, 2, everyoneAtOnce, func(t *testing.T, w *nodesInMemory) {
		host := w.atWork(t)[0]
		n := w.requests(enginetest.Fault{})
		a, r := w.restarts(t, host)
		if a.Refusal != nil || !a.Drains || a.Disruption != plan.Reboot || *n != 1 || !r.Converged() || len(w.Pods(host)) > 0 {
			t.Fatalf("action %+v, %d requests, failures %+v, Pods %q", a, *n, r.Failures, w.Pods(host))
		}
		if node := w.nodeOf(t, host); node.Cordoned || node.Ready != inventory.Ready {
			t.Errorf("its Node: %+v", node)
		}
	})
}

// TestRebootOfADeadHost: one that does not answer is restarted only if its Node takes no Pods and has none.
func TestRebootOfADeadHost(t *testing.T) {
	t.Parallel()
	dead := func(w *nodesInMemory, host string) {
		w.Change(func() { m := w.Member(host); m.Away, m.Silent = true, m.State["agent"] })
		w.dies(nil)
	}
	inMemory(t, 2, everyoneAtOnce, func(t *testing.T, w *nodesInMemory) {
		host := w.atWork(t)[0]
		dead(w, host)
		n := w.requests(enginetest.Fault{})
		if a, _ := w.restarts(t, host); a.Refusal == nil || a.Refusal.Code.String() != "host-may-be-busy" || !strings.Contains(a.Refusal.Text, "has 1 Pod") {
			t.Errorf("with a Pod: %+v", a.Refusal)
		}
		if h, _ := planned(t, w.engine).HostByServer(w.Member(host).Server.ID); strings.Contains(h.Unknown.Remedy, "macfleet reboot") {
			t.Errorf("offered for a busy host: %s", h.Unknown.Remedy)
		}
		w.EndPods(host)
		if h, _ := planned(t, w.engine).HostByServer(w.Member(host).Server.ID); !strings.Contains(h.Unknown.Remedy, "macfleet reboot "+host) {
			t.Errorf("not offered: %s", h.Unknown.Remedy)
		}
		if r := apply(t, w.engine); *n != 0 || r.Done > 0 {
			t.Errorf("an apply asked for %d restarts", *n)
		}
		a, r := w.restarts(t, host)
		if a.Refusal != nil || *n != 1 || len(r.Failures) > 0 {
			t.Fatalf("refused %+v, %d requests, failures %+v", a.Refusal, *n, r.Failures)
		}
		if h, _ := r.After.HostByServer(w.Member(host).Server.ID); h.Unknown != nil {
			t.Errorf("it still does not answer: %+v", h.Unknown)
		}
	})
}

// TestRebootOfADeadHostLooksAgain: one that does not answer is not restarted if it became a Node since the plan, or if a Pod came.
func TestRebootOfADeadHostLooksAgain(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		isNode   bool // when the plan is made
		denied   bool // its Node cannot be cordoned
		since    func(w *nodesInMemory, host, providerID string)
		restarts int
	}{
		"as planned":              {isNode: true, restarts: 1},
		"as planned, and no Node": {restarts: 1},
		"not cordoned":            {isNode: true, denied: true},
		"a Pod":                   {isNode: true, since: func(w *nodesInMemory, host, _ string) { w.RunPod(host, "late") }},
		"a Pod that is deleted": {isNode: true, since: func(w *nodesInMemory, host, _ string) {
			w.AddPod(inventory.Pod{Namespace: "ci", Name: "late", Node: host, Phase: "Running", Controller: "ReplicaSet", Due: time.Now()})
		}},
		"a Node by its name":        {since: func(w *nodesInMemory, host, _ string) { w.AddNode(inventory.Node{Name: host}) }},
		"a Node by its provider id": {since: func(w *nodesInMemory, _, id string) { w.AddNode(inventory.Node{Name: "other", ProviderID: id}) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inMemory(t, 2, everyoneAtOnce, func(t *testing.T, w *nodesInMemory) {
				host := w.atWork(t)[0]
				w.EndPods(host)
				w.Change(func() { m := w.Member(host); m.Away, m.Silent = true, m.State["agent"] })
				w.dies([]string{host})
				if !tc.isNode {
					w.DeleteNode(host)
				}
				restarts, came := 0, false
				id := w.Member(host).Server.ProviderID()
				w.OnCall = func(c enginetest.Call) enginetest.Fault {
					if c.What == "reboot" {
						restarts++
					}
					if c.What == "close" && tc.denied {
						return enginetest.Fault{Err: inventory.ErrDenied}
					}
					if c.What != "get" || came || tc.since == nil {
						return enginetest.Fault{}
					}
					came = true
					return enginetest.Fault{Before: func() { tc.since(w, host, id) }}
				}
				a, r := w.restarts(t, host)
				if a.Refusal != nil || restarts != tc.restarts || tc.restarts == 0 && len(r.Failures) != 1 {
					t.Errorf("refused %+v, %d restarts, failures %+v", a.Refusal, restarts, r.Failures)
				}
			})
		})
	}
}

// TestRebootRequestsOnce: a request whose answer is lost is not repeated; if the server does not restart, the run fails.
func TestRebootRequestsOnce(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]enginetest.Fault{
		"denied":   {Err: inventory.ErrDenied},
		"received": {Err: errors.New("the connection broke"), Applied: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inMemory(t, 2, everyoneAtOnce, func(t *testing.T, w *nodesInMemory) {
				host := w.atWork(t)[0]
				n := w.requests(fault)
				if _, r := w.restarts(t, host); *n != 1 || len(r.Failures) != 1 {
					t.Errorf("%d requests, failures %+v", *n, r.Failures)
				}
			})
		})
	}
}

// TestNotRebooted: what a restart is refused for.
func TestNotRebooted(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(w *nodesInMemory, host string)
		code   string
	}{
		"a Pod without a controller": {func(w *nodesInMemory, host string) {
			w.AddPod(inventory.Pod{Namespace: "ci", Name: "alone", Node: host, Phase: "Running"})
		}, "host-may-be-busy"},
		"a busy server": {func(w *nodesInMemory, host string) { w.Change(func() { w.Member(host).Server.Status = "updating" }) }, "server-busy"},
		"a builder": {func(w *nodesInMemory, _ string) {
			w.Config.Fleets[0].Groups[0].Spec.GithubRunner = &fleet.GithubRunner{}
		}, "host-may-be-busy"},
		"a dead host under another name": {func(w *nodesInMemory, host string) {
			w.EndPods(host)
			w.dies([]string{host})
			w.Change(func() { m := w.Member(host); m.Away, m.Server.Name = true, "by-hand" })
		}, "server-not-verified"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inMemory(t, 2, everyoneAtOnce, func(t *testing.T, w *nodesInMemory) {
				host := w.atWork(t)[0]
				id := w.Member(host).Server.ID
				n := w.requests(enginetest.Fault{})
				tc.change(w, host)
				if a, _ := w.restarts(t, id); a.Refusal == nil || a.Refusal.Code.String() != tc.code || *n > 0 {
					t.Errorf("%+v, %d requests", a.Refusal, *n)
				}
			})
		})
	}
}

// TestRebootLooksAgain: a server that changed since the plan is not restarted, and a host that shows another key afterwards is not
// waited for.
func TestRebootLooksAgain(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		at       string
		change   func(w *nodesInMemory, m *enginetest.Machine)
		restarts int
	}{
		"renamed":     {"get", func(w *nodesInMemory, m *enginetest.Machine) { w.Change(func() { m.Server.Name = "by-hand" }) }, 0},
		"updating":    {"get", func(w *nodesInMemory, m *enginetest.Machine) { w.Change(func() { m.Server.Status = "updating" }) }, 0},
		"lock lost":   {"pods", func(w *nodesInMemory, _ *enginetest.Machine) { w.engine.Guard.(*fellBehind).lost.Store(true) }, 0},
		"another key": {"reboot", func(w *nodesInMemory, m *enginetest.Machine) { w.Reinstall(m) }, 1},
	} {
		inMemory(t, 2, everyoneAtOnce, func(t *testing.T, w *nodesInMemory) {
			host := w.atWork(t)[0]
			m, restarts, began := w.Member(host), 0, time.Now()
			w.engine.Guard = new(fellBehind)
			w.OnCall = func(c enginetest.Call) enginetest.Fault {
				if c.What == "reboot" {
					restarts++
				}
				if c.What == tc.at {
					return enginetest.Fault{Before: func() { tc.change(w, m) }}
				}
				return enginetest.Fault{}
			}
			if _, r := w.restarts(t, host); restarts != tc.restarts || len(r.Failures) != 1 || time.Since(began) > engine.DefaultReboot {
				t.Errorf("%s: %d restarts in %s, failures %+v", name, restarts, time.Since(began), r.Failures)
			}
		})
	}
}
