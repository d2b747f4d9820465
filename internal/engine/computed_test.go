package engine_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/internal/enginetest"
	"github.com/macfleet/macfleet/plan"
)

// TestOneLookOneComputation counts how often each step of each host is asked: once, and
// once more where a password was looked for.
func TestOneLookOneComputation(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := slowly(5)
		needs := false
		w.Things = func(fleet.Host) []enginetest.Thing {
			out := []enginetest.Thing{{Key: "plain", Value: "a"}, {Key: "other", Value: "b"}}
			if needs {
				out = append(out, enginetest.Thing{Key: "login", Value: "c", Input: plan.LoginPassword})
			}
			return out
		}
		e := w.Engine()
		asked := func(most int) {
			t.Helper()
			w.Diffs()
			p := planned(t, e)
			all := w.Diffs()
			if want := len(p.Hosts) * len(w.Things(fleet.Host{})); len(all) != want || want == 0 {
				t.Errorf("%d steps were asked, of %d", len(all), want)
			}
			for step, n := range all {
				if n != most {
					t.Errorf("%s was asked %d times, want %d", step, n, most)
				}
			}
		}
		asked(1)
		needs = true
		asked(2)
		// What was learnt since counts.
		snap, err := e.Observe(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		w.Diffs()
		e.Selection.Steps = []plan.StepID{"plain"}
		if p := e.Compute(t.Context(), snap); len(p.Steps) != 1 || len(w.Diffs()) != len(p.Hosts) {
			t.Errorf("the plan of another selection is %+v", p.Steps)
		}
		time.Sleep(time.Second)
	})
}
