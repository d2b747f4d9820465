package engine_test

import (
	"strings"
	"sync/atomic"
	"testing"

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
	busy := func(t *testing.T, f func(*testing.T, *nodesInMemory, *plan.Plan)) {
		busyInMemory(t, 1, oneByOne, func(t *testing.T, w *nodesInMemory, _ []string) { f(t, w, planned(t, w.engine)) })
	}
	moves := func(t *testing.T, f func(*testing.T, *nodesInMemory, *plan.Plan)) {
		moving(t, 1, everyoneAtOnce, func(t *testing.T, w *nodesInMemory, _ []string) { f(t, w, planned(t, w.engine)) })
	}
	pooled := func(t *testing.T, f func(*testing.T, *nodesInMemory, *plan.Plan)) {
		inMemory(t, 1, everyoneAtOnce, func(t *testing.T, w *nodesInMemory) { f(t, w, planned(t, w.engine)) })
	}
	agent := func(t *testing.T, f func(*testing.T, *nodesInMemory, *plan.Plan)) {
		toyInMemory(t, func(t *testing.T, w *nodesInMemory, _ *enginetest.Machine) { f(t, w, planned(t, w.engine)) })
	}
	entry := func(t *testing.T, f func(*testing.T, *nodesInMemory, *plan.Plan)) {
		toyInMemory(t, func(t *testing.T, w *nodesInMemory, _ *enginetest.Machine) {
			p := planned(t, w.engine)
			p.Actions = []plan.Action{forgetting(w.Register(toyScope, "old", "bake"))}
			f(t, w, p)
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
		"deregister":                           {world: entry, at: "agent"},
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
	whole := func() engine.Result { return engine.Result{After: &plan.Plan{}} }
	if !whole().Finished() {
		t.Error("a run with nothing to do is not finished")
	}
	for name, edit := range map[string]func(*engine.Result){
		"not verified":          func(r *engine.Result) { r.After = nil },
		"a failure":             func(r *engine.Result) { r.Failures = make([]engine.Failure, 1) },
		"an agent without jobs": func(r *engine.Result) { r.LeftFenced = make([]engine.LeftFenced, 1) },
		"an action":             func(r *engine.Result) { r.NotStarted = 1 },
		"a Node":                func(r *engine.Result) { r.NotWaited = 1 },
		"the lock":              func(r *engine.Result) { r.Lost = errTaken },
	} {
		r := whole()
		if edit(&r); r.Finished() {
			t.Errorf("%s: it is finished", name)
		}
	}
}
