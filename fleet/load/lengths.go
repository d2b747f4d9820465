package load

import (
	"github.com/macfleet/macfleet/fleet"
)

// lengths checks that no server's name can become too long, under whichever
// environment of the directory.
func (l *loader) lengths(name ownerName, envs []environmentBlock, fleets []fleetBlock) {
	const summary = "Name too long"
	if name.text == "" {
		return
	}
	owner, at := fleet.Owner{Name: name.text}, name.at
	for _, e := range envs {
		if len(e.Name) > len(owner.Environment) {
			owner.Environment, at = e.Name, e.Place.label()
		}
	}
	if shortest := owner.HostName("x", "x", serverID); len(shortest) > fleet.MaxName {
		if len(name.text) > len(owner.Environment) {
			at = name.at
		}
		l.fault(at, summary, "The names of servers begin with the configuration's name and the environment's, here %d characters together, and a name has at most %d: too few are left for fleet, group and id. Shorten one of the two.", len(owner.String()), fleet.MaxName)
		return
	}
	for _, f := range fleets {
		for _, g := range f.Groups {
			host := owner.HostName(f.Name, g.Name, serverID)
			if len(host) > fleet.MaxName && fleet.CheckPart(f.Name) == "" && fleet.CheckPart(g.Name) == "" {
				l.fault(g.Place.label(), summary, "Servers of this group are named like %q, which has %d characters; at most %d are possible. Shorten the fleet's or the group's name.", host, len(host), fleet.MaxName)
			}
		}
	}
}

// serverID stands for the characters of a server's id that end its name.
const serverID = "00000"
