package rollout

import (
	"time"

	"github.com/macfleet/macfleet/fleet"
)

// Limits bound what is done to one fleet's hosts.
type Limits struct {
	MaxUnavailable int           // healthy hosts that are disturbed, or not Ready any more, at once; at least 1
	Canary         int           // hosts that go first, and alone; 0: none
	Soak           time.Duration // how long the canary must stay Ready before the others start
	FailureBudget  int           // disturbed hosts that may fail before no further one starts
	MinReady       int           // hosts of the fleet that must stay Ready; 0: no such limit
	// Proven says that Ready hosts of the fleet have what the others are to get. A trial that
	// fails then counts as one failed host, else as a failed canary.
	Proven bool
}

// Wave returns the number of the wave in which the i-th disturbed host of a fleet starts,
// from 0. The canary is the first wave; each of the others has as many hosts as may be
// disturbed at once. A host starts as soon as a place is free, so waves may overlap.
func (l Limits) Wave(i int) int {
	if i < l.Canary {
		return 1
	}
	return 1 + min(1, l.Canary) + (i-l.Canary)/max(1, l.MaxUnavailable)
}

// LimitsOf returns the limits of a fleet with so many healthy hosts.
func LimitsOf(r fleet.Rollout, healthy int) Limits {
	return Limits{MaxUnavailable: r.MaxUnavailable.Of(healthy), Canary: r.Canary, Soak: r.Soak,
		FailureBudget: r.FailureBudget, MinReady: r.MinReady}
}
