package lock

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/macfleet/macfleet/plan"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// memory is a store that fails on demand.
type memory struct {
	mu      sync.Mutex
	record  Record
	version int // 0: there is none
	puts    int
	// get and put let a call fail: an error before it, or after it had its effect.
	get func(ctx context.Context) error
	put func(ctx context.Context) (before, after error)
}

func (m *memory) Get(ctx context.Context) (Record, string, error) {
	if get, _ := m.hooks(); get != nil {
		if err := get(ctx); err != nil {
			return Record{}, "", err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.record, m.named(), nil
}

func (m *memory) named() string { return strings.Repeat("i", m.version) }

func (m *memory) Put(ctx context.Context, r Record, version string) (string, error) {
	var after error
	if _, put := m.hooks(); put != nil {
		var before error
		if before, after = put(ctx); before != nil {
			return "", before
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if version != m.named() {
		return "", ErrConflict
	}
	m.record = r
	m.version++
	m.puts++
	if after != nil {
		return "", after
	}
	return m.named(), nil
}

func (m *memory) hooks() (get func(context.Context) error, put func(context.Context) (before, after error)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.get, m.put
}

// change changes the store while a lock is renewed in it.
func (m *memory) change(do func(m *memory)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	do(m)
}

func (m *memory) writes() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.puts
}

func (m *memory) now() Record {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.record
}

// shifted is the bubble's clock on a machine that slept, or whose wall clock is wrong.
type shifted struct {
	mu   sync.Mutex
	wall time.Duration
	base time.Time
}

func newClock() *shifted { return &shifted{base: time.Now()} }

func (s *shifted) Now() Instant {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	return Instant{Wall: now.Add(s.wall).Round(0), Mono: now.Sub(s.base)}
}

func (s *shifted) After(d time.Duration) <-chan time.Time { return time.After(d) }

func (s *shifted) shift(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wall += d
}

func take(t *testing.T, s Store, id string, o Options) *Lock {
	t.Helper()
	l, err := taken(s, id, o)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func taken(s Store, id string, o Options) (*Lock, error) {
	o.Store, o.Run, o.Machine = s, plan.Run{ID: id, Who: id + "@mac"}, "mac"
	return Acquire(context.Background(), o)
}

func release(t *testing.T, l *Lock) {
	t.Helper()
	if err := l.Release(context.Background()); err != nil {
		t.Error(err)
	}
}

// TestOneAfterTheOther: the lock is renewed while it is held, a second run waits and
// learns who holds it, and epochs rise from holder to holder.
func TestOneAfterTheOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := new(memory)
		ann := take(t, m, "ann", Options{})
		if r := m.now(); r.Run.Epoch != 1 || !r.Held || r.Lasts != DefaultLasts {
			t.Errorf("record %+v", r)
		}
		time.Sleep(5*time.Minute - time.Second)
		if err := ann.Check(); err != nil {
			t.Fatal(err)
		}
		if n := m.writes(); n != 30 { // at 0 s, 10 s, … 290 s
			t.Errorf("%d writes in five minutes", n)
		}
		if _, err := taken(m, "bob", Options{}); err == nil || !strings.Contains(err.Error(), "lock held by ann@mac since") {
			t.Errorf("without waiting: %v", err)
		}
		var told []Waiting
		time.AfterFunc(59*time.Second, func() { release(t, ann) })
		bob := take(t, m, "bob", Options{Wait: 15 * time.Minute, Tell: func(w Waiting) { told = append(told, w) }})
		if bob.Run().Epoch != 2 || len(told) != 30 || told[0].Record.Run.Who != "ann@mac" || told[29].Left != 14*time.Minute+2*time.Second {
			t.Errorf("epoch %d after %d polls", bob.Run().Epoch, len(told))
		}
		_, err := taken(m, "cid", Options{Wait: time.Minute})
		var held *HeldError
		if !errors.As(err, &held) || held.Waited != time.Minute || held.Record.Run.ID != "bob" {
			t.Errorf("after a minute: %v", err)
		}
		release(t, bob)
		if r := m.now(); r.Held || r.Run.Epoch != 2 || r.Run.ID != "bob" {
			t.Errorf("left %+v", r)
		}
	})
}

// TestDead: the lock of a killed run expires by the clock of the waiting one, which may
// be wrong by hours.
func TestDead(t *testing.T) {
	t.Parallel()
	for name, wrong := range map[string]time.Duration{"right": 0, "ahead": 5 * time.Hour, "behind": -5 * time.Hour, "set ahead": 0} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m := &memory{version: 1, record: Record{Held: true, Run: plan.Run{ID: "ann", Epoch: 41}, Lasts: 20 * time.Second, Renewed: time.Now()}}
				clock := newClock()
				clock.shift(wrong)
				began := time.Now()
				if name == "set ahead" { // while it waits
					time.AfterFunc(time.Second, func() { clock.shift(30 * time.Minute) })
				}
				bob := take(t, m, "bob", Options{Wait: time.Hour, Clock: clock})
				if waited := time.Since(began); waited < 20*time.Second || waited > 22*time.Second || bob.Run().Epoch != 42 {
					t.Errorf("taken after %s with epoch %d", waited, bob.Run().Epoch)
				}
				release(t, bob)
			})
		})
	}
}

