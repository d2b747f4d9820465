package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/macfleet/macfleet/fleet"
)

var codeSurplus = NewCode("surplus", Warning, "the group has more hosts than replicas, which was not lowered, so a person decides which one goes")

// Crowd is a group that may have too many hosts.
type Crowd struct {
	Members  int // hosts, without those that leave anyway
	Serving  int // of these, hosts that are not quarantined
	Replicas int // as configured
	Before   int // replicas when the last run ended that left the group with no more hosts; 0: unknown
	Started  int // members whose release an earlier run started
	Released int // surplus hosts that a person releases
}

// Leave returns how many hosts leave because of a lower number or a release that started, how many more because a person releases surplus hosts, and how
// many are surplus after that. Hosts are erased only because a person typed it: a lower
// number of replicas, or a number of surplus hosts. A host block or a moved block that fills the group too much is not that. A quarantine by
// itself releases no server: the host leaves together with others, or with the last of its group. It is pure.
func (c Crowd) Leave() (typed, released, surplus int) {
	if c.Replicas > 0 && c.Serving <= c.Replicas {
		return 0, 0, 0
	}
	over, typed := max(0, c.Members-c.Replicas), c.Started
	if c.Before > c.Replicas {
		typed = max(typed, c.Before-c.Replicas+c.Members-c.Serving)
	}
	typed = min(over, typed)
	released = min(over-typed, max(0, c.Released))
	return typed, released, over - typed - released
}

// crowd is what decides who leaves a group.
func (c *census) crowd(at fleet.Place, g fleet.Group, released int) Crowd {
	all := c.members[at]
	out := Crowd{Members: len(all), Serving: c.serving(all), Replicas: g.Replicas, Released: released}
	if out.Members <= g.Replicas {
		return out
	}
	is := make(map[string]bool, len(all))
	for _, p := range all {
		is[p.server.ID] = true
		out.Started += ones(p.stage == Leaving)
	}
	for _, p := range c.snap.Pins {
		if n := p.replicasOf(at); is[p.ServerID] && n > 0 && (out.Before == 0 || n < out.Before) {
			out.Before = n
		}
	}
	return out
}

// leaving returns the servers that leave their groups, by id: those whose release is final or that are replaced, and as many others as a
// group has too many. One that is replaced stays as long as its group lacks servers. surplus are those that a person decides about.
func (c *census) leaving(needs []need, released int) (leaves map[string]bool, surplus map[string]int) {
	leaves, surplus = make(map[string]bool), make(map[string]int)
	for i := range c.servers {
		if p := &c.servers[i]; p.leavesAnyway() && (p.stage != Replaced || lackOf(needs, groupOf(p.place)) == 0) {
			leaves[p.server.ID] = true
		}
	}
	for _, f := range c.cfg.Fleets {
		for _, g := range f.Groups {
			at := fleet.Place{Fleet: f.Name, Group: g.Name}
			crowd := c.crowd(at, g, released)
			typed, more, left := crowd.Leave()
			released -= more
			for i, p := range c.firstToLeave(c.members[at], typed+more+left) {
				if i < typed+more {
					leaves[p.server.ID] = true
				} else {
					surplus[p.server.ID] = crowd.Members
				}
			}
		}
	}
	return leaves, surplus
}

// leavers reports whether any server leaves its group.
func (c *census) leavers(sel Selection) bool {
	leaves, _ := c.leaving(nil, sel.ReleaseSurplus)
	return len(leaves) > 0
}

// tooMany warns of a host that is surplus.
func (c *computation) tooMany(h *Host) {
	n, is := c.surplus[h.Server.ID]
	if !is {
		return
	}
	_, g, _ := c.cfg.Group(h.Fleet, h.Group)
	h.Warnings = append(h.Warnings, StepWarning{OfServer: true, Drift: true, Fields: []Field{{"hosts of " + h.Fleet + "." + h.Group, strconv.Itoa(n), strconv.Itoa(g.Replicas)}},
		Trouble: Trouble{codeSurplus, fmt.Sprintf("%s.%s has %s and replicas = %d, which was not lowered: this host would be the first to leave", h.Fleet, h.Group, count(n, "host"), g.Replicas),
			fmt.Sprintf("raise replicas to %d, or take a host block or a moved block back; to release the host: macfleet apply --release-surplus 1", n)}})
}

// sizes are what the pins of members should say of the size of their groups: of those that have no more hosts than configured. By server id.
func (c *census) sizes() map[string]string {
	out := make(map[string]string)
	for _, f := range c.cfg.Fleets {
		for _, g := range f.Groups {
			at := fleet.Place{Fleet: f.Name, Group: g.Name}
			if all := c.members[at]; c.serving(all) <= g.Replicas {
				for _, p := range all {
					out[p.server.ID] = sizeOf(at, g.Replicas)
				}
			}
		}
	}
	return out
}

func sizeOf(at fleet.Place, replicas int) string {
	return fmt.Sprintf("%s.%s=%d", at.Fleet, at.Group, replicas)
}

// replicasOf returns the number of a group that a pin notes; 0: it notes none of this group.
func (p Pin) replicasOf(at fleet.Place) int {
	text, is := strings.CutPrefix(p.GroupSize, at.Fleet+"."+at.Group+"=")
	n, err := strconv.Atoi(text)
	if !is || err != nil {
		return 0
	}
	return n
}

// Resized returns pins that note the sizes of their groups, and whether any did not. The stage of a server on its way out stays as it is.
func (p *Plan) Resized(pins []Pin) (out []Pin, changed bool) {
	out = slices.Clone(pins)
	for i := range out {
		if size := cmp.Or(p.Sizes[out[i].ServerID], out[i].GroupSize); out[i].Stage == Stays && size != out[i].GroupSize {
			out[i].GroupSize, changed = size, true
		}
	}
	return out, changed
}
