package engine_test

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"testing"

	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/enginetest"
)

// TestStop asks to stop after each action in turn: what runs is finished, nothing
// new is started, and the next apply continues.
func TestStop(t *testing.T) {
	t.Parallel()
	for n, all := 1, false; !all && !t.Failed(); n++ {
		inMemory(t, 2, everyoneAtOnce, func(t *testing.T, w *nodesInMemory) {
			w.engine.Parallelism = 1
			stop, cancel := context.WithCancel(t.Context())
			defer cancel()
			w.engine.Stop = stop
			done := 0
			w.engine.Emit = func(ev engine.Event) {
				switch {
				case ev.Type == engine.Started && done >= n:
					t.Errorf("stopped after %d actions, and %s started", n, ev.Action.Kind)
				case ev.Type == engine.Done:
					if done++; done == n {
						cancel()
					}
				}
			}
			p := planned(t, w.engine)
			all = n >= len(p.Runnable())
			if r := performed(t, w.engine, p); r.Done != done || !r.Interrupted || r.Converged() || !all && r.NotStarted == 0 {
				t.Errorf("stopped after %d actions: result %+v", n, r)
			}
			w.engine.Stop = context.Background()
			w.engine.Emit = func(engine.Event) {}
			converges(t, w.engine)
		})
	}
}

// TestLeftAtOnce: what a run left in the middle is not a fault of the host, whose
// connection only broke with it.
func TestLeftAtOnce(t *testing.T) {
	t.Parallel()
	inMemory(t, 1, everyoneAtOnce, func(t *testing.T, w *nodesInMemory) {
		p := planned(t, w.engine)
		left := errors.New("left")
		ctx, leave := context.WithCancelCause(t.Context())
		defer leave(nil)
		w.OnCall = faultAt("RunChange", enginetest.Fault{Before: func() { leave(left) }})
		r, err := applying(t, ctx, w.engine, p)
		if !errors.Is(err, left) || len(r.Failures) != 1 {
			t.Fatalf("result %+v, error %v", r, err)
		}
		var lost *enginetest.Error
		if f := r.Failures[0].Err; !errors.Is(f, left) || errors.As(f, &lost) {
			t.Errorf("failure %v", f)
		}
	})
}

// TestUnrecorded: an action that could not be recorded does not begin, and none
// after it does.
func TestUnrecorded(t *testing.T) {
	t.Parallel()
	inMemory(t, 2, everyoneAtOnce, func(t *testing.T, w *nodesInMemory) {
		e := w.engine
		e.Parallelism = 1
		p := planned(t, e)
		stop, halt := context.WithCancelCause(t.Context())
		defer halt(nil)
		e.Stop = stop
		e.Emit = func(ev engine.Event) {
			if ev.Type == engine.Started {
				halt(fmt.Errorf("%w: %w", engine.ErrUnrecorded, syscall.ENOSPC))
			}
		}
		r := performed(t, e, p)
		if r.Done != 0 || len(r.Failures) != 1 || !errors.Is(r.Failures[0].Err, syscall.ENOSPC) || !r.Interrupted || !errors.Is(r.Stopped, syscall.ENOSPC) {
			t.Errorf("done %d, failures %v, stopped %v", r.Done, r.Failures, r.Stopped)
		}
		if after := planned(t, e); after.Summarise().Changes() != p.Summarise().Changes() {
			t.Errorf("%d changes are left of %d", after.Summarise().Changes(), p.Summarise().Changes())
		}
	})
}
