package view_test

import (
	"strings"
	"testing"

	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/runlog"
	"github.com/macfleet/macfleet/internal/view"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/plan/plantest"
)

// showApplied shows what a run left behind that has no record.
func showApplied(t *view.Text, r engine.Result) { t.Applied(nil, r, runlog.Record{}.LeftBy(r)) }

// TestLeftOver: at the end of a run each host that it did not finish is named. The cause of what the plan has shown is not repeated.
func TestLeftOver(t *testing.T) {
	t.Parallel()
	blocked := func(cause string) *plan.Plan {
		p := clean()
		p.Hosts[0].Refused = &plan.Trouble{Code: plan.CodeUnread, Text: cause, Remedy: "look"}
		return p
	}
	shown := func(before *plan.Plan) string {
		var b strings.Builder
		after := blocked("it is strange")
		left := runlog.Record{}.LeftBy(engine.Result{After: after})
		text := view.NewText(&b, 0, false)
		text.Applied(before, engine.Result{Done: 1, After: after}, left)
		text.Result(view.Ending{Changed: true, Result: engine.Result{Done: 1, After: after}, Left: left, Exit: 3})
		return b.String()
	}
	const compact, result = "  · blocked: acme-production-runners-m2-00002  [unread]\n", "Result  1/2 hosts converged, 1 blocked, 1 action done, 0s, exit 3\n"
	if got := shown(blocked("it is strange")); !strings.Contains(got, "\n1 host blocked.\n"+compact) || !strings.HasSuffix(got, result) {
		t.Errorf("blocked before:\n%s", got)
	}
	const whole = "  ✗ acme-production-runners-m2-00002  blocked: it is strange  [unread]\n      fix     look\n"
	if got := shown(clean()); !strings.Contains(got, whole) || !strings.HasSuffix(got, result) {
		t.Errorf("blocked since the plan:\n%s", got)
	}
}

// TestNewShortages: a group that lacks a server at the end of a run, and did not in its plan, is named. What the plan said is not repeated.
func TestNewShortages(t *testing.T) {
	t.Parallel()
	lacking := func(text string) *plan.Plan {
		p := clean()
		p.Shortages = []plan.Shortage{{Fleet: "runners", Group: "m2", Missing: 1,
			Trouble: plan.Trouble{Code: plantest.Code("pool-too-small"), Text: text, Remedy: "order one"}}}
		return p
	}
	const line = "  · runners.m2  1 server missing: the pool is empty  [pool-too-small]\n      fix     order one\n"
	for name, tc := range map[string]struct {
		before *plan.Plan
		said   bool
	}{"none before": {clean(), true}, "another before": {lacking("2 are not usable"), true}, "the same before": {lacking("the pool is empty"), false}} {
		var b strings.Builder
		view.NewText(&b, 0, false).Applied(tc.before, engine.Result{Done: 1, After: lacking("the pool is empty")}, nil)
		if got := b.String(); strings.Contains(got, line) != tc.said || !tc.said && strings.Contains(got, "missing") {
			t.Errorf("%s:\n%s", name, got)
		}
	}
}
