package rollout

import (
	"slices"
	"time"
)

// Waiting is a host that has not started, and why.
type Waiting struct {
	ID  string
	Why Reason // empty: only the number of workers
	// Of are the servers whose failure blocks it.
	Of []string
}

// Waiting returns the hosts that have not started.
func (r *Rollout) Waiting(now time.Time, ready func(id string) bool) []Waiting {
	r.count(now, ready)
	var out []Waiting
	for _, h := range r.hosts {
		if h.state == waiting {
			why := r.blockedBy(h)
			out = append(out, Waiting{h.ID, why, r.failedServers(why, h.Fleet)})
		}
	}
	return out
}

// Reason says why a host does not start.
type Reason string

// Temporary reasons.
const (
	Unavailable   Reason = "max-unavailable" // the maximum number of hosts is unavailable
	CanaryRunning Reason = "canary"          // the canary is not done
	TrialRunning  Reason = "trial"           // an unhealthy host that already has the change is being repaired
	Soaking       Reason = "soak"            // the canary soaks
	Repairs       Reason = "repairs"         // the maximum number of repairs is running
	StayRunning   Reason = "stay"            // the work on hosts that stay is not done, and this one leaves
)

// Reasons that last for the rest of a run, unless hosts recover by themselves.
const (
	CanaryFailed   Reason = "canary-failed"   // the canary failed, or did not stay Ready
	TrialFailed    Reason = "trial-failed"    // a host that already has the change is not Ready
	BudgetSpent    Reason = "failure-budget"  // too many hosts failed
	TooFewReady    Reason = "min-ready"       // too few hosts would stay Ready
	RepairsFailing Reason = "repairs-failing" // too many repairs failed
	Cordoned       Reason = "cordoned"        // cordoned hosts use up max_unavailable
	StayFailed     Reason = "stay-failed"     // a host that stays failed, and this one leaves
)

// failedServers returns the failed servers behind a reason.
func (r *Rollout) failedServers(why Reason, fleet string) (ids []string) {
	of, g := r.hosts, r.fleets[fleet]
	switch why {
	case CanaryFailed:
		of = g.hosts
	case BudgetSpent:
		of = slices.Concat(g.hosts, g.trials)
	case TrialFailed, TrialRunning:
		of = g.trials
	case StayFailed:
		of = g.stay
	case RepairsFailing:
	default:
		return nil
	}
	for _, h := range of {
		switch {
		case why == CanaryFailed && !h.canary, why == RepairsFailing && h.Lane != Repair:
		case h.failed, why == TrialRunning:
			ids = append(ids, h.ID)
		}
	}
	return ids
}
