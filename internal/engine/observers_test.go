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

// TestObservers: hosts that each take a second to answer are checked at once, up to the limit.
func TestObservers(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		hosts, limit, least, most int
		within                    time.Duration
	}{
		"500 hosts":       {500, 0, 100, 256, 4 * time.Second},
		"three at a time": {12, 3, 3, 3, 10 * time.Second},
	} {
		parallel(t, name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := slowly(tc.hosts)
				e := w.Engine()
				e.Parallelism, e.Observers = 32, tc.limit // the first is only for work
				began := time.Now()
				if p := planned(t, e); len(p.Hosts) != tc.hosts || p.Summarise().Unknown > 0 {
					t.Errorf("%+v", p.Summarise())
				}
				if took := time.Since(began); took > tc.within {
					t.Errorf("it took %s", took)
				}
				if _, most := w.Connections(); most < tc.least || most > tc.most {
					t.Errorf("%d connections at once", most)
				}
			})
		})
	}
}
