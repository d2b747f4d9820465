package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan/ledger"
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
	why        ledger.Evidence  // what shows its owner
	against    *ledger.Evidence // what speaks against that; nil: nothing
	foreign    bool             // of a stray: it is another configuration's
	wasAdopted bool             // of a stray: macfleet pinned its key under a name outside the naming grammar
	adopted    bool             // it has a host block that names its id
	refused    *Trouble         // of an adopted server: why it cannot be adopted
	placeless  *Trouble         // of an orphan: why it has no place
	stage      Stage            // of a member: how far it is on its way out
	wasStray   bool             // of a member: it is one only because it is released
	asked      bool             // of a server without a place: a person asked to release it
	moved      bool             // a moved block gives it its place, but the provider still has the old name
	types      []string         // of a lacking one: those that its group accepts
	former     []string         // names it had before moved blocks gave it its place
}

func inOrder(a, b *placed) int {
	return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.server.ID, b.server.ID))
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
	stages  map[string]Pin            // by server id: the pins of servers on their way out
	pins    []Pin                     // the latest last
}

func takeCensus(cfg *fleet.Config, snap Snapshot) *census {
	c := &census{register: newRegister(cfg), snap: snap, cluster: indexCluster(snap), members: make(map[fleet.Place][]*placed), pins: byAge(snap.Pins)}
	c.stages = snap.stagesOf(c.pins)
	said := c.evidence()
	c.servers = c.placeAll(said)
	for i := range c.servers {
		p := &c.servers[i]
		if p.role == member && !p.leavesAnyway() {
			at := groupOf(p.place)
			c.members[at] = append(c.members[at], p)
		}
	}
	c.gone = c.missing(said)
	return c
}

// placeAll gives every server its role, ordered by the name it should have. A server renamed by hand is still
// a member if a source knows it, so that no other server is claimed in its place.
func (c *census) placeAll(said map[string][]ledger.Evidence) []placed {
	out := make([]placed, len(c.snap.Servers))
	for i, s := range c.snap.Servers {
		p := &out[i]
		c.enterRow(p, s, said[s.ID])
		c.move(p)
		c.enterStage(p, c.stages[s.ID])
		if p.role == member && !p.adopted {
			p.former = c.formerNames(p.place, s.ID)
		}
		p.node = c.cluster.node(p.name, s)
		c.renamedNode(p)
	}
	out = sorted(out, inOrder)
	c.refuseAdopted(out)
	return out
}

// sorted returns a sorted copy. It moves each element once: they are big.
func sorted[T any](all []T, compare func(a, b *T) int) []T {
	order := make([]*T, len(all))
	for i := range all {
		order[i] = &all[i]
	}
	slices.SortFunc(order, compare)
	out := make([]T, len(all))
	for i, p := range order {
		out[i] = *p
	}
	return out
}

// enterRow gives a server the role of its row in the ledger.
func (c *census) enterRow(p *placed, s inventory.Server, said []ledger.Evidence) {
	about := c.subject(s.ID, c.withName(s, said))
	about.Pooled = c.pooled(s)
	row := about.Judge()
	*p = placed{server: s, name: cmp.Or(row.Name, s.Name), place: row.Place, why: row.Why, against: row.Against,
		adopted: about.Listed != "", wasAdopted: row.Adopted, foreign: row.State == ledger.Foreign}
	switch row.State {
	case ledger.Member:
		p.role = member
	case ledger.Orphan:
		p.role = orphan
		p.placeless = c.placeless(p)
	case ledger.Pool:
		p.role = pool
	}
}

func (c *census) pooled(s inventory.Server) bool {
	return strings.HasPrefix(s.Name, c.vendor.PoolPrefix)
}

// believed reports whether more than its name at the provider or a host block shows that a server is a member.
func (p *placed) believed() bool {
	return p.why.Placed && p.why.Source != ledger.Name
}

// mayHold reports whether a stray was adopted once and its marker could not be read.
func (c *census) mayHold(p *placed) bool {
	seen, asked := c.snap.Hosts[p.server.ID]
	return p.role == stray && p.wasAdopted && (!asked || seen.Trouble != nil || seen.Marker.IsUnread())
}

// missing returns the servers that are known or have host blocks and are not in the inventory.
func (c *census) missing(said map[string][]ledger.Evidence) []placed {
	there := make(map[string]bool, len(c.servers))
	for i := range c.servers {
		there[c.servers[i].server.ID] = true
	}
	var out []placed
	enter := func(id string) {
		if there[id] {
			return
		}
		there[id] = true
		about := c.subject(id, said[id])
		if pin := c.stages[id]; about.Listed == "" && pin.Stage.Final() && c.named(ledger.Pin, pin.Name, id).Owner == ledger.Us {
			out = append(out, placed{server: inventory.Server{ID: id}, role: gone, name: pin.Name, why: ledger.Evidence{Source: ledger.Pin}, stage: pin.Stage})
			return
		}
		if row := about.Judge(); row.State == ledger.Member && row.Why.Source != ledger.Copy { // whose server another machine may have forgotten
			at, _ := c.place(row.Name, id)
			out = append(out, placed{server: inventory.Server{ID: id}, role: gone, name: row.Name, place: at, why: row.Why, adopted: about.Listed != ""})
		}
	}
	for id := range c.adopted {
		enter(id)
	}
	for id := range said {
		enter(id)
	}
	return sorted(out, inOrder)
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
	case p.name == p.server.Name || p.believed():
		return nil
	case c.pooled(p.server):
		return codeAdoptedFromPool.Trouble(fmt.Sprintf("server %s has the pool name %s", p.server.ID, p.server.Name),
			"rename it in "+c.vendor.Console()+", or remove its host block so that macfleet can claim it")
	}
	return codeNameDiffers.Trouble(fmt.Sprintf("server %s is called %s at the provider, and an adopted server keeps that name", p.server.ID, p.server.Name),
		fmt.Sprintf("rename the host block to host %q, or correct server_id", p.server.Name))
}
