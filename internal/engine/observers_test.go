package engine_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/internal/enginetest"
)

// slowly is a world of that many hosts that each take a second to answer.
func slowly(n int) *enginetest.World {
	w := enginetest.New(n, n, fleet.Rollout{})
	w.Things = func(fleet.Host) []enginetest.Thing { return []enginetest.Thing{{Key: "plain", Value: "a"}} }
	for _, m := range w.Machines {
		m.Server.Name = w.Config.HostName("f0", "m2", m.Server.ID)
		w.Pin(m, m.Server.Name)
		m.Slow, m.Root = time.Second/2, true // for the connection, and for the questions
	}
	return w
}

// TestSlowHostsAreObservedAtOnce checks 500 hosts that each take a second.
func TestSlowHostsAreObservedAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := slowly(500)
		e := w.Engine()
		e.Parallelism = 32 // is only for work
		began := time.Now()
		if p := planned(t, e); len(p.Hosts) != 500 || p.Summarise().Unknown > 0 {
			t.Errorf("%+v", p.Summarise())
		}
		if took := time.Since(began); took > 4*time.Second {
			t.Errorf("it took %s", took)
		}
		if _, most := w.Connections(); most > 256 {
			t.Errorf("%d connections at once", most)
		}
	})
}

// TestObserversAreLimited checks three hosts at once if configured so.
func TestObserversAreLimited(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := slowly(12)
		e := w.Engine()
		e.Observers = 3
		planned(t, e)
		if _, most := w.Connections(); most != 3 {
			t.Errorf("%d connections at once", most)
		}
	})
}
