package plan

import (
	"cmp"
	"fmt"
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

	doubtful bool // a pool server that was a member by its pin or Node
}

func (p placed) renamed() bool { return p.role == member && p.name != p.server.Name }

// notReady reports whether the cluster says that the Node is not Ready. A host
// without a Node is neither Ready nor not Ready.
func (p placed) notReady() bool {
	n, ok := p.node.Get()
	return ok && n.Ready != inventory.Ready
}

// subject returns the server as selectors see it.
func (p placed) subject() subject {
	n, ok := p.node.Get()
	return subject{name: p.name, fleet: p.place.Fleet, group: p.place.Group, server: p.server, ready: ok && n.Ready == inventory.Ready}
}

// place gives every server its role, ordered by the name it should bear. A
// server that was renamed by hand is still a member when its marker, its pin or
// its Node bears witness: it must not be replaced by another claim.
func place(cfg *fleet.Config, snap Snapshot) []placed {
	witness := witnesses(cfg, snap)
	node := nodeIndex(snap.Nodes)
	out := make([]placed, 0, len(snap.Servers))
	for _, s := range snap.Servers {
		p := placed{server: s, name: s.Name, role: stray}
		name, pooled := s.Name, strings.HasPrefix(s.Name, cfg.Scaleway.PoolPrefix)
		// A server that bears a pool name may have been given back by hand: then
		// only its own marker makes it a member still.
		if known, ok := witness[s.ID]; ok && (!pooled || known.by == byMarker) {
			name = known.name
		}
		if at, ok := ownedPlace(cfg, name, s.ID); ok {
			p.role, p.name, p.place = member, name, at
		} else if pooled {
			p.role = pool
			_, p.doubtful = witness[s.ID]
		}
		p.node = node(p.name, s)
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b placed) int {
		return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.server.ID, b.server.ID))
	})
	return out
}

// ownedPlace returns where a name puts a server. A name whose suffix is not the
// server's own id was given by hand and says nothing; so does one of a group
// that the configuration no longer has: a deleted block makes strays.
func ownedPlace(cfg *fleet.Config, name, serverID string) (fleet.Place, bool) {
	at, ok := cfg.Parse(name)
	if !ok || name != cfg.HostName(at.Fleet, at.Group, serverID) {
		return fleet.Place{}, false
	}
	_, _, ok = cfg.Group(at.Fleet, at.Group)
	return at, ok
}

// testimony is the owned name by which a server was last known, and who says so.
type testimony struct{ name, by string }

// Who bears witness. The host's own marker counts most, then the pin, then the
// Node.
const (
	byMarker = "marker"
	byPin    = "pin"
	byNode   = "Node"
)

// witnesses returns the testimonies by server id.
func witnesses(cfg *fleet.Config, snap Snapshot) map[string]testimony {
	known := make(map[string]testimony)
	add := func(id, name, by string) {
		if _, ok := ownedPlace(cfg, name, id); ok {
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
		if m, ok := seen.Marker.Get(); ok && m.Owner() == cfg.Owner && m.ServerID == id {
			add(id, m.Name, byMarker)
		}
	}
	return known
}

// lost returns the testimonies of servers that the inventory does not hold, by
// server id.
func lost(cfg *fleet.Config, snap Snapshot) map[string]testimony {
	out := witnesses(cfg, snap)
	for _, s := range snap.Servers {
		delete(out, s.ID)
	}
	return out
}

// CheckInventory returns an error when host-key pins or Nodes know servers and
// the inventory holds none of them: a wrong project or a key that lost its
// rights looks like an empty fleet, and must never become "create everything".
func CheckInventory(cfg *fleet.Config, snap Snapshot) error {
	known, gone := witnesses(cfg, snap), lost(cfg, snap)
	if len(gone) == 0 || len(gone) < len(known) {
		return nil
	}
	names := make([]string, 0, len(gone))
	forget := make(map[string]string, len(gone))
	for _, t := range gone {
		names = append(names, t.name)
		forget[t.name] = t.forget()
	}
	slices.Sort(names)
	return fmt.Errorf("the inventory of zones %s holds none of the %d servers known from earlier runs (%s): "+
		"check the project and the rights of the Scaleway key; if a server is really gone, forget it with: %s",
		strings.Join(cfg.Scaleway.Zones, ", "), len(gone), sampleOf(names), forget[names[0]])
}

// forget returns the command that makes the witness forget.
func (t testimony) forget() string {
	if t.by == byNode {
		return "kubectl delete node " + t.name
	}
	return "macfleet hosts trust " + t.name
}

// sampleOf joins at most three names.
func sampleOf(names []string) string {
	if len(names) > 3 {
		return strings.Join(names[:3], ", ") + ", …"
	}
	return strings.Join(names, ", ")
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
