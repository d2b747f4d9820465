package engine_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/macfleet/macfleet/hosts"
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

// TestLockLost: wherever the lock is lost, nothing more is changed, the run says why,
// and the next one ends what is left.
func TestLockLost(t *testing.T) {
	t.Parallel()
	for _, after := range []int64{0, 1, 2, 3, 5, 8, 13, 21} {
		t.Run(fmt.Sprint(after), func(t *testing.T) {
			t.Parallel()
			w, dir := world(t, 4)
			e := run(t, w, config("production", 2))
			p := planned(t, e)
			guard := new(expiring)
			guard.left.Store(after)
			e.Run, e.Guard, e.Parallelism = named("ann", 1), guard, 1
			var lost int64 // actions that started and were done after the loss
			e.Emit = func(ev engine.Event) {
				if ev.Type == engine.Started && guard.left.Load() < 0 {
					t.Errorf("%s started after the loss", ev.Action.Kind)
				}
				if ev.Type == engine.Done && guard.left.Load() < 0 {
					lost++
				}
			}
			r, err := e.Apply(t.Context(), p)
			if after == 0 {
				if !errors.Is(err, errTaken) && (err == nil || !strings.Contains(err.Error(), errTaken.Error())) {
					t.Fatalf("it started: %v", err)
				}
			} else if err != nil || r.Lost == nil || r.Interrupted || r.Converged() || lost > 1 {
				t.Fatalf("%v, result %+v, %d done after the loss", err, r, lost)
			}
			next := run(t, w, config("production", 2))
			next.Run, next.Pins = named("bob", 2), e.Pins
			converges(t, next)
			if names, _ := filepath.Glob(filepath.Join(dir, "macs", "*", "root", "etc", "macfleet", "runs", "2")); len(names) != 2 {
				t.Errorf("bob entered %d hosts", len(names))
			}
		})
	}
}

// TestNewerRun: hosts refuse what an older run resumes, whatever it believes of
// its lock; the marker says which run wrote it.
func TestNewerRun(t *testing.T) {
	t.Parallel()
	w, older := converged(t, 4, config("production", 2))
	older.Run = named("ann", 4)
	p := planned(t, older)
	host := p.Hosts[0].Name
	if err := w.Inject(host, "sleep-enabled"); err != nil {
		t.Fatal(err)
	}
	p = planned(t, older)
	newer := run(t, w, config("production", 2))
	newer.Run, newer.Pins = named("bob", 5), older.Pins
	converges(t, newer)
	if err := w.Inject(host, "sleep-enabled"); err != nil {
		t.Fatal(err)
	}
	r := performed(t, older, p)
	var refused *hosts.Error
	if len(r.Failures) != 1 || r.After.Summarise().Changes() != 1 {
		t.Fatalf("result %+v", r)
	}
	// The worker meets it when it enters the host.
	var trouble *plan.Trouble
	if err := r.Failures[0].Err; (!errors.As(err, &refused) || refused.Code.String() != "newer-run") && (!errors.As(err, &trouble) || trouble.Code.String() != "newer-run" || !strings.Contains(trouble.Text, "bob@mac")) {
		t.Errorf("it failed with %v", err)
	}
	h, _ := r.After.HostByServer(r.Failures[0].Action.ServerID)
	m, _ := h.Seen.Marker.Get()
	if m.Run == nil || m.Run.ID != "bob" || m.Run.Epoch != 5 || h.Seen.Entered == nil || h.Seen.Entered.ID != "bob" {
		t.Errorf("marker %+v, entered %+v", m.Run, h.Seen.Entered)
	}
}

// TestEpochIsRaised: a run whose lock was deleted and started again goes above the epochs
// that hosts know of, and not above one that no macfleet gave.
func TestEpochIsRaised(t *testing.T) {
	t.Parallel()
	w, _ := world(t, 4)
	e := run(t, w, config("production", 2))
	e.Run = named("ann", 41)
	converges(t, e)
	host := planned(t, e).Hosts[0].Name
	next := run(t, w, config("production", 2))
	next.Run, next.Pins = named("bob", 1), e.Pins
	var asked []int64
	next.Raise = func(_ context.Context, above int64) (plan.Run, error) {
		asked = append(asked, above)
		return named("bob", above+1), nil
	}
	if err := w.Inject(host, "sleep-enabled"); err != nil {
		t.Fatal(err)
	}
	converges(t, next)
	if len(asked) != 1 || asked[0] != 41 {
		t.Errorf("raised above %v", asked)
	}
	p := planned(t, next)
	p.Hosts[0].Seen.Entered = &plan.Entered{Epoch: plan.MaxEpoch + 1}
	if got := p.Epoch(); got != 42 {
		t.Errorf("the highest epoch is %d", got)
	}
}

// TestInProgress: who looks is given who applies, and one that applies is not informed of
// itself.
func TestInProgress(t *testing.T) {
	t.Parallel()
	w, _ := world(t, 4)
	e := run(t, w, config("production", 1))
	e.Locked = func(context.Context) (*plan.Lock, error) {
		return &plan.Lock{Run: named("ann", 3), Alive: true}, nil
	}
	warned := func(code string) bool {
		for _, x := range planned(t, e).Warnings {
			if x.Code.String() == code {
				return true
			}
		}
		return false
	}
	if !warned(plan.CodeApplyInProgress.String()) {
		t.Error("no one was given")
	}
	e.Run = named("ann", 3)
	if warned(plan.CodeApplyInProgress.String()) {
		t.Error("it was informed of itself")
	}
	e.Run, e.Locked = plan.Run{}, func(context.Context) (*plan.Lock, error) { return nil, errors.New("forbidden") }
	if !warned("lock-unread") {
		t.Error("no one was given that no one knows")
	}
}
