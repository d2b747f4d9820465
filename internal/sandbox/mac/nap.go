package mac

import (
	"slices"
	"sync"
	"time"
)

// longestNap is the longest single sleep of a script that takes no real time: a script that waits for
// the machine sleeps for seconds. A longer sleep is a command that hangs.
const longestNap = 20 * time.Second

// napLook is how often a sleeping script checks whether all others sleep.
const napLook = 2 * time.Millisecond

// alarm is the machine's time at which a watchdog kills its command.
type alarm struct {
	at   time.Time
	ring func()
}

// command is a command line that runs on the machine, with its children.
type command struct{ wakes []time.Time } // of its sleeping processes

// commands are those that run in this process of the simulator.
type commands struct {
	mu      sync.Mutex
	running []*command
}

func (c *commands) begin() *command {
	c.mu.Lock()
	defer c.mu.Unlock()
	one := &command{}
	c.running = append(c.running, one)
	return one
}

func (c *commands) end(one *command) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running = slices.DeleteFunc(c.running, func(other *command) bool { return other == one })
}

// sleeps records when a process of a command wakes up; the returned function ends that.
func (c *commands) sleeps(one *command, wake time.Time) (awake func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	one.wakes = append(one.wakes, wake)
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		i := slices.IndexFunc(one.wakes, wake.Equal)
		one.wakes = slices.Delete(one.wakes, i, i+1)
	}
}

// next reports whether every command sleeps, and none wakes up earlier.
func (c *commands) next(wake time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !slices.ContainsFunc(c.running, func(one *command) bool {
		return len(one.wakes) == 0 || slices.ContainsFunc(one.wakes, wake.After)
	})
}

// nap lets a script sleep, and returns the exit status of sleep. If every command on the machine
// sleeps, that takes no time: the machine's clock moves to when the first one wakes up, and what
// becomes due meanwhile happens. While another command works, real time passes; otherwise that command
// would seem to have taken as long.
func (p *proc) nap(d time.Duration) int {
	now, ring := p.session.now(), func() {}
	for _, a := range p.alarms {
		if left := max(0, a.at.Sub(now)); left < d {
			d, ring = left, a.ring
		}
	}
	err := p.sleepUntil(now.Add(d))
	if err == nil {
		err = p.session.settle(p.ctx)
	}
	if ring(); p.ctx.Err() != nil {
		return exitTerminated
	}
	if err != nil {
		return p.fail(exitUnmodelled, "%s", err)
	}
	return 0
}

func (p *proc) sleepUntil(wake time.Time) error {
	all := &p.session.machine.commands
	defer all.sleeps(p.part, wake)()
	for {
		left := wake.Sub(p.session.now())
		switch {
		case left <= 0 || p.ctx.Err() != nil:
			return nil
		case all.next(wake):
			return p.visit(func(v *visit) error { return v.advance(max(0, wake.Sub(v.session.now()))) })
		}
		select {
		case <-p.ctx.Done():
		case <-time.After(min(left, napLook)):
		}
	}
}
