package mac

import "sync"

// Strike is what befalls a machine in the middle of somebody's work on it.
type Strike int

// The strikes there are.
const (
	// LineBreaks: connections break, and what runs goes on to its end with nobody to hear it.
	LineBreaks Strike = iota
	// Killed: what runs over SSH dies on the spot, and its connection with it.
	Killed
)

// strikes counts the tools that are started over SSH, in this process, and strikes once.
type strikes struct {
	mu    sync.Mutex
	armed bool
	left  int
	kind  Strike
}

// StrikeAfter lets n more tools be started over SSH and strikes before the next one. It knows this
// process alone.
func (m *Machine) StrikeAfter(n int, kind Strike) {
	m.strikes.mu.Lock()
	defer m.strikes.mu.Unlock()
	m.strikes.armed, m.strikes.left, m.strikes.kind = true, n, kind
}

// Struck reports whether the last StrikeAfter has struck, and ends it.
func (m *Machine) Struck() bool {
	m.strikes.mu.Lock()
	defer m.strikes.mu.Unlock()
	struck := !m.strikes.armed
	m.strikes.armed = false
	return struck
}

// falls counts a tool and reports whether the strike falls on it.
func (s *strikes) falls() (kind Strike, now bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.armed {
		return 0, false
	}
	s.left--
	if s.left >= 0 {
		return 0, false
	}
	s.armed = false
	return s.kind, true
}

// starting is asked before a tool of a command over this connection runs. It reports whether the
// tool may.
func (l *link) starting(p *proc) bool {
	kind, now := l.session.machine.strikes.falls()
	switch {
	case !now:
		return true
	case kind == LineBreaks:
		l.session.machine.lines.sever()
		return true
	}
	_ = l.cut()
	<-p.ctx.Done() // what serves the connection kills its commands
	return false
}
