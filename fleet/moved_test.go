package fleet_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/macfleet/macfleet/fleet"
)

// TestMoves: who had a place finds the one that moved blocks lead to, and back.
func TestMoves(t *testing.T) {
	t.Parallel()
	at := func(f, g string) fleet.Place { return fleet.Place{Fleet: f, Group: g} }
	c := fleet.Config{
		Fleets: []fleet.Fleet{{Name: "runners", Groups: []fleet.Group{{Name: "m2"}, {Name: "m4"}}}, {Name: "builders", Groups: []fleet.Group{{Name: "m2"}}}},
		Moves: []fleet.Move{{From: at("runner", ""), To: at("jobs", "")}, {From: at("jobs", ""), To: at("runners", "")},
			{From: at("runner", "big"), To: at("runners", "m4")}, {From: at("web", "m2"), To: at("builders", "m2")}, {From: at("a", "m2"), To: at("b", "m2")}},
	}
	for from, want := range map[fleet.Place]fleet.Place{
		at("runner", "m2"):  at("runners", "m2"), // over two blocks
		at("jobs", "m2"):    at("runners", "m2"),
		at("runner", "big"): at("runners", "m4"), // a group's own block counts first
		at("runner", "m9"):  {},                  // there is no such group
		at("web", "m2"):     at("builders", "m2"),
		at("web", "m4"):     {},
		at("a", "m2"):       {}, // leads to no group
		at("runners", "m2"): {}, // did not move
	} {
		got, ok := c.MovedTo(from)
		if got != want || ok != (want != fleet.Place{}) {
			t.Errorf("%v moved to %v, %t; want %v", from, got, ok, want)
		}
	}
	for to, want := range map[fleet.Place][]fleet.Place{
		at("runners", "m2"):  {at("runner", "m2"), at("jobs", "m2")},
		at("runners", "m4"):  {at("runner", "m4"), at("jobs", "m4"), at("runner", "big")},
		at("builders", "m2"): {at("web", "m2")},
		at("builders", "m4"): nil,
	} {
		if diff := cmp.Diff(want, c.MovedFrom(to)); diff != "" {
			t.Errorf("moved to %v (-want +got):\n%s", to, diff)
		}
	}
	circle := fleet.Config{Moves: []fleet.Move{{From: at("a", ""), To: at("b", "")}, {From: at("b", ""), To: at("a", "")}}}
	if got, ok := circle.MovedTo(at("a", "m2")); ok {
		t.Errorf("a circle leads to %v", got)
	}
}
