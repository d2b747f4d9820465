package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/enginetest"
	"github.com/macfleet/macfleet/plan"
)

// nodesInMemory are servers that become Nodes of one fleet. Besides root, three steps are
// configured on each: plain, which disturbs no work, tools, for which a host is drained, and
// agent, from which its kubelet runs.
type nodesInMemory struct {
	*enginetest.World
	engine *engine.Engine
	want   map[plan.StepID]string
	events []engine.Event
}

// inMemory calls f in a bubble with that many servers, all of which the fleet wants.
func inMemory(t *testing.T, servers int, r fleet.Rollout, f func(t *testing.T, w *nodesInMemory)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &nodesInMemory{World: enginetest.New(servers, servers, r), want: map[plan.StepID]string{"plain": "a", "tools": "t1", "agent": "v1"}}
		w.Things = func(fleet.Host) []enginetest.Thing {
			return []enginetest.Thing{{Key: "sudo", Value: "yes", Input: plan.LoginPassword, Grants: true},
				{Key: "plain", Value: w.want["plain"]},
				{Key: "tools", Value: w.want["tools"], Class: plan.Drain, Root: true, Brought: true},
				{Key: "agent", Value: w.want["agent"], Class: plan.Restart, Brought: true, Node: true, Input: plan.Kubeconfig}}
		}
		w.engine = w.Engine()
		w.engine.Run = named("r", 1)
		w.engine.Emit = func(ev engine.Event) { w.events = append(w.events, ev) }
		f(t, w)
		if open, _ := w.Connections(); open != 0 || len(w.Wrong()) > 0 {
			t.Errorf("%d connections are left, and %q was done", open, w.Wrong())
		}
	})
}

// everyoneAtOnce limits nothing.
var everyoneAtOnce = fleet.Rollout{MaxUnavailable: fleet.Share{Percent: 100}}

// happened lists the events of some types as "TYPE HOST".
func (w *nodesInMemory) happened(types ...engine.EventType) (out []string) {
	for _, ev := range w.events {
		if slices.Contains(types, ev.Type) {
			out = append(out, fmt.Sprint(ev.Type, " ", ev.Host))
		}
	}
	return out
}

// on lets something happen at the first event of a type of a host.
func (w *nodesInMemory) on(of engine.EventType, host string, happens func()) {
	done, next := false, w.engine.Emit
	w.engine.Emit = func(ev engine.Event) {
		next(ev)
		if ev.Type == of && ev.Host == host && !done {
			done = true
			happens()
		}
	}
}

// TestGate: an apply ends when the Nodes of the hosts that it worked on are Ready:
// one list for all of them, however many there are, and again when it fails.
func TestGate(t *testing.T) {
	t.Parallel()
	inMemory(t, 3, everyoneAtOnce, func(t *testing.T, w *nodesInMemory) {
		p := planned(t, w.engine)
		names := hostNames(p)
		w.Member(p.Hosts[0].Server.ID).Late = 50 * time.Second
		w.Member(p.Hosts[1].Server.ID).Late = 20 * time.Second
		began, lists := time.Time{}, 0
		w.OnCall = func(c enginetest.Call) enginetest.Fault {
			if c != (enginetest.Call{Place: enginetest.InCluster, What: "nodes"}) {
				return enginetest.Fault{}
			}
			if lists++; lists == 1 {
				began = time.Now()
			}
			if lists%5 == 2 {
				return enginetest.Fault{Err: errors.New("the api server is away")}
			}
			return enginetest.Fault{}
		}
		r := performed(t, w.engine, p)
		if !r.Converged() {
			t.Fatalf("result %+v", r)
		}
		got := w.happened(engine.Waiting, engine.NodeReady)
		slices.Sort(got[:3]) // they end their work in any order
		if want := []string{"waiting " + names[0], "waiting " + names[1], "waiting " + names[2], "ready " + names[2], "ready " + names[1], "ready " + names[0]}; !slices.Equal(got, want) {
			t.Errorf("events %q", got)
		}
		if most := int(time.Since(began)/engine.DefaultEvery) + 5; lists < 15 || lists > most {
			t.Errorf("the Nodes were listed %d times, want 15 to %d", lists, most)
		}
		for _, h := range r.After.Hosts {
			if n, _ := h.Node.Get(); n.Ready != inventory.Ready {
				t.Errorf("the final plan says of %s: %+v", h.Name, n)
			}
		}
	})
}

