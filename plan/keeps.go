package plan

import "github.com/macfleet/macfleet/fleet/inventory"

// Keeps reports whether a selector keeps a host of a plan.
func (s Selector) Keeps(h Host) bool {
	n, there := h.Node.Get()
	return s.matches(subject{name: h.Name, fleet: h.Fleet, group: h.Group, server: h.Server, ready: there && n.Ready == inventory.Ready})
}
