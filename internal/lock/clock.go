package lock

import "time"

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
