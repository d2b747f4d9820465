package engine_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/macfleet/macfleet/hosts"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/overssh"
	"github.com/macfleet/macfleet/internal/sandbox"
	"github.com/macfleet/macfleet/internal/sandbox/mac"
	"github.com/macfleet/macfleet/plan"
)

// client returns a client of a world with its own deadlines.
func client(t *testing.T, w *sandbox.World, d hosts.Deadlines) overssh.Hosts {
	t.Helper()
	pem, err := w.Secret(keyRef)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := hosts.ParsePrivateKey(pem)
	if err != nil {
		t.Fatal(err)
	}
	return overssh.New(hosts.Options{User: "m1", Key: signer, Dial: w.DialContext, Deadlines: d})
}

// settings returns a Mac's power settings, read past SSH.
func settings(t *testing.T, dir, id string) string {
	t.Helper()
	m, err := mac.Open(filepath.Join(dir, "macs", id))
	if err != nil {
		t.Fatal(err)
	}
	r, err := m.Run(t.Context(), "root", "pmset -g custom")
	if err != nil || r.Exit != 0 {
		t.Fatal(err, r)
	}
	return string(r.Stdout)
}

// TestDiesInChange breaks the connection in the very command that changes a
// host: the change is made and its answer is lost. The other host converges, and
// the next apply finds the change and enters its verification.
func TestDiesInChange(t *testing.T) {
	t.Parallel()
	w, e := converged(t, 4, config("production", 2))
	dir := folderOf(t, w)
	p := planned(t, e)
	one, two := p.Hosts[0], p.Hosts[1]
	healthy := settings(t, dir, one.Server.ID)
	for _, incident := range []string{"hostname-edited", "sleep-enabled"} {
		for _, h := range []plan.Host{one, two} {
			if err := w.Inject(h.Name, incident); err != nil {
				t.Fatal(err)
			}
		}
	}
	p = planned(t, e)
	// The connection has been open since the first of the two actions.
	started := 0
	var last plan.StepID
	e.Emit = func(ev engine.Event) {
		if ev.Type != engine.Started || ev.Host != one.Name {
			return
		}
		if started++; started == 2 {
			last = ev.Action.Step
			if err := w.Inject(one.Name, "dies-in-command"); err != nil {
				t.Error(err)
			}
		}
	}
	r := performed(t, e, p)
	e.Emit = func(engine.Event) {}
	if r.Converged() || len(r.Failures) != 1 || r.Failures[0].Action.Host != one.Name || r.Done != 3 {
		t.Fatalf("%d actions done, failures %+v; want 3 and one failure on %s", r.Done, r.Failures, one.Name)
	}
	var lost *hosts.Error
	if err := r.Failures[0].Err; !errors.As(err, &lost) || lost.Code.String() != "connection-lost" || lost.Phase != hosts.Talking {
		t.Errorf("failure = %v", err)
	}
	if last != "power" {
		t.Fatalf("the second action is %s: fix this test", last)
	}
	if got := settings(t, dir, one.Server.ID); got != healthy {
		t.Errorf("the change whose answer was lost was not made:\n%s", got)
	}
	if err := w.Heal(one.Name, "dies-in-command"); err != nil {
		t.Fatal(err)
	}
	converges(t, e)
	if left := planned(t, e); len(left.Actions) != 0 {
		t.Errorf("actions afterwards: %+v", left.Actions)
	}
}

// TestSilentHost: a host that accepts connections and says nothing is unknown
// within the handshake's deadline, and affects no other.
func TestSilentHost(t *testing.T) {
	t.Parallel()
	w, e := converged(t, 4, config("production", 2))
	one := planned(t, e).Hosts[0]
	if err := w.Inject(one.Name, "silent"); err != nil {
		t.Fatal(err)
	}
	e.Hosts = client(t, w, hosts.Deadlines{Handshake: 5 * time.Second})
	p := planned(t, e)
	for _, h := range p.Hosts {
		switch {
		case h.Name != one.Name:
			if h.Unknown != nil {
				t.Errorf("%s: %+v", h.Name, h.Unknown)
			}
		case h.Unknown == nil || h.Unknown.Code.String() != "no-ssh-answer" || !strings.Contains(h.Unknown.Text, "handshake: login timed out after 5s") || h.Unknown.Remedy == "":
			t.Errorf("the silent host: %+v", h.Unknown)
		}
	}
	if err := w.Heal(one.Name, ""); err != nil {
		t.Fatal(err)
	}
	e.Hosts = client(t, w, hosts.Deadlines{})
	converges(t, e)
}
