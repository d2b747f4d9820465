package plan_test

import (
	"slices"
	"strings"

	"pgregory.net/rapid"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
)

// checkRelease: a server is erased only if it is certainly this configuration's and no work runs on it, or if an earlier
// run has erased it, and it gets a name of the pool that no other server has.
func checkRelease(t *rapid.T, w *world, a plan.Action, h plan.Host) {
	if a.Kind != plan.ReinstallServer && a.Kind != plan.ReleaseServer {
		return
	}
	switch twice := slices.ContainsFunc(w.snap.Servers, func(s inventory.Server) bool { return s.Name == a.Reset.Pool && s.ID != h.Server.ID }); {
	case !h.Leaves, twice, !strings.HasPrefix(a.Reset.Pool, "acme-pool-"):
		t.Fatalf("%+v of %+v", a, h)
	case h.Stage.Final():
		return
	}
	m, marked := h.Seen.Marker.Get()
	if strings.HasPrefix(h.Server.Name, "acme-pool-") && !marked { // with a marker, a person has only renamed it
		t.Fatalf("%s is free and is erased", h.Server.Name)
	}
	n, isNode := h.Node.Get()
	owned := marked && m.ServerID == h.Server.ID && m.Owner() == w.cfg.Owner || isNode && n.ProviderID == h.Server.ProviderID() || h.Stage == plan.Leaving
	works := slices.ContainsFunc(w.podsOf(h), inventory.Pod.Works) && !h.Drainable()
	if !owned || works || !h.Server.Usable() || h.Unknown != nil && h.Unknown.Code != plan.CodeUnreachable && h.Unknown.Code != plan.CodeHostDown {
		t.Fatalf("%+v is erased: owned %t, works %t", h, owned, works)
	}
}

// podsOf returns the Pods on a host's Node.
func (w *world) podsOf(h plan.Host) []inventory.Pod {
	all, _ := h.Pods.Get()
	return all
}

// settle forgets the stages that mean nothing any more, and those of servers that are claimed.
func (w *world) settle(p *plan.Plan) {
	left := p.Left
	w.snap.Pins = slices.DeleteFunc(slices.Clone(w.snap.Pins), func(pin plan.Pin) bool { return slices.Contains(left, pin.ServerID) })
	for i := range w.snap.Pins {
		pin := &w.snap.Pins[i]
		*pin = p.Keep(*pin)
		for _, a := range p.Actions {
			if a.Kind == plan.ClaimServer && a.ServerID == pin.ServerID {
				pin.Stage, pin.Name = plan.Stays, a.Host
			}
		}
	}
}

// release erases a server and returns it to the pool. What the cluster still has of it goes first.
func (w *world) release(h plan.Host, a plan.Action) {
	i := slices.IndexFunc(w.snap.Servers, func(s inventory.Server) bool { return s.ID == h.Server.ID })
	w.snap.Servers[i].Name, w.snap.Servers[i].Status = a.Reset.Pool, "ready"
	w.snap.Pins = slices.DeleteFunc(w.snap.Pins, func(p plan.Pin) bool { return p.ServerID == h.Server.ID })
	w.snap.Hosts[h.Server.ID] = clean(i + 1)
	delete(w.cfg.SSH.HostKeys, h.Server.ID)
	if nodes, read := w.snap.Nodes.Get(); read {
		w.snap.Nodes = inventory.Present(slices.DeleteFunc(slices.Clone(nodes), func(n inventory.Node) bool { return n.ProviderID == h.Server.ProviderID() }))
	}
}
