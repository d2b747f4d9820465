package mac

import (
	"slices"
	"sync"
	"time"
)

// longestNap is how long a script may sleep in one go without anyone waiting for it: one that waits
// for something of the machine's sleeps for seconds. A longer sleep is a command that hangs.
const longestNap = 20 * time.Second

// napLook is how often a script that sleeps looks whether all others do.
const napLook = 2 * time.Millisecond

// alarm is a time on the machine's clock at which a watchdog ends what it watches.
type alarm struct {
	at   time.Time
	ring func()
}

// command is a command line that runs on the machine, with all that it starts.
type command struct{ wakes []time.Time } // of its processes that sleep

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

// sleeps notes when a process of a command wakes up; the answer ends that.
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

// next reports whether every command sleeps, and none wakes up earlier than that.
func (c *commands) next(wake time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !slices.ContainsFunc(c.running, func(one *command) bool {
		return len(one.wakes) == 0 || slices.ContainsFunc(one.wakes, wake.After)
	})
}

// nap lets a script sleep. Where every command on the machine does, that takes no time: its clock is
// moved on to when the first one wakes up, and what becomes due meanwhile happens. Beside one that
// works real time passes, or that one would seem to have worked for as long. It gives the exit status
// of sleep.
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
