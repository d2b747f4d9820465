package rollout

import "time"

// Reason says why a host does not start.
type Reason string

// The reasons that pass by themselves.
const (
	Unavailable Reason = "max-unavailable" // as many hosts as may be are disturbed or not Ready
	CanaryGoes  Reason = "canary"          // the canary is not through
	Soaking     Reason = "soak"            // the canary is watched
	Repairs     Reason = "repairs"         // as many hosts as may be are mended
)

// The reasons that stay for the rest of a run, unless hosts come back by
// themselves.
const (
	CanaryFailed   Reason = "canary-failed"   // the canary failed, or did not stay Ready
	BudgetSpent    Reason = "failure-budget"  // more hosts failed than may
	TooFewReady    Reason = "min-ready"       // one less would be too few
	RepairsFailing Reason = "repairs-failing" // as many repairs failed as may
)

// group is the progress of one fleet.
type group struct {
	limits  Limits
	healthy []string // server ids
	hosts   []*host  // of the lane Disrupt, in their order: the canary first
}

// canary returns the hosts that go first.
func (g *group) canary() []*host { return g.hosts[:min(g.limits.Canary, len(g.hosts))] }

// watch counts a canary that does not stay Ready as failed, until it was watched
// for long enough.
func (g *group) watch(now time.Time, ready func(id string) bool) {
	for _, c := range g.canary() {
		if c.state == ended && now.Before(c.readyAt.Add(g.limits.Soak)) && !ready(c.ID) {
			c.failed = true
		}
	}
}

// whyCanary says what keeps all but the canary.
func (g *group) whyCanary(now time.Time) Reason {
	var why Reason
	for _, c := range g.canary() {
		switch {
		case c.failed:
			return CanaryFailed
		case c.state != ended:
			why = CanaryGoes
		case why == "" && now.Before(c.readyAt.Add(g.limits.Soak)):
			why = Soaking
		}
	}
	return why
}

// sight is what counts at one moment.
type sight struct {
	free           int // workers
	repairs        int // at work
	repairFailures int
	fleets         map[string]*count
	first          map[*host]bool // the canaries
	closed         map[string]bool
}

// count is what counts of one fleet.
type count struct {
	limits  Limits
	healthy int
	away    int // of the healthy: disturbed, or not Ready any more
	failed  int
	canary  Reason // what keeps all but the canary
}

// look counts once, so that a run of many hosts stays linear.
func (r *Rollout) look(now time.Time, ready func(id string) bool) *sight {
	s := &sight{free: r.parallelism, fleets: make(map[string]*count, len(r.fleets)), first: make(map[*host]bool), closed: r.closed}
	for _, h := range r.hosts {
		if h.state == working {
			s.free--
		}
		if h.Lane == Repair && h.busy() {
			s.repairs++
		}
		if h.Lane == Repair && h.failed {
			s.repairFailures++
		}
	}
	for name, g := range r.fleets {
		g.watch(now, ready)
		c := &count{limits: g.limits, healthy: len(g.healthy), canary: g.whyCanary(now)}
		for _, h := range g.hosts {
			if h.failed {
				c.failed++
			}
		}
		for _, id := range g.healthy {
			if h := r.byID[id]; h != nil && h.Lane == Disrupt && h.busy() || !ready(id) || r.closed[id] {
				c.away++
			}
		}
		for _, h := range g.canary() {
			s.first[h] = true
		}
		s.fleets[name] = c
	}
	return s
}

// start counts a host that begins.
func (s *sight) start(h *host) {
	s.free--
	switch h.Lane {
	case Repair:
		s.repairs++
	case Disrupt:
		if s.closed[h.ID] {
			return // it was away already
		}
		s.fleets[h.Fleet].away++
	}
}

// why returns what keeps a waiting host, or nothing. That all workers are at work
// is no reason.
func (s *sight) why(h *host) Reason {
	switch {
	case h.Lane == Repair && s.repairFailures >= RepairFailures:
		return RepairsFailing
	case h.Lane == Repair && s.repairs >= RepairsAtOnce:
		return Repairs
	case h.Lane == Disrupt:
		c := *s.fleets[h.Fleet]
		if s.closed[h.ID] {
			c.away--
		}
		return c.why(s.first[h])
	}
	return ""
}

func (c *count) why(canary bool) Reason {
	switch {
	case c.canary == CanaryFailed:
		return CanaryFailed
	case c.failed > c.limits.FailureBudget:
		return BudgetSpent
	case c.canary != "" && !canary:
		return c.canary
	case c.away >= c.limits.MaxUnavailable:
		return Unavailable
	case c.limits.MinReady > 0 && c.healthy-c.away-1 < c.limits.MinReady:
		return TooFewReady
	}
	return ""
}
