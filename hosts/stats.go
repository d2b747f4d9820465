package hosts

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Stats counts what a Client has done.
type Stats struct {
	Connections int64 // TCP connections that stood
	Execs       int64
	Turns       int64 // round trips: how often bytes came in after bytes went out
	Sent        int64 // bytes on the wire
	Received    int64
}

type stats struct{ connections, execs, turns, sent, received atomic.Int64 }

// Stats returns the counts so far.
func (c *Client) Stats() Stats {
	return Stats{Connections: c.stats.connections.Load(), Execs: c.stats.execs.Load(), Turns: c.stats.turns.Load(),
		Sent: c.stats.sent.Load(), Received: c.stats.received.Load()}
}

// Spent is the time that went into one host, over all of its connections.
type Spent struct {
	Host      string
	Dial      time.Duration // until TCP connections stood, or did not
	Handshake time.Duration // SSH handshakes, authentication included
	Exec      time.Duration // execs
}

// Total returns the sum of all phases.
func (s Spent) Total() time.Duration { return s.Dial + s.Handshake + s.Exec }

// times are the Spent of every host by its id: its name changes with a claim.
type times struct {
	mu sync.Mutex
	of map[string]Spent
}

// spend enters the time since a phase of a host began. Of the phases it knows
// Dialing, Handshaking and Talking.
func (c *Client) spend(t Target, in Phase, began time.Time) {
	took := time.Since(began)
	c.times.mu.Lock()
	defer c.times.mu.Unlock()
	if c.times.of == nil {
		c.times.of = make(map[string]Spent)
	}
	s := c.times.of[t.id()]
	s.Host = t.name()
	switch in {
	case Dialing:
		s.Dial += took
	case Handshaking:
		s.Handshake += took
	case Talking:
		s.Exec += took
	}
	c.times.of[t.id()] = s
}

// Spent returns the time that went into each host so far, sorted by name.
func (c *Client) Spent() []Spent {
	c.times.mu.Lock()
	defer c.times.mu.Unlock()
	out := make([]Spent, 0, len(c.times.of))
	for _, s := range c.times.of {
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b Spent) int { return strings.Compare(a.Host, b.Host) })
	return out
}
