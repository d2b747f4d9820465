package stepstest

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/steps"
)

// Name is what the sample host is called.
const Name = "acme-prod-macos-m2-0a1b2"

// Step returns one step of a host with a specification.
func Step(t testing.TB, id plan.StepID, spec fleet.Spec) plan.Step {
	t.Helper()
	return StepOf(t, id, Host(spec))
}

// StepOf returns one step of a host.
func StepOf(t rapid.TB, id plan.StepID, h fleet.Host) plan.Step {
	t.Helper()
	for _, s := range steps.For(h) {
		if s.ID() == id {
			return s
		}
	}
	t.Fatalf("no step %s", id)
	return nil
}

// Host is the sample host with a specification.
func Host(spec fleet.Spec) fleet.Host {
	return fleet.Host{Name: Name, Fleet: "macos", Group: "m2", User: "m1", Spec: spec.WithDefaults(), Tailnet: TailnetBlock()}
}

// Diff is what a step finds on the sample host, which is sound.
func Diff(t testing.TB, id plan.StepID, spec fleet.Spec, facts plan.Facts) plan.Finding {
	t.Helper()
	return Find(t, id, plan.View{Host: Host(spec), Facts: facts, Root: true})
}

// Find is what a step finds in a view of its host, which is sound.
func Find(t testing.TB, id plan.StepID, v plan.View) plan.Finding {
	t.Helper()
	f := StepOf(t, id, v.Host).Diff(v)
	Sound(t, id, v, f)
	return f
}

// Traces is what the full probe of a step finds on a host that should not have it. The short one for traces must find the same. A query
// runs a script on that host.
func Traces(t testing.TB, id plan.StepID, wanted fleet.Spec, v plan.View, query func(plan.Command) plan.Answer) plan.Finding {
	t.Helper()
	v.Host = Host(fleet.Spec{})
	gone := Step(t, id, fleet.Spec{})
	find := func(p plan.Probe) plan.Finding {
		a := query(p.Command)
		if a.Exit != 0 || a.Stderr != "" {
			t.Fatalf("%s: %+v", p.ID, a)
		}
		v.Facts = plan.Facts{p.ID: inventory.Present(a)}
		return gone.Diff(v)
	}
	full := find(Step(t, id, wanted).Probes()[0])
	Expect(t, "what is found by traces", full, find(gone.Probes()[0]))
	return full
}

// WantedBy is what a step wants by its specification.
func WantedBy(t testing.TB, id plan.StepID, spec fleet.Spec) string {
	return Step(t, id, spec).Wanted()
}

// Sound checks what every finding keeps: what was seen equals the configuration exactly
// when nothing has to change, every field moves, and what is unread is never a difference.
func Sound(t testing.TB, id plan.StepID, v plan.View, f plan.Finding) {
	t.Helper()
	s := StepOf(t, id, v.Host)
	if len(f.Unread) > 0 {
		if f.Facts != "" || f.Changes != nil {
			t.Errorf("%s: unread and yet %+v", id, f)
		}
		for _, u := range f.Unread {
			if _, peer := s.(plan.Peer); !asks(s, u.Probe) && !(peer && (u.Probe == "GitHub's list" || u.Probe == "the tailnet's list")) || u.Why == "" {
				t.Errorf("%s: unread %+v", id, u)
			}
		}
		return
	}
	if wanted := s.Wanted(); f.Refused == nil && !v.Rollback && !agree(wanted, f) {
		t.Errorf("%s: %d changes from\n%sto\n%s", id, len(f.Changes), f.Facts, wanted)
	}
	for _, c := range f.Changes {
		if len(c.Fields) == 0 || c.Reason.Code.String() == "" || c.Reason.Text == "" || (c.Command.Script == "" || c.Command.Name == "") != (c.Peer != nil) {
			t.Errorf("%s: change %+v", id, c)
		}
		for _, field := range c.Fields {
			if field.Before == field.After || field.Name == "" {
				t.Errorf("%s: field %+v does not move", id, field)
			}
		}
	}
}