// TestGateBlurred: when the last observation only knows that a kubelet started some time before it, the next
// heartbeat is awaited and everything observed again, instead of a host that cannot be judged.
func TestGateBlurred(t *testing.T) {
	t.Parallel()
	inMemory(t, 2, everyoneAtOnce, func(t *testing.T, w *nodesInMemory) {
		p := planned(t, w.engine)
		slow := w.Member(p.Hosts[0].Server.ID)
		emit := w.engine.Emit
		w.engine.Emit = func(ev engine.Event) {
			if ev.Type == engine.NodeReady && ev.Host == p.Hosts[0].Name {
				w.Change(func() { slow.Blurred = 25 * time.Second })
			}
			emit(ev)
		}
		failed := false
		w.OnCall = func(c enginetest.Call) enginetest.Fault { // a list that fails in that wait is repeated
			if c.What != "nodes" || slow.Blurred == 0 || failed {
				return enginetest.Fault{}
			}
			failed = true
			return enginetest.Fault{Err: errors.New("the api server is away")}
		}
		r := performed(t, w.engine, p)
		if !failed {
			t.Error("no heartbeat was awaited")
		}
		for _, h := range r.After.Hosts {
			if state, why, _ := h.Ready(); state != inventory.Ready {
				t.Errorf("%s is %s: %s", h.Name, state, why)
			}
		}
		if !r.Converged() {
			t.Errorf("result %+v", r)
		}
	})
}

// TestGateTooLate: a host that is not Ready in time is a failure that says what the
// cluster and the host know, and keeps no other.
func TestGateTooLate(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		joined  bool // before: its Node exists
		reports bool // its kubelet does
		disturb func(t *testing.T, w *nodesInMemory, host string)
		says    []string
	}{
		"no Node":     {disturb: func(*testing.T, *nodesInMemory, string) {}, says: []string{"no Node of that name", "no problem found"}},
		"silent Node": {joined: true, disturb: func(*testing.T, *nodesInMemory, string) {}, says: []string{"no heartbeat"}},
		"another's Node": {joined: true, disturb: func(t *testing.T, w *nodesInMemory, host string) {
			n, _ := w.Node(host)
			if err := w.engine.Cluster.SetProviderID(t.Context(), n, "scw-applesilicon://fr-par-1/another"); err != nil {
				t.Error(err)
			}
		}, says: []string{"another server"}},
		"a Node without an id": {joined: true, reports: true, disturb: func(t *testing.T, w *nodesInMemory, host string) {
			n, _ := w.Node(host)
			if err := w.engine.Cluster.SetProviderID(t.Context(), n, ""); err != nil {
				t.Error(err)
			}
		}, says: []string{"no provider id"}},
		"no host": {disturb: func(_ *testing.T, w *nodesInMemory, host string) {
			w.Change(func() { w.Member(host).Away = true })
		}, says: []string{"no Node", "unreachable: no route"}},
		"drifted host": {disturb: func(_ *testing.T, w *nodesInMemory, host string) {
			w.Change(func() { w.Member(host).State["plain"] = "edited" })
		}, says: []string{"on the host: plain: value-differs"}},
	} {
		row(t, name, 2, everyoneAtOnce, func(t *testing.T, w *nodesInMemory) {
			p := planned(t, w.engine)
			host := p.Hosts[0].Name
			if tc.joined {
				converges(t, w.engine)
				w.want["agent"] = "v2"
				p = planned(t, w.engine)
			}
			if !tc.reports {
				w.Member(p.Hosts[0].Server.ID).Late = time.Hour
			}
			w.on(engine.Waiting, host, func() { tc.disturb(t, w, host) })
			r := performed(t, w.engine, p)
			if r.Converged() || len(r.Failures) != 1 || r.Failures[0].Action.Kind != plan.AwaitNode || r.Failures[0].Action.Host != host {
				t.Fatalf("failures %+v", r.Failures)
			}
			var trouble *plan.Trouble
			if err := r.Failures[0].Err; !errors.As(err, &trouble) || trouble.Code.String() != "node-not-ready" {
				t.Fatal(err)
			}
			for _, part := range tc.says {
				if !strings.Contains(trouble.Text, part) {
					t.Errorf("it says %q, without %q", trouble.Text, part)
				}
			}
		})
	}
}

