package plan

import (
	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
)

// Next returns the servers that must be asked before Compute can judge: first
// all members, as many candidates as claims need, and, before a claim is made,
// strays of the wanted type, which may be members that somebody renamed. It
// returns none when everything needed is in the snapshot.
func Next(cfg *fleet.Config, snap Snapshot, sel Selection) []inventory.Server {
	c := takeCensus(cfg, snap)
	wanted := make(map[string]bool) // server ids of candidates
	types := make(map[string]bool)  // that a selected claim wants
	for _, n := range c.assign(sel) {
		if n.missing()+len(n.unsure) > 0 && sel.matches(n.subject()) {
			types[n.group.Type] = true
		}
		for _, p := range n.chosen {
			if sel.matches(p.subject()) {
				wanted[p.server.ID], types[n.group.Type] = true, true
			}
		}
	}
	var out []inventory.Server
	for i := range c.servers {
		p := &c.servers[i]
		ask := wanted[p.server.ID]
		switch p.role {
		case member:
			ask = sel.matches(p.subject())
		case pool:
			ask = ask || p.doubtful && types[p.server.Type] && p.server.Usable()
		case stray:
			wanted := types[p.server.Type] || p.onceAdopted && len(types) > 0
			ask = wanted && p.server.Usable() && !c.elsewhere[p.server.ID] && !ofAnotherEnvironment(cfg, p.server)
		}
		if _, asked := snap.Hosts[p.server.ID]; ask && !asked {
			out = append(out, p.server)
		}
	}
	return out
}

// ofAnotherEnvironment reports whether a server bears a name of this
// configuration in another environment. It is nobody's lost member, and another
// environment's hosts may well refuse our key.
func ofAnotherEnvironment(cfg *fleet.Config, s inventory.Server) bool {
	for _, env := range cfg.Environments {
		o := fleet.Owner{Name: cfg.Name, Environment: env}
		if at, ok := o.Parse(s.Name); ok && o != cfg.Owner && s.Name == o.HostName(at.Fleet, at.Group, s.ID) {
			return true
		}
	}
	return false
}
