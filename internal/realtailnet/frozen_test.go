package realtailnet

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
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

// hasKey waits until the daemon tries to log in, so that it has the key.
func (m *machine) hasKey(t *testing.T) {
	t.Helper()
	err := await("login that "+m.name+" tries", func() (bool, error) {
		log, err := os.ReadFile(m.file("log"))
		return bytes.Contains(log, []byte("doLogin(regen=")), err
	})
	must(t, err)
}

// TestFrozen kills the command that joins while the control server does not answer. The daemon has the key and joins by
// itself when the server is back: so the next run must look before it makes another key.
func TestFrozen(t *testing.T) {
	t.Parallel()
	s := ownServer(t)
	signals := map[string]os.Signal{"int-1": os.Interrupt, "term-1": syscall.SIGTERM, "kill-1": syscall.SIGKILL}
	machines := map[string]*machine{}
	keys := map[string]string{}
	for name := range signals {
		machines[name], keys[name] = s.machine(t, name), s.key(t, fleetTag)
	}
	s.freeze(t)
	commands := map[string]*exec.Cmd{}
	for name, m := range machines {
		key := filepath.Join(t.TempDir(), "key")
		must(t, os.WriteFile(key, []byte(keys[name]), 0o600))
		commands[name] = limited(t, tailscale(t), "--socket="+m.file("sock"), "up", "--login-server="+s.url, "--auth-key=file:"+key,
			"--hostname="+name, "--accept-dns=false", "--timeout=80s")
		must(t, commands[name].Start())
	}
	for name, m := range machines {
		m.hasKey(t)
		if got := m.status(t); got.BackendState == "Running" {
			t.Errorf("%s has joined a frozen control server: %+v", name, got)
		}
		must(t, commands[name].Process.Signal(signals[name]))
		_ = commands[name].Wait() // by the signal
	}
	s.thaw(t)
	for name, m := range machines {
		got := m.await(t, "daemon that joins by itself", func(s status) bool { return s.BackendState == "Running" })
		if nodes := s.nodes(t, name); len(nodes) != 1 || got.label() != name {
			t.Errorf("%s is named %s, and Headscale lists %+v", name, got.label(), nodes)
		}
		// With its spent key the same command changes nothing.
		if r := m.up(t, keys[name]); r.code != 0 {
			t.Errorf("%s: up with its spent key: %+v", name, r)
		}
	}
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
	err := await("another try with the refused key", func() (bool, error) { return tries() > before, m.process.ended() })
	if err != nil {
		t.Error(err)
	}
	m.recorded(t, "status-refused.json", "status", "--json")
	m.recorded(t, "prefs-refused.json", "debug", "prefs")
}
