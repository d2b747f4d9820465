package plan

import (
	"fmt"
	"strings"
)

var codeOnTheWay = NewCode("server-on-the-way", NotDrift, "a server was ordered and is not delivered yet",
	"macfleet apply when it is delivered")

// await finds the pool servers that are not delivered yet and will fill the group. The provider may report no system of a
// server that it prepares.
func (n *need) await(c *census, taken map[string]bool) {
	for i := range c.servers {
		p := &c.servers[i]
		s := p.server
		fits := s.OSFamily == n.fleet.OS || s.OSFamily == ""
		if n.missing() < 1 || p.role != pool || s.Delivered || s.DeletionScheduled || c.elsewhere[s.ID] || taken[s.ID] || !n.group.Accepts(s.Type) || !fits {
			continue
		}
		taken[s.ID] = true
		n.coming = append(n.coming, *p)
		n.rejected = without(n.rejected, s.ID)
	}
}

// without returns the rejected servers but one.
func without(all []Rejected, id string) []Rejected {
	out := all[:0:0]
	for _, r := range all {
		if r.Server.ID != id {
			out = append(out, r)
		}
	}
	return out
}

// onTheWay says which servers of a group are not delivered yet.
func (c *census) onTheWay(n need) Trouble {
	var all []string
	for _, p := range n.coming {
		all = append(all, fmt.Sprintf("%s (%s, ordered %s)", p.server.Name, condition(c.vendor, p.server), clockTime(p.server.Created)))
	}
	return *codeOnTheWay.Trouble("not delivered yet: " + strings.Join(all, ", ") + "; a delivery takes up to an hour")
}
