package engine_test

import (
	"flag"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/macfleet/macfleet/internal/scripttest"
)

var (
	all  = flag.Bool("all", false, "try everything over SSH: each point of the fault matrix, each interruption, 500 hosts")
	seed = flag.Uint64("seed", 0, "draws the points of the fault matrix that are tried over SSH; 0: the time")
)

// shard returns this run's first interruption, and how many are between two of its interruptions.
func shard() (first, step int) {
	if *all {
		return 0, 1
	}
	return scripttest.Share()
}

// plain reports whether this run is a person's, who asked for no share.
func plain() bool {
	_, of := shard()
	return of > scripttest.Shares
}

// rows returns the rows of a matrix that this run tries, as the places in columns of some sizes. A plain run tries every
// value of each column at least once; a share adds a seventh of the rows, and MACFLEET_TEST_SHARD=all tries all.
func rows(t *testing.T, sizes ...int) [][]int {
	t.Helper()
	share, of := shard()
	return chosen(t, func(n int) bool { return !plain() && n%of == share }, sizes)
}

// pairs is rows for a matrix whose rows have places of which a share tries a seventh: a share has them all.
func pairs(t *testing.T, sizes ...int) [][]int {
	t.Helper()
	return chosen(t, func(int) bool { return !plain() }, sizes)
}

// chosen returns the rows whose number is also wanted, and those in which all other columns follow the longest one.
func chosen(t *testing.T, also func(n int) bool, sizes []int) (out [][]int) {
	t.Helper()
	whole := 1
	for _, size := range sizes {
		whole *= size
	}
	longest := slices.Index(sizes, slices.Max(sizes))
	for n := range whole {
		row, rest := make([]int, len(sizes)), n
		for i, size := range sizes {
			row[i], rest = rest%size, rest/size
		}
		follows := true
		for i, size := range sizes {
			follows = follows && row[i] == row[longest]%size
		}
		if follows || also(n) {
			out = append(out, row)
		}
	}
	if len(out) < whole {
		t.Logf("%d of %d rows are tried (MACFLEET_TEST_SHARD=0 to 6 adds a seventh, all tries all)", len(out), whole)
	}
	return out
}

// TestRows: a plain run has each value of a matrix, and seven shares have every row.
func TestRows(t *testing.T) {
	t.Parallel()
	sizes := []int{3, 5, 2}
	seen := make(map[string]bool)
	for _, row := range chosen(t, func(int) bool { return false }, sizes) {
		for i, at := range row {
			seen[fmt.Sprint(i, at)] = true
		}
	}
	if len(seen) != 3+5+2 {
		t.Errorf("a plain run has only %v", seen)
	}
	all := make(map[string]bool)
	for share := range scripttest.Shares {
		for _, row := range chosen(t, func(n int) bool { return n%scripttest.Shares == share }, sizes) {
			all[fmt.Sprint(row)] = true
		}
	}
	if len(all) != 3*5*2 {
		t.Errorf("seven shares have %d rows: %v", len(all), all)
	}
}

// interruptionsOf returns the first interruption that a share of the interruptions has, and how many are
// between two of it.
func interruptionsOf(t *testing.T, first, shares int) (from, step int) {
	t.Helper()
	mine, every := shard()
	from, step = mine*shares+first, shares*every
	if testing.Short() {
		step *= 4 // under the race detector, which does not care where an interruption falls
	}
	t.Logf("interruptions %d, %d, … (MACFLEET_TEST_SHARD)", from, from+step)
	return from, step
}

// drawn is the seed of this run's draws. A plain run always draws the same.
var drawn = sync.OnceValue(func() uint64 {
	if *seed != 0 {
		return *seed
	}
	if plain() {
		return 1
	}
	return uint64(time.Now().UnixNano())
})
