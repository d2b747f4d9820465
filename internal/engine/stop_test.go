package engine_test

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"testing"

	"github.com/macfleet/macfleet/internal/engine"
)

// TestUnrecorded: an action that could not be recorded does not begin, and none
// after it does.
func TestUnrecorded(t *testing.T) {
	t.Parallel()
	w, _ := world(t, 4)
	e := run(t, w, config("production", 2))
	e.Parallelism = 1
	p := planned(t, e)
	stop, halt := context.WithCancelCause(t.Context())
	e.Stop = stop
	e.Emit = func(ev engine.Event) {
		if ev.Type == engine.Started {
			halt(fmt.Errorf("%w: %w", engine.ErrUnrecorded, syscall.ENOSPC))
		}
	}
	r := performed(t, e, p)
	if r.Done != 0 || len(r.Failures) != 1 || !errors.Is(r.Failures[0].Err, syscall.ENOSPC) || !r.Interrupted || !errors.Is(r.Stopped, syscall.ENOSPC) {
		t.Errorf("done %d, failures %v, stopped %v", r.Done, r.Failures, r.Stopped)
	}
	if after := planned(t, e); after.Summarise().Changes() != p.Summarise().Changes() {
		t.Errorf("%d changes are left of %d", after.Summarise().Changes(), p.Summarise().Changes())
	}
}
