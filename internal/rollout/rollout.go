// Package rollout decides which hosts a run may start, and when. It does no I/O and has no
// clock; the engine reports what happens and asks what to do.
package rollout

import (
	"cmp"
	"slices"
	"time"
)

// Lane is the kind of a host's work.
type Lane int

// The lanes, in the order in which their hosts start.
const (
	// Repair is for members whose Nodes are not Ready: repairing them takes no capacity from the
	// fleet, so they need no slot.
	Repair Lane = iota
	// Join is for hosts without work: claims and first setups.
	Join
	// Plain is for changes that disturb nothing.
	Plain
	// Disrupt is for healthy hosts whose work the run disturbs.
	Disrupt
	// Leave is for hosts that leave their fleet, last of all: what the run does to those that stay must work first.
	Leave
)

// String returns the lane's name in records.
func (l Lane) String() string { return [...]string{"repair", "join", "plain", "disrupt", "leave"}[l] }

// Work is one host with actions.
type Work struct {
	ID    string // of the server
	Fleet string
	Lane  Lane
	// Trial marks a host that is not Ready and already has the change that others of its fleet
	// are about to get. They wait for it: otherwise every run would break one more healthy host.
	Trial bool
	// Works marks a host of the lane Leave whose Node still takes Pods.
	Works bool
	// Stuck marks a trial without possible actions: it has failed.
	Stuck bool
}

// The limits of the repair lane, over all fleets.
const (
	RepairsAtOnce  = 3 // hosts that are repaired at the same time
	RepairFailures = 3 // failed repairs after which no further one starts
)

// state is the progress of a host's work.
type state int

const (
	waiting  state = iota
	working        // its actions run
	settling       // they are done; waiting for its Node
	finished
)

// host is one host's progress.
type host struct {
	Work
	group   *group // of its fleet
	canary  bool
	wave    int // its wave; 0: it disturbs nothing, or has not started
	state   state
	failed  bool
	left    bool      // of the lane Leave: its Node is gone
	readyAt time.Time // when its work was done
}

func (h *host) busy() bool { return h.state == working || h.state == settling }

// Rollout is one run's progress. It is not safe for concurrent use.
type Rollout struct {
	parallelism int
	hosts       []*host // in the order in which they start
	byID        map[string]*host
	fleets      map[string]*group
	cordoned    map[string]bool // by server id: cordoned

	// Counters of one moment.
	free           int // workers
	repairs        int // running
	repairFailures int
	onlyCordoned   map[string]bool // Ready and idle, but cordoned
}

// New returns a rollout. healthy holds the ids of all servers with Ready Nodes by fleet,
// including those without work and all hosts of the lane Disrupt. Within a lane, work starts in
// the given order.
func New(work []Work, limits map[string]Limits, healthy map[string][]string, parallelism int) *Rollout {
	r := &Rollout{parallelism: max(1, parallelism), byID: make(map[string]*host, len(work)), fleets: make(map[string]*group)}
	for _, w := range work {
		g := r.fleets[w.Fleet]
		if g == nil {
			g = &group{limits: limits[w.Fleet], healthy: healthy[w.Fleet]}
			r.fleets[w.Fleet] = g
		}
		h := &host{Work: w, group: g}
		if w.Stuck {
			h.state, h.failed = finished, true
		} else {
			r.hosts = append(r.hosts, h)
			r.byID[w.ID] = h
		}
		switch {
		case w.Lane == Disrupt:
			h.canary = len(g.hosts) < g.limits.Canary
			g.hosts = append(g.hosts, h)
		case w.Trial && g.limits.Canary > 0:
			g.trials = append(g.trials, h)
		}
		if w.Lane != Leave {
			g.stay = append(g.stay, h)
		}
	}
	slices.SortStableFunc(r.hosts, func(a, b *host) int { return cmp.Compare(a.Lane, b.Lane) })
	for _, g := range r.fleets {
		g.work = make([]*host, len(g.healthy))
		for i, id := range g.healthy {
			g.work[i] = r.byID[id]
		}
	}
	return r
}

