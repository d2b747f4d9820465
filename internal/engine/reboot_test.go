package engine_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

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

// requests counts the restarts that the provider gets, and those that hosts get.
func (w *nodesInMemory) requests() (provider, host *int) {
	provider, host = new(int), new(int)
	w.OnCall = func(c enginetest.Call) enginetest.Fault {
		switch c.What {
		case "reboot":
			*provider++
		case "RestartHost":
			*host++
		}
		return enginetest.Fault{}
	}
	return provider, host
}

// TestReboot: a host that answers is drained, restarts itself once, is Ready again and uncordoned.
func TestReboot(t *testing.T) {
	t.Parallel()
	inMemory(t, 2, everyoneAtOnce, func(t *testing.T, w *nodesInMemory) {
		host := w.atWork(t)[0]
		provider, n := w.requests()
		a, r := w.restarts(t, host)
		if a.Refusal != nil || !a.Drains || a.Disruption != plan.Reboot || a.PullsPlug || *n != 1 || *provider != 0 || !r.Converged() || len(w.Pods(host)) > 0 {
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
	inMemory(t, 2, everyoneAtOnce, func(t *testing.T, w *nodesInMemory) {
		host := w.atWork(t)[0]
		w.Change(func() { m := w.Member(host); m.Away, m.Silent = true, m.State["agent"] })
		w.dies(nil)
		n, itself := w.requests()
		if a, _ := w.restarts(t, host); a.Refusal == nil || a.Refusal.Code.String() != "host-may-be-busy" || !strings.Contains(a.Refusal.Text, "has 1 Pod") {
			t.Errorf("with a Pod: %+v", a.Refusal)
		}
		if h := w.hostOf(t, host); strings.Contains(h.Unknown.Remedy, "macfleet reboot") {
			t.Errorf("offered for a busy host: %s", h.Unknown.Remedy)
		}
		w.EndPods(host)
		if h := w.hostOf(t, host); !strings.Contains(h.Unknown.Remedy, "macfleet reboot "+host) {
			t.Errorf("not offered: %s", h.Unknown.Remedy)
		}
		if r := apply(t, w.engine); *n+*itself != 0 || r.Done > 0 {
			t.Errorf("an apply asked for %d restarts", *n)
		}
		a, r := w.restarts(t, host)
		if a.Refusal != nil || !a.PullsPlug || *n != 1 || *itself != 0 || len(r.Failures) > 0 {
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

// TestRebootFails: a request is sent once, also if its answer is lost. A server that changed since the plan is not restarted, and a
// host that shows another key afterwards is not waited for. Once the request may be sent, the Node stays cordoned.
func TestRebootFails(t *testing.T) {
	t.Parallel()
	answers := func(f enginetest.Fault) func(*nodesInMemory, *enginetest.Machine) enginetest.Fault {
		return func(*nodesInMemory, *enginetest.Machine) enginetest.Fault { return f }
	}
	change := func(edit func(*enginetest.Machine)) func(*nodesInMemory, *enginetest.Machine) enginetest.Fault {
		return func(w *nodesInMemory, m *enginetest.Machine) enginetest.Fault {
			return around(false, func() { w.Change(func() { edit(m) }) })
		}
	}
	for name, tc := range map[string]struct {
		at       string
		is       func(w *nodesInMemory, m *enginetest.Machine) enginetest.Fault // nil: the lock is lost
		silent   bool                                                           // the provider restarts it
		requests int
		waits    bool // until it gives up
	}{
		"not received":       {at: "RestartHost", is: answers(enginetest.Fault{Err: enginetest.ErrLost}), requests: 1, waits: true},
		"does not come back": {at: "RestartHost", is: change(func(m *enginetest.Machine) { m.Away = true }), requests: 1, waits: true},
		"refused":            {at: "RestartHost", is: change(func(m *enginetest.Machine) { m.FullDisk = true }), requests: 1},
		"another key": {at: "RestartHost", is: func(w *nodesInMemory, m *enginetest.Machine) enginetest.Fault {
			return around(false, func() { w.Reinstall(m) })
		}, requests: 1},
		"renamed":          {at: "get", is: change(func(m *enginetest.Machine) { m.Server.Name = "by-hand" })},
		"updating":         {at: "get", is: change(func(m *enginetest.Machine) { m.Server.Status = "updating" })},
		"lock lost":        {at: "pods"},
		"silent, denied":   {at: "reboot", is: answers(enginetest.Fault{Err: inventory.ErrDenied}), silent: true, requests: 1},
		"silent, received": {at: "reboot", is: answers(enginetest.Fault{Err: enginetest.ErrLost, Applied: true}), silent: true, requests: 1, waits: true},
	} {
		parallel(t, name, func(t *testing.T) {
			inMemory(t, 2, everyoneAtOnce, func(t *testing.T, w *nodesInMemory) {
				host := w.atWork(t)[0]
				m, requests, began := w.Member(host), 0, time.Now()
				if tc.silent {
					w.EndPods(host)
					w.Change(func() { m.Away, m.Silent = true, m.State["agent"] })
					w.dies(nil)
					began = time.Now()
				}
				var lost atomic.Bool
				w.engine.Guard = heldWhile(func() bool { return !lost.Load() })
				w.OnCall = func(c enginetest.Call) enginetest.Fault {
					if c.What == "reboot" || c.What == "RestartHost" {
						requests++
					}
					switch {
					case c.What == tc.at && tc.is == nil:
						lost.Store(true)
					case c.What == tc.at:
						return tc.is(w, m)
					}
					return enginetest.Fault{}
				}
				if _, r := w.restarts(t, host); requests != tc.requests || len(r.Failures) != 1 || time.Since(began) > engine.DefaultReboot && !tc.waits {
					t.Errorf("%d requests in %s, failures %+v", requests, time.Since(began), r.Failures)
				}
				if n, _ := w.Node(host); n.Cordoned != (tc.requests > 0 || name == "lock lost") {
					t.Errorf("its Node is cordoned: %t", n.Cordoned)
				}
			})
		})
	}
}

// TestRestartOverALostLine: the connection ends with the restart, so that another boot shows it, and not the answer.
func TestRestartOverALostLine(t *testing.T) {
	t.Parallel()
	inMemory(t, 2, everyoneAtOnce, func(t *testing.T, w *nodesInMemory) {
		host := w.atWork(t)[0]
		w.OnCall = faultAt("RestartHost", enginetest.Fault{Err: enginetest.ErrLost, Applied: true})
		if a, r := w.restarts(t, host); a.Refusal != nil || !r.Converged() {
			t.Errorf("refused %+v, failures %+v", a.Refusal, r.Failures)
		}
	})
}
