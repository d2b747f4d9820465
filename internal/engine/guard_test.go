package engine_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/plan"
)

// expiring is a lock that is lost after it was read for some times.
type expiring struct{ left atomic.Int64 }

var errTaken = errors.New("bob@ci has taken it")

func (x *expiring) Check() error {
	if x.left.Add(-1) < 0 {
		return errTaken
	}
	return nil
}

// named is the run of a test.
func named(id string, epoch int64) plan.Run {
	return plan.Run{ID: id, Who: id + "@mac", Epoch: epoch}
}

// TestNewerRun: hosts refuse what an older run resumes, whatever it believes of
// its lock; the marker says which run wrote it.
func TestNewerRun(t *testing.T) {
	t.Parallel()
	inMemory(t, 2, everyoneAtOnce, func(t *testing.T, w *nodesInMemory) {
		converges(t, w.engine)
		edited := func() { w.Change(func() { w.Machines[0].State["plain"] = "edited" }) }
		edited()
		p := planned(t, w.engine)
		converges(t, w.next("bob", 5))
		edited()
		r := performed(t, w.engine, p)
		if len(r.Failures) != 1 || r.After.Summarise().Changes() != 1 || troubleOf(r.Failures[0].Err).Code.String() != "newer-run" {
			t.Fatalf("result %+v", r)
		}
		h, _ := r.After.HostByServer(r.Failures[0].Action.ServerID)
		m, _ := h.Seen.Marker.Get()
		if m.Run == nil || m.Run.ID != "bob" || m.Run.Epoch != 5 || h.Seen.Entered == nil || h.Seen.Entered.ID != "bob" {
			t.Errorf("marker %+v, entered %+v", m.Run, h.Seen.Entered)
		}
	})
}

// TestLockLost: wherever the lock is lost, nothing more is changed, the run says why,
// and the next one ends what is left.
func TestLockLost(t *testing.T) {
	t.Parallel()
	for after, lost := int64(0), true; lost && !t.Failed(); after++ {
		inMemory(t, 2, everyoneAtOnce, func(t *testing.T, w *nodesInMemory) {
			e, guard := w.engine, new(expiring)
			p := planned(t, e)
			guard.left.Store(after)
			e.Guard, e.Parallelism = guard, 1
			done := 0 // of the actions that had started, after the loss
			e.Emit = func(ev engine.Event) {
				if ev.Type == engine.Started && guard.left.Load() < 0 {
					t.Errorf("%s started after the loss", ev.Action.Kind)
				}
				if ev.Type == engine.Done && guard.left.Load() < 0 {
					done++
				}
			}
			r, err := applying(t, t.Context(), e, p)
			switch lost = guard.left.Load() < 0; {
			case after == 0:
				if err == nil || !strings.Contains(err.Error(), errTaken.Error()) {
					t.Errorf("it started: %v", err)
				}
			case !lost:
				if after < 20 || err != nil || !r.Converged() {
					t.Errorf("it asked only %d times for its lock: %v, %+v", after, err, r)
				}
			case err != nil || r.Lost == nil && len(r.Failures) == 0 || r.Interrupted || r.Converged() || done > 1: // at the very end only a pin fails
				t.Errorf("lost after %d: %v, result %+v, %d done after the loss", after, err, r, done)
			}
			bob := w.next("bob", 2)
			p = planned(t, bob)
			if r = performed(t, bob, p); !r.Converged() {
				t.Errorf("lost after %d: then failures %+v, left %+v", after, r.Failures, r.After.Actions)
			}
			for _, a := range p.Actions {
				if h, _ := r.After.HostByServer(a.ServerID); h.Seen.Entered == nil || h.Seen.Entered.ID != "bob" {
					t.Errorf("lost after %d: the last run on %s was %+v", after, h.Name, h.Seen.Entered)
				}
			}
		})
	}
}

// TestEpochIsRaised: a run whose lock was deleted and started again goes above the epochs
// that hosts know of, also from an equal one, and not above one that no macfleet gave.
func TestEpochIsRaised(t *testing.T) {
	t.Parallel()
	t.Run("lower", func(t *testing.T) { raises(t, 1) })
	t.Run("equal", func(t *testing.T) { raises(t, 41) })
}

func raises(t *testing.T, from int64) {
	t.Parallel()
	inMemory(t, 2, everyoneAtOnce, func(t *testing.T, w *nodesInMemory) {
		converges(t, w.next("ann", 41))
		next := w.next("bob", from)
		var asked []int64
		next.Raise = func(_ context.Context, above int64) (plan.Run, error) {
			asked = append(asked, above)
			return named("bob", above+1), nil
		}
		w.want["plain"] = "b"
		converges(t, next)
		if len(asked) != 1 || asked[0] != 41 {
			t.Errorf("raised above %v", asked)
		}
		p := planned(t, next)
		p.Hosts[0].Seen.Entered = &plan.Entered{Epoch: plan.MaxEpoch + 1}
		if got := p.Epoch(); got != 42 {
			t.Errorf("the highest epoch is %d", got)
		}
	})
}

// TestInProgress: who looks is given who applies, and one that applies is not informed of
// itself.
func TestInProgress(t *testing.T) {
	t.Parallel()
	inMemory(t, 1, everyoneAtOnce, func(t *testing.T, w *nodesInMemory) {
		e := w.engine
		warned := func(run plan.Run, code string, lock *plan.Lock, err error) bool {
			e.Run, e.Locked = run, func(context.Context) (*plan.Lock, error) { return lock, err }
			return slices.ContainsFunc(planned(t, e).Warnings, func(x plan.Trouble) bool { return x.Code.String() == code })
		}
		theirs := &plan.Lock{Run: named("ann", 3), Alive: true}
		if !warned(plan.Run{}, plan.CodeApplyInProgress.String(), theirs, nil) {
			t.Error("no one was given")
		}
		if warned(named("ann", 3), plan.CodeApplyInProgress.String(), theirs, nil) {
			t.Error("it was informed of itself")
		}
		if !warned(plan.Run{}, "lock-unread", nil, errors.New("forbidden")) {
			t.Error("no one was given that no one knows")
		}
	})
}
