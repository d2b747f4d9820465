package mac

import (
	"io"
	"slices"
	"strings"
	"sync"
)

// Strike is a fault in the middle of someone's work on a machine.
type Strike int

// The types of strikes.
const (
	// LineBreaks: connections break when a command starts, and the command runs to its end without a
	// client. When exactly the connection breaks makes no difference to the machine.
	LineBreaks Strike = iota
	// Killed: commands over SSH are killed before a tool that may change something, and their
	// connection breaks. A kill before another tool leaves the machine in the same state as one before
	// the next such tool.
	Killed
	// InputBreaks: the connection breaks in the middle of a command's input, and the command continues
	// with the part that arrived.
	InputBreaks
)

// strikes counts commands over SSH in this process, their tools that may change something, or their
// input bytes, and strikes once.
type strikes struct {
	mu    sync.Mutex
	armed bool
	left  int
	kind  Strike
}

// StrikeAfter strikes after n more commands over SSH, tools that may change something, or input bytes.
// It covers only this process.
func (m *Machine) StrikeAfter(n int, kind Strike) {
	m.strikes.mu.Lock()
	defer m.strikes.mu.Unlock()
	m.strikes.armed, m.strikes.left, m.strikes.kind = true, n, kind
}

// StrikeArmed reports whether a strike is still pending.
func (m *Machine) StrikeArmed() bool {
	m.strikes.mu.Lock()
	defer m.strikes.mu.Unlock()
	return m.strikes.armed
}

// Struck reports whether the strike of the last StrikeAfter has happened, and disarms it.
func (m *Machine) Struck() bool {
	m.strikes.mu.Lock()
	defer m.strikes.mu.Unlock()
	struck := !m.strikes.armed
	m.strikes.armed = false
	return struck
}

// fallsOn counts n of a kind and reports whether the strike is among them, and how many come before
// it.
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

// starting is called before a tool of a command over this connection runs. It reports whether the tool
// may run.
func (l *link) starting(p *proc) bool {
	if !l.session.machine.StrikeArmed() || looksOnly(p.argv) {
		return true
	}
	if _, falls := l.session.machine.strikes.fallsOn(Killed, 1); !falls {
		return true
	}
	_ = l.cut()
	<-p.ctx.Done() // the server of the connection kills its commands
	return false
}

// beginning is called when a command over this connection starts.
func (l *link) beginning() {
	if _, falls := l.session.machine.strikes.fallsOn(LineBreaks, 1); falls {
		l.session.machine.lines.sever()
	}
}

// struckInput is a command's input over a connection.
type struckInput struct {
	from io.Reader
	link *link
	over bool
}

// Read returns what arrives before the connection breaks.
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
