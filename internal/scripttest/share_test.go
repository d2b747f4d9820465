package scripttest

import (
	"slices"
	"testing"
)

// TestPlaces: every run tries each kind once, the shells take turns, and seven shares try everything.
func TestPlaces(t *testing.T) {
	t.Parallel()
	kinds := []string{"mv", "mv", "rm", "mv", "rm", "cp", "rm", "chmod", "mv"}
	const shells = 3
	alone := places(kinds, shells, 0, 0, 3*Shares)
	if want := []int{0*shells + 0, 2*shells + 1, 5*shells + 2, 7*shells + 0}; !slices.Equal(alone, want) {
		t.Errorf("without a share: %v, want %v", alone, want)
	}
	if next := places(kinds, shells, 1, 0, 3*Shares); next[0] != 1 {
		t.Errorf("the next turn begins with %d", next[0])
	}
	all := places(kinds, shells, 0, 0, 1)
	tried := make(map[int]bool)
	for share := range Shares {
		mine := places(kinds, shells, 0, share, Shares)
		if len(mine) > len(all)/Shares+1+len(alone) {
			t.Errorf("share %d has %d of %d places", share, len(mine), len(all))
		}
		seen := make(map[string]bool)
		for _, at := range mine {
			tried[at], seen[kinds[at/shells]] = true, true
		}
		if len(seen) != len(alone) {
			t.Errorf("share %d lacks a kind: %v", share, seen)
		}
	}
	if len(all) != len(kinds)*shells || len(tried) != len(all) {
		t.Errorf("all: %v, seven shares: %v", all, tried)
	}
}
