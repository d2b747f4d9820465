package engine_test

import (
	"testing"
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/enginetest"
	"github.com/macfleet/macfleet/plan"
)

// opensIn returns a window of an hour that opens after a time, or opened before.
func opensIn(t *testing.T, d time.Duration) []fleet.Window {
	t.Helper()
	from := time.Now().UTC().Add(d)
	window, err := fleet.ParseWindow("daily " + from.Format("15:04") + "-" + from.Add(time.Hour).Format("15:04"))
	must(t, err)
	return []fleet.Window{window}
}

// TestWindowClosesOverAHost: a host that was drained in the window is finished after its end, and not left half done.
func TestWindowClosesOverAHost(t *testing.T) {
	t.Parallel()
	busyInMemory(t, 1, oneByOne, func(t *testing.T, w *nodesInMemory, names []string) {
		things := w.Things
		w.Things = func(h fleet.Host) []enginetest.Thing {
			return append(things(h), enginetest.Thing{Key: "more", Value: "m", Class: plan.Drain, Root: true})
		}
		w.engine.Bounds = &plan.Bounds{}
		w.engine.Bounds.Guardrails.Windows = opensIn(t, -time.Minute)
		p := planned(t, w.engine)
		w.on(engine.Done, names[0], func() { time.Sleep(2 * time.Hour) }) // on the virtual clock
		if r := performed(t, w.engine, p); !r.Converged() || w.Member(names[0]).State["more"] != "m" {
			t.Errorf("done %d, failures %+v, left %+v", r.Done, r.Failures, r.After.Actions)
		}
	})
}

// TestWindowCloses: a plan that was made in a window is approved after its end, or the
// hosts before took long. No Node is closed and no Pod is evicted any more, unless
// someone said that windows do not count.
func TestWindowCloses(t *testing.T) {
	t.Parallel()
	for name, anyTime := range map[string]bool{"windows count": false, "they do not": true} {
		parallel(t, name, func(t *testing.T) {
			busyInMemory(t, 1, oneByOne, func(t *testing.T, w *nodesInMemory, names []string) {
				e := w.engine
				w.want["agent"] = "v2" // its restart would interrupt nothing, but it may need the tools
				e.Bounds = &plan.Bounds{AnyTime: anyTime}
				p := planned(t, e)
				e.Bounds.Guardrails.Windows = opensIn(t, 6*time.Hour)
				r := performed(t, e, p)
				if anyTime {
					if len(r.Failures) > 0 || r.Done == 0 {
						t.Errorf("%+v", r)
					}
					return
				}
				if s := r.After.Summarise(); r.Done != 0 || len(r.Failures) > 0 || r.NotStarted > 0 || !r.Finished() || r.Converged() || s.Deferred != 1 {
					t.Errorf("%+v, after it %+v", r, s)
				}
				w.isOpen(t, names[0], 1)
			})
		})
	}
}