// TestNoDuration: a held record without a duration, as a Lease that another program wrote, is not taken at once.
func TestNoDuration(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := &memory{version: 1, record: Record{Held: true, Run: plan.Run{ID: "ann", Epoch: 41}}}
		began := time.Now()
		bob := take(t, m, "bob", Options{Wait: time.Hour})
		if waited := time.Since(began); waited < time.Second || bob.Run().Epoch != 42 {
			t.Errorf("taken after %s with epoch %d", waited, bob.Run().Epoch)
		}
		release(t, bob)
	})
}

// TestAsleep: a laptop that slept until its lock expired has lost it, and detects that
// first. The same holds for a process that was stopped.
func TestAsleep(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, clock := new(memory), newClock()
		ann := take(t, m, "ann", Options{Clock: clock})
		clock.shift(29 * time.Second)
		if err := ann.Check(); err != nil {
			t.Error(err)
		}
		clock.shift(time.Second)
		if err := ann.Check(); !errors.Is(err, ErrLost) || !strings.Contains(err.Error(), "not renewed for 30s") {
			t.Errorf("after 30 s of sleep: %v", err)
		}
		clock.shift(-time.Hour) // setting a clock back does not restore the lock
		if err := ann.Check(); !errors.Is(err, ErrLost) {
			t.Errorf("later: %v", err)
		}
		select {
		case <-ann.Lost():
		default:
			t.Error("it is not lost")
		}
		puts := m.writes()
		release(t, ann)
		if m.writes() != puts {
			t.Error("a lost lock was released")
		}
	})
}

// TestSlowRenewal: a lock expires by the start of its last write, as the record says, however long the answer took.
func TestSlowRenewal(t *testing.T) {
	t.Parallel()
	for writes, expires := range map[int]time.Duration{1: 30 * time.Second, 2: 44 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			began, puts := time.Now(), 0
			m := new(memory)
			m.put = func(context.Context) (error, error) {
				if puts++; puts > writes {
					return errors.New("503"), nil
				}
				time.Sleep(4 * time.Second)
				return nil, nil
			}
			ann := take(t, m, "ann", Options{})
			time.Sleep(time.Until(began.Add(expires - time.Second)))
			if err := ann.Check(); err != nil {
				t.Errorf("after %d writes, a second before its end: %v", writes, err)
			}
			time.Sleep(time.Second)
			if err := ann.Check(); !errors.Is(err, ErrLost) {
				t.Errorf("after %d writes, at its end: %v", writes, err)
			}
			release(t, ann)
		})
	}
}

// TestSetBack: setting the wall clock back does not extend a lock.
func TestSetBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, clock := new(memory), newClock()
		ann := take(t, m, "ann", Options{Clock: clock})
		m.change(func(m *memory) { m.put = func(context.Context) (error, error) { return errors.New("503"), nil } })
		clock.shift(-time.Hour)
		time.Sleep(29 * time.Second)
		if err := ann.Check(); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Second)
		if err := ann.Check(); !errors.Is(err, ErrLost) || !strings.Contains(err.Error(), "503") {
			t.Errorf("after 30 s: %v", err)
		}
		release(t, ann)
	})
}

// TestAway: an API server may be unavailable for less than the lock's duration, also if
// it hangs or performs a write without an answer.
func TestAway(t *testing.T) {
	t.Parallel()
	hang := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	for name, put := range map[string]func(context.Context) (error, error){
		"refuses": func(context.Context) (error, error) { return errors.New("503"), nil },
		"does it": func(context.Context) (error, error) { return nil, errors.New("the answer was truncated") },
		"hangs":   func(ctx context.Context) (error, error) { return hang(ctx), nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m := new(memory)
				ann := take(t, m, "ann", Options{})
				for range 20 {
					time.Sleep(time.Second)
					m.change(func(m *memory) { m.put = put })
					time.Sleep(12 * time.Second)
					m.change(func(m *memory) { m.put = nil })
					time.Sleep(17 * time.Second)
					if err := ann.Check(); err != nil {
						t.Fatal(err)
					}
				}
				m.change(func(m *memory) { m.put = put })
				time.Sleep(45 * time.Second)
				if err := ann.Check(); !errors.Is(err, ErrLost) {
					t.Errorf("after 45 s: %v", err)
				}
				m.change(func(m *memory) { m.put = nil })
				release(t, ann)
			})
		})
	}
}

// TestTaken: a run that finds another holder, or none, has lost the lock at once.
func TestTaken(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(m *memory)
		says   string
	}{
		"stolen":   {func(m *memory) { m.record.Run = plan.Run{ID: "bob", Who: "bob@ci"}; m.version++ }, "taken over by bob@ci"},
		"released": {func(m *memory) { m.record.Held = false; m.version++ }, "released with --force"},
		"deleted":  {func(m *memory) { m.record, m.version = Record{}, 0 }, "was deleted"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m := new(memory)
				ann := take(t, m, "ann", Options{})
				m.change(tc.change)
				select {
				case <-ann.Lost():
				case <-time.After(11 * time.Second):
					t.Error("not lost after the next renewal")
				}
				if err := ann.Check(); !errors.Is(err, ErrLost) || !strings.Contains(err.Error(), tc.says) {
					t.Errorf("%v", err)
				}
				if _, err := ann.Raise(context.Background(), 9); !errors.Is(err, ErrLost) {
					t.Errorf("raised: %v", err)
				}
				release(t, ann)
			})
		})
	}
}

