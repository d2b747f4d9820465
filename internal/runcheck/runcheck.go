// Package runcheck reads the record of a run and says where the run went beyond its
// limits. It knows the record alone, and nothing of the code that keeps the limits:
// the two cannot share a fault.
package runcheck

import (
	"fmt"
	"time"

	"github.com/macfleet/macfleet/internal/runlog"
)

// The lines of a record that count here, beside those that runlog names.
const (
	begun        runlog.Type = "begun"
	ended        runlog.Type = "ended"
	started      runlog.Type = "started"
	done         runlog.Type = "done"
	failed       runlog.Type = "failed"
	deferred     runlog.Type = "deferred"
	waiting      runlog.Type = "waiting"
	ready        runlog.Type = "ready"
	uploadBegins runlog.Type = "upload-begins"
	uploadEnds   runlog.Type = "upload-ends"
)

// The lanes whose hosts have limits of their own.
const (
	repair  = "repair"
	disrupt = "disrupt"
)

// Mending hosts has the same limits in every configuration.
const (
	repairsAtOnce  = 3 // at the same time
	repairFailures = 3 // after which no further one starts
)

// awaitNode is the kind of what fails without having been started: the wait for a Node.
const awaitNode = "ready"

// openNode is the kind of what gives a Node back that the run had closed: also after a
// stop, and told of its failure alone where the run closed it itself.
const openNode = "uncordon"

// host is one host in the course of a run.
type host struct {
	fleet, lane string
	open        int  // actions that were started and have not ended
	left        int  // actions of the plan that have not ended
	settled     bool // its actions are done, and its Node is waited for
	over        bool
	failed      bool
	at          time.Time // when it was over
}

// working reports whether the host takes one of the places of those worked on.
func (h *host) working() bool { return !h.over && !h.settled && h.left > 0 }

// checker is the state of a run after some lines of its record.
type checker struct {
	record   runlog.Record
	hosts    map[string]*host
	order    map[string][]*host // of the lane disrupt, by fleet, as they began
	fleets   map[string]*limits
	actions  map[string]runlog.Type // the last that was told of each, by key
	uploads  map[string]int         // by host and artifact
	done     int
	stopped  bool
	finished bool
	line     int
	found    []string
}

// Violations returns every breach of a limit that a record tells of, at the line
// where it came about; none of a run that kept all of them. Of a run that broke off
// it says nothing about what did not end.
func Violations(r runlog.Record) []string {
	c := &checker{record: r, hosts: make(map[string]*host), order: make(map[string][]*host), fleets: make(map[string]*limits),
		actions: make(map[string]runlog.Type), uploads: make(map[string]int)}
	c.readLimits()
	for i, e := range r.Entries {
		c.line = i + 1
		c.enter(e)
	}
	if r.End != nil {
		c.end(*r.End)
	}
	return c.found
}

func (c *checker) say(format string, args ...any) {
	c.found = append(c.found, fmt.Sprintf("line %d: ", c.line)+fmt.Sprintf(format, args...))
}

// enter takes one line.
func (c *checker) enter(e runlog.Entry) {
	if c.finished {
		c.say("%s comes after the end", e.Type)
	}
	switch e.Type {
	case begun:
		c.begins(e)
	case ended:
		c.ends(e)
	case started:
		c.starts(e)
	case done, failed:
		c.finishes(e)
	case deferred:
		c.defers(e)
	case waiting, ready:
		if h := c.hosts[e.Host]; h != nil {
			h.settled = true
		}
	case uploadBegins, uploadEnds:
		c.upload(e)
	case runlog.TypeStop:
		c.stopped = true
	case runlog.TypeEnd:
		c.finished = true
	}
}

// begins takes the beginning of the work on a host: this is where limits count.
func (c *checker) begins(e runlog.Entry) {
	if c.hosts[e.Host] != nil {
		c.say("%s begins twice", e.Host)
	}
	if c.stopped {
		c.say("%s begins after the stop", e.Host)
	}
	h := &host{fleet: e.Fleet, lane: e.Lane}
	for _, a := range c.record.Plan.Actions {
		if a.Host == e.Host && a.Refused.String() == "" && a.Deferred.String() == "" && c.actions[a.Key()] == "" {
			h.left++
		}
	}
	switch {
	case e.Lane == repair:
		c.repairs(e.Host)
	case e.Lane == disrupt:
		c.disrupts(e, h)
	}
	c.hosts[e.Host] = h
	at := 0
	for _, h := range c.hosts {
		if h.working() {
			at++
		}
	}
	if most := c.record.Head.Limits.Hosts; at > most {
		c.say("%s begins, and %d hosts are worked on, of at most %d", e.Host, at, most)
	}
}

