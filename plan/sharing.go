package plan

import "slices"

// sharing has what the latest action of each step changes: hosts of a fleet often differ in the same way, and a big plan is
// mostly changes. Nothing writes to the fields and changes of an action once it is in the plan.
type sharing map[StepID]difference

type difference struct {
	fields  []Field
	changes []Change
}

// share replaces the changes of an action by equal ones of an earlier host.
func (s sharing) share(a *Action) {
	if len(a.Changes) == 0 {
		return
	}
	last := s[a.Step]
	if !slices.Equal(last.fields, a.Fields) || !slices.EqualFunc(last.changes, a.Changes, sameChange) {
		last = difference{slices.Clip(a.Fields), slices.Clip(a.Changes)}
		s[a.Step] = last
	}
	a.Fields, a.Changes = last.fields, last.changes
}

// sameChange reports whether two changes are equal. Those at a service or with a file are of one host.
func sameChange(a, b Change) bool {
	if a.Peer != nil || a.Delivery != nil || b.Peer != nil || b.Delivery != nil {
		return false
	}
	return a.Reason == b.Reason && slices.Equal(a.Fields, b.Fields) && a.Command.same(b.Command) && a.Input == b.Input &&
		a.Disruption == b.Disruption && a.Removes == b.Removes && a.GrantsRoot == b.GrantsRoot && a.Detached == b.Detached &&
		a.Guard.same(b.Guard) && a.Remedy == b.Remedy
}

func (c Command) same(other Command) bool {
	return c.Name == other.Name && c.Script == other.Script && c.As == other.As && slices.Equal(c.Args, other.Args)
}

func (g *Guard) same(other *Guard) bool {
	if g == nil || other == nil || g.Restore == nil || other.Restore == nil {
		return g == other
	}
	return g.Restore.same(*other.Restore) && g.Persist.same(other.Persist) && g.Why == other.Why
}
