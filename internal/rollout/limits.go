package rollout

import (
	"time"

	"github.com/macfleet/macfleet/fleet"
)

// Limits are the rollout limits of one fleet.
type Limits struct {
	MaxUnavailable int           // healthy hosts that may be disturbed or not Ready at once; at least 1
	Canary         int           // hosts that go first, before all others; 0: none
	Soak           time.Duration // how long the canary must stay Ready before the others start
	FailureBudget  int           // disturbed hosts that may fail before no further one starts
	MinReady       int           // hosts of the fleet that must stay Ready; 0: no limit
	// Verified says that Ready hosts of the fleet already have the change. A failed trial then
	// counts as one failed host, otherwise as a failed canary.
	Verified bool
}

// Wave returns the wave in which the i-th disturbed host of a fleet starts, from 0. The canary
// is the first wave; the others have MaxUnavailable hosts each. Waves may overlap, because a
// host starts as soon as a slot is free.
func (l Limits) Wave(i int) int {
	if i < l.Canary {
		return 1
	}
	return 1 + min(1, l.Canary) + (i-l.Canary)/max(1, l.MaxUnavailable)
}

// LimitsOf returns the limits of a fleet with a number of healthy hosts.
func LimitsOf(r fleet.Rollout, healthy int) Limits {
	return Limits{MaxUnavailable: r.MaxUnavailable.Of(healthy), Canary: r.Canary, Soak: r.Soak,
		FailureBudget: r.FailureBudget, MinReady: r.MinReady}
}
