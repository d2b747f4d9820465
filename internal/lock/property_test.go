package lock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/macfleet/macfleet/plan"
)

// world is some machines with separate clocks around one store that fails.
type world struct {
	memory
	mu     sync.Mutex
	random *rand.Rand
	faults int                 // percentage of calls that fail
	held   map[string]*actor   // actors that have not released their locks
	epochs map[int64]string    // their holders
	cut    map[string]struct{} // actors that are cut off from the store
	wrong  []string
}

// actor is the store as one machine sees it.
type actor struct {
	w    *world
	name string
	lock *Lock
}

func (w *world) chance(percent int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.random.IntN(100) < percent
}

func (w *world) between(least, most time.Duration) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return least + time.Duration(w.random.Int64N(int64(most-least)))
}

func (w *world) complain(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wrong = append(w.wrong, fmt.Sprintf(format, args...))
}

// disturb delays a call, and may let it fail or hang.
func (a *actor) disturb(ctx context.Context) error {
	select {
	case <-time.After(a.w.between(time.Millisecond, 800*time.Millisecond)):
	case <-ctx.Done():
		return ctx.Err()
	}
	a.w.mu.Lock()
	_, cut := a.w.cut[a.name]
	a.w.mu.Unlock()
	switch {
	case cut, a.w.chance(a.w.faults / 4):
		<-ctx.Done()
		return ctx.Err()
	case a.w.chance(a.w.faults):
		return errors.New("503")
	}
	return nil
}

func (a *actor) Get(ctx context.Context) (Record, string, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	if err := a.disturb(ctx); err != nil {
		return Record{}, "", err
	}
	r, version, err := a.w.memory.Get(ctx)
	if late := a.disturb(ctx); late != nil {
		err = late
	}
	return r, version, err
}

func (a *actor) Put(ctx context.Context, r Record, version string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	if err := a.disturb(ctx); err != nil {
		return "", err
	}
	version, err := a.w.memory.Put(ctx, r, version)
	if late := a.disturb(ctx); late != nil {
		return "", late // it took effect anyway
	}
	return version, err
}

// work acquires the lock repeatedly, and ends each run in one of the ways in which runs
// end.
func (a *actor) work(ctx context.Context, clock *shifted) {
	for round := 0; ctx.Err() == nil; round++ {
		id := fmt.Sprintf("%s-%d", a.name, round)
		l, err := Acquire(ctx, Options{Store: a, Run: plan.Run{ID: id}, Wait: 20 * time.Minute, Clock: clock})
		if err != nil {
			continue
		}
		a.w.enter(a, l, id)
		select {
		case <-time.After(a.w.between(time.Second, 2*time.Minute)):
		case <-ctx.Done():
		}
		switch {
		case a.w.chance(30): // the machine loses its network, then stops
			a.w.sever(a.name, true)
			<-l.Lost()
			a.w.sever(a.name, false)
		case a.w.chance(30): // the process is killed: no renewal and no release
			a.w.forget(a)
			l.stop()
			<-l.done
			continue
		}
		a.w.forget(a)
		bounded, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		_ = l.Release(bounded) // if this fails, the lock expires
		cancel()
	}
}

func (w *world) enter(a *actor, l *Lock, id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	epoch := l.Run().Epoch
	for other, who := range w.epochs {
		if other >= epoch {
			w.wrong = append(w.wrong, fmt.Sprintf("%s has epoch %d after %s had %d", id, epoch, who, other))
		}
	}
	w.epochs[epoch], w.held[a.name], a.lock = id, a, l
}

func (w *world) forget(a *actor) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.held, a.name)
}

func (w *world) sever(name string, cut bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.cut, name)
	if cut {
		w.cut[name] = struct{}{}
	}
}

// watch checks repeatedly that at most one lock is valid.
func (w *world) watch(ctx context.Context) {
	for ctx.Err() == nil {
		w.mu.Lock()
		var valid []string
		for name, a := range w.held {
			if a.lock.Check() == nil {
				valid = append(valid, name)
			}
		}
		w.mu.Unlock()
		if len(valid) > 1 {
			w.complain("the lock is valid for several runs at once: %v", valid)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// TestNeverTwo: clocks are wrong, the store fails, hangs and loses answers, and runs end,
// are killed or cut off. The lock is never valid for two runs at once, and epochs rise
// strictly.
func TestNeverTwo(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		seed := rapid.Uint64().Draw(rt, "seed")
		actors := rapid.IntRange(2, 5).Draw(rt, "actors")
		w := &world{random: rand.New(rand.NewPCG(seed, 1)), faults: rapid.IntRange(0, 40).Draw(rt, "faults"),
			held: make(map[string]*actor), epochs: make(map[int64]string), cut: make(map[string]struct{})}
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Minute)
			defer cancel()
			var all sync.WaitGroup
			for i := range actors {
				clock := newClock()
				clock.shift(w.between(-5*time.Hour, 5*time.Hour))
				all.Go(func() { (&actor{w: w, name: fmt.Sprint("m", i)}).work(ctx, clock) })
			}
			all.Go(func() { w.watch(ctx) })
			all.Wait()
		})
		if len(w.wrong) > 0 {
			rt.Fatalf("%d faults, first: %s", len(w.wrong), w.wrong[0])
		}
		if len(w.epochs) < 3 {
			rt.Fatalf("only %d runs held the lock", len(w.epochs))
		}
	})
}
