package engine_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/macfleet/macfleet/internal/enginetest"
	"github.com/macfleet/macfleet/plan"
)

// TestReleaseOvertaken: a run stalls at the end of a release. Another run, which has taken over its lock, finishes the
// release and claims the server again. When the first one continues, it takes nothing from the host that is in use.
func TestReleaseOvertaken(t *testing.T) {
	t.Parallel()
	for name, at := range map[string]string{"before it forgets the Node": "nodes", "before it renames the server": "pods", "behind it": "rename"} {
		parallel(t, name, func(t *testing.T) {
			twoOfThree(t, func(t *testing.T, w *nodesInMemory, _ []string) {
				replicas := &w.Config.Fleets[0].Groups[0].Replicas
				*replicas = 1
				var want []string
				others := func() {
					w.OnCall = nil
					*replicas = 3
					for n := range 3 {
						apply(t, w.next("other", int64(n+2)))
					}
					want = w.Lasting()
				}
				erased := false
				w.OnCall = func(c enginetest.Call) enginetest.Fault {
					erased = erased || c.What == "reinstall"
					if !erased || c.What != at {
						return enginetest.Fault{}
					}
					return around(at == "rename", others)
				}
				_, _ = applying(t, t.Context(), w.engine, planned(t, w.engine))
				if want == nil {
					t.Fatal("no other run came between")
				}
				if got := w.Lasting(); strings.Join(got, "\n") != strings.Join(want, "\n") {
					t.Errorf("the other run left\n%s\nthen the first one made\n%s", strings.Join(want, "\n"), strings.Join(got, "\n"))
				}
			})
		})
	}
}

// TestPoolNameOutlivesAKill: a run dies between the rename of a released server and forgetting its pin. Another claims the
// server and dies at once. The next one finds an unfinished claim, and the next release returns the server under the name
// that it had in the pool.
func TestPoolNameOutlivesAKill(t *testing.T) {
	t.Parallel()
	inMemory(t, 2, oneByOne, func(t *testing.T, w *nodesInMemory) {
		replicas, before, runs := &w.Config.Fleets[0].Groups[0].Replicas, w.poolNames(), int64(1)
		scale := func(to int, dies func(enginetest.Call) bool) {
			runs++
			*replicas = to
			e := w.next("run", runs)
			w.OnCall = func(c enginetest.Call) enginetest.Fault {
				if dies == nil || !dies(c) {
					return enginetest.Fault{}
				}
				return enginetest.Fault{After: func() { w.Die(errDied) }}
			}
			r, err := applying(t, t.Context(), e, planned(t, e))
			if w.Die(nil); dies == nil && (err != nil || !r.Converged()) {
				t.Fatalf("%d replicas: %v, failures %+v", to, err, r.Failures)
			}
		}
		scale(2, nil)
		erased := false
		scale(1, func(c enginetest.Call) bool {
			erased = erased || c.What == "reinstall"
			return erased && c.What == "rename"
		})
		scale(2, func(c enginetest.Call) bool { return c.What == "TakeClaim" })
		pins, err := w.Engine().Pins.All()
		if err != nil || !slices.ContainsFunc(pins, func(p plan.Pin) bool { return p.Unfinished }) {
			t.Errorf("no claim is unfinished: %+v, %v", pins, err)
		}
		scale(2, nil)
		scale(0, nil)
		if after := w.poolNames(); !slices.Equal(before, after) {
			t.Errorf("the pool had %v, and has %v", before, after)
		}
	})
}

// poolNames are the names of the free servers.
func (w *nodesInMemory) poolNames() []string {
	var out []string
	for _, m := range w.Machines {
		if strings.HasPrefix(m.Server.Name, "acme-pool-") {
			out = append(out, m.Server.Name)
		}
	}
	return out
}