// repairs checks a host that is about to be mended.
func (c *checker) repairs(name string) {
	at, broken := 0, 0
	for _, h := range c.hosts {
		switch {
		case h.lane != repair:
		case !h.over:
			at++
		case h.failed:
			broken++
		}
	}
	if at >= repairsAtOnce {
		c.say("%s begins, and %d hosts are being mended already", name, at)
	}
	if broken >= repairFailures {
		c.say("%s begins after %d failed repairs", name, broken)
	}
}

func (c *checker) ends(e runlog.Entry) {
	h := c.hosts[e.Host]
	switch {
	case h == nil:
		c.say("%s ends and never began", e.Host)
		return
	case h.over:
		c.say("%s ends twice", e.Host)
	case h.open > 0:
		c.say("%s ends with %d open actions", e.Host, h.open)
	}
	h.over, h.at = true, e.Time
}

func (c *checker) starts(e runlog.Entry) {
	if e.Action == nil {
		c.say("something starts that is no action")
		return
	}
	key := e.Action.Key()
	if c.actions[key] != "" {
		c.say("%s of %s starts twice", e.Action.Label(), e.Host)
	}
	if c.stopped && e.Action.Kind != openNode {
		c.say("%s of %s starts after the stop", e.Action.Label(), e.Host)
	}
	c.actions[key] = started
	if e.Host == "" {
		return // of the cluster
	}
	h := c.hosts[e.Host]
	if h == nil || h.over {
		c.say("%s of %s starts outside the work on that host", e.Action.Label(), e.Host)
		return
	}
	if h.open++; h.open > 1 {
		c.say("%s has %d actions at once", e.Host, h.open)
	}
	if h.failed {
		c.say("%s of %s starts after a failure there", e.Action.Label(), e.Host)
	}
}

// defers takes an action that was left for a later run after its host began.
func (c *checker) defers(e runlog.Entry) {
	h := c.hosts[e.Host]
	if e.Action == nil || h == nil || h.over {
		c.say("%s is deferred outside the work on it", e.Host)
		return
	}
	if c.actions[e.Action.Key()] == started {
		c.say("%s of %s is deferred after it started", e.Action.Label(), e.Host)
	}
	h.left--
}

// finishes takes the end of an action, or of the wait for a Node.
func (c *checker) finishes(e runlog.Entry) {
	h := c.hosts[e.Host]
	if h != nil && e.Type == failed {
		h.failed = true
	}
	if e.Action == nil || e.Action.Kind == awaitNode {
		return
	}
	key := e.Action.Key()
	if c.actions[key] != started {
		if e.Action.Kind == openNode && e.Type == failed {
			return
		}
		c.say("%s of %s is %s and was not under way", e.Action.Label(), e.Host, e.Type)
		return
	}
	c.actions[key] = e.Type
	if e.Type == done {
		c.done++
	}
	if h != nil {
		h.open--
		if h.left--; h.failed {
			h.left = 0 // the others are left
		}
	}
}

func (c *checker) upload(e runlog.Entry) {
	key := e.Host + " " + e.Artifact
	if e.Type == uploadEnds {
		if c.uploads[key]--; c.uploads[key] < 0 {
			c.say("an upload of %s to %s ends and never began", e.Artifact, e.Host)
		}
		return
	}
	c.uploads[key]++
	all := 0
	for _, n := range c.uploads {
		all += n
	}
	if most := c.record.Head.Limits.Uploads; all > most {
		c.say("%d uploads at once, of at most %d", all, most)
	}
}

// end checks a run that came to its end.
func (c *checker) end(e runlog.End) {
	if e.Outcome == runlog.LeftAtOnce {
		return // nobody waited for what ran
	}
	for key, last := range c.actions {
		if last == started {
			c.say("%s was started and has no end", key)
		}
	}
	for name, h := range c.hosts {
		if !h.over {
			c.say("the work on %s has no end", name)
		}
	}
	for key, n := range c.uploads {
		if n > 0 {
			c.say("the upload %s has no end", key)
		}
	}
	if e.Done != c.done {
		c.say("%d actions were done, and the end says %d", c.done, e.Done)
	}
}
