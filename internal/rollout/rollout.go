// Package rollout decides which hosts a run may start with, and when. It does no I/O and
// takes no clock; the engine tells it what happens and asks what to do.
package rollout

import (
	"cmp"
	"slices"
	"time"
)

// Lane is the way that a host's work takes.
type Lane int

// The lanes, in the order in which their hosts start.
const (
	// Repair is for members whose Nodes are not Ready already: mending them takes
	// nothing away from the fleet, so they need no place of it.
	Repair Lane = iota
	// Join is for hosts that do no work yet: claims and first set-ups.
	Join
	// Plain is for work that disturbs nothing.
	Plain
	// Disrupt is for hosts that do work, and whose work the run disturbs.
	Disrupt
)

// String returns the lane's name as records have it.
func (l Lane) String() string { return [...]string{"repair", "join", "plain", "disrupt"}[l] }

// Work is one host that has something to be done.
type Work struct {
	ID    string // of the server
	Fleet string
	Lane  Lane
	// Trial says that the host is not Ready, and has got what others of its fleet are to get, so
	// they wait: else every run would try the same on one healthy host more.
	Trial bool
	// Stuck says of a trial that there is nothing to be done on the host, so that it has failed.
	Stuck bool
}

// The limits of the repair lane, over all fleets.
const (
	RepairsAtOnce  = 3 // hosts that are mended at the same time
	RepairFailures = 3 // failed repairs after which no further one starts
)

// state is how far a host's work is.
type state int

const (
	waiting  state = iota
	working        // its actions run
	settling       // they are done, its Node is waited for
	ended
)

// host is one host's progress.
type host struct {
	Work
	canary  bool
	wave    int // that it started in; 0: it disturbs nothing, or has not started
	state   state
	failed  bool
	readyAt time.Time // when its work was through
}

func (h *host) busy() bool { return h.state == working || h.state == settling }

// Rollout is one run's progress. It is not safe for several goroutines.
type Rollout struct {
	parallelism int
	hosts       []*host // in the order in which they start
	byID        map[string]*host
	fleets      map[string]*group
	closed      map[string]bool // by server id: takes no new work

	// What counts at one moment.
	free           int // workers
	repairs        int // at work
	repairFailures int
	cordoned       map[string]bool // of the closed, those that are away for nothing else
}

// New returns a rollout of work that has not begun. healthy holds the ids of all
// servers whose Nodes were Ready, by fleet, also of those without work; each host
// of the lane Disrupt is among them. Within a lane, work starts in the given order.
func New(work []Work, limits map[string]Limits, healthy map[string][]string, parallelism int) *Rollout {
	r := &Rollout{parallelism: max(1, parallelism), byID: make(map[string]*host, len(work)), fleets: make(map[string]*group)}
	for _, w := range work {
		h := &host{Work: w}
		if w.Stuck {
			h.state, h.failed = ended, true
		} else {
			r.hosts = append(r.hosts, h)
			r.byID[w.ID] = h
		}
		g := r.fleets[w.Fleet]
		if g == nil {
			g = &group{limits: limits[w.Fleet], healthy: healthy[w.Fleet]}
			r.fleets[w.Fleet] = g
		}
		switch {
		case w.Lane == Disrupt:
			h.canary = len(g.hosts) < g.limits.Canary
			g.hosts = append(g.hosts, h)
		case w.Trial && g.limits.Canary > 0:
			g.trials = append(g.trials, h)
		}
	}
	slices.SortStableFunc(r.hosts, func(a, b *host) int { return cmp.Compare(a.Lane, b.Lane) })
	return r
}

// Next returns the hosts that may start now, and counts them as started. ready says
// of a server id whether its Node is Ready at this moment; it is asked of healthy
// hosts alone.
func (r *Rollout) Next(now time.Time, ready func(id string) bool) []string {
	r.look(now, ready)
	var out []string
	for _, h := range r.hosts {
		if r.free == 0 {
			break
		}
		if h.state == waiting && r.why(h) == "" {
			r.start(h)
			out = append(out, h.ID)
		}
	}
	return out
}

// Worked says that a host's actions are done and its Node is waited for.
func (r *Rollout) Worked(id string) { r.byID[id].state = settling }

// Ended says that a host's work is through: its Node is Ready, or it has none.
func (r *Rollout) Ended(id string, now time.Time) {
	h := r.byID[id]
	h.state, h.readyAt = ended, now
}

// Deferred says that nothing was done on a host, as a limit leaves it for a later run. A
// canary's place goes to the next one that has not started.
func (r *Rollout) Deferred(id string) {
	h := r.byID[id]
	h.state, h.wave = ended, 0
	g := r.fleets[h.Fleet]
	i := slices.Index(g.hosts, h)
	if i < 0 {
		return
	}
	g.started--
	g.hosts = slices.Delete(g.hosts, i, i+1)
	for i, h := range g.hosts {
		h.canary = i < g.limits.Canary
	}
}

// Wave returns the number of the wave in which a host started, 0 for one that disturbs nothing.
func (r *Rollout) Wave(id string) int { return r.byID[id].wave }

// Failed says that a host's work ended otherwise.
func (r *Rollout) Failed(id string) {
	h := r.byID[id]
	h.state, h.failed = ended, true
}

// Running returns how many hosts are worked on or waited for.
func (r *Rollout) Running() int {
	n := 0
	for _, h := range r.hosts {
		if h.busy() {
			n++
		}
	}
	return n
}

