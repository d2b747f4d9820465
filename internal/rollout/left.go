package rollout

import (
	"slices"
	"time"
)

// Left is a host that has not started, and what keeps it.
type Left struct {
	ID  string
	Why Reason // empty: nothing but the number of workers
	// Of are the servers because of which it does not start, where these are hosts that failed.
	Of []string
}

// Left returns the hosts that have not started.
func (r *Rollout) Left(now time.Time, ready func(id string) bool) []Left {
	r.look(now, ready)
	var out []Left
	for _, h := range r.hosts {
		if h.state == waiting {
			why := r.why(h)
			out = append(out, Left{h.ID, why, r.because(why, h.Fleet)})
		}
	}
	return out
}

// Reason says why a host does not start.
type Reason string

// The reasons that pass by themselves.
const (
	Unavailable Reason = "max-unavailable" // as many hosts as may be are disturbed or not Ready
	CanaryGoes  Reason = "canary"          // the canary is not through
	TrialGoes   Reason = "trial"           // a host that is not Ready with what the others are to get is repaired
	Soaking     Reason = "soak"            // the canary is watched
	Repairs     Reason = "repairs"         // as many hosts as may be are mended
)

// The reasons that stay for the rest of a run, unless hosts come back by
// themselves.
const (
	CanaryFailed   Reason = "canary-failed"   // the canary failed, or did not stay Ready
	TrialFailed    Reason = "trial-failed"    // a host has what the others are to get, and is not Ready
	BudgetSpent    Reason = "failure-budget"  // more hosts failed than may
	TooFewReady    Reason = "min-ready"       // one less would be too few
	RepairsFailing Reason = "repairs-failing" // as many repairs failed as may
	Cordoned       Reason = "cordoned"        // hosts that somebody closed take the places: only who did so knows for how long
)

// because returns the servers whose failure is a reason.
func (r *Rollout) because(why Reason, fleet string) (ids []string) {
	of, g := r.hosts, r.fleets[fleet]
	switch why {
	case CanaryFailed:
		of = g.hosts
	case BudgetSpent:
		of = slices.Concat(g.hosts, g.trials)
	case TrialFailed, TrialGoes:
		of = g.trials
	case RepairsFailing:
	default:
		return nil
	}
	for _, h := range of {
		switch {
		case why == CanaryFailed && !h.canary, why == RepairsFailing && h.Lane != Repair:
		case h.failed, why == TrialGoes:
			ids = append(ids, h.ID)
		}
	}
	return ids
}