// TestAcquireFaults: a failed read is retried while the lock may be held, and a lock that
// was taken without an answer is found.
func TestAcquireFaults(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := &memory{get: func(context.Context) error { return errors.New("forbidden") }}
		if _, err := taken(m, "ann", Options{Wait: time.Hour}); err == nil || !strings.Contains(err.Error(), "forbidden") {
			t.Errorf("a failed read: %v", err)
		}
		began := time.Now()
		m = &memory{put: func(context.Context) (error, error) { return fmt.Errorf("no namespace: %w", ErrRefused), nil }}
		if _, err := taken(m, "ann", Options{Wait: time.Hour}); !errors.Is(err, ErrRefused) || time.Since(began) > 0 {
			t.Errorf("refused, after %s: %v", time.Since(began), err)
		}
		m.put = func(context.Context) (error, error) { return errors.New("503"), nil }
		if _, err := taken(m, "ann", Options{Wait: time.Hour}); err == nil || !strings.Contains(err.Error(), "503") || time.Since(began) > 35*time.Second {
			t.Errorf("away, after %s: %v", time.Since(began), err)
		}
		m.put = func(context.Context) (error, error) { return ErrConflict, nil }
		if _, err := taken(m, "ann", Options{}); !errors.Is(err, ErrConflict) {
			t.Errorf("another run was faster each time: %v", err)
		}
		var n atomic.Int64
		m = &memory{put: func(context.Context) (error, error) {
			if n.Add(1) == 1 {
				return nil, errors.New("the answer was truncated")
			}
			return nil, nil
		}}
		ann := take(t, m, "ann", Options{Wait: time.Minute})
		if ann.Run().Epoch != 1 {
			t.Errorf("epoch %d", ann.Run().Epoch)
		}
		n.Store(2)
		m.change(func(m *memory) {
			m.get = func(context.Context) error {
				if n.Add(1)%2 == 0 {
					return errors.New("503")
				}
				return nil
			}
		})
		time.AfterFunc(30*time.Second, func() { release(t, ann) })
		bob := take(t, m, "bob", Options{Wait: time.Minute})
		release(t, bob)
		cancelled, cancel := context.WithCancelCause(context.Background())
		m.change(func(m *memory) { m.get, m.record.Held = nil, true })
		time.AfterFunc(time.Second, func() { cancel(errors.New("interrupted")) })
		if _, err := Acquire(cancelled, Options{Store: m, Wait: time.Minute}); err == nil || !strings.Contains(err.Error(), "interrupted") {
			t.Errorf("interrupted: %v", err)
		}
	})
}

// TestRaise: an epoch rises above those that hosts have seen, and never falls.
func TestRaise(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := new(memory)
		ann := take(t, m, "ann", Options{})
		for _, tc := range []struct{ above, want int64 }{{0, 1}, {41, 42}, {7, 42}, {42, 43}} {
			if r, err := ann.Raise(context.Background(), tc.above); err != nil || r.Epoch != tc.want || m.now().Run.Epoch != tc.want {
				t.Errorf("above %d: %+v, %v", tc.above, r, err)
			}
		}
		time.Sleep(time.Minute)
		if got := m.now().Run.Epoch; got != 43 {
			t.Errorf("epoch %d after a renewal", got)
		}
		release(t, ann)
	})
}

// TestBreak: only the named run loses its lock.
func TestBreak(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := new(memory)
		if _, err := Break(t.Context(), m, "ann"); err == nil || !strings.Contains(err.Error(), "not held") {
			t.Error(err)
		}
		ann := take(t, m, "ann", Options{})
		if _, err := Break(t.Context(), m, "bob"); err == nil || !strings.Contains(err.Error(), `held by ann@mac (run ann), not by "bob"`) {
			t.Error(err)
		}
		if r, err := Break(t.Context(), m, "ann@mac"); err != nil || r.Run.ID != "ann" {
			t.Error(r, err)
		}
		bob := take(t, m, "bob", Options{})
		m.change(func(m *memory) { m.put = func(context.Context) (error, error) { return ErrConflict, nil } })
		if _, err := Break(t.Context(), m, "bob"); !errors.Is(err, ErrConflict) {
			t.Errorf("it changed at that moment: %v", err)
		}
		m.change(func(m *memory) { m.put = nil })
		time.Sleep(11 * time.Second)
		if err := ann.Check(); !errors.Is(err, ErrLost) {
			t.Errorf("hers: %v", err)
		}
		if err := bob.Check(); err != nil || bob.Run().Epoch != 2 {
			t.Errorf("his: %v", err)
		}
		release(t, ann)
		release(t, bob)
	})
}
