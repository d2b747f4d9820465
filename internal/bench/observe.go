package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/hosts"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/overssh"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/steps"
)

// observeMacfleet observes and plans a fleet as `macfleet plan` does: all but
// the providers' lists is the real thing.
func observeMacfleet(ctx context.Context, f *sshFleet) (result, error) {
	key, err := hosts.ParsePrivateKey(f.Key)
	if err != nil {
		return result{}, err
	}
	e, book := f.engine()
	client := hosts.New(hosts.Options{User: f.User, Key: key, Prologue: f.Tools.prologue(),
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, book[address])
		}})
	e.Hosts = overssh.Hosts{Client: client}
	began := time.Now()
	p, err := e.Plan(ctx)
	r := result{Wall: time.Since(began)}
	if err != nil {
		return r, err
	}
	for _, h := range p.Hosts {
		if h.Unknown != nil {
			return r, fmt.Errorf("%s: %s: %s", h.Name, h.Unknown.Code, h.Unknown.Text)
		}
		for id, seen := range h.Seen.Facts {
			if seen.IsUnread() {
				return r, fmt.Errorf("%s: %s: %s", h.Name, id, seen.Why())
			}
			r.Answers++
		}
		r.Answers++ // what earlier runs left behind is read and kept in no fact
	}
	stats := client.Stats()
	if n := int64(len(f.Addresses)); stats.Connections != n || stats.Execs != n {
		return r, fmt.Errorf("%d hosts took %d connections and %d execs", n, stats.Connections, stats.Execs)
	}
	r.Sent, r.Turns = stats.Sent, stats.Turns
	return r, nil
}

// spec is what the hosts should be: every step asks its questions.
func spec() fleet.Spec {
	return fleet.Spec{Hostname: &fleet.Hostname{}, Power: &fleet.Power{}}.WithBuiltIn().WithDefaults()
}

// engine returns an engine that lacks only its hosts client, and where the
// servers' addresses lead to.
func (f *sshFleet) engine() (*engine.Engine, map[string]string) {
	n := len(f.Addresses)
	config := &fleet.Config{Owner: fleet.Owner{Name: "acme"}, Scaleway: fleet.Scaleway{Zones: []string{"fr-par-1"}, PoolPrefix: "spare-"},
		SSH:    fleet.SSH{User: f.User},
		Fleets: []fleet.Fleet{{Name: "macos", OS: "Tahoe", Groups: []fleet.Group{{Name: "m2", Type: "M2-L", Replicas: n, Spec: spec()}}}}}
	var list servers
	var pinned pins
	book := make(map[string]string, n)
	for i, to := range f.Addresses {
		id := fmt.Sprintf("%05x-0000", i)
		s := inventory.Server{ID: id, Name: config.HostName("macos", "m2", id), Type: "M2-L", Zone: "fr-par-1",
			Address: fmt.Sprintf("198.18.%d.%d", i/250, i%250+1), OSFamily: "Tahoe", Status: "ready", Delivered: true}
		list = append(list, s)
		pinned = append(pinned, plan.Pin{ServerID: id, Name: s.Name, Key: f.HostKey})
		book[s.Address+":22"] = to
	}
	return &engine.Engine{Config: config, Steps: steps.For, Servers: list, Pins: pinned, Parallelism: f.Parallelism,
		Stop: context.Background(), Now: time.Now, Emit: func(engine.Event) {}}, book
}

// servers is an inventory that nobody changes.
type servers []inventory.Server

var errReadOnly = errors.New("a measurement changes nothing")

func (s servers) List(context.Context) ([]inventory.Server, error) { return s, nil }

func (servers) Get(context.Context, string, string) (inventory.Server, error) {
	return inventory.Server{}, errReadOnly
}

func (servers) Rename(context.Context, string, string, string, string) error { return errReadOnly }

// pins are host keys that nobody changes.
type pins []plan.Pin

func (p pins) All() ([]plan.Pin, error) { return p, nil }

func (pins) Update(func([]plan.Pin) []plan.Pin) error { return errReadOnly }

// probes returns what macfleet asks this fleet.
func (f *sshFleet) probes() []plan.Probe {
	var out []plan.Probe
	for _, s := range steps.For(fleet.Host{User: f.User, Spec: spec()}) {
		out = append(out, s.Probes()...)
	}
	return out
}

// hostKey returns the one key that all servers have.
func (f *sshFleet) hostKey() (ssh.PublicKey, error) {
	key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(f.HostKey))
	return key, err
}
