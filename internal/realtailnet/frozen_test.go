package realtailnet

import (
	"os"
	"strings"
	"syscall"
	"testing"
)

// freeze stops the control server: it accepts connections and does not answer.
func (s *control) freeze(t *testing.T) {
	t.Helper()
	must(t, s.process.cmd.Process.Signal(syscall.SIGSTOP))
}

// thaw ends freeze.
func (s *control) thaw(t *testing.T) {
	t.Helper()
	must(t, s.process.cmd.Process.Signal(syscall.SIGCONT))
}

// TestRefusedKeepsTrying: a daemon whose key was refused keeps trying with it until it is stopped.
func TestRefusedKeepsTrying(t *testing.T) {
	t.Parallel()
	s := server(t)
	m := s.machine(t, "refused-1")
	if r := m.up(t, "hskey-auth-000000000000-0000000000000000000000000000000000000000000000000000000000000000"); r.code == 0 {
		t.Fatalf("up with an unknown key: %+v", r)
	}
	tries := func() int {
		log, _ := os.ReadFile(m.file("log"))
		return strings.Count(string(log), "doLogin(regen=")
	}
	before := tries()
	must(t, await("another try with the refused key", func() (bool, error) { return tries() > before, m.process.ended() }))
	m.recorded(t, "status-refused.json", "status", "--json")
	m.recorded(t, "prefs-refused.json", "debug", "prefs")
}
