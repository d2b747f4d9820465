package mac

import (
	"io"
	"slices"
	"strings"
	"sync"
)

// Strike is what befalls a machine in the middle of someone's work on it.
type Strike int

// The strikes there are.
const (
	// LineBreaks: connections break as a command begins, and what runs continues to its end with nobody
	// to hear it. Where in the command that happens makes no difference to the machine.
	LineBreaks Strike = iota
	// Killed: what runs over SSH dies before a tool that may change something, and its connection with
	// it. A death before another tool leaves the machine as one before the next of these does.
	Killed
	// InputBreaks: the line breaks in the middle of what is sent to a command, which continues with what
	// has come.
	InputBreaks
)

// strikes counts the commands, or the tools that may change something, that are started over SSH in
// this process, or the bytes that are sent to them, and strikes once.
type strikes struct {
	mu    sync.Mutex
	armed bool
	left  int
	kind  Strike
}

// StrikeAfter lets n more commands, or tools that may change something, be started over SSH, or n more
// bytes be sent to them, and strikes before the next one. It knows this process alone.
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

// fallsOn counts n of a kind and reports whether the strike falls on one of them, and how many come
// before it.
func (s *strikes) fallsOn(kind Strike, n int) (before int, falls bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.armed || s.kind != kind {
		return n, false
	}
	if n <= s.left {
		s.left -= n
		return n, false
	}
	s.armed = false
	return s.left, true
}

// starting is asked before a tool of a command over this connection runs. It reports whether the
// tool may.
func (l *link) starting(p *proc) bool {
	if !l.session.machine.StrikeArmed() || looksOnly(p.argv) {
		return true
	}
	if _, falls := l.session.machine.strikes.fallsOn(Killed, 1); !falls {
		return true
	}
	_ = l.cut()
	<-p.ctx.Done() // what serves the connection kills its commands
	return false
}

// beginning is told when a command over this connection begins.
func (l *link) beginning() {
	if _, falls := l.session.machine.strikes.fallsOn(LineBreaks, 1); falls {
		l.session.machine.lines.sever()
	}
}

// struckInput is what is sent to a command over a connection.
type struckInput struct {
	from io.Reader
	link *link
	over bool
}

// Read takes what has come before the line breaks.
func (s *struckInput) Read(p []byte) (n int, err error) {
	if s.over {
		return 0, io.EOF
	}
	n, err = s.from.Read(p)
	if n, s.over = s.link.session.machine.strikes.fallsOn(InputBreaks, n); s.over {
		s.link.session.machine.lines.sever()
		return n, io.EOF
	}
	return n, err
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
