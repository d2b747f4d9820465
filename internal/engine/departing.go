package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
)

// storeAsked stores what a person asked of a server before its first action, so that the next run continues.
// A server that is not released by this plan is not noted as leaving.
func (e *Engine) storeAsked(p *plan.Plan) error {
	d := e.Selection.Departs
	if d == nil {
		return nil
	}
	i := slices.IndexFunc(p.Hosts, func(h plan.Host) bool { return h.Server.ID == d.ServerID })
	if i < 0 || p.Hosts[i].Stage.Final() || d.Replace && p.Hosts[i].Stage != plan.Replaced {
		return nil
	}
	h := &p.Hosts[i]
	if d.Replace {
		return e.restage(d.ServerID, plan.Stays, plan.Replaced)
	}
	runs := slices.ContainsFunc(p.Actions, func(a plan.Action) bool { return a.ServerID == d.ServerID && a.Runs() })
	if !h.Leaves || !runs {
		return nil
	}
	w := &worker{engine: e, host: *h}
	if err := w.stage(plan.Leaving, h.Seen.Key); err != nil {
		return err
	}
	h.Seen.Pinned = true
	return nil
}

// restage changes the stage that is stored of a server from one to another. A server that has neither, or no pin, is an
// error: another run has released it further since.
func (e *Engine) restage(serverID string, from, to plan.Stage) error {
	if err := e.checkLock(); err != nil {
		return err
	}
	var found error
	err := e.Pins.Update(func(all []plan.Pin) []plan.Pin {
		all, found = slices.Clone(all), errors.New("the key of its host is not pinned; plan again")
		for i := range all {
			switch {
			case all[i].ServerID != serverID:
			case all[i].Stage == from, all[i].Stage == to:
				all[i].Stage, found = to, nil
			default:
				found = fmt.Errorf("its release is at stage %q since it was read; plan again", all[i].Stage)
			}
		}
		return all
	})
	return cmp.Or(err, found)
}

// CancelDeparture makes a server stay that a person asked to replace or release, or that a run started to release. One whose
// reinstallation was requested, or may have been, stays if its host shows that its disk is the old one. name is any that
// plan.Find takes. If the stage that it returns is plan.Stays, nothing was stored.
func (e *Engine) CancelDeparture(ctx context.Context, name string) (plan.Kept, error) {
	snap, err := e.lists(ctx, never)
	if err != nil {
		return plan.Kept{}, err
	}
	k, err := plan.Keep(e.Config, snap, name)
	switch {
	case err != nil:
		return k, err
	case k.Stage.Final() && !e.unerased(ctx, snap, k):
		return k, fmt.Errorf("%s is erased already or about to be, so its release must be finished; fix: macfleet apply", k.Name)
	case k.Stage == plan.Stays:
		return k, nil
	}
	return k, e.restage(k.ServerID, k.Stage, plan.Stays)
}

// unerased reports whether the host of a server that should be erased still has its disk, as the server and the host show now.
func (e *Engine) unerased(ctx context.Context, snap plan.Snapshot, k plan.Kept) bool {
	s := slices.IndexFunc(snap.Servers, func(s inventory.Server) bool { return s.ID == k.ServerID })
	p := slices.IndexFunc(snap.Pins, func(p plan.Pin) bool { return p.ServerID == k.ServerID })
	if k.Stage != plan.Wiping || s < 0 || p < 0 {
		return false
	}
	server := snap.Servers[s]
	seen := e.look(ctx, Target{Server: server, Name: k.Name, Trust: plan.Trust{Pin: &snap.Pins[p]}}, nil)
	now, err := e.Servers.Get(ctx, server.Zone, server.ID)
	return err == nil && plan.Unerased(now, seen)
}

// stillUnowned looks again, right before a server is erased that nothing shows to be this configuration's: it must still
// have no owner. The worker has just read its host.
func (w *worker) stillUnowned(ctx context.Context) error {
	s := w.host.Server
	if !w.host.Seen.Marker.IsAbsent() || !w.host.Seen.Claim.IsAbsent() {
		return errors.New("someone claimed its host since the plan; plan again")
	}
	all, err := w.engine.Servers.List(ctx)
	if err != nil {
		return err
	}
	if !slices.Contains(all, s) {
		return errors.New("the server changed since the plan; plan again")
	}
	if w.engine.Cluster == nil {
		return nil
	}
	nodes, err := w.engine.Cluster.Nodes(ctx)
	if err != nil {
		return err
	}
	if name, is := plan.NodeOn(nodes, s); is {
		return fmt.Errorf("it became Node %s since the plan; plan again", name)
	}
	return nil
}