// Next returns the hosts that may start now, and counts them as started. ready reports whether
// a healthy server's Node is Ready now.
func (r *Rollout) Next(now time.Time, ready func(id string) bool) []string {
	r.count(now, ready)
	var out []string
	for _, h := range r.hosts {
		if r.free == 0 {
			break
		}
		if h.state == waiting && r.blockedBy(h) == "" {
			r.start(h)
			out = append(out, h.ID)
		}
	}
	return out
}

// AwaitReady records that a host's actions are done and the run waits for its Node.
func (r *Rollout) AwaitReady(id string) { r.byID[id].state = settling }

// Finished records that a host is done: its Node is Ready, or it has none.
func (r *Rollout) Finished(id string, now time.Time) {
	h := r.byID[id]
	h.state, h.readyAt = finished, now
}

// Deferred records that a limit left a host for a later run. If it was a canary, the next
// waiting host takes its place.
func (r *Rollout) Deferred(id string) {
	h := r.byID[id]
	h.state, h.wave = finished, 0
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

// HasLeft records that a host's Node is gone: the fleet does without it, so the next one may leave.
func (r *Rollout) HasLeft(id string) { r.byID[id].left = true }

// Wave returns the wave in which a host started; 0 for a host that disturbs nothing.
func (r *Rollout) Wave(id string) int { return r.byID[id].wave }

// Failed records that a host's work failed.
func (r *Rollout) Failed(id string) {
	h := r.byID[id]
	h.state, h.failed = finished, true
}

// Running returns how many hosts are in progress.
func (r *Rollout) Running() int {
	n := 0
	for _, h := range r.hosts {
		if h.busy() {
			n++
		}
	}
	return n
}

// Soaks returns the end of the soak by fleet, if other hosts wait only for its end.
func (r *Rollout) Soaks(now time.Time) map[string]time.Time {
	out := make(map[string]time.Time)
	for name, g := range r.fleets {
		waits := slices.ContainsFunc(g.hosts, func(h *host) bool { return h.state == waiting })
		if waits && blockedByFirst(g.canary(), g.limits.Soak, now) == Soaking {
			for _, c := range g.canary() {
				if at := c.readyAt.Add(g.limits.Soak); at.After(out[name]) {
					out[name] = at
				}
			}
		}
	}
	return out
}

// SetCordoned sets which healthy hosts are cordoned, by macfleet or anyone else. They count as unavailable, so
// working on one takes no extra slot.
func (r *Rollout) SetCordoned(ids map[string]bool) { r.cordoned = ids }

// group is the progress of one fleet.
type group struct {
	limits  Limits
	healthy []string // server ids
	work    []*host  // of these; nil: no work
	hosts   []*host  // of the lane Disrupt, the canary first
	started int      // of these
	stay    []*host  // of other lanes: the hosts that leave wait for these
	trials  []*host  // unhealthy hosts that already have the change; none without a canary

	// Counters of one moment.
	unavailable  int    // of the healthy: disturbed, not Ready any more, or cordoned
	cordoned     int    // of these: Ready and idle, but cordoned
	leaving      int    // hosts that are drained because they leave
	failed       int    // of the hosts and trials
	blocksAll    Reason // what blocks all
	blocksOthers Reason // what blocks all but the canary
}

// canary returns the hosts that go first.
func (g *group) canary() []*host { return g.hosts[:min(g.limits.Canary, len(g.hosts))] }

// blockedByFirst returns what blocks the hosts that wait for the first ones.
func blockedByFirst(first []*host, soak time.Duration, now time.Time) Reason {
	var why Reason
	for _, h := range first {
		switch {
		case h.failed:
			return CanaryFailed
		case h.state != finished:
			why = CanaryRunning
		case why == "" && soak > 0 && now.Before(h.readyAt.Add(soak)):
			why = Soaking
		}
	}
	return why
}

// blockedByTrials returns what blocks the disturbed hosts because of trials: each trial is repaired first,
// and counts like a canary, or like one failed host if the change works elsewhere.
func (g *group) blockedByTrials() Reason {
	failed := 0
	for _, h := range g.trials {
		if h.failed {
			failed++
		} else if h.state != finished {
			return TrialRunning
		}
	}
	if failed > 0 && (!g.limits.Verified || failed > g.limits.FailureBudget) {
		return TrialFailed
	}
	return ""
}

// count updates the counters once, so that large runs stay linear. A canary that does not stay
// Ready during its soak has failed.
func (r *Rollout) count(now time.Time, ready func(id string) bool) {
	r.free, r.repairs, r.repairFailures, r.onlyCordoned = r.parallelism, 0, 0, make(map[string]bool)
	for _, g := range r.fleets {
		g.unavailable, g.cordoned, g.leaving, g.failed = 0, 0, 0, 0
	}
	for _, h := range r.hosts {
		g := h.group
		if h.canary && h.state == finished && now.Before(h.readyAt.Add(g.limits.Soak)) && !ready(h.ID) {
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
		case h.Lane == Leave && h.Works && h.busy() && !h.left:
			g.leaving++
		}
	}
	for _, g := range r.fleets {
		g.blocksAll, g.blocksOthers = g.blockedByTrials(), blockedByFirst(g.canary(), g.limits.Soak, now)
		for _, h := range g.trials {
			if h.failed {
				g.failed++
			}
		}
		for i, id := range g.healthy {
			switch h := g.work[i]; {
			case h != nil && h.Lane == Disrupt && h.busy() || !ready(id):
				g.unavailable++
			case r.cordoned[id]:
				g.unavailable++
				g.cordoned++
				r.onlyCordoned[id] = true
			}
		}
	}
}

// blocksLeaving returns what keeps a host from leaving, or nothing. One that takes no Pods any more does not wait.
func (g *group) blocksLeaving(h *host) Reason {
	if !h.Works {
		return ""
	}
	for _, s := range g.stay {
		switch {
		case s.failed:
			return StayFailed
		case s.state != finished:
			return StayRunning
		}
	}
	switch {
	case g.leaving >= max(1, g.limits.MaxUnavailable):
		return Unavailable
	case g.limits.MinReady > 0 && len(g.healthy)-g.unavailable < min(g.limits.MinReady, len(g.healthy)):
		return TooFewReady
	}
	return ""
}

// start counts a started host.
func (r *Rollout) start(h *host) {
	h.state = working
	r.free--
	g := h.group
	if h.Lane == Disrupt {
		h.wave = g.limits.Wave(g.started)
		g.started++
	}
	switch {
	case h.Lane == Repair:
		r.repairs++
	case h.Lane == Leave && h.Works:
		g.leaving++
	case h.Lane != Disrupt:
	case r.onlyCordoned[h.ID]:
		g.cordoned-- // it was unavailable already
		delete(r.onlyCordoned, h.ID)
	case !r.cordoned[h.ID]:
		g.unavailable++
	}
}

// blockedBy returns what blocks a waiting host, or nothing. A lack of workers is not a reason.
func (r *Rollout) blockedBy(h *host) Reason {
	g := h.group
	away, cordoned := g.unavailable, g.cordoned
	switch {
	case r.onlyCordoned[h.ID]:
		// A cordoned host already counts as unavailable. Otherwise hosts that a killed run left
		// cordoned would wait for each other forever.
		away, cordoned = away-cordoned, 0
	case r.cordoned[h.ID]:
		away--
	}
	switch {
	case h.Lane == Repair && r.repairFailures >= RepairFailures:
		return RepairsFailing
	case h.Lane == Repair && r.repairs >= RepairsAtOnce:
		return Repairs
	case h.Lane == Leave:
		return g.blocksLeaving(h)
	case h.Lane != Disrupt:
		return ""
	case g.blocksOthers == CanaryFailed:
		return CanaryFailed
	case g.blocksAll != "":
		return g.blocksAll
	case g.failed > g.limits.FailureBudget:
		return BudgetSpent
	case g.blocksOthers != "" && !h.canary:
		return g.blocksOthers
	case away-cordoned >= g.limits.MaxUnavailable:
		return Unavailable
	case away >= g.limits.MaxUnavailable:
		return Cordoned
	case g.limits.MinReady > 0 && len(g.healthy)-away-1 < g.limits.MinReady:
		return TooFewReady
	}
	return ""
}
