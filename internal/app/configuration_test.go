package app

import (
	"context"
	"strings"
	"testing"
	"time"
)

// TestWithin: what never ends is not waited for, and a Ctrl-C is heard meanwhile.
func TestWithin(t *testing.T) {
	t.Parallel()
	if v, err := within(t.Context(), time.Hour, func() (int, error) { return 7, nil }); v != 7 || err != nil {
		t.Errorf("%d, %v", v, err)
	}
	ends := make(chan int)
	defer close(ends) // the functions end with the test
	forEver := func() (int, error) { return <-ends, nil }
	if v, err := within(t.Context(), time.Millisecond, forEver); v != 0 || err == nil || !strings.Contains(err.Error(), "takes too long") {
		t.Errorf("%d, %v", v, err)
	}
	stop, cancel := context.WithCancel(t.Context())
	cancel()
	if v, err := within(stop, time.Hour, forEver); v != 0 || err == nil || !strings.Contains(err.Error(), "stopped") {
		t.Errorf("%d, %v", v, err)
	}
}
