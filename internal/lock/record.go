// Package lock lets one apply at a time work on a configuration. It is a small
// compare-and-swap over a store that keeps one record: an expiry that the holder
// pushes on, and an epoch that rises with every holder.
package lock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/macfleet/macfleet/plan"
)

// Record is what the store keeps.
type Record struct {
	Held    bool
	Run     plan.Run      // who holds it, or who held it last; its epoch is the last one given
	Machine string        // where the run is
	Since   time.Time     // when it was taken, by the holder's clock
	Renewed time.Time     // when it was renewed last, by the holder's clock
	Lasts   time.Duration // how long it counts without being renewed
	Place   Place         // where the holder's work is; empty: not known
}

// Place is where the work under a lock is done. A store that is copied elsewhere takes
// its record along, so the record says where it belongs.
type Place struct {
	ID   string // no two places share one; empty: not known
	Name string // for people
}

// Store keeps one record.
type Store interface {
	// Get returns the record and its version, which changes whenever the record is
	// written. Without a record the version is empty.
	Get(context.Context) (Record, string, error)
	// Put replaces the record that has this version, or makes the first, and returns
	// the new version. The error is or wraps ErrConflict where another one was faster,
	// and ErrRefused where it was not written and never will be;
	// of any other error nobody knows whether the record was written.
	Put(ctx context.Context, r Record, version string) (string, error)
}

// ErrConflict says that the record is not the one any more that was read.
var ErrConflict = errors.New("another one was faster")

// ErrRefused says that the store has written nothing, and will not when it is asked
// again: a right or a place is missing.
var ErrRefused = errors.New("refused")

// ErrLost says that the lock is not ours any more, whoever has it. Nothing may be
// changed after it.
var ErrLost = errors.New("the lock is lost")

// Options say who takes the lock, and how. Store and Run are set; of the others a
// zero field means the default.
type Options struct {
	Store   Store
	Run     plan.Run // its epoch comes from the lock
	Machine string
	Lasts   time.Duration // 0 = DefaultLasts
	Place   Place
	From    string // id of another place from which a person moves the work to this one; empty: none
	// Wait is how long another's lock is waited for; 0 = not at all.
	Wait  time.Duration
	Tell  func(Waiting) // hears of each look at another's lock; nil: nobody wants it
	Clock Clock         // nil = this machine's
}

// Those of k0sctl and of Kubernetes' own controllers.
const (
	DefaultLasts = 30 * time.Second
	longestPoll  = 2 * time.Second // between two looks at another's lock
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

// Waiting is what is known of a lock that another one holds.
type Waiting struct {
	Record Record
	Still  time.Duration // for how long nobody has renewed it, as seen from here
	Left   time.Duration // until Wait is over
	Err    error         // of the last look, where it failed; Record is then from before
}

// HeldError says that another one holds the lock and did not give it back in time.
type HeldError struct {
	Waiting
	Waited time.Duration
}

// Error says who holds it, where, since when, and how to go on.
func (e *HeldError) Error() string {
	text := fmt.Sprintf("%s holds the lock since %s (run %s, on %s)", e.Record.Run.Who, e.Record.Since.UTC().Format("15:04:05 MST"),
		e.Record.Run.ID, e.Record.Machine)
	if e.Waited > 0 {
		text += fmt.Sprintf("; it was waited for %s", e.Waited.Round(time.Second))
	}
	if e.Err != nil {
		text += "; the last look at it failed: " + e.Err.Error()
	}
	return text + "; macfleet lock status says whether that run lives, --lock-timeout how long to wait"
}

// Unwrap returns why the last look failed.
func (e *HeldError) Unwrap() error { return e.Err }

// ElsewhereError says that the record was written in another place than this one: the work
// that it locks is there. It wraps ErrRefused.
type ElsewhereError struct {
	Record Record
	Here   Place
}

// Error names both places.
func (e *ElsewhereError) Error() string {
	r := e.Record
	return fmt.Sprintf("the lock was last taken in %s, by %s (run %s), and this is %s", r.Place.Name, r.Run.Who, r.Run.ID, e.Here.Name)
}

// Unwrap returns ErrRefused: asking again does not help.
func (e *ElsewhereError) Unwrap() error { return ErrRefused }

// Instant is one moment by both clocks of this machine: the wall clock goes on
// while a laptop sleeps and may be set, the other does neither.
type Instant struct {
	Wall time.Time
	Mono time.Duration // since an arbitrary moment
}

// atMost returns how long ago a moment was, by the clock that says more. What must
// not be believed for too long goes by it.
func (i Instant) atMost(now Instant) time.Duration {
	return max(now.Wall.Sub(i.Wall), now.Mono-i.Mono)
}

// atLeast returns how long ago a moment was, by the clock that says less. What must
// not be believed too early goes by it.
func (i Instant) atLeast(now Instant) time.Duration {
	return min(now.Wall.Sub(i.Wall), now.Mono-i.Mono)
}

// Clock is what the lock knows of time.
type Clock interface {
	Now() Instant
	// After returns a channel that gets a value when the time has passed.
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
