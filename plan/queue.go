package plan

import (
	"cmp"
	"slices"

	"github.com/macfleet/macfleet/fleet"
)

// queue yields the pool servers that may fill a group, the best one first.
type queue struct {
	lines  []line
	inZone map[string]int // members and claims of the group, by zone
}

// line is the part of a queue whose servers differ only by name.
type line struct {
	rank    int // 0: an earlier run started the claim; above: the place of the type in the group's preference
	zone    string
	waiting []placed // by name
}

// queueFor returns the pool servers that may fill a group and are not taken.
func (c *census) queueFor(n need, taken map[string]bool) *queue {
	q := &queue{inZone: make(map[string]int)}
	for _, p := range c.members[fleet.Place{Fleet: n.fleet.Name, Group: n.group.Name}] {
		q.inZone[p.server.Zone]++
	}
	started := c.startedFor(n)
	types := n.group.Types()
	for i := range c.servers {
		p := &c.servers[i]
		s := &p.server
		if p.role != pool && !(p.foreign && c.pooled(*s)) || c.elsewhere[s.ID] || taken[s.ID] || !n.group.Accepts(s.Type) || s.OSFamily != n.fleet.OS && !c.runs(*s, n.fleet.OS) {
			continue
		}
		rank := 1 + slices.Index(types, s.Type)
		if started[s.ID] {
			rank = 0
		}
		at := slices.IndexFunc(q.lines, func(l line) bool { return l.rank == rank && l.zone == s.Zone })
		if at < 0 {
			at = len(q.lines)
			q.lines = append(q.lines, line{rank: rank, zone: s.Zone})
		}
		q.lines[at].waiting = append(q.lines[at].waiting, *p)
	}
	return q
}

// startedFor returns the ids of servers whose claim for a group was interrupted after it pinned their keys. They are taken
// first, so that no half-made claim stays in the pool.
func (c *census) startedFor(n need) map[string]bool {
	out := make(map[string]bool)
	for _, p := range c.snap.Pins {
		if p.Unfinished && p.Name == c.cfg.HostName(n.fleet.Name, n.group.Name, p.ServerID) {
			out[p.ServerID] = true
		}
	}
	return out
}

// next takes the best server off the queue.
func (q *queue) next() (placed, bool) {
	best := -1
	for i := range q.lines {
		if len(q.lines[i].waiting) > 0 && (best < 0 || q.before(&q.lines[i], &q.lines[best])) {
			best = i
		}
	}
	if best < 0 {
		return placed{}, false
	}
	l := &q.lines[best]
	p := l.waiting[0]
	l.waiting = l.waiting[1:]
	return p, true
}

func (q *queue) before(a, b *line) bool {
	return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(q.inZone[a.zone], q.inZone[b.zone]), inOrder(&a.waiting[0], &b.waiting[0])) < 0
}