// TestGateStopped: who asks to stop is not kept waiting, and the run has not
// converged.
func TestGateStopped(t *testing.T) {
	t.Parallel()
	inMemory(t, 2, everyoneAtOnce, func(t *testing.T, w *nodesInMemory) {
		stop, cancel := context.WithCancel(t.Context())
		defer cancel()
		w.engine.Stop = stop
		p := planned(t, w.engine)
		w.on(engine.Waiting, p.Hosts[0].Name, cancel)
		if r := performed(t, w.engine, p); r.NotWaited != 2 || !r.Interrupted || r.Converged() || len(r.Failures) > 0 {
			t.Errorf("result %+v", r)
		}
	})
}

// TestGateWaitsOnlyForChangedHosts: the gate does not wait for a host on which nothing
// was done, or that failed.
func TestGateWaitsOnlyForChangedHosts(t *testing.T) {
	t.Parallel()
	inMemory(t, 2, everyoneAtOnce, func(t *testing.T, w *nodesInMemory) {
		converges(t, w.engine)
		p := planned(t, w.engine)
		one, two := p.Hosts[0].Name, p.Hosts[1].Name
		w.Change(func() {
			w.Member(one).Late = time.Hour
			w.Member(two).State["plain"] = "edited"
		})
		w.DeleteNode(one)
		w.events = nil
		if r := apply(t, w.engine); len(r.Failures) > 0 || r.Done != 1 {
			t.Errorf("result %+v", r)
		}
		w.OnCall = func(c enginetest.Call) enginetest.Fault {
			if c.What == "identify" {
				return enginetest.Fault{Err: errors.New("forbidden")}
			}
			return enginetest.Fault{}
		}
		w.RevokeToken(one)
		r := apply(t, w.engine)
		if len(r.Failures) != 1 || r.Failures[0].Action.Kind != plan.IdentifyHost {
			t.Errorf("failures %+v", r.Failures)
		}
		if slices.Contains(w.happened(engine.Waiting), "waiting "+one) {
			t.Errorf("%s was waited for: %q", one, w.happened(engine.Waiting))
		}
	})
}

// TestGateWaitsForTheNewProcess: what a Node said before its host's kubelet was started
// again is not waited out and not believed.
func TestGateWaitsForTheNewProcess(t *testing.T) {
	t.Parallel()
	inMemory(t, 1, everyoneAtOnce, func(t *testing.T, w *nodesInMemory) {
		converges(t, w.engine)
		w.want["agent"] = "v2"
		p := planned(t, w.engine)
		host, late := p.Hosts[0].Name, 15*time.Second
		w.Change(func() { w.Member(host).Late = late })
		if r := performed(t, w.engine, p); !r.Converged() {
			t.Fatalf("result %+v", r)
		}
		var done, ready time.Time
		for _, ev := range w.events {
			switch {
			case ev.Type == engine.Done && ev.Action.Step == "agent":
				done = ev.Time
			case ev.Type == engine.NodeReady:
				ready = ev.Time
			}
		}
		if ready.Sub(done) < late {
			t.Errorf("it counted as Ready %s after it was started again", ready.Sub(done))
		}
	})
}