// agree reports whether a finding has changes exactly where its facts differ from the
// configuration. What some steps want follows partly from the host: then all wanted settings
// that the facts have too are equal where nothing changes, but for arguments,
// which name the host's size.
func agree(wanted string, f plan.Finding) bool {
	desired, seen := settings(wanted), settings(f.Facts)
	if _, byHost := desired["reserve"]; !byHost {
		return (wanted == f.Facts) == (len(f.Changes) == 0)
	}
	both := 0
	for name, value := range desired {
		have, there := seen[name]
		if !there || name == "arguments" {
			continue
		}
		if both++; have != value && len(f.Changes) == 0 {
			return false
		}
	}
	return both >= 4
}

// settings are the lines of a configuration or of facts, by their names.
func settings(text string) map[string]string {
	out := make(map[string]string)
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(line, "=")
		out[name] = value
	}
	return out
}

func asks(s plan.Step, probe string) bool {
	for _, p := range s.Probes() {
		if p.ID == probe {
			return true
		}
	}
	return false
}

// Expect compares.
func Expect[T any](t testing.TB, what string, want, got T) {
	t.Helper()
	if d := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmp.AllowUnexported(inventory.Seen[[]string]{}, inventory.Seen[int64]{}, inventory.Seen[[]plan.Task]{}, inventory.Seen[plan.Kubelet]{})); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

// FieldsOf are the values that a finding moves.
func FieldsOf(f plan.Finding) []plan.Field {
	var out []plan.Field
	for _, c := range f.Changes {
		out = append(out, c.Fields...)
	}
	return out
}

// Moves are the values that a finding moves, each as "name: before → after".
func Moves(f plan.Finding) string {
	var out []string
	for _, field := range FieldsOf(f) {
		out = append(out, field.Name+": "+field.Before+" → "+field.After)
	}
	return strings.Join(out, ", ")
}

// Runs are a finding's changes, each as "code script user args…".
func Runs(f plan.Finding) string {
	var out []string
	for _, c := range ChangesOf(f) {
		out = append(out, strings.Join(c, " "))
	}
	return strings.Join(out, ", ")
}

// ChangesOf are a finding's changes as "code script args…".
func ChangesOf(f plan.Finding) [][]string {
	var out [][]string
	for _, c := range f.Changes {
		out = append(out, append([]string{c.Reason.Code.String(), c.Command.Name, string(c.Command.As)}, c.Command.Args...))
	}
	return out
}

// UnreadOf are the probes whose answers a finding could not use.
func UnreadOf(f plan.Finding) []string {
	var out []string
	for _, u := range f.Unread {
		out = append(out, u.Probe)
	}
	return out
}

// Said is the answer of a tool that went well.
func Said(stdout string) plan.Answer { return plan.Answer{Stdout: stdout} }

// Failed is the answer of a tool that did not.
func Failed(exit int, stderr string) plan.Answer { return plan.Answer{Exit: exit, Stderr: stderr} }

// With returns facts with some answers replaced.
func With(facts plan.Facts, answers map[string]plan.Answer) plan.Facts {
	out := make(plan.Facts, len(facts))
	for id, a := range facts {
		out[id] = a
	}
	for id, a := range answers {
		out[id] = inventory.Present(a)
	}
	return out
}

// ProofOf is the record of a verified step, as a marker has it.
func ProofOf(t *testing.T, id plan.StepID) string {
	t.Helper()
	text, err := plan.Marker{Steps: map[plan.StepID]plan.Digest{id: {}}}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// Brief is a finding in a few words: the reason and script of each change, what
// refuses them, and the warnings.
func Brief(f plan.Finding) string {
	return strings.Join(Lines(f, func(c plan.Change) string {
		way := ""
		if c.Command.Name == "tart_kubelet-run" {
			way = " " + c.Command.Args[2]
		}
		return c.Reason.Code.String() + " " + strings.TrimPrefix(c.Command.Name, "tart_kubelet-") + way
	}), ", ")
}

// Lines is a finding in lines: each change as show says, what refuses them, and the warnings.
func Lines(f plan.Finding, show func(plan.Change) string) (out []string) {
	for _, c := range f.Changes {
		out = append(out, show(c))
	}
	if len(f.Busy) > 0 {
		out = append(out, "busy")
	}
	if f.Refused != nil {
		out = append(out, "refused "+f.Refused.Code.String())
	}
	for _, w := range f.Watched {
		out = append(out, "watches "+w.Code.String())
	}
	for _, w := range f.Warnings {
		out = append(out, "warns "+w.Code.String())
	}
	for _, u := range f.Unread {
		out = append(out, "unread "+u.Why)
	}
	return out
}
