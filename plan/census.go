package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
)

// The codes that are raised here.
var (
	codeNameTaken       = NewCode("name-taken", Warning, "two servers bear the name", "rename one of the two")
	codeAdoptedFromPool = NewCode("adopted-from-pool", Warning, "a server with a host block still bears the name of a pool server",
		"rename it before it is adopted, or remove its host block and let it be claimed")
	codeNameDiffers = NewCode("name-differs", Warning, "a server with a host block bears another name",
		"write the server's name in the configuration, or correct its server_id")
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

// census is what follows from the configuration and the snapshot before anything
// is compared: who is who, and who is missing.
type census struct {
	*register
	snap    Snapshot
	cluster *clusterIndex
	servers []placed             // by the name they should bear
	known   map[string]testimony // by server id
	gone    map[string]testimony // of these, and of the adopted, what the inventory lacks
}

func takeCensus(cfg *fleet.Config, snap Snapshot) *census {
	c := &census{register: newRegister(cfg), snap: snap, cluster: indexCluster(snap)}
	c.known = witnesses(c.register, snap)
	c.servers = c.placeAll()
	c.gone = c.missing()
	return c
}

// placeAll gives every server its role, ordered by the name it should bear. A
// server that was renamed by hand is still a member when its marker, its pin or
// its Node bears witness: it must not be replaced by another claim.
func (c *census) placeAll() []placed {
	once := c.onceAdopted()
	out := make([]placed, len(c.snap.Servers))
	for i, s := range c.snap.Servers {
		p := &out[i]
		*p = placed{server: s, name: s.Name, role: stray}
		known, witnessed := c.known[s.ID]
		pooled := strings.HasPrefix(s.Name, c.vendor.PoolPrefix)
		name := s.Name
		// A server that bears a pool name may have been given back by hand: then
		// only its own marker makes it a member still.
		believed := witnessed && (!pooled || known.by == byMarker)
		if believed {
			name = known.name
		}
		if l, ok := c.adopted[s.ID]; ok {
			p.role, p.name, p.place = member, l.Name, fleet.Place{Fleet: l.Fleet, Group: l.Group}
			p.adopted, p.pooled, p.witnessed = true, pooled, believed
			p.provenBefore = witnessed && known.by != byNode
		} else if at, ok := c.place(name, s.ID); ok {
			p.role, p.name, p.place = member, name, at
		} else if pooled {
			p.role, p.doubtful = pool, witnessed
		} else {
			var known bool
			p.former, known = c.formerPlace(s.ID)
			p.onceAdopted = once[s.ID]
			p.mayHold = p.onceAdopted && !known && c.silent(s.ID)
		}
		p.node = c.cluster.node(p.name, s)
	}
	slices.SortFunc(out, func(a, b placed) int {
		return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.server.ID, b.server.ID))
	})
	c.refuseAdopted(out)
	return out
}

// onceAdopted returns the ids of servers that were pinned under names which no
// grammar made: those of hosts that were adopted.
func (c *census) onceAdopted() map[string]bool {
	out := make(map[string]bool)
	for _, p := range c.snap.Pins {
		if _, ok := c.place(p.Name, p.ServerID); ok {
			continue // most are members, and parsing a name takes longer
		}
		if _, ok := c.cfg.Parse(p.Name); !ok && !c.elsewhere[p.ServerID] {
			out[p.ServerID] = true
		}
	}
	return out
}

// silent reports whether a host could not say what its marker holds.
func (c *census) silent(serverID string) bool {
	seen, asked := c.snap.Hosts[serverID]
	return !asked || seen.Trouble != nil || seen.Marker.IsUnread()
}

// formerPlace returns where a stray's own marker puts it. It was adopted, and its
// host block is gone.
func (c *census) formerPlace(serverID string) (fleet.Place, bool) {
	m, ok := c.snap.Hosts[serverID].Marker.Get()
	if !ok || m.Owner() != c.cfg.Owner || m.ServerID != serverID || !c.has(m.Fleet, m.Group) {
		return fleet.Place{}, false
	}
	return fleet.Place{Fleet: m.Fleet, Group: m.Group}, true
}

// missing returns the testimonies of servers that the inventory does not hold,
// and the adopted servers that it does not hold and nobody knew, by server id.
func (c *census) missing() map[string]testimony {
	out := make(map[string]testimony)
	for id, l := range c.adopted {
		out[id] = testimony{l.Name, byBlock}
	}
	maps.Copy(out, c.known)
	for i := range c.servers {
		delete(out, c.servers[i].server.ID)
	}
	return out
}

// refuseAdopted enters into the adopted servers why they cannot be taken over.
// Their names are not made from their ids, so that only the inventory can show
// that a block means the right machine.
func (c *census) refuseAdopted(servers []placed) {
	if len(c.adopted) == 0 {
		return
	}
	bearers := make(map[string][]string, len(c.adopted)) // ids by listed name
	for _, l := range c.adopted {
		bearers[l.Name] = nil
	}
	for i := range servers {
		for _, name := range slices.Compact([]string{servers[i].name, servers[i].server.Name}) {
			if ids, listed := bearers[name]; listed {
				bearers[name] = append(ids, servers[i].server.ID)
			}
		}
	}
	for i := range servers {
		if p := &servers[i]; p.adopted {
			p.refused = c.notAdoptable(p, bearers[p.name])
		}
	}
}

// notAdoptable returns why a listed server is not taken over under its listed
// name, which the servers of bearers have or should have, or nil.
func (c *census) notAdoptable(p *placed, bearers []string) *Trouble {
	for _, id := range bearers {
		if id != p.server.ID {
			return &Trouble{Code: codeNameTaken,
				Text:   fmt.Sprintf("server %s is listed as %s, and server %s has that name too", p.server.ID, p.name, id),
				Remedy: "rename one of the two in " + c.vendor.Console() + ", and check the server_id of the host block"}
		}
	}
	switch {
	case p.name == p.server.Name || p.witnessed:
		return nil
	case p.pooled:
		return &Trouble{Code: codeAdoptedFromPool,
			Text:   fmt.Sprintf("server %s is called %s, so it belongs to the pool", p.server.ID, p.server.Name),
			Remedy: "rename it in " + c.vendor.Console() + " before it is adopted, or remove its host block and let it be claimed"}
	}
	return &Trouble{Code: codeNameDiffers,
		Text:   fmt.Sprintf("server %s is called %s; an adopted server keeps its present name", p.server.ID, p.server.Name),
		Remedy: fmt.Sprintf("write host %q in the configuration, or correct its server_id", p.server.Name)}
}
