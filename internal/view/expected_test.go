package view_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/macfleet/macfleet/internal/view"
	"github.com/macfleet/macfleet/plan"
)

// TestExpectedTime: a plan says how long it takes, no more exactly than that can be known, and on what that is based.
func TestExpectedTime(t *testing.T) {
	t.Parallel()
	for want, f := range map[string]plan.Forecast{
		"~10 s, from defaults":                              {Seconds: 1, Defaults: true},
		"~40 s, from 1 recorded run":                        {Seconds: 44, Runs: 1},
		"~1 min, from 1 recorded run":                       {Seconds: 55, Runs: 1},
		"~6 min, from 6 recorded runs and defaults":         {Seconds: 380, Runs: 6, Defaults: true},
		"~10 min, from 2 recorded runs":                     {Seconds: 575, Runs: 2},
		"~25 min plus the time that Pods need to end, from": {Seconds: 1400, Defaults: true, Pods: true},
		"~1 h, from 2 recorded runs":                        {Seconds: 3500, Runs: 2},
		"~1 h 20 min, from 2 recorded runs":                 {Seconds: 4900, Runs: 2, Late: 3},
	} {
		p := bounded(3)
		p.Forecast = &f
		var b bytes.Buffer
		text := view.NewText(&b, 0, false)
		text.Plan(p, view.PlanForm{Full: true})
		text.Plan(p, view.PlanForm{})
		equal(t, strings.Contains(b.String(), "window closes"), f.Late > 0, f, b.String())
		short, _, _ := strings.Cut(want, ", ")
		if !strings.Contains(b.String(), "Expected time: "+want) || !strings.Contains(b.String(), " "+short+", at most 3 drains\n") {
			t.Errorf("%q is not in:\n%s", want, b.String())
		}
	}
}
