// Package rollout decides which hosts a run may start with, and when: how many of
// a fleet at once, which first, and when no further one. It does no I/O and takes
// no clock; the engine tells it what happens and asks what to do.
package rollout

import (
	"cmp"
	"slices"
	"time"

	"github.com/macfleet/macfleet/fleet"
)

// Lane is the way that a host's work takes.
type Lane int

// The lanes, in the order in which their hosts start.
const (
	// Repair is for members whose Nodes are not Ready already: mending them takes
	// nothing away from the fleet, so they need no place of it. Five dead runners of
	// nine must be healed however little the four others may be disturbed.
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
	// Trial says of a repair that the host's own kubelet dies of what the others are to
	// get, as far as anybody knows: they wait for it. Without this every run would try
	// the same on one healthy host more.
	Trial bool
}

// Limits bound what is done to one fleet's hosts.
type Limits struct {
	MaxUnavailable int           // healthy hosts that are disturbed, or not Ready any more, at once; at least 1
	Canary         int           // hosts that go first, and alone; 0: none
	Soak           time.Duration // how long the canary must stay Ready before the others start
	FailureBudget  int           // disturbed hosts that may fail before no further one starts
	MinReady       int           // hosts of the fleet that must stay Ready; 0: no such limit
}

// LimitsOf returns the limits of a fleet with so many healthy hosts.
func LimitsOf(r fleet.Rollout, healthy int) Limits {
	return Limits{MaxUnavailable: Size(r.MaxUnavailable, healthy), Canary: r.Canary, Soak: r.Soak,
		FailureBudget: r.FailureBudget, MinReady: r.MinReady}
}

// Size returns how many of n hosts a share is. A percentage is rounded down, and
// nothing is less than 1: nothing would ever change.
func Size(s fleet.Share, n int) int {
	if s.Percent > 0 {
		return max(1, n*s.Percent/100)
	}
	return max(1, s.Count)
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
}

// New returns a rollout of work that has not begun. healthy holds the ids of all
// servers whose Nodes were Ready, by fleet, also of those without work; each host
// of the lane Disrupt is among them. Within a lane, work starts in the given order.
func New(work []Work, limits map[string]Limits, healthy map[string][]string, parallelism int) *Rollout {
	r := &Rollout{parallelism: max(1, parallelism), byID: make(map[string]*host, len(work)), fleets: make(map[string]*group)}
	for _, w := range work {
		h := &host{Work: w}
		r.hosts = append(r.hosts, h)
		r.byID[w.ID] = h
		g := r.fleets[w.Fleet]
		if g == nil {
			g = &group{limits: limits[w.Fleet], healthy: healthy[w.Fleet]}
			r.fleets[w.Fleet] = g
		}
		switch {
		case w.Lane == Disrupt:
			g.hosts = append(g.hosts, h)
		case w.Lane == Repair && w.Trial:
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
	seen := r.look(now, ready)
	var out []string
	for _, h := range r.hosts {
		if seen.free == 0 {
			break
		}
		if h.state == waiting && seen.why(h) == "" {
			h.state = working
			seen.start(h)
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

// Left is a host that has not started, and what keeps it.
type Left struct {
	ID  string
	Why Reason // empty: nothing but the number of workers
}

// Left returns the hosts that have not started.
func (r *Rollout) Left(now time.Time, ready func(id string) bool) []Left {
	seen := r.look(now, ready)
	var out []Left
	for _, h := range r.hosts {
		if h.state == waiting {
			out = append(out, Left{h.ID, seen.why(h)})
		}
	}
	return out
}

// Soaks returns until when canaries are watched, by fleet, where others wait for
// that and for nothing else.
func (r *Rollout) Soaks(now time.Time) map[string]time.Time {
	out := make(map[string]time.Time)
	for name, g := range r.fleets {
		waits := slices.ContainsFunc(g.hosts, func(h *host) bool { return h.state == waiting })
		if waits && g.whyCanary(now) == Soaking {
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
// away, and have not failed for it. Of one that is closed already, its own work takes no
// further place.
func (r *Rollout) Closed(ids map[string]bool) { r.closed = ids }
