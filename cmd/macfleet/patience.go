package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// longestReading is how long a configuration may take to evaluate. Real ones take
// milliseconds; one that makes much out of little, list by list, would keep a job until
// its memory is full.
const longestReading = 30 * time.Second

// within returns what f returns, unless that takes longer, or the first Ctrl-C comes
// before. Then f goes on until the process ends.
func within[T any](stop context.Context, limit time.Duration, f func() T) (T, error) {
	done := make(chan T, 1)
	go func() { done <- f() }()
	late := time.NewTimer(limit)
	defer late.Stop()
	var none T
	select {
	case v := <-done:
		return v, nil
	case <-stop.Done():
		return none, errors.New("stopped before it was evaluated")
	case <-late.C:
		return none, fmt.Errorf("it takes longer than %s to evaluate; look for lists that are made of lists, and write them shorter", limit)
	}
}
