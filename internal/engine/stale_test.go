package engine_test

import (
	"context"
	"slices"
	"testing"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/secret"
)

// known are the passwords that are known of every host.
type known []string

func (k known) Find(context.Context, inventory.Server, string) ([]engine.Password, error) {
	var out []engine.Password
	for _, text := range k {
		v, err := secret.New(text)
		if err != nil {
			return nil, err
		}
		out = append(out, engine.Password{Value: v, Source: "the test"})
	}
	if out == nil {
		return nil, engine.CodePasswordNotDisclosed.Trouble("the provider does not tell it")
	}
	return out, nil
}

// TestStaleKcpassword: where the password in /etc/kcpassword is not the account's any more, loginwindow never
// reads it, each wrong password is tried once at most however often someone applies, and the right one, once
// it is known, is written before loginwindow is restarted.
func TestStaleKcpassword(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, incident, before, after string // what is reported before and after the first apply
		known                         func(old string) known
		wrong                         int // tries
	}{
		{"not reported, session", "stale-kcpassword", "drift kcpassword-unverified", "refused password-not-disclosed", func(string) known { return nil }, 1},
		{"not reported, no session", "stale-kcpassword-no-session", "drift no-gui-session", "refused password-not-disclosed", func(string) known { return nil }, 1},
		{"the old one is reported", "stale-kcpassword-no-session", "drift no-gui-session", "refused wrong-password", func(old string) known { return known{old} }, 1},
		{"two wrong ones are reported", "stale-kcpassword-no-session", "drift no-gui-session", "drift stale-kcpassword",
			// The old one is tried out of the file, and then as one that the provider reports: no note says that these are the same.
			func(old string) known { return known{"not-this-one", old} }, 3},
	} {
		parallel(t, tc.name, func(t *testing.T) {
			w, e := converged(t, 3, hostCore("production", 1))
			right := e.Passwords
			host := planned(t, e).Hosts[0].Name
			machine := macOf(t, w, host)
			old, err := machine.Password()
			must(t, err)
			inject(t, w, host, tc.incident)
			before := len(tries(t, machine))
			e.Passwords = tc.known(old)
			if said := codesOf(planned(t, e), host); !slices.Equal(said, []string{tc.before}) {
				t.Errorf("it says %q", said)
			}
			for n := range 2 {
				r := apply(t, e)
				if left := codesOf(r.After, host); r.Converged() || n == 0 && !slices.Equal(left, []string{tc.after}) {
					t.Errorf("apply %d: left %q, failures %v", n, left, r.Failures)
				}
			}
			for _, try := range tries(t, machine)[before:] {
				if try.Tool == "loginwindow" {
					t.Errorf("loginwindow was shown the file: %+v", try)
				}
			}
			screen, err := machine.Screen()
			if wrong := wrongTries(t, machine); err != nil || screen.Sealed || wrong != tc.wrong {
				t.Errorf("%d wrong tries, %+v, %v", wrong, screen, err)
			}
			e.Passwords = right
			converges(t, e)
			if screen, err = machine.Screen(); err != nil || !screen.AutoLogin || screen.User != "m1" {
				t.Errorf("%+v, %v", screen, err)
			}
		})
	}
}

// TestWithheldPasswordIsNotNeeded: a host whose file is right gets its session back though the provider does not report its
// password, also where it was set up before hosts noted what was verified, and where the directory reports no times.
func TestWithheldPasswordIsNotNeeded(t *testing.T) {
	t.Parallel()
	for _, forgets := range []bool{false, true} {
		w, e := converged(t, 3, hostCore("production", 1))
		host := planned(t, e).Hosts[0].Name
		if forgets {
			must(t, macOf(t, w, host).Remove("/etc/macfleet/kcpassword"))
			must(t, w.SetSwitch(host, "password-set-time", "not-told"))
		}
		if said := codesOf(planned(t, e), host); len(said) > 0 {
			t.Errorf("forgets %t: it says %q", forgets, said)
		}
		must(t, w.Inject(host, "dead-loginwindow"))
		e.Passwords = known(nil)
		converges(t, e)
	}
}
