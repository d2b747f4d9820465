package mac

import "sync"

// jobs counts the tools that run in a session, so that it can end without interrupting one. The
// shell's background jobs may start one at any time.
type jobs struct {
	mu      sync.Mutex
	running int
	stopped bool
	idle    chan struct{} // closed when stopped and nothing runs
}

// begin reports whether a tool may still start; end must follow.
func (j *jobs) begin() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.stopped {
		return false
	}
	j.running++
	return true
}

func (j *jobs) end() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.running--
	if j.stopped && j.running == 0 {
		close(j.idle)
	}
}

// stop lets no more tools start and waits for the running ones.
func (j *jobs) stop() {
	j.mu.Lock()
	j.stopped, j.idle = true, make(chan struct{})
	if j.running == 0 {
		close(j.idle)
	}
	j.mu.Unlock()
	<-j.idle
}
