package engine_test

import (
	"testing"
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/plan"
)

// TestWindowCloses: a plan that was made in a window is approved after its end, or the
// hosts before took long. No Node is closed and no Pod is evicted any more, unless
// someone said that windows do not count.
func TestWindowCloses(t *testing.T) {
	t.Parallel()
	for name, anyTime := range map[string]bool{"windows count": false, "they do not": true} {
		parallel(t, name, func(t *testing.T) {
			busyInMemory(t, 1, oneByOne, func(t *testing.T, w *nodesInMemory, names []string) {
				e := w.engine
				e.Bounds = &plan.Bounds{AnyTime: anyTime}
				p := planned(t, e)
				from := time.Now().UTC().Add(6 * time.Hour)
				window, err := fleet.ParseWindow("daily " + from.Format("15:04") + "-" + from.Add(time.Hour).Format("15:04"))
				must(t, err)
				e.Bounds.Guardrails.Windows = []fleet.Window{window}
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
