package plan

import (
	"cmp"
	"slices"
	"strings"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
)

// role is what a server is to the configuration.
type role int

const (
	stray  role = iota // in no pool and no fleet
	pool               // free to be claimed
	member             // of a fleet and group
)

// placed is a server with its role. A member, and a pool server that a claim has
// chosen, has the name it should bear, which is not the server's when somebody
// renamed it.
type placed struct {
	server inventory.Server
	role   role
	name   string
	place  fleet.Place
	node   inventory.Seen[inventory.Node]

	doubtful bool        // a pool server that was a member by its pin or Node
	former   fleet.Place // of a stray: where its own marker puts it; empty otherwise

	onceAdopted bool // of a stray: an apply of ours pinned it under a name that no grammar made
	mayHold     bool // of such a stray: its marker could not be asked where it belongs

	adopted      bool
	pooled       bool     // of an adopted server: it bears a name of the pool
	witnessed    bool     // of an adopted server: somebody knew it by its listed name
	provenBefore bool     // of an adopted server: an apply of ours knew it, not just its Node
	refused      *Trouble // of an adopted server: why it cannot be taken over
}

func (p placed) renamed() bool { return p.role == member && p.name != p.server.Name }

// subject returns the server as selectors see it.
func (p placed) subject() subject {
	n, ok := p.node.Get()
	return subject{name: p.name, fleet: p.place.Fleet, group: p.place.Group, server: p.server, ready: ok && n.Ready == inventory.Ready}
}

// testimony is the owned name by which a server was last known, and who says so.
type testimony struct{ name, by string }

// Who bears witness. The host's own marker counts most, then the pin, then the
// Node.
const (
	byMarker = "marker"
	byPin    = "pin"
	byNode   = "Node"
	byBlock  = "host block" // nobody but the configuration ever knew it
)

// witnesses returns the testimonies by server id.
func witnesses(r *register, snap Snapshot) map[string]testimony {
	known := make(map[string]testimony, len(snap.Servers))
	add := func(id, name, by string) {
		if _, ok := r.place(name, id); ok {
			known[id] = testimony{name, by}
		}
	}
	// Where two Nodes or pins speak of one server, the order of a list must not
	// decide: of the Nodes the last by name counts, of the pins the latest.
	nodes, _ := snap.Nodes.Get()
	nodes = slices.SortedFunc(slices.Values(nodes), func(a, b inventory.Node) int { return cmp.Compare(a.Name, b.Name) })
	for _, n := range nodes {
		add(n.ServerID(), n.Name, byNode)
	}
	pins := slices.SortedFunc(slices.Values(snap.Pins), func(a, b Pin) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Name, b.Name))
	})
	for _, p := range pins {
		add(p.ServerID, p.Name, byPin)
	}
	for id, seen := range snap.Hosts {
		if m, ok := seen.Marker.Get(); ok && m.Owner() == r.cfg.Owner && m.ServerID == id {
			add(id, m.Name, byMarker)
		}
	}
	return known
}

// leaving returns the ids of the n members that a scale-down takes: not Ready
// first, then the newest, and those last that a person holds. Adopted ones are not taken while they are listed.
func (c *computation) leaving(members []*placed, n int) map[string]bool {
	if n <= 0 {
		return nil
	}
	order := slices.DeleteFunc(slices.Clone(members), func(p *placed) bool { return p.adopted })
	slices.SortStableFunc(order, func(a, b *placed) int {
		return cmp.Or(
			cmp.Compare(ones(c.holds(a)), ones(c.holds(b))),
			cmp.Compare(ones(c.workable(a)), ones(c.workable(b))),
			b.server.Created.Compare(a.server.Created),
			cmp.Compare(a.name, b.name))
	})
	out := make(map[string]bool)
	for _, p := range order[:min(n, len(order))] {
		out[p.server.ID] = true
	}
	return out
}

// holds reports whether a person holds a member.
func (c *computation) holds(p *placed) bool {
	h := heldOf(c.snap.Hosts[p.server.ID].Marker, p.node, c.snap.Taken)
	return h != nil && !h.Expired
}

// workable reports whether a member can be reached and is not known to be unready. One
// without a Node is neither Ready nor not Ready.
func (c *computation) workable(p *placed) bool {
	n, there := p.node.Get()
	return c.snap.Hosts[p.server.ID].Trouble == nil && (!there || n.Ready == inventory.Ready)
}

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
