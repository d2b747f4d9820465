package engine_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/internal/enginetest"
	"github.com/macfleet/macfleet/plan"
)

// fresh is a world of pool servers whose sudo asks for a password.
func fresh(servers, replicas int) *enginetest.World {
	w := enginetest.New(servers, replicas, fleet.Rollout{})
	w.Config.Fleets[0].Groups[0].Spec = fleet.Spec{}.WithBuiltIn().WithDefaults() // it joins no cluster
	w.Things = func(fleet.Host) []enginetest.Thing {
		return []enginetest.Thing{{Key: "sudo", Value: "on", Input: plan.LoginPassword, Grants: true}, {Key: "plain", Value: "a", Root: true}}
	}
	return w
}

// TestPinnedBeforeAnythingIsSent pins a host that is met for the first time before it gets the
// login password, a claim or a change: the pin exists whenever a run is interrupted.
func TestPinnedBeforeAnythingIsSent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := fresh(2, 1)
		sent, lookers := 0, []string{"connect", "observe", "probe", "leave"} // they send nothing but questions
		w.OnCall = func(c enginetest.Call) enginetest.Fault {
			if c.Place == enginetest.OnHost && !slices.Contains(lookers, c.What) {
				sent++
				if m := w.Member(c.Name); !w.IsPinned(m) {
					t.Errorf("%s of %s, and its key is not pinned", c.What, c.Name)
				}
			}
			return enginetest.Fault{}
		}
		e := w.Engine()
		if r := performed(t, e, planned(t, e)); !r.Converged() || sent == 0 {
			t.Errorf("sent %d, failures %v", sent, r.Failures)
		}
	})
}

// getsNothing fails a test in which a machine gets more than a connection.
func getsNothing(t *testing.T, w *enginetest.World, m *enginetest.Machine) {
	w.OnCall = func(c enginetest.Call) enginetest.Fault {
		if c.Place == enginetest.OnHost && c.What != "connect" && w.Member(c.Name) == m {
			t.Errorf("the stranger got %s", c.What)
		}
		return enginetest.Fault{}
	}
}

// TestHalfTakenServerIsNamed: a run is killed when a host has its password and no claim yet, and another machine is put in its
// place. That gets nothing more. A run that claims another server instead reports it, and so does each run after it.
func TestHalfTakenServerIsNamed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := fresh(2, 1)
		e := w.Engine()
		p := planned(t, e)
		first := p.Hosts[0].Server.ID
		w.OnCall = faultAt("TakeClaim", enginetest.Fault{Before: func() { w.Die(errDied) }})
		_, _ = applying(t, t.Context(), e, p) // it died
		w.Die(nil)
		w.Reinstall(w.Member(first))
		getsNothing(t, w, w.Member(first))
		e = w.Engine()
		p = planned(t, e)
		if len(p.Hosts) != 1 || p.Hosts[0].Server.ID == first {
			t.Fatalf("hosts %+v", p.Hosts)
		}
		r := performed(t, e, p)
		if r.Converged() || r.Done == 0 || len(r.Failures) > 0 {
			t.Errorf("done %d, failures %v, converged %t", r.Done, r.Failures, r.Converged())
		}
		for what, p := range map[string]*plan.Plan{"before": p, "after": r.After, "the next": planned(t, w.Engine())} {
			s := p.Summarise()
			if len(p.Rejected) != 1 || s.Complete() || s.Unknown != 1 {
				t.Fatalf("%s: rejected %+v, complete %t", what, p.Rejected, s.Complete())
			}
			if r := p.Rejected[0]; !r.ClaimStarted || r.Server.ID != first || r.Code != plan.CodeWrongHostKey {
				t.Errorf("%s: rejected %+v", what, r)
			}
		}
		must(t, e.Pins.Update(func(all []plan.Pin) []plan.Pin {
			return slices.DeleteFunc(slices.Clone(all), func(p plan.Pin) bool { return p.ServerID == first })
		}))
		w.OnCall = nil
		if p := planned(t, w.Engine()); len(p.Rejected) != 0 || !p.Summarise().Complete() {
			t.Errorf("a person forgot its key: rejected %+v", p.Rejected)
		}
	})
}

// TestKnownMemberWithoutAPin gives a member that lost its pin nothing, whatever it is known by,
// also where the machine is a different one.
func TestKnownMemberWithoutAPin(t *testing.T) {
	t.Parallel()
	for name, another := range map[string]bool{"the same machine": false, "another one": true} {
		parallel(t, name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := fresh(1, 1)
				converges(t, w.Engine())
				if w.Unpin(); another {
					w.Reinstall(w.Machines[0])
				}
				getsNothing(t, w, w.Machines[0])
				e := w.Engine()
				p := planned(t, e)
				if len(p.Hosts) != 1 || p.Hosts[0].Unknown == nil || p.Hosts[0].Unknown.Code != plan.CodeHostKeyUnknown || p.Summarise().Complete() {
					t.Fatalf("hosts %+v", p.Hosts)
				}
				if r := performed(t, e, p); r.Converged() || w.IsPinned(w.Machines[0]) {
					t.Errorf("%+v; pinned %t", r.Failures, w.IsPinned(w.Machines[0]))
				}
			})
		})
	}
}

// TestPinnedMeanwhile: a host is pinned with another key between the plan and the apply. Neither
// wins, and nothing is sent.
func TestPinnedMeanwhile(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := fresh(1, 1)
		e := w.Engine()
		p := planned(t, e)
		must(t, e.Pins.Update(func(all []plan.Pin) []plan.Pin {
			return append(all, plan.Pin{ServerID: w.Machines[0].Server.ID, Name: p.Hosts[0].Name, Key: "ssh-ed25519 AAAA"})
		}))
		r := performed(t, e, p)
		var why *plan.Trouble
		if len(r.Failures) != 1 || !errors.As(r.Failures[0].Err, &why) || why.Code != plan.CodeWrongHostKey || r.Done != 0 {
			t.Errorf("done %d, failures %v", r.Done, r.Failures)
		}
		all, err := e.Pins.All()
		if err != nil || len(all) != 1 || !strings.HasSuffix(all[0].Key, "AAAA") {
			t.Errorf("%v: %+v", err, all)
		}
	})
}