// inCluster is a fleet whose Nodes, Pods and objects are not as wanted. It returns the
// hosts whose Node has no provider id, another server's, and Pods that nothing deletes.
func inCluster(t *testing.T, w *nodesInMemory) (empty, other, dead string) {
	t.Helper()
	converges(t, w.engine)
	names := hostNames(planned(t, w.engine))
	empty, other, dead = names[0], names[1], names[2]
	w.Objects = []inventory.Object{{Kind: "Secret", Name: "acme-kubeconfig", State: inventory.ObjectMissing}}
	for host, id := range map[string]string{empty: "", other: "scw-applesilicon://fr-par-1/another"} {
		n, _ := w.Node(host)
		must(t, w.engine.Cluster.SetProviderID(t.Context(), n, id))
	}
	for i := range 20 {
		w.AddPod(inventory.Pod{Namespace: "ci", Name: fmt.Sprintf("p-%02d", i), Node: dead, Phase: "Failed",
			Finalizers: []string{inventory.VMFinalizer}, Overdue: i > 0})
	}
	return empty, other, dead
}

// reads are the calls of a cluster that change nothing.
var reads = []string{"uid", "nodes", "observe", "pods", "token"}

// TestInCluster performs what a plan decided on Nodes, Pods and objects, and
// nothing is left.
func TestInCluster(t *testing.T) {
	t.Parallel()
	inMemory(t, 3, everyoneAtOnce, func(t *testing.T, w *nodesInMemory) {
		empty, other, dead := inCluster(t, w)
		w.Change(func() { w.Member(dead).Away = true })
		var calls []string
		w.OnCall = func(c enginetest.Call) enginetest.Fault {
			if c.Place == enginetest.InCluster && !slices.Contains(reads, c.What) {
				calls = append(calls, c.What+" "+c.Name)
			}
			return enginetest.Fault{}
		}
		r := apply(t, w.engine)
		if len(r.Failures) > 0 || r.After.Summarise().Changes() > 0 {
			t.Fatalf("failures %+v, left %+v", r.Failures, r.After.Actions)
		}
		if left := w.Pods(dead); len(left) != 0 { // p-00 does not work either
			t.Errorf("Pods %q", left)
		}
		slices.Sort(calls)
		want := []string{"delete " + other, "host-key " + other, "keep acme-kubeconfig", "provider-id " + empty}
		for i := 1; i < 20; i++ {
			want = append(want, fmt.Sprintf("release p-%02d", i))
		}
		slices.Sort(want)
		if !slices.Equal(calls, want) {
			t.Errorf("calls %q", calls)
		}
	})
}

// TestInClusterInterrupted breaks each change of a cluster in turn: the host or object
// fails, the others continue, and the next apply ends it.
func TestInClusterInterrupted(t *testing.T) {
	t.Parallel()
	for n := 0; ; n++ {
		fell := false
		inMemory(t, 3, everyoneAtOnce, func(t *testing.T, w *nodesInMemory) {
			inCluster(t, w)
			left := n
			w.OnCall = func(c enginetest.Call) enginetest.Fault {
				if c.Place != enginetest.InCluster || slices.Contains(reads, c.What) {
					return enginetest.Fault{}
				}
				if left--; left == -1 {
					fell = true
					return enginetest.Fault{Err: enginetest.ErrLost}
				}
				return enginetest.Fault{}
			}
			r := apply(t, w.engine)
			if fell == r.Converged() || fell && len(r.Failures) != 1 {
				t.Errorf("interruption %d fell: %t, failures %+v", n, fell, r.Failures)
			}
			if fell && !apply(t, w.engine).Converged() {
				t.Errorf("after interruption %d the next apply does not converge", n)
			}
		})
		if !fell {
			if n < 22 {
				t.Errorf("only %d interruptions fell", n)
			}
			return
		}
	}
}
