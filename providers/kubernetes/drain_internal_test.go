package kubernetes

import (
	"context"
	"errors"
	"testing"
	"time"

	"k8s.io/client-go/util/flowcontrol"
)

// TestOutOfTime keeps the words by which client-go says that it did not ask: a
// drain whose time is up must name the disruption budget and not these.
func TestOutOfTime(t *testing.T) {
	t.Parallel()
	limit := flowcontrol.NewTokenBucketRateLimiter(0.001, 1)
	limit.Accept()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := limit.Wait(ctx); !outOfTime(err) {
		t.Errorf("%v is not known", err)
	}
	if outOfTime(nil) || outOfTime(errors.New("connection refused")) {
		t.Error("another error counts")
	}
}
