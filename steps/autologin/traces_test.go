package autologin_test

import (
	"testing"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/steps/stepstest"
)

// TestTracesOfAutoLogin is TestTracesOfTheFirewall for the session, where only the
// record counts.
func TestTracesOfAutoLogin(t *testing.T) {
	t.Parallel()
	inShells(t, func(t *testing.T, m loginMac) {
		m.ready(rightPassword)
		m.set("session", "m1")
		gone := stepstest.Step(t, "auto_login", fleet.Spec{})
		for _, tc := range []struct {
			marker string
			proven bool
		}{{"", false}, {stepstest.ProofOf(t, "hostname"), false}, {stepstest.ProofOf(t, "auto_login"), true}} {
			if tc.marker != "" {
				m.Put("/etc/macfleet/host.json", tc.marker)
			}
			ask := func(p plan.Probe) plan.Finding {
				a := m.Run(p.Command, "")
				if a.Exit != 0 || a.Stderr != "" {
					t.Fatalf("%s: %+v", p.ID, a)
				}
				return gone.Diff(plan.View{Host: stepstest.Host(fleet.Spec{}), Facts: plan.Facts{p.ID: inventory.Present(a)}, Verified: tc.proven})
			}
			want := ask(stepstest.Step(t, "auto_login", loggedIn).Probes()[0])
			if tc.proven != (len(want.Changes) > 0) {
				t.Errorf("verified %t: %+v", tc.proven, want)
			}
			before := m.Count()
			stepstest.Expect(t, "what is found", want, ask(gone.Probes()[0]))
			if early := m.Count() == before; early == tc.proven {
				t.Errorf("verified %t, and ended early %t", tc.proven, early)
			}
		}
	})
}
