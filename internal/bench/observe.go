package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/hosts"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/overssh"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/steps"
)

// observeMacfleet observes and plans a fleet as `macfleet plan` does. Only the providers' lists are
// simulated.
func observeMacfleet(ctx context.Context, f *sshFleet) (result, error) {
	client, err := f.client(hosts.Options{Prologue: f.Tools.prologue()})
	if err != nil {
		return result{}, err
	}
	e := f.engine()
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
		r.Answers += 2 // leftovers of earlier runs and jobs of other systems are read too, but are in no fact
	}
	stats := client.Stats()
	if n := int64(f.Hosts); stats.Connections != n || stats.Execs != n {
		return r, fmt.Errorf("%d hosts took %d connections and %d execs", n, stats.Connections, stats.Execs)
	}
	r.Sent, r.Turns = stats.Sent, stats.Turns
	return r, nil
}

// spec is a specification in which every step asks its questions.
func spec() fleet.Spec {
	return fleet.Spec{Hostname: &fleet.Hostname{}, Power: &fleet.Power{}}.WithBuiltIn().WithDefaults()
}

// client returns a client that finds every server at the fleet's address.
func (f *sshFleet) client(o hosts.Options) (*hosts.Client, error) {
	key, err := hosts.ParsePrivateKey(f.Key)
	o.User, o.Key = f.User, key
	o.Dial = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, f.Address)
	}
	return hosts.New(o), err
}

// engine returns an engine without a hosts client.
func (f *sshFleet) engine() *engine.Engine {
	config := &fleet.Config{Owner: fleet.Owner{Name: "acme"}, Scaleway: fleet.Scaleway{Zones: []string{"fr-par-1"}, PoolPrefix: "spare-"},
		SSH:    fleet.SSH{User: f.User},
		Fleets: []fleet.Fleet{{Name: "macos", OS: "Tahoe", Groups: []fleet.Group{{Name: "m2", Type: "M2-L", Replicas: f.Hosts, Spec: spec()}}}}}
	var list servers
	var pinned pins
	for i := range f.Hosts {
		id := fmt.Sprintf("%05x-0000", i)
		s := inventory.Server{ID: id, Name: config.HostName("macos", "m2", id), Type: "M2-L", Zone: "fr-par-1",
			Address: fmt.Sprintf("198.18.%d.%d", i/250, i%250+1), OSFamily: "Tahoe", Status: "ready", Delivered: true}
		list = append(list, s)
		pinned = append(pinned, plan.Pin{ServerID: id, Name: s.Name, Key: f.HostKey})
	}
	return &engine.Engine{Config: config, Steps: steps.For, Servers: list, Pins: pinned, Parallelism: f.Parallelism,
		Stop: context.Background(), Now: time.Now, Emit: func(engine.Event) {}}
}

// servers is a read-only inventory.
type servers []inventory.Server

var errReadOnly = errors.New("read-only: this is a measurement")

func (s servers) List(context.Context) ([]inventory.Server, error) { return s, nil }

func (servers) Get(context.Context, string, string) (inventory.Server, error) {
	return inventory.Server{}, errReadOnly
}

func (servers) Elsewhere(context.Context) inventory.Account { return inventory.Account{} }
func (servers) Catalogue(context.Context) (inventory.Catalogue, error) {
	return inventory.Catalogue{}, errReadOnly
}
func (servers) Gone(context.Context, string, string) (bool, error)           { return false, errReadOnly }
func (servers) CheckRename(context.Context, string, string) error            { return errReadOnly }
func (servers) Reinstall(context.Context, string, string, string) error      { return errReadOnly }
func (servers) Rename(context.Context, string, string, string, string) error { return errReadOnly }
func (servers) Reboot(context.Context, string, string) error                 { return errReadOnly }

// pins are read-only host keys.
type pins []plan.Pin

func (p pins) All() ([]plan.Pin, error) { return p, nil }

func (pins) Update(func([]plan.Pin) []plan.Pin) error { return errReadOnly }

// probesOf returns the probes of a specification's steps.
func probesOf(user string, spec fleet.Spec) []plan.Probe {
	var out []plan.Probe
	for _, s := range steps.For(fleet.Host{User: user, Spec: spec}) {
		out = append(out, s.Probes()...)
	}
	return out
}
