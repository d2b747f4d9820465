package app

import (
	"context"
	"errors"
	"fmt"
	"runtime/metrics"
	"time"
)

// bounds are what reading a configuration may take on this machine; zero: as much as it likes. The
// language's own bounds refuse what is known to make much out of little. These catch the rest,
// before a job is killed for the memory it takes.
type bounds struct {
	time   time.Duration
	memory uint64 // bytes in addition to those in use before
}

// ordinary bounds are far above any real configuration, which takes milliseconds and a few MB.
var ordinary = bounds{time: 30 * time.Second, memory: 1 << 30}

// The errors of within.
var (
	errStopped = errors.New("stopped before it was done")
	errTooLong = errors.New("takes too long")
	errTooMuch = errors.New("takes too much memory")
)

// explain says what was taken too much of, and where, as far as that is known.
func (b bounds) explain(err error, place string) error {
	remedy := "shorten its lists and strings"
	if place != "" {
		remedy = fmt.Sprintf("shorten the expression on %s", place)
	}
	switch {
	case errors.Is(err, errTooLong):
		return fmt.Errorf("it %w, more than %s; %s", err, b.time, remedy)
	case errors.Is(err, errTooMuch):
		return fmt.Errorf("it %w, more than %d MiB; %s", err, b.memory>>20, remedy)
	}
	return err
}

// within returns what f returns before the first Ctrl-C and within the bounds. Otherwise f continues until the
// process ends: nothing can stop it, so the caller must end the command.
func within[T any](stop context.Context, limit bounds, f func() (T, error)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	done := make(chan answer, 1)
	before := heap()
	go func() {
		v, err := f()
		done <- answer{v, err}
	}()
	var late, look <-chan time.Time
	if limit.time > 0 {
		late = time.After(limit.time)
	}
	if limit.memory > 0 {
		const often = 10 * time.Millisecond // memory is filled at about 1 GB a second
		ticker := time.NewTicker(often)
		defer ticker.Stop()
		look = ticker.C
	}
	var none T
	for {
		select {
		case a := <-done:
			return a.value, a.err
		case <-stop.Done():
			return none, errStopped
		case <-late:
			return none, errTooLong
		case <-look:
			if heap() > before+limit.memory {
				return none, errTooMuch
			}
		}
	}
}

// heap returns how many bytes this process has in objects.
func heap() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
