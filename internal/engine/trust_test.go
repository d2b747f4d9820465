package engine_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/internal/engine"
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

// lookers are the calls of a host that send it nothing but questions.
var lookers = []string{"connect", "observe", "probe", "leave"}

// TestPinnedBeforeAnythingIsSent pins a host that is met for the first time before it gets the
// login password, a claim or a change: the pin exists whenever a run is interrupted.
func TestPinnedBeforeAnythingIsSent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := fresh(2, 1)
		sent := 0
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

// TestKilledBetweenPasswordAndClaim kills a run when a host has its password and no claim yet,
// and puts another machine in its place: the next run talks to that no more.
func TestKilledBetweenPasswordAndClaim(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := fresh(1, 1)
		killed := errors.New("killed")
		w.OnCall = func(c enginetest.Call) enginetest.Fault {
			if c.Place == enginetest.OnHost && c.What == "TakeClaim" {
				return enginetest.Fault{Before: func() { w.Die(killed) }}
			}
			return enginetest.Fault{}
		}
		e := w.Engine()
		p := planned(t, e)
		_, _ = applying(t, t.Context(), e, p) // it died
		w.Die(nil)
		w.Reinstall(w.Machines[0])
		w.OnCall = func(c enginetest.Call) enginetest.Fault {
			if c.Place == enginetest.OnHost && c.What != "connect" {
				t.Errorf("the stranger got %s", c.What)
			}
			return enginetest.Fault{}
		}
		e = w.Engine()
		p = planned(t, e)
		if len(p.Actions) != 0 || len(p.Rejected) != 1 || p.Rejected[0].Code != plan.CodeWrongHostKey {
			t.Errorf("actions %v, rejected %+v", p.Actions, p.Rejected)
		}
		if _, err := applying(t, t.Context(), e, p); err != nil {
			t.Error(err)
		}
	})
}

// TestHalfTakenServerIsNamed: a claim was interrupted and another machine is in the server's place. A run that claims
// another server instead reports it, and so does each run after it.
func TestHalfTakenServerIsNamed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := fresh(2, 1)
		e := w.Engine()
		p := planned(t, e)
		first := p.Hosts[0].Server.ID
		w.OnCall = func(c enginetest.Call) enginetest.Fault {
			if c.Place == enginetest.OnHost && c.What == "TakeClaim" {
				return enginetest.Fault{Before: func() { w.Die(errors.New("killed")) }}
			}
			return enginetest.Fault{}
		}
		_, _ = applying(t, t.Context(), e, p) // it died
		w.Die(nil)
		w.OnCall = nil
		for _, m := range w.Machines {
			if m.Server.ID == first {
				w.Reinstall(m)
			}
		}
		e = w.Engine()
		p = planned(t, e)
		if len(p.Hosts) != 1 || p.Hosts[0].Server.ID == first {
			t.Fatalf("hosts %+v", p.Hosts)
		}
		r, err := applying(t, t.Context(), e, p)
		if err != nil || r.Converged() || r.Done == 0 || len(r.Failures) > 0 {
			t.Errorf("%v: done %d, failures %v, converged %t", err, r.Done, r.Failures, r.Converged())
		}
		for what, p := range map[string]*plan.Plan{"before": p, "after": r.After, "the next": planned(t, w.Engine())} {
			if s := p.Summarise(); len(p.Rejected) != 1 || !p.Rejected[0].ClaimStarted || p.Rejected[0].Server.ID != first || s.Complete() || s.Unknown != 1 {
				t.Errorf("%s: rejected %+v, complete %t", what, p.Rejected, s.Complete())
			}
		}
		if err := e.Pins.Update(func(all []plan.Pin) []plan.Pin {
			return slices.DeleteFunc(slices.Clone(all), func(p plan.Pin) bool { return p.ServerID == first })
		}); err != nil {
			t.Fatal(err)
		}
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
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := fresh(1, 1)
				converges(t, w.Engine())
				w.Unpin()
				if another {
					w.Reinstall(w.Machines[0])
				}
				w.OnCall = func(c enginetest.Call) enginetest.Fault {
					if c.Place == enginetest.OnHost && c.What != "connect" {
						t.Errorf("it got %s", c.What)
					}
					return enginetest.Fault{}
				}
				e := w.Engine()
				p := planned(t, e)
				s := p.Summarise()
				if len(p.Hosts) != 1 || p.Hosts[0].Unknown == nil || p.Hosts[0].Unknown.Code != plan.CodeHostKeyUnknown || s.Complete() {
					t.Fatalf("hosts %+v", p.Hosts)
				}
				r, err := applying(t, t.Context(), e, p)
				if err != nil || r.Converged() || w.IsPinned(w.Machines[0]) {
					t.Errorf("%v: %+v; pinned %t", err, r.Failures, w.IsPinned(w.Machines[0]))
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
		if err := e.Pins.Update(func(all []plan.Pin) []plan.Pin {
			return append(all, plan.Pin{ServerID: w.Machines[0].Server.ID, Name: p.Hosts[0].Name, Key: "ssh-ed25519 AAAA"})
		}); err != nil {
			t.Fatal(err)
		}
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

// TestKeyOfTheConfiguration: a key that the configuration gives is compared with the one that is
// shown, and pinned where both agree.
func TestKeyOfTheConfiguration(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := fresh(1, 1)
		converges(t, w.Engine())
		e := w.Engine()
		pins, err := e.Pins.All()
		if err != nil || len(pins) != 1 {
			t.Fatalf("%v: %v", err, pins)
		}
		e.Config.SSH.HostKeys = map[string]string{pins[0].Name: planned(t, e).Hosts[0].Seen.Fingerprint}
		w.Unpin()
		if p := planned(t, e); len(p.Actions) != 0 || len(engine.Unpinned(p)) != 1 || !p.Summarise().Complete() {
			t.Errorf("the configuration's key: actions %v, of the host %v", p.Actions, p.Hosts[0].Unknown)
		}
		e.Config.SSH.HostKeys = map[string]string{pins[0].Name: "SHA256:another"}
		if p := planned(t, e); p.Hosts[0].Unknown == nil || p.Hosts[0].Unknown.Code != plan.CodeWrongHostKey {
			t.Errorf("another key in the configuration: %+v", p.Hosts[0].Unknown)
		}
	})
}
