package engine_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/macfleet/macfleet/internal/enginetest"
	"github.com/macfleet/macfleet/plan"
)

// TestWorkBeforeTheErase: a run dies between storing that it erases a host and asking for it, and work begins on the host
// before or behind the next plan. It is not erased before that work ends.
func TestWorkBeforeTheErase(t *testing.T) {
	t.Parallel()
	for name, planFirst := range map[string]bool{"before the plan": false, "behind the plan": true} {
		parallel(t, name, func(t *testing.T) {
			twoOfThree(t, func(t *testing.T, w *nodesInMemory, _ []string) {
				w.Config.Fleets[0].Groups[0].Replicas = 1
				w.OnCall = faultAt("reinstall", enginetest.Fault{Before: func() { w.Die(errDied) }})
				_, _ = applying(t, t.Context(), w.engine, planned(t, w.engine))
				w.Die(nil)
				w.OnCall = nil
				pins, err := w.Engine().Pins.All()
				must(t, err)
				i := slices.IndexFunc(pins, func(p plan.Pin) bool { return p.Stage == plan.Wiping })
				if i < 0 {
					t.Fatalf("nothing is about to be erased: %+v", pins)
				}
				host := pins[i].Name
				next := w.next("next", 2)
				p := planned(t, next)
				w.RunPod(host, "late")
				if !planFirst {
					p = planned(t, next)
				}
				if refused := slices.ContainsFunc(p.Actions, func(a plan.Action) bool { return a.Host == host && a.Refusal != nil }); refused == planFirst {
					t.Errorf("the plan refuses: %t", refused)
				}
				performed(t, next, p)
				if m := w.Member(host); m.Server.Name != host {
					t.Errorf("%s was released under its work", host)
				}
				w.EndPods(host)
				apply(t, w.next("later", 3))
				apply(t, w.next("later", 4))
				if slices.ContainsFunc(w.Machines, func(m *enginetest.Machine) bool { return m.Server.Name == host }) {
					t.Errorf("%s was not released when it was idle: %s", host, strings.Join(w.Lasting(), "\n"))
				}
			})
		})
	}
}
