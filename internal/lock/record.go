// Package lock allows one apply at a time per configuration. It is a compare-and-swap on one
// record in a store: an expiry that the holder renews, and an epoch that rises with each holder.
package lock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/macfleet/macfleet/plan"
)

// Record is the lock's record in the store.
type Record struct {
	Held    bool
	Run     plan.Run      // the current or last holder, with the last epoch
	Machine string        // the run's machine
	Since   time.Time     // when it was acquired, by the holder's clock
	Renewed time.Time     // last renewal, by the holder's clock
	Lasts   time.Duration // expiry after the last renewal
	Place   Place         // where the holder works; empty: unknown
}

// Place is where the locked work is done. It detects a record that was copied to another store.
type Place struct {
	ID   string // unique; empty: unknown
	Name string // for display
}

// Store keeps one record.
type Store interface {
	// Get returns the record and its version, which changes with every
	// write. Without a record the version is empty.
	Get(context.Context) (Record, string, error)
	// Put replaces the record with this version, or creates the first one, and returns the new
	// version. The error is or wraps ErrConflict if the record changed, or ErrRefused if the
	// write is impossible; after any other error the result is unknown.
	Put(ctx context.Context, r Record, version string) (string, error)
}

// ErrConflict reports that the record changed since it was read.
var ErrConflict = errors.New("the lock changed at the same moment")

// ErrRefused reports a write that is impossible, so retrying does not help: a permission or an
// object is missing.
var ErrRefused = errors.New("refused")

// ErrLost reports that the lock is lost. Nothing may be changed after it.
var ErrLost = errors.New("the lock is lost")

// Options configure a lock. Store and Run are required; other zero fields mean the default.
type Options struct {
	Store   Store
	Run     plan.Run // its epoch comes from the lock
	Machine string
	Lasts   time.Duration // 0 = DefaultLasts
	Place   Place
	From    string // id of the place from which a person moves the work here; empty: none
	// Wait is how long to wait for another holder; 0: do not wait.
	Wait  time.Duration
	Tell  func(Waiting) // called on each poll of another's lock; may be nil
	Clock Clock         // nil = this machine's
}

// The same values as Kubernetes' own controllers use.
const (
	DefaultLasts = 30 * time.Second
	longestPoll  = 2 * time.Second // polling interval of another's lock
)

// every is the time between two renewals.
func (o Options) every() time.Duration { return o.Lasts / 3 }

func (o Options) filled() Options {
	o.Lasts, o.Clock = cmp.Or(o.Lasts, DefaultLasts), cmp.Or[Clock](o.Clock, clock{time.Now()})
	if o.Tell == nil {
		o.Tell = func(Waiting) {}
	}
	return o
}

// Waiting is the state of a lock that another run holds.
type Waiting struct {
	Record Record
	Still  time.Duration // time since its last renewal, as seen from here
	Left   time.Duration // rest of Wait
	Err    error         // of the last poll; Record is then older
}

// HeldError reports that another run still holds the lock.
type HeldError struct {
	Waiting
	Waited time.Duration
}

// Error says who holds it, where, since when, and the fix.
func (e *HeldError) Error() string {
	text := fmt.Sprintf("lock held by %s since %s (run %s, on %s)", e.Record.Run.Who, e.Record.Since.UTC().Format("15:04:05 MST"),
		e.Record.Run.ID, e.Record.Machine)
	if e.Waited > 0 {
		text += fmt.Sprintf("; timed out after %s", e.Waited.Round(time.Second))
	}
	if e.Err != nil {
		text += "; reading it failed: " + e.Err.Error()
	}
	return text + "; wait with --lock-timeout DURATION, or check the holder: macfleet lock status"
}

// Unwrap returns the error of the last poll.
func (e *HeldError) Unwrap() error { return e.Err }

// ElsewhereError reports that the record belongs to another place. It wraps ErrRefused.
type ElsewhereError struct {
	Record Record
	Here   Place
}

// Error names both places.
func (e *ElsewhereError) Error() string {
	r := e.Record
	return fmt.Sprintf("the lock belongs to %s (last held by %s, run %s), but this is %s", r.Place.Name, r.Run.Who, r.Run.ID, e.Here.Name)
}

// Unwrap returns ErrRefused: retrying does not help.
func (e *ElsewhereError) Unwrap() error { return ErrRefused }

// Instant is one moment by both clocks of this machine: the wall clock continues during sleep
// and may be set, the monotonic clock does neither.
type Instant struct {
	Wall time.Time
	Mono time.Duration // since an arbitrary moment
}

// atMost returns the longer of the two elapsed times: for what must not be trusted too long.
func (i Instant) atMost(now Instant) time.Duration {
	return max(now.Wall.Sub(i.Wall), now.Mono-i.Mono)
}

// atLeast returns the shorter of the two elapsed times: for what must not be assumed too early.
func (i Instant) atLeast(now Instant) time.Duration {
	return min(now.Wall.Sub(i.Wall), now.Mono-i.Mono)
}

// Clock provides time to the lock.
type Clock interface {
	Now() Instant
	// After returns a channel that receives a value after a duration.
	After(time.Duration) <-chan time.Time
}

// clock is this machine's.
type clock struct{ start time.Time }

// Now reads both clocks at once.
func (c clock) Now() Instant {
	t := time.Now()
	return Instant{Wall: t.Round(0), Mono: t.Sub(c.start)}
}

// After is time.After.
func (c clock) After(d time.Duration) <-chan time.Time { return time.After(d) }
