package mac

import (
	"io"
	"slices"
	"strings"
	"sync"
)

// Interruption is a fault in the middle of someone's work on a machine.
type Interruption int

// The types of interruptions.
const (
	// ConnectionBreaks: connections break when a command starts, and the command runs to its end without a
	// client. When exactly the connection breaks makes no difference to the machine.
	ConnectionBreaks Interruption = iota
	// Killed: commands over SSH are killed before a tool that may change something, and their
	// connection breaks. A kill before another tool leaves the machine in the same state as one before
	// the next such tool.
	Killed
	// InputBreaks: the connection breaks in the middle of a command's input, and the command continues
	// with the part that arrived.
	InputBreaks
)

// interruptions counts commands over SSH in this process, their tools that may change something, or their
// input bytes, and interrupts once.
type interruptions struct {
	mu    sync.Mutex
	armed bool
	left  int
	kind  Interruption
}

// InterruptAfter interrupts after n more commands over SSH, tools that may change something, or input bytes.
// It covers only this process.
func (m *Machine) InterruptAfter(n int, kind Interruption) {
	m.interruptions.mu.Lock()
	defer m.interruptions.mu.Unlock()
	m.interruptions.armed, m.interruptions.left, m.interruptions.kind = true, n, kind
}

// InterruptPending reports whether an interruption is still pending.
func (m *Machine) InterruptPending() bool {
	m.interruptions.mu.Lock()
	defer m.interruptions.mu.Unlock()
	return m.interruptions.armed
}

// Interrupted reports whether the interruption of the last InterruptAfter has happened, and disarms it.
func (m *Machine) Interrupted() bool {
	m.interruptions.mu.Lock()
	defer m.interruptions.mu.Unlock()
	interrupted := !m.interruptions.armed
	m.interruptions.armed = false
	return interrupted
}

// fallsOn counts n of a kind and reports whether the interruption is among them, and how many come before
// it.
func (s *interruptions) fallsOn(kind Interruption, n int) (before int, falls bool) {
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

// starting is called before a tool of a command over this connection runs. It reports whether the tool
// may run.
func (l *link) starting(p *proc) bool {
	if !l.session.machine.InterruptPending() || looksOnly(p.argv) {
		return true
	}
	if _, falls := l.session.machine.interruptions.fallsOn(Killed, 1); !falls {
		return true
	}
	_ = l.cut()
	<-p.ctx.Done() // the server of the connection kills its commands
	return false
}

// beginning is called when a command over this connection starts.
func (l *link) beginning() {
	if _, falls := l.session.machine.interruptions.fallsOn(ConnectionBreaks, 1); falls {
		l.session.machine.lines.sever()
	}
}

// interruptedInput is a command's input over a connection.
type interruptedInput struct {
	from io.Reader
	link *link
	over bool
}

// Read returns what arrives before the connection breaks.
func (s *interruptedInput) Read(p []byte) (n int, err error) {
	if s.over {
		return 0, io.EOF
	}
	n, err = s.from.Read(p)
	if n, s.over = s.link.session.machine.interruptions.fallsOn(InputBreaks, n); s.over {
		s.link.session.machine.lines.sever()
		return n, io.EOF
	}
	return n, err
}

// looksOnly reports whether a command line cannot change a machine. Shells and commands that start
// others change nothing themselves.
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
