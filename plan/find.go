package plan

import (
	"fmt"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
)

// Find returns the server that a person means: by the name it bears or should
// bear, by its present name at the provider, by its id, or by the name under
// which its key is pinned. The error says what became of a server that vanished,
// or which name is near.
func Find(cfg *fleet.Config, snap Snapshot, name string) (inventory.Server, error) {
	c := takeCensus(cfg, snap)
	hosts := c.subjects(c.assign(Selection{}))
	for _, h := range hosts {
		if h.name == name && h.server.ID != "" {
			return h.server, nil
		}
	}
	byID := make(map[string]inventory.Server, len(snap.Servers))
	var names []string
	for _, s := range snap.Servers {
		if s.Name == name || s.ID == name {
			return s, nil
		}
		byID[s.ID] = s
		names = append(names, s.Name)
	}
	for _, p := range snap.Pins {
		if s, there := byID[p.ServerID]; there && p.Name == name {
			return s, nil
		}
	}
	for id, t := range c.gone {
		if t.name == name {
			remedy := "if it is really gone, forget it with: " + t.forget()
			if t.by == byBlock {
				remedy = "check its server_id, the zones and the project"
			}
			return inventory.Server{}, fmt.Errorf("%s: server %s is known by its %s and is not in the inventory; %s", name, id, t.by, remedy)
		}
	}
	for _, h := range hosts {
		names = append(names, h.name)
	}
	hint := "; macfleet hosts lists the members, " + c.vendor.Console() + " all servers"
	if near := fleet.Nearest(name, names); near != "" {
		hint = "; did you mean " + near + "?"
	}
	return inventory.Server{}, fmt.Errorf("no server is called %s%s", name, hint)
}
