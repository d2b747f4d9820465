package steps_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/steps"
)

const name = "acme-prod-macos-m2-0a1b2"

// step returns one step of a host with a specification.
func step(t testing.TB, id plan.StepID, spec fleet.Spec) plan.Step {
	t.Helper()
	return stepOf(t, id, host(spec))
}

func stepOf(t rapid.TB, id plan.StepID, h fleet.Host) plan.Step {
	t.Helper()
	for _, s := range steps.For(h) {
		if s.ID() == id {
			return s
		}
	}
	t.Fatalf("no step %s", id)
	return nil
}

func host(spec fleet.Spec) fleet.Host {
	return fleet.Host{Name: name, Fleet: "macos", Group: "m2", User: "m1", Spec: spec.WithDefaults()}
}

func diff(t testing.TB, id plan.StepID, spec fleet.Spec, facts plan.Facts) plan.Finding {
	t.Helper()
	f := step(t, id, spec).Diff(plan.View{Host: host(spec), Facts: facts, Root: true})
	sound(t, id, spec, f)
	return f
}

// wantedBy is what a step wants by its specification.
func wantedBy(t testing.TB, id plan.StepID, spec fleet.Spec) string {
	return step(t, id, spec).Wanted()
}

// sound checks what every finding keeps: what was seen is what is wanted
// exactly when nothing is to change, every field moves, and what is unread is never a
// difference.
func sound(t testing.TB, id plan.StepID, spec fleet.Spec, f plan.Finding) {
	t.Helper()
	if len(f.Unread) > 0 {
		if f.Facts != "" || f.Changes != nil {
			t.Errorf("%s: unread and yet %+v", id, f)
		}
		for _, u := range f.Unread {
			if !asks(step(t, id, spec), u.Probe) || u.Why == "" {
				t.Errorf("%s: unread %+v", id, u)
			}
		}
		return
	}
	byHost := id == "tart" || id == "tart_kubelet" // a part of what they want follows from the host
	if wanted := wantedBy(t, id, spec); !byHost && f.Refused == nil && (wanted == f.Facts) != (len(f.Changes) == 0) {
		t.Errorf("%s: %d changes from\n%sto\n%s", id, len(f.Changes), f.Facts, wanted)
	}
	for _, c := range f.Changes {
		if len(c.Fields) == 0 || c.Reason.Code.String() == "" || c.Reason.Text == "" || c.Command.Script == "" || c.Command.Name == "" {
			t.Errorf("%s: change %+v", id, c)
		}
		for _, field := range c.Fields {
			if field.Before == field.After || field.Name == "" {
				t.Errorf("%s: field %+v does not move", id, field)
			}
		}
	}
}

func asks(s plan.Step, probe string) bool {
	for _, p := range s.Probes() {
		if p.ID == probe {
			return true
		}
	}
	return false
}

func expect[T any](t testing.TB, what string, want, got T) {
	t.Helper()
	if d := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmp.AllowUnexported(inventory.Seen[[]string]{}, inventory.Seen[int64]{}, inventory.Seen[plan.Kubelet]{})); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

// fieldsOf are the values that a finding moves.
func fieldsOf(f plan.Finding) []plan.Field {
	var out []plan.Field
	for _, c := range f.Changes {
		out = append(out, c.Fields...)
	}
	return out
}

// changes are a finding's changes as "code script args…".
func changesOf(f plan.Finding) [][]string {
	var out [][]string
	for _, c := range f.Changes {
		out = append(out, append([]string{c.Reason.Code.String(), c.Command.Name, string(c.Command.As)}, c.Command.Args...))
	}
	return out
}

// unreadOf are the probes whose answers a finding could not use.
func unreadOf(f plan.Finding) []string {
	var out []string
	for _, u := range f.Unread {
		out = append(out, u.Probe)
	}
	return out
}

func said(stdout string) plan.Answer { return plan.Answer{Stdout: stdout} }

func failed(exit int, stderr string) plan.Answer { return plan.Answer{Exit: exit, Stderr: stderr} }

// with returns facts with some answers replaced.
func with(facts plan.Facts, answers map[string]plan.Answer) plan.Facts {
	out := make(plan.Facts, len(facts))
	for id, a := range facts {
		out[id] = a
	}
	for id, a := range answers {
		out[id] = inventory.Present(a)
	}
	return out
}
