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

var (
	codeNameTaken       = NewCode("name-taken", Warning, "two servers have the same name", "rename one of them in the provider's console")
	codeAdoptedFromPool = NewCode("adopted-from-pool", Warning, "the server of a host block has a pool name",
		"rename the server in the provider's console, or remove its host block so that macfleet can claim it")
	codeNameDiffers = NewCode("name-differs", Warning, "the server of a host block has a different name",
		"rename the host block to the server's name, or correct server_id")
)

// role is what a server is in terms of the configuration.
type role int

const (
	stray   role = iota // in no pool and no fleet, and not known as a member
	orphan              // a member without a place in the configuration
	pool                // free to be claimed
	member              // of a fleet and group
	gone                // a member that is not in the inventory; its zone is unknown
	lacking             // no server: the group needs one that the pool does not have, in any zone
)

// placed is a server with its role, as selectors see it. A member, or a pool server chosen for a claim, has
// the name it should have.
type placed struct {
	server     inventory.Server
	role       role
	name       string
	place      fleet.Place // of an orphan: where it belonged
	node       inventory.Seen[inventory.Node]
	by         string   // the source that says it is a member; empty: none
	wasAdopted bool     // of a stray: macfleet pinned its key under a name outside the naming grammar
	adopted    bool     // it has a host block that names its id
	refused    *Trouble // of an adopted server: why it cannot be adopted
	owner      string   // of an orphan: its owner
	placeless  *Trouble // of an orphan: why it has no place
	stage      Stage    // of a member: how far it is on its way out
	wasStray   bool     // of a member: it is one only because it is released
	asked      bool     // of a server without a place: a person asked to release it
	moved      bool     // a moved block gives it its place, but the provider still has the old name
	types      []string // of a lacking one: those that its group accepts
	former     []string // names it had before moved blocks gave it its place
}

func inOrder(a, b placed) int {
	return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.server.ID, b.server.ID))
}

// knownAs is the name under which a server was last known as a member, and the source.
type knownAs struct{ name, by string }

// The sources. The host's own marker has priority, then the pin, then the Node.
const (
	byMarker   = "marker"
	byPin      = "pin"
	byNode     = "Node"
	byBlock    = "host block" // known from the configuration only
	byName     = "name"       // of an orphan: its name at the provider
	byIdentity = "identity"   // of an orphan: its kubelet's account in the cluster
)

// knownMembers returns the last known names by server id.
func knownMembers(r *register, snap Snapshot) map[string]knownAs {
	known := make(map[string]knownAs, len(snap.Servers))
	add := func(id, name, by string) {
		if _, ok := r.place(name, id); ok {
			known[id] = knownAs{name, by}
		}
	}
	// If two Nodes or pins name one server, the result must not depend on the list's order: the last Node by
	// name wins, and the latest pin.
	nodes, _ := snap.Nodes.Get()
	nodes = slices.SortedFunc(slices.Values(nodes), func(a, b inventory.Node) int { return cmp.Compare(a.Name, b.Name) })
	for _, n := range nodes {
		add(n.ServerID(), n.Name, byNode)
	}
	pins, final := byAge(snap.Pins), make(map[string]bool)
	for _, p := range pins {
		final[p.ServerID] = p.Stage.Final()
	}
	for _, p := range pins {
		// Another run may have won the claim that pinned it, or have claimed it after its release.
		if !p.Unfinished && !p.Stage.Final() && !final[p.ServerID] {
			add(p.ServerID, p.Name, byPin)
		}
	}
	for id, seen := range snap.Hosts {
		if m, ok := seen.Marker.Get(); ok && m.Owner() == r.cfg.Owner && m.ServerID == id {
			add(id, m.Name, byMarker)
		}
	}
	return known
}

// byAge returns pins, latest last.
func byAge(pins []Pin) []Pin {
	return slices.SortedFunc(slices.Values(pins), func(a, b Pin) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Key, b.Key), cmp.Compare(a.Stage, b.Stage))
	})
}