// Soaks returns until when canaries are watched, by fleet, where others wait for
// that and for nothing else.
func (r *Rollout) Soaks(now time.Time) map[string]time.Time {
	out := make(map[string]time.Time)
	for name, g := range r.fleets {
		waits := slices.ContainsFunc(g.hosts, func(h *host) bool { return h.state == waiting })
		if waits && whyFirst(g.canary(), g.limits.Soak, now) == Soaking {
			for _, c := range g.canary() {
				if at := c.readyAt.Add(g.limits.Soak); at.After(out[name]) {
					out[name] = at
				}
			}
		}
	}
	return out
}

// Closed says which healthy hosts take no new work, whoever closed them. They count as
// away, so that the work of one takes no further place.
func (r *Rollout) Closed(ids map[string]bool) { r.closed = ids }

// group is the progress of one fleet.
type group struct {
	limits  Limits
	healthy []string // server ids
	hosts   []*host  // of the lane Disrupt, in their order: the canary first
	started int      // of these
	trials  []*host  // that are not Ready with what the others are to get; none without a canary

	// What counts at one moment.
	away      int    // of the healthy: disturbed, not Ready any more, or closed
	cordoned  int    // of these: Ready and at rest, and closed
	failed    int    // of the hosts and trials
	whyAll    Reason // what keeps all
	whyOthers Reason // what keeps all but the canary
}

// canary returns the hosts that go first.
func (g *group) canary() []*host { return g.hosts[:min(g.limits.Canary, len(g.hosts))] }

// whyFirst says what keeps those who wait for the hosts that go first.
func whyFirst(first []*host, soak time.Duration, now time.Time) Reason {
	var why Reason
	for _, h := range first {
		switch {
		case h.failed:
			return CanaryFailed
		case h.state != ended:
			why = CanaryGoes
		case why == "" && soak > 0 && now.Before(h.readyAt.Add(soak)):
			why = Soaking
		}
	}
	return why
}

// trial says what keeps the disturbed hosts because of those that are not Ready with what they are
// to get: each is repaired first, and counts like a canary, or like a failed host where others
// have shown that it works.
func (g *group) trial() Reason {
	failed := 0
	for _, h := range g.trials {
		if h.failed {
			failed++
		} else if h.state != ended {
			return TrialGoes
		}
	}
	if failed > 0 && (!g.limits.Proven || failed > g.limits.FailureBudget) {
		return TrialFailed
	}
	return ""
}

// look counts once, so that a run of many hosts stays linear. A canary that does not
// stay Ready while it is watched has failed.
func (r *Rollout) look(now time.Time, ready func(id string) bool) {
	r.free, r.repairs, r.repairFailures, r.cordoned = r.parallelism, 0, 0, make(map[string]bool)
	for _, g := range r.fleets {
		g.away, g.cordoned, g.failed = 0, 0, 0
	}
	for _, h := range r.hosts {
		g := r.fleets[h.Fleet]
		if h.canary && h.state == ended && now.Before(h.readyAt.Add(g.limits.Soak)) && !ready(h.ID) {
			h.failed = true
		}
		if h.state == working {
			r.free--
		}
		switch {
		case h.Lane == Repair && h.busy():
			r.repairs++
		case h.Lane == Repair && h.failed:
			r.repairFailures++
		case h.Lane == Disrupt && h.failed:
			g.failed++
		}
	}
	for _, g := range r.fleets {
		g.whyAll, g.whyOthers = g.trial(), whyFirst(g.canary(), g.limits.Soak, now)
		for _, h := range g.trials {
			if h.failed {
				g.failed++
			}
		}
		for _, id := range g.healthy {
			switch h := r.byID[id]; {
			case h != nil && h.Lane == Disrupt && h.busy() || !ready(id):
				g.away++
			case r.closed[id]:
				g.away++
				g.cordoned++
				r.cordoned[id] = true
			}
		}
	}
}

// start counts a host that begins.
func (r *Rollout) start(h *host) {
	h.state = working
	r.free--
	g := r.fleets[h.Fleet]
	if h.Lane == Disrupt {
		h.wave = g.limits.Wave(g.started)
		g.started++
	}
	switch {
	case h.Lane == Repair:
		r.repairs++
	case h.Lane != Disrupt:
	case r.cordoned[h.ID]:
		g.cordoned-- // it was away already
		delete(r.cordoned, h.ID)
	case !r.closed[h.ID]:
		g.away++
	}
}

// why returns what keeps a waiting host, or nothing. That all workers are at work
// is no reason.
func (r *Rollout) why(h *host) Reason {
	g := r.fleets[h.Fleet]
	away, cordoned := g.away, g.cordoned
	switch {
	case r.cordoned[h.ID]:
		// It takes no place that is not taken. Hosts that a killed run left closed
		// would wait for each other for ever.
		away, cordoned = away-cordoned, 0
	case r.closed[h.ID]:
		away--
	}
	switch {
	case h.Lane == Repair && r.repairFailures >= RepairFailures:
		return RepairsFailing
	case h.Lane == Repair && r.repairs >= RepairsAtOnce:
		return Repairs
	case h.Lane != Disrupt:
		return ""
	case g.whyOthers == CanaryFailed:
		return CanaryFailed
	case g.whyAll != "":
		return g.whyAll
	case g.failed > g.limits.FailureBudget:
		return BudgetSpent
	case g.whyOthers != "" && !h.canary:
		return g.whyOthers
	case away-cordoned >= g.limits.MaxUnavailable:
		return Unavailable
	case away >= g.limits.MaxUnavailable:
		return Cordoned
	case g.limits.MinReady > 0 && len(g.healthy)-away-1 < g.limits.MinReady:
		return TooFewReady
	}
	return ""
}
