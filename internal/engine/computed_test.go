package engine_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/enginetest"
	"github.com/macfleet/macfleet/internal/secret"
	"github.com/macfleet/macfleet/plan"
)

// TestOneLookOneComputation counts how often each step of each host is read: once, also
// where a password was looked for, and once more where that changes what can be done.
func TestOneLookOneComputation(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := slowly(5)
		needs := make(map[string]bool) // by host's name
		w.Things = func(h fleet.Host) []enginetest.Thing {
			out := []enginetest.Thing{{Key: "plain", Value: "a"}, {Key: "other", Value: "b"}}
			if needs[h.Name] || h.Name == "" { // the step of one host is read on all
				out = append(out, enginetest.Thing{Key: "login", Value: "c", Input: plan.LoginPassword})
			}
			return out
		}
		e := w.Engine()
		asked := func(twice ...string) *plan.Plan {
			t.Helper()
			w.Diffs()
			p := planned(t, e)
			all := w.Diffs()
			for _, h := range p.Hosts {
				want := 1
				if slices.Contains(twice, h.Name) {
					want = 2
				}
				for _, thing := range w.Things(h.Spec) {
					step := h.Server.ID + " " + string(thing.Key)
					if all[step] != want {
						t.Errorf("%s was read %d times, want %d", step, all[step], want)
					}
					delete(all, step)
				}
			}
			if len(all) > 0 || len(p.Hosts) == 0 {
				t.Errorf("of %d hosts these were read too: %v", len(p.Hosts), all)
			}
			return p
		}
		hosts := asked().Hosts
		found, lacks := hosts[1].Name, hosts[3].Name
		needs[found], needs[lacks] = true, true
		e.Passwords = passwordsOf{found}
		p := asked(lacks)
		for _, a := range p.Actions {
			if refused := a.Refusal != nil; refused != (a.Step == "login" && a.Host == lacks) {
				t.Errorf("%s is refused: %t", a.Address(), refused)
			}
		}
		for _, h := range p.Hosts {
			if w := h.Seen.Password; (w != nil) != needs[h.Name] || w != nil && (w.Trouble != nil) != (h.Name == lacks) {
				t.Errorf("of the password of %s the plan says %+v", h.Name, w)
			}
		}
		// What was learnt since counts.
		snap, _, err := e.Observe(t.Context())
		must(t, err)
		w.Diffs()
		e.Selection.Steps = []plan.StepID{"plain"}
		if p := e.Compute(t.Context(), snap); len(p.Steps) != 1 || len(w.Diffs()) != len(p.Hosts) {
			t.Errorf("the plan of another selection is %+v", p.Steps)
		}
	})
}

// passwordsOf knows the passwords of these hosts and of no other.
type passwordsOf []string

// Find returns a host's.
func (p passwordsOf) Find(_ context.Context, _ inventory.Server, host string) ([]engine.Password, error) {
	if !slices.Contains(p, host) {
		return nil, plan.CodeMissingSudoPassword.Trouble("no one knows it")
	}
	v, err := secret.New("password of " + host)
	return []engine.Password{{Value: v, Source: "a test"}}, err
}

// TestNoKeyNoChange: a host whose key a plan does not know gets no change over a connection
// that would take any key.
func TestNoKeyNoChange(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := slowly(2)
		e := w.Engine()
		p := planned(t, e)
		for i := range p.Hosts {
			p.Hosts[i].Seen.Key = ""
		}
		if r := performed(t, e, p); len(p.Hosts) != 2 || len(r.Failures) != len(p.Hosts) {
			t.Errorf("of %d hosts these fail: %q", len(p.Hosts), whatFailed(r))
		}
		for _, m := range w.Machines {
			if len(m.State) > 0 {
				t.Errorf("%s was changed: %v", m.Server.Name, m.State)
			}
		}
	})
}