// Healthy is a member whose Node was Ready when the plan was made.
type Healthy struct {
	ServerID   string
	Name       string // of the host, and of its Node
	Was        string // the Node's present name, if this run renames it; else empty
	ProviderID string
}

// healthy returns the members of each fleet that stay and whose Nodes are Ready, selected or not. Without a
// cluster, it returns the hosts that answered.
func (c *computation) healthy() map[string][]Healthy {
	out := make(map[string][]Healthy)
	for i := range c.servers {
		p := &c.servers[i]
		seen, asked := c.snap.Hosts[p.server.ID]
		works := asked && seen.Trouble == nil
		if c.cluster.read {
			works = readyAs(p.server, p.node)
		}
		if p.role == member && works && !c.quarantined(p) && !c.leaves[p.server.ID] {
			h := Healthy{ServerID: p.server.ID, Name: p.name, ProviderID: p.server.ProviderID()}
			if n, is := p.node.Get(); is && n.Name != p.name {
				h.Was = n.Name
			}
			out[p.place.Fleet] = append(out[p.place.Fleet], h)
		}
	}
	return out
}

// IsHealthy reports whether a host is among the healthy ones of its fleet.
func (p *Plan) IsHealthy(h Host) bool {
	return slices.ContainsFunc(p.Healthy[h.Fleet], func(o Healthy) bool { return o.ServerID == h.Server.ID })
}

// Worst returns the worst disruption of the actions.
func Worst(actions []Action) Disruption {
	worst := NoDisruption
	for _, a := range actions {
		worst = max(worst, a.Disruption)
	}
	return worst
}

// census is what follows from the configuration and the snapshot before any comparison: the role of each
// server, and which are missing.
type census struct {
	*register
	snap    Snapshot
	cluster *clusterIndex
	servers []placed                  // by the name they should have
	members map[fleet.Place][]*placed // by fleet and group
	gone    []placed                  // by name: members that are not in the inventory
	known   map[string]knownAs        // by server id
	stages  map[string]Pin            // by server id: the pins of servers on their way out
}

func takeCensus(cfg *fleet.Config, snap Snapshot) *census {
	c := &census{register: newRegister(cfg), snap: snap, cluster: indexCluster(snap), members: make(map[fleet.Place][]*placed), stages: snap.stages()}
	c.known = knownMembers(c.register, snap)
	c.servers = c.placeAll()
	for i := range c.servers {
		if p := &c.servers[i]; p.role == member && !p.leavesAnyway() {
			at := groupOf(p.place)
			c.members[at] = append(c.members[at], p)
		}
	}
	c.gone = c.missing()
	return c
}

// placeAll gives every server its role, ordered by the name it should have. A server renamed by hand is still
// a member if a source knows it, so that no other server is claimed in its place.
func (c *census) placeAll() []placed {
	once, pins := c.adoptedBefore(), c.pinsByServer()
	out := make([]placed, len(c.snap.Servers))
	for i, s := range c.snap.Servers {
		p := &out[i]
		known := c.known[s.ID]
		*p = placed{server: s, name: s.Name, by: known.by}
		name := s.Name
		if c.believed(p) {
			name = known.name
		}
		if l, ok := c.adopted[s.ID]; ok {
			p.role, p.name, p.place, p.adopted = member, l.Name, fleet.Place{Fleet: l.Fleet, Group: l.Group}, true
		} else if at, ok := c.place(name, s.ID); ok {
			p.role, p.name, p.place = member, name, at
		} else if c.pooled(s) {
			p.role = pool
		} else {
			p.wasAdopted = once[s.ID]
			c.orphaned(p, pins)
			c.move(p)
		}
		c.enterStage(p, c.stages[s.ID])
		if p.role == member && !p.adopted {
			p.former = c.formerNames(p.place, s.ID)
		}
		p.node = c.cluster.node(p.name, s)
		c.renamedNode(p)
	}
	slices.SortFunc(out, inOrder)
	c.refuseAdopted(out)
	return out
}

