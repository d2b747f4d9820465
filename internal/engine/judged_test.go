package engine_test

import (
	"testing"
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/internal/drift"
	"github.com/macfleet/macfleet/plan"
)

// unsettled is a step that cannot judge its host's Node yet.
type unsettled struct{}

func (unsettled) ID() plan.StepID      { return "unsettled" }
func (unsettled) Probes() []plan.Probe { return nil }
func (unsettled) Wanted() string       { return "on" }
func (unsettled) Diff(plan.View) plan.Finding {
	return plan.Finding{Facts: "on", Warnings: []plan.Trouble{*plan.CodeNodeNotJudged.Trouble("its kubelet was just started")}}
}

// TestNotJudged: a Node that cannot be judged yet is neither a difference nor convergence.
func TestNotJudged(t *testing.T) {
	t.Parallel()
	inMemory(t, 1, everyoneAtOnce, func(t *testing.T, w *nodesInMemory) {
		w.atWork(t)
		w.More = func(fleet.Host) []plan.Step { return []plan.Step{unsettled{}} }
		r := apply(t, w.engine)
		if s := r.After.Summarise(); r.Done > 0 || len(r.Failures) > 0 || r.Finished() || s.Complete() || s.NotJudged != 1 || s.Partly != 1 {
			t.Errorf("done %d, failures %+v, finished %t, %+v", r.Done, r.Failures, r.Finished(), s)
		}
		report, err := drift.Of(r.After, nil, time.Now())
		if err != nil || report.Complete || len(report.Items) > 0 || len(report.Unseen) != 1 || report.Unseen[0].Code != plan.CodeNodeNotJudged {
			t.Errorf("drift: complete %t, %+v, unseen %+v, %v", report.Complete, report.Items, report.Unseen, err)
		}
	})
}
