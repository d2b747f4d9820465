package plan

import "github.com/macfleet/macfleet/fleet"

var codeNotAsked = NewCode("not-asked", Warning, "the host was not asked", "run the command again")

// Subject is one server as a plan sees it, whatever its role.
type Subject struct {
	Host
	Pooled bool // free to be claimed
	// Fleet and Group are those of a member. Of another server they are the first that
	// want its type.
	Fleet fleet.Fleet
	Group fleet.Group
}

// SubjectOf returns a server of a snapshot. It is pure.
func SubjectOf(cfg *fleet.Config, snap Snapshot, serverID string) Subject {
	c := takeCensus(cfg, snap)
	var at placed
	for _, p := range c.servers {
		if p.server.ID == serverID {
			at = p
		}
	}
	s := Subject{Pooled: at.role == pool}
	s.Fleet, s.Group = nearestGroup(cfg, at)
	seen, asked := snap.Hosts[serverID]
	if !asked {
		seen.Trouble = codeNotAsked.Trouble("the host was not asked")
	}
	s.Host = Host{Name: at.name, Server: at.server, Member: at.role == member, Seen: seen, Node: at.node,
		Spec: c.specOf(at.name, fleet.Place{Fleet: s.Fleet.Name, Group: s.Group.Name}, serverID, s.Group)}
	c.cluster.enter(&s.Host)
	return s
}

// nearestGroup returns the group of a member. Of another server it is the first
// group that wants its type, or the first of all: its probes are those that the
// server would have to answer.
func nearestGroup(cfg *fleet.Config, p placed) (fleet.Fleet, fleet.Group) {
	if p.role == member {
		f, g, _ := cfg.Group(p.place.Fleet, p.place.Group)
		return f, g
	}
	var near fleet.Fleet
	var group fleet.Group
	for _, f := range cfg.Fleets {
		for _, g := range f.Groups {
			if g.Type == p.server.Type {
				return f, g
			}
			if near.Name == "" {
				near, group = f, g
			}
		}
	}
	return near, group
}
