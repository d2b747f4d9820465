package plan_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/plan"
)

// sealed is a step whose changes need the login password and give root.
type sealed struct{ plan.Step }

// Diff is the step's.
func (s sealed) Diff(v plan.View) plan.Finding {
	f := s.Step.Diff(v)
	for i := range f.Changes {
		f.Changes[i].Input, f.Changes[i].GrantsRoot = plan.LoginPassword, true
	}
	return f
}

// TestCompletedIsComputed: a plan that is completed is the one that is computed, and
// only the hosts that are named, or are new in it, are asked again.
func TestCompletedIsComputed(t *testing.T) {
	t.Parallel()
	completed := 0
	rapid.Check(t, func(t *rapid.T) {
		w := drawSeenWorld(t)
		asked := make(map[string]bool)
		stepsFor := func(h fleet.Host) []plan.Step {
			asked[h.Name] = true
			all := w.steps(h)
			all[0] = sealed{all[0]}
			return all
		}
		before := plan.ComputeOn(w.cfg, stepsFor, w.snap, w.sel, 1)
		untouched := plan.ComputeOn(w.cfg, stepsFor, w.snap, w.sel, 1)
		again := make(map[string]bool)
		enter := func(id string, p plan.Password) {
			seen := w.snap.Hosts[id]
			seen.Password = &p
			w.snap.Hosts[id], again[id] = seen, p.Trouble != nil
		}
		for _, h := range before.PasswordsWanted() {
			p := plan.Password{Source: "a test"}
			if rapid.Bool().Draw(t, "missing") {
				p.Trouble = plan.MissingPassword(h.Name, plan.CodeMissingSudoPassword, "nobody knows it")
			}
			enter(h.Server.ID, p)
		}
		for id, trouble := range before.Hopeless() {
			enter(id, plan.Password{Trouble: trouble})
		}
		want := plan.ComputeOn(w.cfg, stepsFor, w.snap, w.sel, 1)
		clear(asked)
		got := plan.CompleteOn(w.cfg, stepsFor, w.snap, w.sel, before, again, 1)
		if diff := cmp.Diff(want, got, whole); diff != "" {
			t.Fatalf("completed (-computed +completed):\n%s", diff)
		}
		if diff := cmp.Diff(untouched, before, whole); diff != "" {
			t.Fatalf("the plan from before was changed:\n%s", diff)
		}
		for _, h := range before.Hosts {
			now, there := got.HostByServer(h.Server.ID)
			if there && now.Name == h.Name && asked[h.Name] && !again[h.Server.ID] {
				t.Fatalf("%s was asked again", h.Name)
			}
			if again[h.Server.ID] {
				completed++
			}
		}
	})
	if completed == 0 {
		t.Error("no drawn world has a host without its password")
	}
}
