package steps_test

import (
	"strings"
	"testing"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/scriptlint"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/steps"
	"github.com/macfleet/macfleet/steps/stepstest"
)

// TestTracesAndAProof: an answer without traces says nothing of a host whose marker has a record.
func TestTracesAndAProof(t *testing.T) {
	t.Parallel()
	for id, answer := range map[plan.StepID]string{"vm_firewall": "\n== nothing\n", "auto_login": "nothing 0 the marker holds no record\n"} {
		gone := stepstest.Step(t, id, fleet.Spec{})
		view := plan.View{Host: stepstest.Host(fleet.Spec{}), Facts: plan.Facts{gone.Probes()[0].ID: inventory.Present(stepstest.Said(answer))}}
		stepstest.Expect(t, string(id), plan.Finding{}, gone.Diff(view))
		view.Verified = true
		if f := gone.Diff(view); len(f.Unread) != 1 || f.Changes != nil || f.Facts != "" {
			t.Errorf("%s is verified, and: %+v", id, f)
		}
	}
}

// TestTracesStandBack: a probe is left out if the full probe of the same host has its answer, and every probe may run where it runs.
func TestTracesStandBack(t *testing.T) {
	t.Parallel()
	full := make(map[string]bool)
	for _, s := range steps.For(stepstest.Host(everything)) {
		for _, p := range s.Probes() {
			full[p.ID] = true
		}
	}
	n := 0
	for _, s := range steps.For(stepstest.Host(fleet.Spec{})) {
		for _, p := range s.Probes() {
			if p.Unless == "" {
				continue
			}
			n++
			if !full[p.Unless] || full[p.ID] || !strings.HasPrefix(p.ID, string(s.ID())+".") {
				t.Errorf("%s unless %s", p.ID, p.Unless)
			}
			for _, fault := range scriptlint.Check(p.Name, p.Script, scriptlint.Probe) {
				t.Error(fault)
			}
		}
	}
	if n == 0 {
		t.Error("no step asks after traces")
	}
}
