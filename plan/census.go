package plan

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
)

// census is what follows from the configuration and the snapshot before anything
// is compared: who is who, and who is missing.
type census struct {
	*register
	snap    Snapshot
	servers []placed             // by the name they should bear
	known   map[string]testimony // by server id
	gone    map[string]testimony // of these, and of the adopted, what the inventory lacks
}

func takeCensus(cfg *fleet.Config, snap Snapshot) *census {
	c := &census{register: newRegister(cfg), snap: snap}
	c.known = witnesses(c.register, snap)
	c.servers = c.placeAll()
	c.gone = c.missing()
	return c
}

// placeAll gives every server its role, ordered by the name it should bear. A
// server that was renamed by hand is still a member when its marker, its pin or
// its Node bears witness: it must not be replaced by another claim.
func (c *census) placeAll() []placed {
	node, once := nodeIndex(c.snap.Nodes), c.onceAdopted()
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
		p.node = node(p.name, s)
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

// nodeIndex returns how a server's Node is found: the one with its provider id
// (of several, the last by name), else the one with its name and no provider id.
func nodeIndex(nodes inventory.Seen[[]inventory.Node]) func(string, inventory.Server) inventory.Seen[inventory.Node] {
	byID, byName := make(map[string]inventory.Node), make(map[string]inventory.Node)
	list, ok := nodes.Get()
	for _, n := range list {
		if n.ProviderID != "" {
			if have, twice := byID[n.ProviderID]; !twice || have.Name < n.Name {
				byID[n.ProviderID] = n
			}
		} else {
			byName[n.Name] = n
		}
	}
	return func(name string, s inventory.Server) inventory.Seen[inventory.Node] {
		if !ok && !nodes.IsAbsent() {
			return inventory.Unread[inventory.Node](nodes.Why())
		}
		if n, found := byID[s.ProviderID()]; found {
			return inventory.Present(n)
		}
		if n, found := byName[name]; found {
			return inventory.Present(n)
		}
		return inventory.Absent[inventory.Node]()
	}
}
