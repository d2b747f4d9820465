package load

import (
	"slices"

	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/macfleet/macfleet/fleet"
)

type movedBlock struct {
	Place place
	From  hclsyntax.Expression `hcl:"from"` // references, never evaluated
	To    hclsyntax.Expression `hcl:"to"`
}

// moves reads the moved blocks. Where hosts come from must be gone, and where they go must
// exist, or have moved on.
func (r *roster) moves(blocks []movedBlock) []fleet.Move {
	var all []fleet.Move
	var read []movedBlock
	for _, b := range blocks {
		from, fromOK := r.spot(b.From)
		to, toOK := r.spot(b.To)
		switch {
		case !fromOK || !toOK:
			continue
		case (from.Group == "") != (to.Group == ""):
			r.fault(b.To.Range(), "Invalid move", "A group moves to a group, and a fleet to a fleet. Write both as fleet.NAME, or both as fleet.NAME.group.NAME.")
			continue
		case r.there(from):
			r.fault(b.From.Range(), "Nothing moved", "%s still exists in the configuration, so its hosts stay there. Remove this moved block, or rename %[1]s.", spotReference(from))
			continue
		}
		if i := slices.IndexFunc(all, func(m fleet.Move) bool { return m.From == from }); i >= 0 {
			r.fault(b.From.Range(), "Moved twice", "The moved block at %[2]s already moves the hosts of %[1]s. Remove one of the two.", spotReference(from), where(read[i].From.Range()))
			continue
		}
		all, read = append(all, fleet.Move{From: from, To: to}), append(read, b)
	}
	for i, m := range all {
		switch arrives, circles := r.arrives(m, all); {
		case circles:
			r.fault(read[i].To.Range(), "Cycle of moves", "The moved blocks form a cycle through %s. Let one of them name an existing group or fleet.", spotReference(m.To))
		case !arrives:
			r.fault(read[i].To.Range(), "Unknown destination", "%s does not exist, and no moved block moves it on.%s", spotReference(m.To), r.nearestSpot(m.To))
		}
	}
	return all
}

// arrives reports whether a move leads to an existing place, also through other moves.
func (r *roster) arrives(m fleet.Move, all []fleet.Move) (arrives, circles bool) {
	for range all {
		if r.there(m.To) || r.mayStand(m.To.Fleet) || m.To.Group != "" && r.mayStand(m.To.Group) {
			return true, false
		}
		i := slices.IndexFunc(all, func(next fleet.Move) bool {
			return next.From == m.To || m.To.Group != "" && next.From == fleet.Place{Fleet: m.To.Fleet}
		})
		if i < 0 {
			return false, false
		}
		if to := all[i].To; to.Group == "" && m.To.Group != "" {
			m.To.Fleet = to.Fleet // its fleet moves, and takes it along
		} else {
			m.To = to
		}
	}
	return false, true
}

// spot reads the reference fleet.NAME or fleet.NAME.group.NAME.
func (r *roster) spot(expr hclsyntax.Expression) (fleet.Place, bool) {
	if expr == nil { // it is missing, which was reported
		return fleet.Place{}, false
	}
	parts := path(expr)
	switch {
	case len(parts) == 2 && parts[0] == "fleet":
		return fleet.Place{Fleet: parts[1]}, true
	case len(parts) == 4 && parts[0] == "fleet" && parts[2] == "group":
		return fleet.Place{Fleet: parts[1], Group: parts[3]}, true
	}
	if _, isText := literal(expr); isText {
		r.fault(expr.Range(), "Invalid move", "This must be a reference, not a string. Write it without quotes, such as fleet.runners.group.m2 or fleet.runners.")
	} else {
		r.fault(expr.Range(), "Invalid move", "This must have the form fleet.NAME or fleet.NAME.group.NAME, such as fleet.runners.group.m2.")
	}
	return fleet.Place{}, false
}

// there reports whether the configuration has a fleet or group.
func (r *roster) there(at fleet.Place) bool {
	return slices.ContainsFunc(r.fleets, func(f fleetBlock) bool {
		return f.Name == at.Fleet && (at.Group == "" || slices.ContainsFunc(f.Groups, func(g groupBlock) bool { return g.Name == at.Group }))
	})
}

func (r *roster) nearestSpot(at fleet.Place) string {
	var known []string
	for _, f := range r.fleets {
		if at.Group == "" {
			known = append(known, spotReference(fleet.Place{Fleet: f.Name}))
		}
		for _, g := range f.Groups {
			if at.Group != "" {
				known = append(known, groupReference(f.Name, g.Name))
			}
		}
	}
	return offer("", fleet.Nearest(spotReference(at), known), known)
}

// spotReference writes a reference to a fleet or group.
func spotReference(at fleet.Place) string {
	if at.Group != "" {
		return groupReference(at.Fleet, at.Group)
	}
	if hclsyntax.ValidIdentifier(at.Fleet) {
		return "fleet." + at.Fleet
	}
	return "fleet[" + quoted(at.Fleet) + "]"
}
