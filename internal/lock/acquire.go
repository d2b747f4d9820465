package lock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"
)

// Acquire takes the lock, waits for its holder, and renews it until Release. The error is a
// *HeldError if the wait timed out, the cause of ctx's end, or the store's error.
//
// Another run's lock has expired if its record was seen unchanged for its whole duration, by
// this machine's clock: clock differences do not matter.
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
		// Do not retry if the store refuses, or if there is no holder and the store has failed for a
		// whole lock duration.
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

// acquiring is one attempt to get the lock.
type acquiring struct {
	Options
	began   Instant
	record  Record // as last seen
	version string // as last seen; empty: none
	since   Instant
	tried   bool // one of our writes has an unknown result
}

// look takes the lock if it is free, expired, or held by this run after a lost answer. It
// returns neither a lock nor an error if another run holds it.
func (a *acquiring) look(ctx context.Context) (*Lock, error) {
	r, version, err := a.Store.Get(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the lock: %w", err)
	}
	// Unknown places cannot be compared.
	if r.Place.ID != "" && a.Place.ID != "" && r.Place.ID != a.Place.ID && r.Place.ID != a.From {
		return nil, &ElsewhereError{Record: r, Here: a.Place}
	}
	now := a.Clock.Now() // after the answer, to measure the time without a renewal
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
		next.Place = r.Place // keep a known place
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
