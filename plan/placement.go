package plan

import "github.com/macfleet/macfleet/fleet"

// Placements says what each server of a snapshot is, by its id: "pool", "member of FLEET.GROUP", "orphaned member" or
// "unmanaged".
func Placements(cfg *fleet.Config, snap Snapshot) map[string]string {
	c := takeCensus(cfg, snap)
	out := make(map[string]string, len(c.servers))
	for i := range c.servers {
		switch p := &c.servers[i]; p.role {
		case pool:
			out[p.server.ID] = "pool"
		case member:
			out[p.server.ID] = "member of " + p.place.Fleet + "." + p.place.Group
		case orphan:
			out[p.server.ID] = "orphaned member"
		default:
			out[p.server.ID] = "unmanaged"
		}
	}
	return out
}
