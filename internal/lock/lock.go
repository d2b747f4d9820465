package lock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/macfleet/macfleet/plan"
)

// Lock is an acquired lock. It is safe for concurrent use.
type Lock struct {
	options  Options
	lost     context.Context // done when the lock is lost; with its cause
	lose     context.CancelCauseFunc
	renewing context.Context // done on stop, and when the lock is lost
	stop     context.CancelFunc
	done     chan struct{} // closed: renewing has stopped
	writing  sync.Mutex    // one write at a time

	mu      sync.Mutex
	record  Record
	version string
	asked   Instant // start of the last successful write
	failed  error   // of the last renewal; nil: it succeeded
}

func newLock(o Options, r Record, version string, asked Instant) *Lock {
	l := &Lock{options: o, record: r, version: version, asked: asked, done: make(chan struct{})}
	l.lost, l.lose = context.WithCancelCause(context.Background())
	l.renewing, l.stop = context.WithCancel(l.lost)
	return l
}

// Run returns the run that holds the lock, with its epoch.
func (l *Lock) Run() plan.Run {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.record.Run
}

// Until returns when the lock expires if it is not renewed any more.
func (l *Lock) Until() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.record.Renewed.Add(l.options.Lasts)
}

// Lost returns a channel that is closed when the lock is lost.
func (l *Lock) Lost() <-chan struct{} { return l.lost.Done() }

// Check returns nil while the lock is held, and an error that wraps ErrLost once it is lost or
// may have expired, for example after this machine slept. It does no I/O.
func (l *Lock) Check() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if idle := l.asked.atMost(l.options.Clock.Now()); idle >= l.options.Lasts {
		why := fmt.Errorf("%w: not renewed for %s", ErrLost, idle.Round(time.Second))
		if l.failed != nil {
			why = fmt.Errorf("%w: %s", why, l.failed.Error())
		}
		l.lose(why)
	}
	return context.Cause(l.lost)
}

// keep renews the lock until it is lost or released.
func (l *Lock) keep() {
	defer close(l.done)
	every := l.options.every()
	pause := every
	for {
		select {
		case <-l.renewing.Done():
			return
		case <-l.options.Clock.After(pause):
		}
		if l.Check() != nil {
			return
		}
		// Time out a write early enough to retry if the API server does not answer.
		l.mu.Lock()
		left := l.options.Lasts - l.asked.atMost(l.options.Clock.Now())
		l.mu.Unlock()
		ctx, cancel := context.WithTimeout(l.renewing, max(min(left, every/2), time.Millisecond))
		err := l.write(ctx, func(r *Record) {})
		cancel()
		// Retry a failed renewal quickly: the API server may recover before the lock expires.
		if pause = every; err != nil {
			pause = every / 5
		}
	}
}

// renewals limits immediate retries after a version conflict with our own write whose answer
// was lost.
const renewals = 3

// write renews the lock and applies change to its record. The lock is lost if the store has
// another holder.
func (l *Lock) write(ctx context.Context, change func(*Record)) error {
	l.writing.Lock()
	defer l.writing.Unlock()
	var err error
	for range renewals {
		l.mu.Lock()
		next, version, now := l.record, l.version, l.options.Clock.Now()
		l.mu.Unlock()
		next.Renewed = now.Wall
		change(&next)
		if version, err = l.options.Store.Put(ctx, next, version); err == nil {
			l.mu.Lock()
			l.record, l.version, l.asked, l.failed = next, version, now, nil
			l.mu.Unlock()
			return nil
		}
		if !errors.Is(err, ErrConflict) {
			break
		}
		if err = l.meet(ctx); err != nil {
			break
		}
	}
	if err == nil {
		err = fmt.Errorf("renew the lock: %w", ErrConflict)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failed = err
	return err
}

// meet finds out who caused a conflict: our own write with a lost answer, or a new holder.
func (l *Lock) meet(ctx context.Context) error {
	r, version, err := l.options.Store.Get(ctx)
	if err != nil {
		return fmt.Errorf("read the lock: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.Held && r.Run.ID == l.record.Run.ID {
		l.version = version
		return nil
	}
	why := "it was released with --force"
	switch {
	case version == "":
		why = "it was deleted"
	case r.Held:
		why = fmt.Sprintf("taken over by %s (run %s, since %s)", r.Run.Who, r.Run.ID, r.Since.UTC().Format("15:04:05 MST"))
	}
	l.lose(fmt.Errorf("%w: %s", ErrLost, why))
	return context.Cause(l.lost)
}

// Raise raises the run's epoch above one that a host has seen: the lock was deleted since, and
// its epochs started again.
func (l *Lock) Raise(ctx context.Context, above int64) (plan.Run, error) {
	err := l.Check()
	if err == nil && l.Run().Epoch <= above {
		if err = l.write(ctx, func(r *Record) { r.Run.Epoch = above + 1 }); err != nil {
			err = fmt.Errorf("raise the epoch above %d, which hosts have seen: %w", above, err)
		}
	}
	return l.Run(), err
}

// Release releases the lock, unless it is lost. The record with the epoch stays. It is called
// once; after an error the lock expires by itself.
func (l *Lock) Release(ctx context.Context) error {
	l.stop()
	<-l.done
	if err := ctx.Err(); err != nil {
		return err // it expires by itself
	}
	if l.Check() != nil {
		return nil // another run holds it
	}
	err := l.write(ctx, func(r *Record) { r.Held = false })
	if err != nil && !errors.Is(err, ErrLost) {
		return fmt.Errorf("release the lock (it expires %s after its last renewal): %w", l.options.Lasts, err)
	}
	return nil
}

// Break releases the lock of another run, named by its id or its owner: that run stops at its
// next check. It returns the broken record. The error is or wraps ErrConflict if the record
// changed at the same moment.
func Break(ctx context.Context, s Store, of string) (Record, error) {
	r, version, err := s.Get(ctx)
	switch {
	case err != nil:
		return r, fmt.Errorf("read the lock: %w", err)
	case version == "" || !r.Held:
		return r, errors.New("the lock is not held")
	case of != r.Run.ID && of != r.Run.Who:
		return r, fmt.Errorf("the lock is held by %s (run %s), not by %q", r.Run.Who, r.Run.ID, of)
	}
	free := r
	free.Held = false
	if _, err := s.Put(ctx, free, version); err != nil {
		return r, fmt.Errorf("release the lock: %w", err)
	}
	return r, nil
}
