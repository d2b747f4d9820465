package engine_test

import (
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/macfleet/macfleet/internal/engine"
)

// TestEvents shows that a run's events tell where its time went.
func TestEvents(t *testing.T) {
	t.Parallel()
	inMemory(t, 2, everyoneAtOnce, func(t *testing.T, w *nodesInMemory) {
		converges(t, w.engine)
		w.want["plain"] = "b"
		e := w.engine
		p := planned(t, e)
		// Each call at this clock takes a second.
		var seconds atomic.Int64
		e.Now = func() time.Time { return time.Unix(seconds.Add(1), 0) }
		var got []engine.EventType
		e.Emit = func(ev engine.Event) {
			timed := slices.Contains([]engine.EventType{engine.Listed, engine.Observed, engine.Computed, engine.Done, engine.NodeReady}, ev.Type)
			if timed != (ev.Seconds > 0) {
				t.Errorf("%s took %f s", ev.Type, ev.Seconds)
			}
			if ev.Time.IsZero() {
				t.Errorf("%s has no time", ev.Type)
			}
			got = append(got, ev.Type)
		}
		performed(t, e, p)
		// The actions of the hosts mix; what follows them does not.
		got = got[max(0, slices.Index(got, engine.Listed)):]
		want := []engine.EventType{engine.Listed, engine.Observing, engine.Observed, engine.Observed, engine.Computed}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("the second observation (-want +got):\n%s", diff)
		}
	})
}
