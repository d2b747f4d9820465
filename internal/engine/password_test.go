package engine_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/macfleet/macfleet/internal/sandbox/mac"
)

// TestOnePasswordTriedAtOnce lets six runs meet a host that refuses the password
// they know: it is tried once by all of them together, and the account is not
// locked.
func TestOnePasswordTriedAtOnce(t *testing.T) {
	t.Parallel()
	declares(t, 6, "six runs meet on one host")
	w, e := converged(t, 3, hostCore("production", 1))
	host := planned(t, e).Hosts[0].Name
	must(t, w.Inject(host, "wrong-password"))
	var wg sync.WaitGroup
	for range 6 {
		other := run(t, w, hostCore("production", 1))
		wg.Go(func() {
			p, err := other.Plan(t.Context())
			if err == nil {
				_, err = applying(t, t.Context(), other, p)
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if wrong := wrongTries(t, macOf(t, w, host)); wrong != 1 {
		t.Errorf("the refused password was used %d times", wrong)
	}
}

// wrongTries counts the wrong passwords that a Mac was given.
func wrongTries(t *testing.T, m *mac.Machine) (n int) {
	t.Helper()
	for _, try := range tries(t, m) {
		if !try.Right {
			n++
		}
	}
	return n
}

// TestKilledWhileItTried: a run that was killed while a host tried a password keeps that
// host busy for a while. The next run waits, and continues.
func TestKilledWhileItTried(t *testing.T) {
	t.Parallel()
	w, _ := world(t, 3)
	e := run(t, w, hostCore("production", 1))
	machine := macOf(t, w, planned(t, e).Hosts[0].Server.Name)
	// A second before that is over, so that the wait is short.
	left := `mkdir -p "$HOME/.macfleet" && echo "$(($(date +%s) - 69))" >"$HOME/.macfleet/trying"`
	if a, err := machine.Run(t.Context(), "m1", left); err != nil || a.Exit != 0 {
		t.Fatalf("%+v, %v", a, err)
	}
	converges(t, e)
}

// TestRestForAPerson: what a step refuses while it repairs something else does not make the
// next run repair it again.
func TestRestForAPerson(t *testing.T) {
	t.Parallel()
	w, e, host := firewalled(t, map[string]string{"vm-network": "present"})
	must(t, w.SetSwitch(host, "vm-subnet", "192.168.2.1/24"))
	must(t, w.Inject(host, "legacy-pf-block"))
	for n := range 2 {
		r := apply(t, e)
		said := codesOf(r.After, host)
		if r.Converged() || len(said) != 1 || said[0] != "refused vm-subnet-uncovered" {
			t.Errorf("apply %d: %q, failures %v", n, said, r.Failures)
		}
		if n > 0 && r.Done+len(r.Failures) > 0 {
			t.Errorf("apply %d did something again: %d, %v", n, r.Done, r.Failures)
		}
	}
}

// TestBrokenSudo: where sudo cannot read its rules, root is not available, so no
// password is tried and the fix is reported.
func TestBrokenSudo(t *testing.T) {
	t.Parallel()
	w, e := converged(t, 3, hostCore("production", 1))
	host := planned(t, e).Hosts[0].Name
	must(t, w.SetSwitch(host, "sudoers-syntax-error", "sudo-fails"))
	inject(t, w, host, "sudoers-broken")
	p := planned(t, e)
	if r := p.Hosts[0].Refused; r == nil || r.Code.String() != "sudoers-broken" || !strings.Contains(r.Remedy, "osascript") || len(p.Runnable()) > 0 {
		t.Errorf("refused %+v, would run %+v", r, p.Runnable())
	}
}

// TestLockedCandidate: a pool server whose account is locked gives way to another
// one.
func TestLockedCandidate(t *testing.T) {
	t.Parallel()
	w, _ := world(t, 4)
	e := run(t, w, hostCore("production", 1))
	first := planned(t, e).Hosts[0].Server.ID
	inject(t, w, first, "sudo-locked")
	p := planned(t, e)
	if len(p.Rejected) != 1 || p.Rejected[0].Server.ID != first || p.Rejected[0].Trouble.Code.String() != "sudo-locked" {
		t.Errorf("rejected %+v", p.Rejected)
	}
	if len(p.Hosts) != 1 || p.Hosts[0].Server.ID == first || p.Hosts[0].Refused != nil {
		t.Errorf("hosts %+v", p.Hosts)
	}
	converges(t, e)
}
