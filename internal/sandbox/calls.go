package sandbox

import "sync"

// calls counts running calls. Unlike a WaitGroup, a call may start while another goroutine waits:
// after stop, no call starts.
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
