package engine

import (
	"context"
	"slices"
	"time"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/hosts"
	"github.com/macfleet/macfleet/plan"
)

// Examine looks at one server of the inventory, whatever its role, and returns
// its check list and what was seen: a snapshot with that server and its host
// alone. name is the server's name or id, or the name that it should bear. A
// host that cannot be asked is in the list; an error means that no server was
// found or the inventory could not be read.
func (e *Engine) Examine(ctx context.Context, name string) (plan.Checkup, plan.Snapshot, error) {
	snap, err := e.lists(ctx, true) // a host is examined also while the cluster is away
	if err != nil {
		return plan.Checkup{}, snap, err
	}
	server, err := plan.Find(e.Config, snap, name)
	if err != nil {
		return plan.Checkup{}, snap, err
	}
	i := slices.IndexFunc(snap.Pins, func(p plan.Pin) bool { return p.ServerID == server.ID })
	var pin *plan.Pin
	if i >= 0 {
		pin = &snap.Pins[i]
	}
	e.emit(Event{Type: Observing, Count: 1})
	started := e.Now()
	seen := e.look(ctx, hosts.Target{Server: server, Pin: pin}, append(plan.Probes(e.Config, e.Steps, plan.Selection{}), plan.ClockProbe()))
	if err := context.Cause(ctx); err != nil {
		return plan.Checkup{}, snap, err
	}
	now := e.Now()
	e.emit(Event{Type: Observed, Host: server.Name, Trouble: seen.Trouble, Elapsed: now.Sub(started)})
	snap.Hosts[server.ID] = seen
	checkup := plan.Examine(e.Config, e.Steps, snap, server.ID, now)
	snap.Servers = []inventory.Server{server}
	return checkup, snap, nil
}

// look asks one host some questions, on a connection of its own. It changes
// nothing. What could not be learnt is in the result.
func (e *Engine) look(ctx context.Context, t hosts.Target, probes []plan.Probe) plan.HostSeen {
	conn, err := e.Hosts.Connect(ctx, t)
	if err != nil {
		return e.scrub().Host(plan.HostSeen{Trouble: trouble(err)})
	}
	defer conn.Close()
	seen := conn.Observe(ctx, probes)
	if seen.Trouble == nil {
		seen.At = e.Now().UTC().Truncate(time.Millisecond)
	}
	return e.scrub().Host(seen)
}
