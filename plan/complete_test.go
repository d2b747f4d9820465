package plan_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/plan"
)

// sealed is a step whose changes need the login password and give root.
type sealed struct {
	plan.Step
	asked func() // is called with each comparison
}

// Diff is the step's.
func (s sealed) Diff(v plan.View) plan.Finding {
	s.asked()
	f := s.Step.Diff(v)
	for i := range f.Changes {
		f.Changes[i].Input, f.Changes[i].GrantsRoot = plan.LoginPassword, true
	}
	return f
}

// TestCompletedIsComputed: a plan that is completed is the one that is computed, and
// only the hosts that are named, or are new in it, are compared again.
func TestCompletedIsComputed(t *testing.T) {
	t.Parallel()
	completed := 0
	property := func(t *rapid.T) {
		w := drawSeenWorld(t)
		asked := make(map[string]bool)
		stepsFor := func(h fleet.Host) []plan.Step {
			all := w.steps(h)
			all[0] = sealed{all[0], func() { asked[h.Name] = true }}
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
		for _, h := range before.PasswordsNeeded() {
			p := plan.Password{Source: "a test"}
			if rapid.Bool().Draw(t, "missing") {
				p.Trouble = plan.MissingPassword(h.Name, plan.CodeMissingSudoPassword, "it is unknown")
			}
			enter(h.Server.ID, p)
		}
		for id, trouble := range before.WithoutRoot() {
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
		bearers := make(map[string]int) // two servers may have one name, and steps do not tell them apart
		for _, h := range got.Hosts {
			bearers[h.Name]++
		}
		for _, h := range before.Hosts {
			now, there := got.HostByServer(h.Server.ID)
			if there && now.Name == h.Name && bearers[h.Name] == 1 && asked[h.Name] && !again[h.Server.ID] {
				t.Fatalf("%s was compared again", h.Name)
			}
			if again[h.Server.ID] {
				completed++
			}
		}
	}
	// Few of the worlds that are drawn have such a host.
	for range 10 {
		if rapid.Check(t, property); completed > 0 || testing.Short() {
			return
		}
	}
	t.Error("no drawn world has a host without its password")
}

// TestCompletedClaimsMove: where a candidate has no password, the one that another group
// was to get may take its place, under another name.
func TestCompletedClaimsMove(t *testing.T) {
	t.Parallel()
	w := newWorld(1, 0, 1)
	w.cfg.Fleets[1].OS = w.cfg.Fleets[0].OS
	for _, f := range w.cfg.Fleets {
		for i := range f.Groups {
			f.Groups[i].Spec.Sudo = &fleet.Sudo{}
		}
	}
	for n := 1; n <= 3; n++ {
		w.free(n)
		w.change(n, func(h *plan.HostSeen) { h.Root, h.Facts = false, facts("other", good) })
		w.snap.Hosts[serverID(n)] = w.hosts[serverID(n)]
	}
	stepsFor := func(h fleet.Host) []plan.Step {
		all := w.steps(h)
		all[0] = sealed{all[0], func() {}}
		return all
	}
	before := plan.Compute(w.cfg, stepsFor, w.snap, w.sel)
	again := make(map[string]bool)
	for i, h := range before.PasswordsNeeded() {
		seen := w.snap.Hosts[h.Server.ID]
		seen.Password = &plan.Password{Source: "a test"}
		if i == 0 {
			seen.Password.Trouble = plan.MissingPassword(h.Name, plan.CodeMissingSudoPassword, "it is unknown")
			again[h.Server.ID] = true
		}
		w.snap.Hosts[h.Server.ID] = seen
	}
	got := plan.Complete(w.cfg, stepsFor, w.snap, w.sel, before, again)
	if diff := cmp.Diff(plan.Compute(w.cfg, stepsFor, w.snap, w.sel), got, whole); diff != "" {
		t.Errorf("completed (-computed +completed):\n%s", diff)
	}
	if was, is := claimed(before), claimed(got); len(again) != 1 || len(was) != 2 || len(is) != 2 || cmp.Equal(was, is) {
		t.Errorf("%d without a password; claimed before %v, and then %v", len(again), was, is)
	}
}
