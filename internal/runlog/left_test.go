package runlog_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/runlog"
	"github.com/macfleet/macfleet/plan"
)

// TestLeft: a record names each host that its run did not finish, once, also hosts without an action; deferred hosts
// only if nothing else made the run incomplete.
func TestLeft(t *testing.T) {
	t.Parallel()
	at := func(name string, change ...func(*plan.Host)) plan.Host {
		h := plan.Host{Name: name, Member: true, Server: inventory.Server{ID: "id-" + name}, Converged: plan.Converged}
		for _, c := range change {
			c(&h)
		}
		return h
	}
	trouble := &plan.Trouble{Code: plan.CodeUnread, Text: "cause"}
	unreachable := &plan.Trouble{Code: plan.CodeUnreachable, Text: "no route"}
	acted := func(host string, change func(*plan.Action)) plan.Action {
		a := *step(host, "power")
		change(&a)
		return a
	}
	refuse := func(a *plan.Action) { a.Refusal = trouble }
	later := func(a *plan.Action) { a.Deferral = trouble }
	hold := func(a *plan.Action) { a.Refusal = &plan.Trouble{Code: plan.CodeHeld, Text: "cause"} }
	tests := map[string]struct {
		after  *plan.Plan
		events []engine.Event
		exit   int
		want   map[string]runlog.State // every host that is left
		chosen []string                // by --failed-from
		failed []engine.Failure        // without an event
	}{
		"nothing": {&plan.Plan{Hosts: []plan.Host{at("one"), at("two")}}, []engine.Event{
			{Type: engine.Done, Action: step("one", "power")}, {Type: engine.Done, Action: step("one", "hostname")}, {Type: engine.Done, Action: step("two", "power")}},
			0, map[string]runlog.State{}, nil, nil},
		"each kind": {&plan.Plan{
			Hosts: []plan.Host{at("one"), at("two"),
				at("blocked", func(h *plan.Host) { h.Refused = trouble }), at("down", func(h *plan.Host) { h.Unknown = unreachable }),
				at("strange", func(h *plan.Host) { h.Unknown = trouble }), at("partly", func(h *plan.Host) { h.Unread = []plan.StepUnread{{Unread: plan.Unread{Why: "cut off"}}} }),
				at("refused"), at("held"), at("later"), at("drifted")},
			Lost:    []plan.Lost{{Name: "lost", Trouble: *trouble}},
			Actions: []plan.Action{acted("refused", refuse), acted("held", hold), acted("later", later), *step("drifted", "power")},
		}, []engine.Event{{Type: engine.Failed, Action: step("one", "power"), Err: errors.New("no")}, {Type: engine.Done, Action: step("two", "power")}},
			3, map[string]runlog.State{"one": runlog.StateFailed, "blocked": runlog.StateRefused, "down": runlog.StateUnreachable, "strange": runlog.StateNotCompared,
				"partly": runlog.StateNotCompared, "refused": runlog.StateRefused, "held": runlog.StateHeld, "later": runlog.StateDeferred,
				"drifted": runlog.StateNotConverged, "lost": runlog.StateLost},
			[]string{"one", "blocked", "down", "strange", "partly", "refused", "held", "drifted", "lost"}, nil},
		"stopped": {&plan.Plan{}, []engine.Event{{Type: engine.Done, Action: step("one", "power")}, {Type: engine.Skipped, Action: step("one", "hostname")},
			{Type: engine.Skipped, Action: step("two", "power")}},
			3, map[string]runlog.State{"one": runlog.StateNotFinished, "two": runlog.StateNotStarted}, []string{"one", "two"}, nil},
		"only deferred": {&plan.Plan{Hosts: []plan.Host{at("later")}, Actions: []plan.Action{acted("later", later)}},
			[]engine.Event{{Type: engine.Done, Action: step("one", "power")}, {Type: engine.Done, Action: step("one", "hostname")}, {Type: engine.Done, Action: step("two", "power")}},
			3, map[string]runlog.State{"later": runlog.StateDeferred}, []string{"later"}, nil},
		"not verified": {nil, []engine.Event{{Type: engine.Done, Action: step("two", "power")}}, 1, map[string]runlog.State{"one": runlog.StateNotStarted}, []string{"one"}, nil},
		"no marker": {nil, []engine.Event{{Type: engine.Done, Action: step("one", "power")}, {Type: engine.Done, Action: step("one", "hostname")},
			{Type: engine.Done, Action: step("two", "power")}}, 1,
			map[string]runlog.State{"two": runlog.StateFailed}, []string{"two"}, []engine.Failure{{Action: *step("two", "power")}}},
	}
	for name, c := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := wrote(t, t.TempDir(), t.Context(), c.events...)
			must(t, w.End(runlog.End{Outcome: runlog.Incomplete, Exit: c.exit}, engine.Result{After: c.after, Failures: c.failed}))
			r := read(t, w.Path())
			got, counts := make(map[string]runlog.State), make(map[runlog.State]int)
			for _, h := range r.Reports() {
				if h.Left != nil {
					got[h.Host] = h.Left.State
					counts[h.Left.State]++
				}
			}
			for _, h := range runlog.LeftIn(c.after) {
				if h.Text == "" {
					t.Errorf("%s is left without a cause: %+v", h.Host, h)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("left (-want +got):\n%s", diff)
			}
			if len(counts) > 0 && !cmp.Equal(counts, r.End.Hosts) {
				t.Errorf("the last line counts %v, the record %v", r.End.Hosts, counts)
			}
			if diff := cmp.Diff(c.chosen, r.Unfinished()); diff != "" {
				t.Errorf("unfinished (-want +got):\n%s", diff)
			}
		})
	}
}

// TestLeftWithoutLine: the record of a run that was killed, or of an older version, names the hosts that its plan could
// not change too.
func TestLeftWithoutLine(t *testing.T) {
	t.Parallel()
	w := begin(t, runlog.Options{Folder: t.TempDir()}, head("abcd2345"))
	refused := *step("refused", "power")
	refused.Refusal = &plan.Trouble{Code: plan.CodeUnread}
	p := runlog.PlanOf(&plan.Plan{Hosts: []plan.Host{{Name: "down", Unknown: &plan.Trouble{Code: plan.CodeUnreachable}}, {Name: "fine"}},
		Actions: []plan.Action{*step("one", "power"), refused}})
	must(t, w.Write(runlog.Entry{Event: engine.Event{Type: runlog.TypePlan}, Plan: &p}))
	r := read(t, w.Path())
	for _, r.End = range []*runlog.End{nil, {Exit: 3}, {}} {
		want := []string{"one", "down", "refused"}
		if r.End != nil && r.End.Exit == 0 { // a run that left nothing
			want = want[:1]
		}
		if got := r.Unfinished(); !cmp.Equal(got, want) {
			t.Errorf("ended as %+v, unfinished: %q", r.End, got)
		}
	}
}
