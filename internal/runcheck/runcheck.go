// Package runcheck reads the record of a run and reports where the run exceeded its limits.
// It reads nothing but the record and shares no code with the engine, so the two cannot share a bug.
package runcheck

import (
	"fmt"
	"time"

	"github.com/macfleet/macfleet/internal/runlog"
)

// The types of lines that are checked, besides those that runlog names.
const (
	hostStarts   runlog.Type = "begun"
	hostEnds     runlog.Type = "ended"
	started      runlog.Type = "started"
	done         runlog.Type = "done"
	failed       runlog.Type = "failed"
	skipped      runlog.Type = "skipped"
	deferred     runlog.Type = "deferred"
	waiting      runlog.Type = "waiting"
	ready        runlog.Type = "ready"
	uploadBegins runlog.Type = "upload-begins"
	uploadEnds   runlog.Type = "upload-ends"
)

// The lanes with limits.
const (
	repair  = "repair"
	disrupt = "disrupt"
)

// The limits of the repair lane are the same in every configuration.
const (
	repairsAtOnce  = 3 // at most this many run at the same time
	repairFailures = 3 // after this many, no further repair starts
)

// awaitNode is the kind of the wait for a Node. It fails without a line "started".
const awaitNode = "ready"

// uncordon is the kind of the action that uncordons a Node. It may run after a stop. If the run cordoned the Node
// itself, only a failure is recorded.
const uncordon = "uncordon"

// host is one host during a run.
type host struct {
	fleet, lane string
	open        int  // actions that were started and have not ended
	left        int  // actions of the plan that have not ended
	settled     bool // its actions are done, and the run waits for its Node
	over        bool
	failed      bool
	at          time.Time // when it ended
}

// working reports whether the host counts against the limit of hosts.
func (h *host) working() bool { return !h.over && !h.settled && h.left > 0 }

// checker is the state of a run after some lines of its record.
type checker struct {
	record   runlog.Record
	hosts    map[string]*host
	order    map[string][]*host // of the lane disrupt, by fleet, in the order in which they started
	fleets   map[string]*limits
	actions  map[string]runlog.Type // the last line of each, by key
	uploads  map[string]int         // by host and artifact
	done     int
	stopped  bool
	halted   string // an action that was skipped after it started; empty: none
	finished bool
	line     int
	found    []string
}

// Violations returns every violation of a limit in a record, with its line. In the record of an interrupted run,
// missing ends are not violations.
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

func (c *checker) report(format string, args ...any) {
	c.found = append(c.found, fmt.Sprintf("line %d: ", c.line)+fmt.Sprintf(format, args...))
}

// enter takes one line.
func (c *checker) enter(e runlog.Entry) {
	if c.finished {
		c.report("%s comes after the end", e.Type)
	}
	switch e.Type {
	case hostStarts:
		c.begins(e)
	case hostEnds:
		c.ends(e)
	case started:
		c.starts(e)
	case done, failed:
		c.finishes(e)
	case skipped:
		c.skips(e)
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

// begins checks the limits when the work on a host starts.
func (c *checker) begins(e runlog.Entry) {
	if c.hosts[e.Host] != nil {
		c.report("%s starts twice", e.Host)
	}
	if c.stopped {
		c.report("%s starts after the stop", e.Host)
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
		c.report("%s starts while %d hosts are in progress, limit %d", e.Host, at, most)
	}
}

// repairs checks a host that is about to be repaired.
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
		c.report("%s starts while %d hosts are being repaired", name, at)
	}
	if broken >= repairFailures {
		c.report("%s starts after %d failed repairs", name, broken)
	}
}

func (c *checker) ends(e runlog.Entry) {
	h := c.hosts[e.Host]
	switch {
	case h == nil:
		c.report("%s ends but never started", e.Host)
		return
	case h.over:
		c.report("%s ends twice", e.Host)
	case h.open > 0:
		c.report("%s ends with %d open actions", e.Host, h.open)
	}
	h.over, h.at = true, e.Time
}

func (c *checker) starts(e runlog.Entry) {
	if e.Action == nil {
		c.report("a started line has no action")
		return
	}
	key := e.Action.Key()
	if c.actions[key] != "" {
		c.report("%s of %s starts twice", e.Action.Label(), e.Host)
	}
	if c.stopped && e.Action.Kind != uncordon {
		c.report("%s of %s starts after the stop", e.Action.Label(), e.Host)
	}
	c.actions[key] = started
	if e.Host == "" {
		return // an action on the cluster
	}
	h := c.hosts[e.Host]
	if h == nil || h.over {
		c.report("%s of %s starts while its host is not in progress", e.Action.Label(), e.Host)
		return
	}
	if h.open++; h.open > 1 {
		c.report("%s has %d actions at once", e.Host, h.open)
	}
	if h.failed {
		c.report("%s of %s starts after a failure there", e.Action.Label(), e.Host)
	}
}

// defers checks an action that is left for a later run although its host has started.
func (c *checker) defers(e runlog.Entry) {
	h := c.hosts[e.Host]
	if e.Action == nil || h == nil || h.over {
		c.report("%s defers an action while it is not in progress", e.Host)
		return
	}
	if c.actions[e.Action.Key()] == started {
		c.report("%s of %s is deferred after it started", e.Action.Label(), e.Host)
	}
	h.left--
}

// skips takes an action that is not run. One that has started was still draining, which only a stop of the run ends.
func (c *checker) skips(e runlog.Entry) {
	if e.Action == nil || c.actions[e.Action.Key()] != started {
		return
	}
	c.actions[e.Action.Key()] = skipped
	c.halted = e.Action.Label() + " of " + e.Host
	if h := c.hosts[e.Host]; h != nil {
		h.open--
		h.left = 0 // the host's other actions are not run
	}
}

// finishes checks the end of an action, or of the wait for a Node.
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
		if e.Action.Kind == uncordon && e.Type == failed {
			return
		}
		c.report("%s of %s is %s but was not started", e.Action.Label(), e.Host, e.Type)
		return
	}
	c.actions[key] = e.Type
	if e.Type == done {
		c.done++
	}
	if h != nil {
		h.open--
		if h.left--; h.failed {
			h.left = 0 // the host's other actions are not run
		}
	}
}

func (c *checker) upload(e runlog.Entry) {
	key := e.Host + " " + e.Artifact
	if e.Type == uploadEnds {
		if c.uploads[key]--; c.uploads[key] < 0 {
			c.report("an upload of %s to %s ends but never started", e.Artifact, e.Host)
		}
		return
	}
	c.uploads[key]++
	all := 0
	for _, n := range c.uploads {
		all += n
	}
	if most := c.record.Head.Limits.Uploads; all > most {
		c.report("%d uploads at once, of at most %d", all, most)
	}
}

// end checks the last line of a finished run.
func (c *checker) end(e runlog.End) {
	if e.Outcome == runlog.LeftAtOnce {
		return // the run did not wait for its actions
	}
	if c.halted != "" && !c.stopped && e.Stopped == "" {
		c.report("%s is skipped after it started, but the run was not stopped", c.halted)
	}
	for key, last := range c.actions {
		if last == started {
			c.report("%s was started but never ends", key)
		}
	}
	for name, h := range c.hosts {
		if !h.over {
			c.report("%s started but never ends", name)
		}
	}
	for key, n := range c.uploads {
		if n > 0 {
			c.report("the upload %s never ends", key)
		}
	}
	if e.Done != c.done {
		c.report("%d actions were done, but the end reports %d", c.done, e.Done)
	}
}
