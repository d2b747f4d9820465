package engine_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/enginetest"
)

// TestRollDisturbedAnywhere rolls a kubelet to three hosts while something hits one of them, or the cluster, before each call
// to that host in turn. No other host suffers or is spoken of, and the next run converges.
func TestRollDisturbedAnywhere(t *testing.T) {
	t.Parallel()
	errAway := errors.New("503 etcd is away")
	for name, tc := range map[string]struct {
		happens func(w *nodesInMemory, host string)
		away    bool                                // the cluster then refuses all requests
		says    string                              // of the host, until a person repairs it
		repair  func(w *nodesInMemory, host string) // what a person does
	}{
		"reboot":        {happens: func(w *nodesInMemory, host string) { w.Change(w.Member(host).Reboot) }},
		"token revoked": {happens: func(w *nodesInMemory, host string) { w.RevokeToken(host) }},
		"Node deleted":  {happens: func(w *nodesInMemory, host string) { w.DeleteNode(host) }},
		"full disk": {happens: func(w *nodesInMemory, host string) { w.Change(func() { w.Member(host).FullDisk = true }) },
			repair: func(w *nodesInMemory, host string) { w.Member(host).FullDisk = false }},
		"another machine": {happens: func(w *nodesInMemory, host string) { w.Change(func() { w.Member(host).Serial = "C-other" }) },
			says: "refused swapped-host", repair: func(w *nodesInMemory, host string) { w.Member(host).Serial = "C" + w.Member(host).Server.ID }},
		"cluster away": {away: true},
	} {
		parallel(t, name, func(t *testing.T) {
			for n, fell := 0, true; fell && !t.Failed(); n++ {
				inMemory(t, 3, fleet.Rollout{MaxUnavailable: fleet.Share{Percent: 100}, FailureBudget: 9}, func(t *testing.T, w *nodesInMemory) {
					converges(t, w.engine)
					w.want["agent"] = "v2"
					p := planned(t, w.engine)
					bad, left, away := p.Hosts[0].Name, n, false
					w.OnCall = func(c enginetest.Call) (f enginetest.Fault) {
						if c.Place == enginetest.OnHost && c.Name == bad {
							if left--; left == -1 && tc.away {
								away = true
							} else if left == -1 {
								f.Before = func() { tc.happens(w, bad) }
							}
						}
						if c.Place == enginetest.InCluster && away {
							f.Err = errAway
						}
						return f
					}
					r, err := applying(t, t.Context(), w.engine, p)
					fell = left < 0
					w.OnCall = nil
					if tc.away && fell && err == nil && len(r.Failures) == 0 && !r.Converged() {
						t.Errorf("at call %d: nothing was reported of the cluster", n)
					} else if !tc.away {
						w.othersFine(t, n, bad, r, err)
					}
					if tc.says != "" && fell && !slices.Equal(codesOf(planned(t, w.engine), bad), []string{tc.says}) {
						t.Errorf("at call %d: it says %q", n, codesOf(planned(t, w.engine), bad))
					}
					if tc.repair != nil {
						tc.repair(w, bad)
					}
					time.Sleep(3 * time.Minute) // on the virtual clock
					if r := apply(t, w.engine); !r.Converged() {
						t.Errorf("at call %d: then %q is left, failures %+v", n, codesOf(r.After, bad), r.Failures)
					}
					for _, m := range w.Machines {
						if m.State["agent"] != "v2" {
							t.Errorf("at call %d: %s has %s", n, m.Server.Name, m.State["agent"])
						}
					}
				})
			}
		})
	}
}

// othersFine finds all hosts but one done.
func (w *nodesInMemory) othersFine(t *testing.T, n int, bad string, r engine.Result, err error) {
	t.Helper()
	if err != nil {
		t.Errorf("at call %d: %v", n, err)
		return
	}
	for _, f := range r.Failures {
		if f.Action.Host != bad {
			t.Errorf("at call %d: another host failed: %+v", n, f)
		}
	}
	for _, h := range r.After.Hosts {
		if said := codesOf(r.After, h.Name); h.Name != bad && len(said) > 0 {
			t.Errorf("at call %d: of %s is reported %q", n, h.Name, said)
		}
	}
	if said := codesOf(r.After, bad); r.Converged() && len(said) > 0 {
		t.Errorf("at call %d: called converged, and it says %q", n, said)
	}
}
