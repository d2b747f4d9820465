package plan

import "github.com/macfleet/macfleet/fleet"

var codeNotAsked = NewCode("not-asked", Warning, "the host was not asked", "run the command again")

// Subject is one server as a plan sees it, whatever its role.
type Subject struct {
	Host
	Pooled bool // free to be claimed
	// Fleet and Group are those of a member. Of another server they are the first that
	// want its type, or the first of all: it would have to answer their probes.
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
	for _, f := range cfg.Fleets {
		for _, g := range f.Groups {
			own := at.role == member && at.place.Fleet == f.Name && at.place.Group == g.Name
			nearer := at.role != member && g.Type == at.server.Type && s.Group.Type != g.Type
			if own || nearer || s.Fleet.Name == "" {
				s.Fleet, s.Group = f, g
			}
		}
	}
	seen, asked := snap.Hosts[serverID]
	if !asked {
		seen.Trouble = codeNotAsked.Trouble("the host was not asked")
	}
	s.Host = Host{Name: at.name, Server: at.server, Member: at.role == member, Seen: seen, Node: at.node,
		Spec: c.specOf(at.name, fleet.Place{Fleet: s.Fleet.Name, Group: s.Group.Name}, serverID, s.Group)}
	c.cluster.enter(&s.Host)
	return s
}
