package plan

import (
	"cmp"
	"slices"
)

// leaving returns the ids of the n members that a scale-down takes: not Ready
// first, then the newest, and those last that a person holds. Adopted ones are not taken while they are listed.
func (c *computation) leaving(members []*placed, n int) map[string]bool {
	order := slices.DeleteFunc(slices.Clone(members), func(p *placed) bool { return p.adopted })
	n = min(n, len(order))
	if n <= 0 {
		return nil
	}
	slices.SortStableFunc(order, func(a, b *placed) int {
		return cmp.Or(
			cmp.Compare(c.holds(a), c.holds(b)),
			cmp.Compare(c.workable(a), c.workable(b)),
			b.server.Created.Compare(a.server.Created),
			cmp.Compare(a.name, b.name))
	})
	out := make(map[string]bool, n)
	for _, p := range order[:n] {
		out[p.server.ID] = true
	}
	return out
}

// holds returns 1 for a member that a person holds, and 0 for others.
func (c *computation) holds(p *placed) int {
	if h := heldOf(c.snap.Hosts[p.server.ID].Marker, p.node, c.snap.Taken); h != nil && !h.Expired {
		return 1
	}
	return 0
}

// workable returns 0 for a member that is not Ready or cannot be reached, and 1
// for others, those without a Node among them.
func (c *computation) workable(p *placed) int {
	if c.snap.Hosts[p.server.ID].Trouble != nil || p.notReady() {
		return 0
	}
	return 1
}
