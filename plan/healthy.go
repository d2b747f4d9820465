package plan

import (
	"slices"
	"strings"

	"github.com/macfleet/macfleet/fleet/inventory"
)

// Healthy is a member whose Node was Ready when the plan was made.
type Healthy struct {
	ServerID   string
	Name       string // of the Node
	ProviderID string
}

// healthy returns the members of each fleet whose Nodes are Ready, selected or not:
// how many of a fleet may be disturbed at once does not depend on how many a run is
// about. Without a cluster it is the hosts that were asked and answered.
func (c *computation) healthy() map[string][]Healthy {
	out := make(map[string][]Healthy)
	for i := range c.servers {
		p := &c.servers[i]
		if p.role != member || !c.works(p) {
			continue
		}
		out[p.place.Fleet] = append(out[p.place.Fleet], Healthy{p.server.ID, p.name, p.server.ProviderID()})
	}
	for _, all := range out {
		slices.SortFunc(all, func(a, b Healthy) int { return strings.Compare(a.Name, b.Name) })
	}
	return out
}

func (c *computation) works(p *placed) bool {
	if c.cluster.there {
		n, ok := p.node.Get()
		return ok && n.Ready == inventory.Ready && n.ProviderID == p.server.ProviderID()
	}
	seen, asked := c.snap.Hosts[p.server.ID]
	return asked && seen.Trouble == nil
}

// IsHealthy reports whether a host is among the healthy ones of its fleet.
func (p *Plan) IsHealthy(h Host) bool {
	return slices.ContainsFunc(p.Healthy[h.Fleet], func(o Healthy) bool { return o.ServerID == h.Server.ID })
}

// Worst returns what actions do to the work on their host, at the worst.
func Worst(actions []Action) Disruption {
	worst := NoDisruption
	for _, a := range actions {
		worst = max(worst, a.Disruption)
	}
	return worst
}
