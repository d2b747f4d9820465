package engine

import (
	"context"
	"slices"
	"time"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
)

// Examine looks at one server of the inventory, whatever its role, and returns what was
// seen: a snapshot with its host alone. name is the server's name or id, or the name that it
// should bear; more is asked of it beside what a plan asks. An error means that no server
// was found or the inventory could not be read.
func (e *Engine) Examine(ctx context.Context, name string, more ...plan.Probe) (inventory.Server, plan.Snapshot, error) {
	snap, err := e.lists(ctx, true) // a host is examined also while the cluster is away
	if err != nil {
		return inventory.Server{}, snap, err
	}
	server, err := plan.Find(e.Config, snap, name)
	if err != nil {
		return server, snap, err
	}
	i := slices.IndexFunc(snap.Pins, func(p plan.Pin) bool { return p.ServerID == server.ID })
	var pin *plan.Pin
	if i >= 0 {
		pin = &snap.Pins[i]
	}
	e.emit(Event{Type: Observing, Count: 1})
	started := e.Now()
	seen := e.look(ctx, Target{Server: server, Pin: pin}, append(plan.Probes(e.Config, e.Steps, plan.Selection{}), more...))
	if err := context.Cause(ctx); err != nil {
		return server, snap, err
	}
	e.emit(Event{Type: Observed, Host: server.Name, Trouble: seen.Trouble, Seconds: e.Now().Sub(started).Seconds()})
	snap.Hosts[server.ID] = seen
	return server, snap, nil
}

// look asks one host some questions, on a connection of its own. It changes
// nothing. What could not be learnt is in the result.
func (e *Engine) look(ctx context.Context, t Target, probes []plan.Probe) plan.HostSeen {
	conn, err := e.Hosts.Connect(ctx, t)
	if err != nil {
		return e.Scrub.Host(plan.HostSeen{Trouble: trouble(err)})
	}
	defer conn.Close(ctx)
	seen := conn.Observe(ctx, probes)
	if seen.Trouble == nil {
		seen.At = e.Now().UTC().Truncate(time.Millisecond)
	}
	return e.Scrub.Host(seen)
}
