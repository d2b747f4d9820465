package engine_test

import (
	"flag"
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

// drawn is the seed of this run's draws.
var drawn = sync.OnceValue(func() uint64 {
	if *seed != 0 {
		return *seed
	}
	return uint64(time.Now().UnixNano())
})
