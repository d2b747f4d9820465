package lock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"
)

// Acquire takes the lock, waits for whoever has it, and keeps it renewed until
// Release. The error is a *HeldError when another one kept it for too long, the
// cause of ctx when that ended, or the store's.
//
// Another's lock is dead only when its record was seen unchanged for as long as it
// counts, by the clock of this machine: clocks that differ do not matter.
func Acquire(ctx context.Context, o Options) (*Lock, error) {
	o = o.filled()
	a := acquiring{Options: o, began: o.Clock.Now()}
	for {
		l, err := a.look(ctx)
		if l != nil {
			go l.keep()
			return l, nil
		}
		if cerr := context.Cause(ctx); cerr != nil {
			return nil, fmt.Errorf("wait for the lock: %w", cerr)
		}
		now := o.Clock.Now()
		waited := a.began.atMost(now)
		// Another try does no good where the store refuses, or where nobody was seen to hold
		// the lock and it cannot be had for as long as it would count.
		if errors.Is(err, ErrRefused) || err != nil && !a.record.Held && (!a.tried || waited >= a.Lasts) {
			return nil, err
		}
		w := Waiting{Record: a.record, Left: a.Wait - waited, Err: err}
		if a.version != "" {
			w.Still = a.since.atLeast(now)
		}
		switch {
		case w.Left > 0:
		case a.version == "":
			return nil, cmp.Or(err, fmt.Errorf("take the lock: %w", ErrConflict))
		default:
			return nil, &HeldError{Waiting: w, Waited: waited}
		}
		if a.record.Held && (!a.tried || err != nil) {
			o.Tell(w)
		}
		select {
		case <-ctx.Done():
		case <-o.Clock.After(min(longestPoll, o.every(), w.Left)):
		}
	}
}

// acquiring is one try to get the lock.
type acquiring struct {
	Options
	began   Instant
	record  Record // as it was seen last
	version string // so here; empty: none was seen
	since   Instant
	tried   bool // we wrote, and do not know what became of it
}

// look takes the lock where it is free, dead, or ours by an earlier write whose
// answer was lost. Without a lock and without an error, another one has it.
func (a *acquiring) look(ctx context.Context) (*Lock, error) {
	r, version, err := a.Store.Get(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the lock: %w", err)
	}
	// Where either place is unknown, nobody can say that they differ.
	if r.Place.ID != "" && a.Place.ID != "" && r.Place.ID != a.Place.ID && r.Place.ID != a.From {
		return nil, &ElsewhereError{Record: r, Here: a.Place}
	}
	now := a.Clock.Now() // after the answer: it was not renewed between here and the next look
	ours := r.Held && r.Run.ID == a.Run.ID
	if version != a.version {
		a.record, a.version, a.since = r, version, now
	}
	if r.Held && !ours && a.since.atLeast(now) < max(r.Lasts, time.Second) {
		a.tried = false
		return nil, nil
	}
	next := Record{Held: true, Run: a.Run, Machine: a.Machine, Since: now.Wall, Renewed: now.Wall, Lasts: a.Lasts, Place: a.Place}
	if a.Place.ID == "" {
		next.Place = r.Place // a run that does not know where it is erases no witness
	}
	next.Run.Epoch = r.Run.Epoch
	if !ours {
		next.Run.Epoch++
	}
	a.tried = true
	version, err = a.Store.Put(ctx, next, version)
	switch {
	case errors.Is(err, ErrConflict):
		a.tried = false
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("take the lock: %w", err)
	}
	return newLock(a.Options, next, version, now), nil
}
