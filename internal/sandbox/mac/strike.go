package mac

import (
	"slices"
	"strings"
	"sync"
)

// Strike is what befalls a machine in the middle of somebody's work on it.
type Strike int

// The strikes there are.
const (
	// LineBreaks: connections break as a command begins, and what runs goes on to its end with nobody
	// to hear it. Where in the command that happens makes no difference to the machine.
	LineBreaks Strike = iota
	// Killed: what runs over SSH dies before a tool that may change something, and its connection with
	// it. A death before another tool leaves the machine as one before the next of these does.
	Killed
)

// strikes counts the commands, or the tools that may change something, that are started over SSH in
// this process, and strikes once.
type strikes struct {
	mu    sync.Mutex
	armed bool
	left  int
	kind  Strike
}

// StrikeAfter lets n more commands, or tools that may change something, be started over SSH and
// strikes before the next one. It knows this process alone.
func (m *Machine) StrikeAfter(n int, kind Strike) {
	m.strikes.mu.Lock()
	defer m.strikes.mu.Unlock()
	m.strikes.armed, m.strikes.left, m.strikes.kind = true, n, kind
}

// StrikeArmed reports whether a strike is still to come.
func (m *Machine) StrikeArmed() bool {
	m.strikes.mu.Lock()
	defer m.strikes.mu.Unlock()
	return m.strikes.armed
}

// Struck reports whether the last StrikeAfter has struck, and ends it.
func (m *Machine) Struck() bool {
	m.strikes.mu.Lock()
	defer m.strikes.mu.Unlock()
	struck := !m.strikes.armed
	m.strikes.armed = false
	return struck
}

// fallsOn counts something of a kind and reports whether the strike falls on it.
func (s *strikes) fallsOn(kind Strike) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.armed || s.kind != kind {
		return false
	}
	s.left--
	if s.left >= 0 {
		return false
	}
	s.armed = false
	return true
}

// starting is asked before a tool of a command over this connection runs. It reports whether the
// tool may.
func (l *link) starting(p *proc) bool {
	if !l.session.machine.StrikeArmed() || looksOnly(p.argv) || !l.session.machine.strikes.fallsOn(Killed) {
		return true
	}
	_ = l.cut()
	<-p.ctx.Done() // what serves the connection kills its commands
	return false
}

// beginning is told when a command over this connection begins.
func (l *link) beginning() {
	if l.session.machine.strikes.fallsOn(LineBreaks) {
		l.session.machine.lines.sever()
	}
}

// looksOnly reports whether a command line cannot change a machine. Shells and what starts others
// do nothing by themselves.
func looksOnly(argv []string) bool {
	name, args := argv[0][strings.LastIndex(argv[0], "/")+1:], append(slices.Clone(argv[1:]), "")
	switch name {
	case "codesign":
		return !slices.ContainsFunc(args, func(a string) bool {
			return strings.HasPrefix(a, "--s") || strings.HasPrefix(a, "-s") || strings.HasPrefix(a, "-f")
		})
	case "tar":
		return slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(strings.TrimPrefix(a, "-"), "t") })
	case "tart":
		return slices.Contains([]string{"list", "ip", "--version"}, args[0])
	case "xattr":
		return !slices.Contains(args, "-d") && !slices.Contains(args, "-dr")
	case "launchctl", "pmset", "scutil", "defaults", "pfctl", "dscl":
		return slices.ContainsFunc(args, func(a string) bool {
			return slices.Contains([]string{"print", "list", "-g", "--get", "read", "-read", "show"}, a) || strings.HasPrefix(a, "-s")
		})
	}
	return slices.Contains(strings.Fields(`[ awk base64 basename cat cmp cut date df dirname echo env false fdesetup grep head hostname id ifconfig
		ioreg ls od perl pgrep printf ps pwd readlink shasum sh bash dash zsh sleep sort stat sw_vers sync sysctl tail test tr true uname uniq visudo
		wc who whoami xxd`), name)
}
