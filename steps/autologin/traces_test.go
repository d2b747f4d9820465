package autologin_test

import (
	"testing"

	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/steps/stepstest"
)

// TestTracesOfAutoLogin is TestTracesOfTheFirewall for the session, where only the record counts.
func TestTracesOfAutoLogin(t *testing.T) {
	t.Parallel()
	inShells(t, func(t *testing.T, m loginMac) {
		m.ready(rightPassword)
		m.set("session", "m1")
		for _, tc := range []struct {
			marker string
			proven bool
		}{{"", false}, {stepstest.ProofOf(t, "hostname"), false}, {stepstest.ProofOf(t, "auto_login"), true}} {
			if tc.marker != "" {
				m.Put("/etc/macfleet/host.json", tc.marker)
			}
			found := stepstest.Traces(t, "auto_login", loggedIn, plan.View{Verified: tc.proven}, func(c plan.Command) plan.Answer {
				m.ForgetCalls()
				return m.Run(c, "")
			})
			if early := m.Count() == 0; tc.proven != (len(found.Changes) > 0) || early == tc.proven {
				t.Errorf("verified %t, ended early %t: %+v", tc.proven, early, found)
			}
		}
	})
}
