package fleet

import "slices"

// Move says that hosts of one fleet or group now belong to another. For a whole fleet the groups are empty:
// each keeps its name.
type Move struct{ From, To Place }

// of returns where the move takes a place; false if it does not concern it.
func (m Move) of(at Place) (Place, bool) {
	switch {
	case m.From.Group == "" && m.From.Fleet == at.Fleet:
		return Place{Fleet: m.To.Fleet, Group: at.Group}, true
	case m.From.Group != "" && m.From == at:
		return m.To, true
	}
	return Place{}, false
}

// MovedTo returns the group to which moved blocks lead from one that the configuration no longer has, over
// several steps if needed. A group's block has priority over its fleet's.
func (c *Config) MovedTo(at Place) (Place, bool) {
	at.Suffix = ""
	for range c.Moves {
		next, moves := at, false
		for _, m := range c.Moves {
			if to, is := m.of(at); is && (!moves || m.From.Group != "") {
				next, moves = to, true
			}
		}
		if !moves {
			return Place{}, false
		}
		if at = next; c.has(at) {
			return at, true
		}
	}
	return Place{}, false
}

func (c *Config) has(at Place) bool {
	_, _, ok := c.Group(at.Fleet, at.Group)
	return ok
}

// MovedFrom returns the places from which moved blocks lead to a group.
func (c *Config) MovedFrom(to Place) []Place {
	to.Suffix = ""
	var out []Place
	for _, m := range c.Moves {
		from := m.From
		if from.Group == "" { // a fleet's hosts may come from a group of any name that leads here
			from.Group = to.Group
		}
		for _, at := range []Place{from, {Fleet: m.From.Fleet, Group: to.Group}} {
			if end, ok := c.MovedTo(at); ok && end == to && !c.has(at) && !slices.Contains(out, at) {
				out = append(out, at)
			}
		}
	}
	return out
}
