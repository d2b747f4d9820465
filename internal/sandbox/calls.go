package sandbox

import "sync"

// calls counts what is under way. Unlike a bare WaitGroup it may be started while another goroutine waits:
// from stop on, nothing begins any more.
type calls struct {
	mu      sync.Mutex
	stopped bool
	active  sync.WaitGroup
}

func (c *calls) begin() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.stopped {
		c.active.Add(1)
	}
	return !c.stopped
}

func (c *calls) end()  { c.active.Done() }
func (c *calls) wait() { c.active.Wait() }

func (c *calls) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopped = true
}
