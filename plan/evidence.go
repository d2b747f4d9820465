package plan

import (
	"cmp"
	"slices"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan/ledger"
)

// evidence returns what the sources say of servers, by server id; of one source the latest last. The result does not depend on the
// order of lists.
func (c *census) evidence() map[string][]ledger.Evidence {
	out := make(map[string][]ledger.Evidence, len(c.snap.Servers))
	add := func(id string, e ledger.Evidence) { out[id] = append(out[id], e) }
	pins, latest := c.pins, make(map[string]Stage)
	for _, p := range slices.Concat(c.snap.Released, pins) {
		latest[p.ServerID] = p.Stage
	}
	ended := func(p Pin) bool { return p.Stage.ends() || latest[p.ServerID].ends() }
	nodes, _ := c.snap.Nodes.Get()
	for _, n := range sorted(nodes, func(a, b *inventory.Node) int { return cmp.Compare(a.Name, b.Name) }) {
		if id := n.ServerID(); id != "" {
			add(id, c.named(ledger.Node, n.Name, id)) // a release deletes it, so one that exists is newer
		}
	}
	for _, p := range pins {
		e := c.named(ledger.Pin, p.Name, p.ServerID)
		// Another run may have won the claim that pinned it, or have claimed it after its release.
		e.Ended, e.Unfinished = ended(p), p.Unfinished
		if e.Owner == ledger.NoOwner {
			e.Ended = e.Ended || p.Stage == Leaving // a person asked to release it
		}
		add(p.ServerID, e)
	}
	for _, p := range byAge(c.snap.Remembered) {
		e := c.named(ledger.Copy, p.Name, p.ServerID)
		e.Ended, e.Unfinished = ended(p), p.Unfinished
		add(p.ServerID, e)
	}
	for id, seen := range c.snap.Hosts {
		if m, ok := seen.Marker.Get(); ok && m.ServerID == id {
			add(id, c.marked(m))
		}
	}
	return out
}

// named is the evidence of a source that gives a server's name as a host.
func (c *census) named(by ledger.Source, name, serverID string) ledger.Evidence {
	e := ledger.Evidence{Source: by, Name: name}
	if at, ok := c.place(name, serverID); ok { // most are members, and parsing a name is slower
		e.Owner, e.By, e.Place, e.Placed = ledger.Us, c.cfg.Owner.String(), at, true
		return e
	}
	if owner, at, ok := fleet.Split(name, serverID); ok {
		e.Owner, e.By, e.Place = c.ownerOf(owner), owner, at
	}
	return e
}

// ownerOf says whose names start with an owner's.
func (c *census) ownerOf(owner string) ledger.Owner {
	switch {
	case owner == c.cfg.Owner.String():
		return ledger.Us
	case c.hadOwner(owner):
		return ledger.Former
	}
	return ledger.Another
}

// marked is the evidence of a host's own marker.
func (c *census) marked(m Marker) ledger.Evidence {
	owner := m.Owner().String()
	e := ledger.Evidence{Source: ledger.Marker, Name: m.Name, Owner: c.ownerOf(owner), By: owner, Place: fleet.Place{Fleet: m.Fleet, Group: m.Group}}
	if e.Owner == ledger.Us && m.Owner() != c.cfg.Owner { // names start alike, as with "acme-prod" without an environment
		e.Owner = ledger.Another
	}
	if at, ok := c.place(m.Name, m.ServerID); ok && e.Owner == ledger.Us {
		e.Place, e.Placed = at, true
	} else if _, at, ok := fleet.Split(m.Name, m.ServerID); ok && e.Place == (fleet.Place{}) {
		e.Place = at // a marker that adds nothing to the name
	}
	return e
}

// withName adds what the server's name at the provider says. For one outside the naming grammar, the account of the kubelet with that name
// shows the owner.
func (c *census) withName(s inventory.Server, said []ledger.Evidence) []ledger.Evidence {
	said = append(slices.Clip(said), c.named(ledger.Name, s.Name, s.ID))
	if _, ours := c.cluster.identities[s.Name]; ours && slices.Contains(c.cluster.named[s.ProviderID()], s.Name) {
		said = append(said, ledger.Evidence{Source: ledger.Identity, Name: s.Name, Owner: ledger.Us, By: c.cfg.Owner.String()})
	}
	return said
}

// subject is a server with what the configuration says of its id.
func (c *census) subject(id string, said []ledger.Evidence) ledger.Subject {
	out := ledger.Subject{Elsewhere: c.elsewhere[id], Evidence: said}
	if l, ok := c.adopted[id]; ok {
		out.Listed, out.At = l.Name, fleet.Place{Fleet: l.Fleet, Group: l.Group}
	}
	return out
}
