package lock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/macfleet/macfleet/plan"
)

// Lock is a lock that was taken. It is safe for use by several goroutines.
type Lock struct {
	options  Options
	lost     context.Context // ends when it is lost; its cause is why
	lose     context.CancelCauseFunc
	renewing context.Context // ends with stop, and when it is lost
	stop     context.CancelFunc
	done     chan struct{} // closed: nothing is renewed any more
	writing  sync.Mutex    // one write at a time

	mu      sync.Mutex
	record  Record
	version string
	asked   Instant // before the last write that is known to have come through
	failed  error   // of the last renewal; nil: it came through
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

// Lost returns a channel that is closed when the lock is lost.
func (l *Lock) Lost() <-chan struct{} { return l.lost.Done() }

// Check returns nil while the lock is ours, and an error that wraps ErrLost from
// the moment on when it is not, or may not be: a laptop that slept for too long has
// lost it, whatever the store says. It asks nobody.
func (l *Lock) Check() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if idle := l.asked.atMost(l.options.Clock.Now()); idle >= l.options.Lasts {
		why := fmt.Errorf("%w: it was not renewed for %s", ErrLost, idle.Round(time.Second))
		if l.failed != nil {
			why = fmt.Errorf("%w: %s", why, l.failed.Error())
		}
		l.lose(why)
	}
	return context.Cause(l.lost)
}

// keep renews the lock until it is lost or let go.
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
		// A write ends when it can do no good any more, and early enough for others to be
		// tried where the API server does not answer.
		l.mu.Lock()
		left := l.options.Lasts - l.asked.atMost(l.options.Clock.Now())
		l.mu.Unlock()
		ctx, cancel := context.WithTimeout(l.renewing, max(min(left, every/2), time.Millisecond))
		err := l.write(ctx, func(r *Record) {})
		cancel()
		// A renewal that failed is tried again as often as possible: the API server may
		// be back before the lock expires.
		if pause = every; err != nil {
			pause = every / 5
		}
	}
}

// renewals bounds how often a write is tried again at once whose version was not
// the last one any more, though the lock is ours: an answer was lost.
const renewals = 3

// write renews the lock, with what change makes of its record. The lock is lost
// where the store says that it is another's.
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

// meet looks who was faster: a write of our own whose answer was lost, or somebody
// else, who has the lock now.
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
	why := "somebody released it by force"
	switch {
	case version == "":
		why = "somebody deleted it"
	case r.Held:
		why = fmt.Sprintf("%s has taken it (run %s, since %s)", r.Run.Who, r.Run.ID, r.Since.UTC().Format("15:04:05 MST"))
	}
	l.lose(fmt.Errorf("%w: %s", ErrLost, why))
	return context.Cause(l.lost)
}

// Raise gives the run an epoch above another one, which a host knows of: the lock
// was deleted since then, and counts from the beginning.
func (l *Lock) Raise(ctx context.Context, above int64) (plan.Run, error) {
	err := l.Check()
	if err == nil && l.Run().Epoch <= above {
		if err = l.write(ctx, func(r *Record) { r.Run.Epoch = above + 1 }); err != nil {
			err = fmt.Errorf("raise the epoch above %d, which hosts know of: %w", above, err)
		}
	}
	return l.Run(), err
}

// Release gives the lock back, unless it is lost. What keeps the epoch stays. It
// is called once; an error means that the lock ends by itself later.
func (l *Lock) Release(ctx context.Context) error {
	l.stop()
	<-l.done
	if err := ctx.Err(); err != nil {
		return err // it ends by itself
	}
	if l.Check() != nil {
		return nil // it is another's
	}
	err := l.write(ctx, func(r *Record) { r.Held = false })
	if err != nil && !errors.Is(err, ErrLost) {
		return fmt.Errorf("release the lock; it ends by itself %s after its last renewal: %w", l.options.Lasts, err)
	}
	return nil
}

// Break takes the lock away from the run that holds it, which is named by its id or
// by who runs it: that run changes nothing more from its next look on. It returns
// what was broken. The error is or wraps ErrConflict where the lock was renewed or
// changed hands at this very moment.
func Break(ctx context.Context, s Store, of string) (Record, error) {
	r, version, err := s.Get(ctx)
	switch {
	case err != nil:
		return r, fmt.Errorf("read the lock: %w", err)
	case version == "" || !r.Held:
		return r, errors.New("nobody holds the lock")
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