func (c *census) pooled(s inventory.Server) bool {
	return strings.HasPrefix(s.Name, c.vendor.PoolPrefix)
}

// believed reports whether a source decides about a server. A server with a pool name may have been released
// by hand: then only its own marker decides.
func (c *census) believed(p *placed) bool {
	return p.by == byMarker || p.by != "" && !c.pooled(p.server)
}

// adoptedBefore returns the ids of servers that were pinned under names outside the naming grammar: those of
// adopted hosts.
func (c *census) adoptedBefore() map[string]bool {
	out := make(map[string]bool)
	for _, p := range c.snap.Pins {
		if _, ok := c.place(p.Name, p.ServerID); ok {
			continue // most are members, and parsing a name is slower
		}
		if p.Stage == Leaving {
			continue // a person asked to release it
		}
		if _, _, ok := fleet.Split(p.Name, p.ServerID); !ok && !c.elsewhere[p.ServerID] {
			out[p.ServerID] = true
		}
	}
	return out
}

// mayHold reports whether a stray was adopted once and its marker could not be read.
func (c *census) mayHold(p *placed) bool {
	seen, asked := c.snap.Hosts[p.server.ID]
	return p.role == stray && p.wasAdopted && (!asked || seen.Trouble != nil || seen.Marker.IsUnread())
}

// missing returns the servers that are known or have host blocks and are not in the inventory.
func (c *census) missing() []placed {
	known := make(map[string]knownAs)
	for id, l := range c.adopted {
		known[id] = knownAs{l.Name, byBlock}
	}
	maps.Copy(known, c.known)
	for i := range c.servers {
		delete(known, c.servers[i].server.ID)
	}
	var out []placed
	for id, t := range known {
		at, _ := c.place(t.name, id)
		_, adopted := c.adopted[id]
		out = append(out, placed{server: inventory.Server{ID: id}, role: gone, name: t.name, place: at, by: t.by, adopted: adopted})
	}
	slices.SortFunc(out, inOrder)
	return out
}

// hosts returns every host the plan could be about.
func (c *census) hosts(needs []need) []*placed {
	var out []*placed
	for i := range c.servers {
		if p := &c.servers[i]; p.role == member {
			out = append(out, p)
		}
	}
	for i := range c.gone {
		out = append(out, &c.gone[i])
	}
	for _, n := range needs {
		for i := range n.chosen {
			out = append(out, &n.chosen[i])
		}
	}
	return out
}

// refuseAdopted records why adopted servers cannot be adopted: only the inventory shows whether a block names
// the right machine.
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

// notAdoptable returns why a listed server cannot be adopted under its listed name, or nil. bearers are the
// servers that have that name or should have it.
func (c *census) notAdoptable(p *placed, bearers []string) *Trouble {
	for _, id := range bearers {
		if id != p.server.ID {
			return codeNameTaken.Trouble(fmt.Sprintf("server %s is listed as %s, but server %s has that name too", p.server.ID, p.name, id),
				"rename one of them in "+c.vendor.Console()+", or correct server_id in the host block")
		}
	}
	switch {
	case p.name == p.server.Name || c.believed(p):
		return nil
	case c.pooled(p.server):
		return codeAdoptedFromPool.Trouble(fmt.Sprintf("server %s has the pool name %s", p.server.ID, p.server.Name),
			"rename it in "+c.vendor.Console()+", or remove its host block so that macfleet can claim it")
	}
	return codeNameDiffers.Trouble(fmt.Sprintf("server %s is called %s at the provider, and an adopted server keeps that name", p.server.ID, p.server.Name),
		fmt.Sprintf("rename the host block to host %q, or correct server_id", p.server.Name))
}
