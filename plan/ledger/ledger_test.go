package ledger_test

import (
	"slices"
	"testing"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/plan/ledger"
)

var here = fleet.Place{Fleet: "macos", Group: "m2"}

// says is evidence of a source for an owner.
func says(by ledger.Source, owner ledger.Owner, placed bool) ledger.Evidence {
	e := ledger.Evidence{Source: by, Owner: owner, Placed: placed, Name: by.String() + "'s"}
	if e.By = [...]string{"", "acme-prod", "old-prod", "beta-prod"}[owner]; owner != ledger.NoOwner {
		e.Place = here
	}
	return e
}

// kinds are what a source can say; nil: nothing.
func kinds(by ledger.Source) []*ledger.Evidence {
	out := []*ledger.Evidence{nil}
	for _, owner := range []ledger.Owner{ledger.NoOwner, ledger.Us, ledger.Former, ledger.Another} {
		if by == ledger.Marker && owner == ledger.NoOwner {
			continue // a marker names its owner
		}
		e := says(by, owner, false)
		out = append(out, &e)
	}
	placed := says(by, ledger.Us, true)
	ended, unfinished := placed, placed
	ended.Ended, unfinished.Unfinished = true, true
	return append(out, &placed, &ended, &unfinished)
}

// subjects are the product of all that the sources can say, under each kind of name.
func subjects(visit func(ledger.Subject)) int {
	n := 0
	for _, marker := range kinds(ledger.Marker) {
		for _, pin := range kinds(ledger.Pin) {
			for _, node := range kinds(ledger.Node) {
				for _, name := range kinds(ledger.Name)[:6] {
					for _, elsewhere := range []bool{false, true} {
						s := ledger.Subject{Elsewhere: elsewhere}
						for _, e := range []*ledger.Evidence{name, node, pin, marker} {
							if e != nil {
								s.Evidence = append(s.Evidence, *e)
							}
						}
						visit(s)
						n++
					}
				}
			}
		}
	}
	return n
}

// TestJudge checks rules over the product of what the sources can say. Each one was a fault: a working host under a name of the pool was
// forgotten or called dirty, and its server claimed or reinstalled.
func TestJudge(t *testing.T) {
	t.Parallel()
	n := subjects(func(s ledger.Subject) {
		row := s.Judge()
		live := slices.DeleteFunc(slices.Clone(s.Evidence), func(e ledger.Evidence) bool { return e.Ended || e.Unfinished })
		of := func(owners ...ledger.Owner) bool {
			return slices.ContainsFunc(live, func(e ledger.Evidence) bool { return slices.Contains(owners, e.Owner) })
		}
		placed := slices.ContainsFunc(live, func(e ledger.Evidence) bool { return e.Placed })
		wrong := func(rule string) { t.Errorf("%s: %+v is %+v", rule, s, row) }
		if (row.State == ledger.Member) != placed {
			wrong("a member has a place by some source, and whatever has is one")
		}
		if row.State == ledger.Orphan && !of(ledger.Us, ledger.Former) {
			wrong("an orphan is this configuration's")
		}
		if row.State == ledger.Stray && of(ledger.Us, ledger.Former, ledger.Another) {
			wrong("nothing that names an owner is dropped")
		}
		if row.State == ledger.Foreign && !s.Elsewhere && !of(ledger.Another) {
			wrong("a foreign server is another configuration's")
		}
		ours := row.State == ledger.Member || row.State == ledger.Orphan
		if against := ours && of(ledger.Another) || row.State == ledger.Foreign && of(ledger.Us, ledger.Former); against != (row.Against != nil) {
			wrong("what contradicts is in the row")
		}
		marker := slices.IndexFunc(live, func(e ledger.Evidence) bool { return e.Source == ledger.Marker })
		if marker >= 0 && live[marker].Owner == ledger.Another && row.State == ledger.Orphan {
			wrong("the marker of another owner makes no orphan")
		}
		pooled := s
		pooled.Pooled = true
		switch under := pooled.Judge(); {
		case row.State == ledger.Stray && under.State != ledger.Pool, row.State != ledger.Stray && under.State != row.State:
			wrong("a name of the pool ends nothing, and only a stray is free under it")
		case under.State == ledger.Pool && (under.Against != nil) != slices.ContainsFunc(live, func(e ledger.Evidence) bool { return e.Source == ledger.Pin || e.Source == ledger.Node }):
			wrong("a pin or Node under a name without an owner keeps it from being claimed")
		}
		without := s
		without.Evidence = live
		if got := without.Judge(); got.State != row.State || got.Why != row.Why {
			wrong("what has ended, or was not completed, decides nothing")
		}
		listed := s
		listed.Listed, listed.At = "legacy", here
		if got := listed.Judge(); got.State != ledger.Member || got.Name != "legacy" {
			wrong("a host block decides")
		}
	})
	if n != 7*8*8*6*2 {
		t.Errorf("%d subjects", n)
	}
}

// TestRank: of sources that disagree the strongest decides, and of one source the latest.
func TestRank(t *testing.T) {
	t.Parallel()
	ranked := []ledger.Source{ledger.Marker, ledger.Pin, ledger.Node, ledger.Identity, ledger.Copy, ledger.Name}
	for i, strong := range ranked {
		for _, weak := range ranked[i+1:] {
			for _, all := range [][]ledger.Source{{strong, weak}, {weak, strong}} {
				var s ledger.Subject
				for _, by := range all {
					s.Evidence = append(s.Evidence, says(by, ledger.Us, true))
				}
				if row := s.Judge(); row.Why.Source != strong || row.Name != strong.String()+"'s" {
					t.Errorf("%s and %s: %+v", strong, weak, row)
				}
			}
		}
	}
	first, last := says(ledger.Pin, ledger.Us, true), says(ledger.Pin, ledger.Us, true)
	last.Name = "latest"
	if row := (ledger.Subject{Evidence: []ledger.Evidence{first, last}}).Judge(); row.Name != "latest" {
		t.Errorf("of two pins: %+v", row)
	}
}

// TestOrphanIsKnownByItsName where that says the same as a stronger source: all can see it.
func TestOrphanIsKnownByItsName(t *testing.T) {
	t.Parallel()
	s := ledger.Subject{Evidence: []ledger.Evidence{says(ledger.Name, ledger.Us, false), says(ledger.Marker, ledger.Us, false)}}
	if row := s.Judge(); row.State != ledger.Orphan || row.Why.Source != ledger.Name {
		t.Errorf("%+v", row)
	}
	s.Evidence[0].Place.Group = "m4"
	if row := s.Judge(); row.Why.Source != ledger.Marker {
		t.Errorf("its name gives another group: %+v", row)
	}
}
