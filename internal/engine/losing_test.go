package engine_test

import (
	"strings"
	"sync/atomic"
	"testing"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/enginetest"
	"github.com/macfleet/macfleet/plan"
)

// TestLockIsCheckedBefore: the lock is checked right before each of these calls. A run that loses it at the call before, or while
// an action is announced, does not make the call and starts no other action.
func TestLockIsCheckedBefore(t *testing.T) {
	t.Parallel()
	type in func(*testing.T, func(*testing.T, *nodesInMemory, *plan.Plan))
	nodes := func(world func(*testing.T, int, fleet.Rollout, func(*testing.T, *nodesInMemory, []string))) in {
		return func(t *testing.T, f func(*testing.T, *nodesInMemory, *plan.Plan)) {
			world(t, 1, oneByOne, func(t *testing.T, w *nodesInMemory, _ []string) { f(t, w, planned(t, w.engine)) })
		}
	}
	busy, moves := nodes(busyInMemory), nodes(moving)
	pooled := func(t *testing.T, f func(*testing.T, *nodesInMemory, *plan.Plan)) {
		inMemory(t, 1, oneByOne, func(t *testing.T, w *nodesInMemory) { f(t, w, planned(t, w.engine)) })
	}
	agent := func(t *testing.T, f func(*testing.T, *nodesInMemory, *plan.Plan)) {
		toyInMemory(t, func(t *testing.T, w *nodesInMemory, _ *enginetest.Machine) {
			p := planned(t, w.engine)
			p.Actions = append([]plan.Action{forgetting(w.Register(toyScope, "old", "bake"))}, p.Actions...)
			f(t, w, p)
		})
	}
	erasing := func(t *testing.T, f func(*testing.T, *nodesInMemory, *plan.Plan)) { // which an earlier run may have asked for
		twoOfThree(t, func(t *testing.T, w *nodesInMemory, names []string) {
			w.staged(t, names[0], plan.Wiping)
			f(t, w, planned(t, w.engine))
		})
	}
	for call, tc := range map[string]struct {
		world  in
		begins plan.Kind // the lock is lost when an action of the kind is announced; empty: at a call
		at     string
		fails  bool // that call
	}{
		"rename (of a host that moves)":        {world: moves, begins: plan.RenameServer},
		"revoke":                               {world: moves, begins: plan.RevokeHost},
		"identify":                             {world: moves, at: "rename"},
		"deliver":                              {world: busy, at: "probe"},
		"RunChange":                            {world: busy, at: "deliver"},
		"open":                                 {world: busy, at: "evict", fails: true},
		"rename (of a server that is claimed)": {world: pooled, at: "TakeClaim"},
		"fence":                                {world: agent, at: "WriteMarker"},
		"deregister":                           {world: agent, at: "agent"},
		"reinstall":                            {world: erasing, at: "get"},
	} {
		parallel(t, call, func(t *testing.T) {
			tc.world(t, func(t *testing.T, w *nodesInMemory, p *plan.Plan) {
				var lost atomic.Bool
				emit := w.engine.Emit
				w.engine.Emit = func(ev engine.Event) {
					emit(ev)
					switch {
					case ev.Type != engine.Started:
					case lost.Load():
						t.Errorf("%s was started after the loss", ev.Action.Kind)
					case ev.Action.Kind == tc.begins:
						lost.Store(true)
					}
				}
				w.engine.Guard = heldWhile(func() bool { return !lost.Load() })
				not, _, _ := strings.Cut(call, " ")
				w.OnCall = func(c enginetest.Call) (f enginetest.Fault) {
					switch {
					case lost.Load() && c.What == not:
						t.Errorf("%s %s after the loss", c.What, c.Name)
					case c.What == tc.at:
						f.Before = func() { lost.Store(true) }
						if tc.fails {
							f.Err = inventory.ErrDenied
						}
					}
					return f
				}
				if r := performed(t, w.engine, p); r.Lost == nil {
					t.Errorf("nothing was lost: %+v", r)
				}
			})
		})
	}
}

// TestFinished: each thing that a run leaves undone keeps it from being finished.
func TestFinished(t *testing.T) {
	t.Parallel()
	after := &plan.Plan{}
	for left, r := range map[string]engine.Result{
		"":               {After: after},
		"the comparison": {},
		"a failure":      {After: after, Failures: make([]engine.Failure, 1)},
		"a fence":        {After: after, LeftFenced: make([]engine.LeftFenced, 1)},
		"an action":      {After: after, NotStarted: 1},
		"a Node":         {After: after, NotWaited: 1},
		"the lock":       {After: after, Lost: errTaken},
	} {
		if r.Finished() != (left == "") {
			t.Errorf("left %q: finished %t", left, r.Finished())
		}
	}
}

// TestMarkerSinceThePlan: a host that got the marker of another configuration since the plan is not changed.
func TestMarkerSinceThePlan(t *testing.T) {
	t.Parallel()
	inMemory(t, 1, everyoneAtOnce, func(t *testing.T, w *nodesInMemory) {
		w.atWork(t)
		w.want["plain"] = "b"
		p := planned(t, w.engine)
		h := p.Hosts[0]
		m, _ := h.Seen.Marker.Get()
		m.Configuration = "globex"
		conn, err := w.Engine().Hosts.Connect(t.Context(), engine.Target{Server: h.Server, Name: h.Name, Trust: h.Trust()})
		must(t, err)
		conn.Observe(t.Context(), nil)
		_, err = conn.Do(t.Context(), engine.WriteMarker{Marker: m})
		must(t, err)
		conn.Close(t.Context())
		if r := performed(t, w.engine, p); r.Done > 0 || len(r.Failures) != 1 || w.Machines[0].State["plain"] != "a" {
			t.Errorf("%d done, failures %+v", r.Done, r.Failures)
		}
	})
}
