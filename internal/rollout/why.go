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
	Cordoned       Reason = "cordoned"        // hosts that somebody closed take the places: only who did so knows for how long
)

// group is the progress of one fleet.
type group struct {
	limits  Limits
	healthy []string // server ids
	hosts   []*host  // of the lane Disrupt, in their order: the canary first
	trials  []*host  // of the lane Repair, whose work shows what becomes of the others
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

// whyTrials says what keeps the canary, too: a host that died of an earlier run is a
// canary already.
func (g *group) whyTrials() Reason {
	var why Reason
	for _, h := range g.trials {
		switch {
		case g.limits.Canary == 0:
		case h.failed:
			return CanaryFailed
		case h.state != ended:
			why = CanaryGoes
		}
	}
	return why
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
	cordoned       map[string]bool // of these those that are away for nothing else
}

// count is what counts of one fleet.
type count struct {
	limits   Limits
	healthy  int
	away     int // of the healthy: disturbed, not Ready any more, or closed
	cordoned int // of these: Ready and at rest, and closed
	failed   int
	trials   Reason // what keeps all
	canary   Reason // what keeps all but the canary
}

// look counts once, so that a run of many hosts stays linear.
func (r *Rollout) look(now time.Time, ready func(id string) bool) *sight {
	s := &sight{free: r.parallelism, fleets: make(map[string]*count, len(r.fleets)), first: make(map[*host]bool), closed: r.closed, cordoned: make(map[string]bool)}
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
		c := &count{limits: g.limits, healthy: len(g.healthy), trials: g.whyTrials(), canary: g.whyCanary(now)}
		for _, h := range g.hosts {
			if h.failed {
				c.failed++
			}
		}
		for _, id := range g.healthy {
			switch h := r.byID[id]; {
			case h != nil && h.Lane == Disrupt && h.busy() || !ready(id):
				c.away++
			case r.closed[id]:
				c.away++
				c.cordoned++
				s.cordoned[id] = true
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
		switch c := s.fleets[h.Fleet]; {
		case s.cordoned[h.ID]:
			c.cordoned-- // it was away already
			delete(s.cordoned, h.ID)
		case !s.closed[h.ID]:
			c.away++
		}
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
		switch {
		case s.cordoned[h.ID]:
			// It takes no place that is not taken. Hosts that a killed run left closed
			// would wait for each other for ever.
			c.away, c.cordoned = c.away-c.cordoned, 0
		case s.closed[h.ID]:
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
	case c.trials != "":
		return c.trials
	case c.failed > c.limits.FailureBudget:
		return BudgetSpent
	case c.canary != "" && !canary:
		return c.canary
	case c.away-c.cordoned >= c.limits.MaxUnavailable:
		return Unavailable
	case c.away >= c.limits.MaxUnavailable:
		return Cordoned
	case c.limits.MinReady > 0 && c.healthy-c.away-1 < c.limits.MinReady:
		return TooFewReady
	}
	return ""
}
