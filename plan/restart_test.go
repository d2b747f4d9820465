package plan_test

import (
	"slices"
	"testing"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/plan/plantest"
)

// restarter is a step that needs the host to restart.
type restarter struct{ fakeStep }

func (r restarter) Diff(v plan.View) plan.Finding {
	f := r.fakeStep.Diff(v)
	f.Restart = &plan.Reason{Code: plantest.Code("restart-needed"), Text: "t"}
	return f
}

// TestRestartFor: a new host, on which nothing runs, restarts right after the step that needs it, and never before it is claimed. Every
// other host, also an adopted one, is made idle first, or is refused.
func TestRestartFor(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		prepare func(*world)
		desired string
		want    []string
	}{
		"a new host":                       {func(w *world) { w.free(1) }, "new", []string{"claim", "marker", "alpha", "reboot", "beta"}},
		"a new host whose step is in sync": {func(w *world) { w.free(1) }, "factory", []string{"claim", "marker", "reboot", "beta"}},
		"a member":                         {func(w *world) { w.member("macos", "m2", 1) }, "new", []string{"alpha", "beta", "refused reboot"}},
		"an adopted host": {func(w *world) {
			w.outside(1, "legacy")
			w.adopt(1, "legacy")
		}, "new", []string{"marker", "alpha", "beta", "refused reboot"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(1, 0, 0)
			tc.prepare(w)
			stepsFor := func(fleet.Host) []plan.Step {
				return []plan.Step{restarter{fakeStep{id: "alpha", desired: tc.desired}}, fakeStep{id: "beta", desired: "new"}}
			}
			w.plan(t)
			var got []string
			for _, a := range plan.Compute(w.cfg, stepsFor, w.snap, plan.Selection{}).Actions {
				text := what(a)
				if a.Refusal != nil {
					text = "refused " + text
				}
				got = append(got, text)
				if a.Kind == plan.RebootServer && (a.Disruption == plan.Reboot) == slices.Contains(tc.want, "claim") {
					t.Errorf("the class of the restart is %s", a.Disruption)
				}
			}
			expect(t, name, tc.want, slices.DeleteFunc(got, func(s string) bool { return s == "pin" }))
		})
	}
}
