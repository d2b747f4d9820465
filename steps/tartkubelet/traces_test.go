package tartkubelet_test

import (
	"strings"
	"testing"

	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/steps/stepstest"
)

// TestTracesOfTheNode is TestTracesOfTheFirewall for a Mac that should be no Node:
// each thing that a run leaves, by itself, is enough for the full answer.
func TestTracesOfTheNode(t *testing.T) {
	t.Parallel()
	const receipts, job = "/usr/local/lib/macfleet/", "/Library/LaunchDaemons/dev.macfleet.tart-kubelet.plist"
	for name, tc := range map[string]struct {
		step plan.StepID
		path string // what exists
		want bool   // what exists counts
	}{
		"no Tart":                    {"tart", "", false},
		"someone else's Tart":        {"tart", "/usr/local/lib/tart.app", false},
		"a receipt of Tart":          {"tart", receipts + "tart.receipt", true},
		"no kubelet":                 {kubeletID, "", false},
		"someone else's kubelet":     {kubeletID, "/usr/local/bin/tart-kubelet", false},
		"a receipt of the kubelet":   {kubeletID, receipts + "tart_kubelet.receipt", true},
		"its job for the next boot":  {kubeletID, job, true},
		"a removal that was cut off": {kubeletID, "/etc/macfleet/pending/tart_kubelet", true},
	} {
		t.Run(name, func(t *testing.T) {
			inNodeShells(t, func(t *testing.T, m *nodeMac) {
				wanted := m.spec
				if tc.path != "" {
					text := "made by someone\n"
					if strings.HasPrefix(tc.path, receipts) {
						text = "current " + strings.Repeat("ab", 32) + " 1.0\nprevious -\nfile " + strings.Repeat("cd", 32) + " 1 2 3\ninstalled 1763000001\n"
					}
					m.Put(tc.path, text)
				}
				m.spec = none
				found := stepstest.Traces(t, tc.step, wanted, m.view(tc.step), func(c plan.Command) plan.Answer {
					m.ForgetCalls()
					return m.run(c, "")
				})
				if any := len(found.Changes)+len(found.Unread) > 0; any != tc.want || !any && m.Count() > 1 {
					t.Errorf("%+v; %d tools were called", found, m.Count())
				}
			})
		})
	}
}
