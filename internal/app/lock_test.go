package app

import (
	"context"
	"crypto/ed25519"
	"errors"
	"io"
	"net"
	"slices"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/hosts"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/plan"
)

// TestArmed: the host with the longest time left is waited for, so that all have taken their changes back.
func TestArmed(t *testing.T) {
	t.Parallel()
	p := &plan.Plan{Hosts: []plan.Host{{Name: "none"}}}
	if a := armed(p); a != nil {
		t.Errorf("%s is waited for", a.Name)
	}
	for i, left := range []int{20, 60, 40} {
		p.Hosts = append(p.Hosts, plan.Host{Name: []string{"short", "long", "middle"}[i], Seen: plan.HostSeen{Armed: &plan.Armed{Left: left}}})
	}
	if a := armed(p); a.Name != "long" {
		t.Errorf("%s is waited for", a.Name)
	}
}

// TestTakeOver: only the hosts of the run that ended are taken, not those of a run that may live.
func TestTakeOver(t *testing.T) {
	t.Parallel()
	_, private, err := ed25519.GenerateKey(nil)
	must(t, err)
	key, err := ssh.NewSignerFromKey(private)
	must(t, err)
	var dialed []string
	client := hosts.New(hosts.Options{User: "m1", Key: key, Dial: func(_ context.Context, _, address string) (net.Conn, error) {
		dialed = append(dialed, address)
		return nil, errors.New("no route")
	}})
	t.Cleanup(client.Close)
	s := &session{env: &Env{Streams: Streams{Out: io.Discard, Err: io.Discard}}, hosts: client, engine: &engine.Engine{Now: time.Now}}
	p := &plan.Plan{}
	for i, run := range []string{"living", "dead"} {
		p.Hosts = append(p.Hosts, plan.Host{Server: inventory.Server{ID: run, Address: []string{"192.0.2.1", "192.0.2.2"}[i]},
			Seen: plan.HostSeen{Key: hostKey, Entered: &plan.Entered{ID: run, Alone: true, Held: true}}})
	}
	if err := s.takeOver(t.Context(), p, *p.Hosts[1].Seen.Entered); err == nil || !slices.Equal(dialed, []string{"192.0.2.2:22"}) {
		t.Errorf("%v, dialed %q", err, dialed)
	}
}
