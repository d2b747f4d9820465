package realtailnet

import (
	"bytes"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/macfleet/macfleet/plan"
)

// TestStepKilled kills the step's script in the middle of a join, while the control server does not answer. What comes next
// depends on when macfleet looks again: there is never a second device, nor a daemon with a key that nothing knows of.
func TestStepKilled(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		signal syscall.Signal
		frozen bool // the next run begins before the server answers, so the daemon cannot have joined
	}{
		{"int-1", syscall.SIGINT, false},
		{"term-1", syscall.SIGTERM, false},
		{"kill-1", syscall.SIGKILL, false},
		{"kill-2", syscall.SIGKILL, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := ownServer(t)
			m := s.mac(t, tt.name)
			join, key := m.prepared(t)
			listed := m.listed(t)
			s.freeze(t)
			script := m.begin(t, join, key)
			m.tries(t)
			must(t, syscall.Kill(-script.Process.Pid, tt.signal))
			if err := script.Wait(); err == nil {
				t.Error("the script ended without an error")
			}

			if tt.frozen {
				f := m.compare(t, listed)
				if len(f.Changes) == 0 || f.Changes[0].Reason.Code.String() != "join-retrying" || f.Refused != nil {
					t.Fatalf("while the daemon retries: %+v in\n%s", f.Refused, changes(f))
				}
				if a := m.perform(t, f.Changes[0]); a.Exit != 0 || m.Kept("pid") != "no file" {
					t.Fatalf("stopped: %+v", a)
				}
				s.thaw(t)
				if nodes := s.nodes(t); len(nodes) > 0 {
					t.Errorf("without a daemon Headscale lists %+v", nodes)
				}
				m.apply(t)
			} else {
				s.thaw(t)
				m.awaitState(t, "Running")
				if got := m.apply(t); got != "" && got != "tailnet-key-file" {
					t.Errorf("after the daemon has joined by itself: %s", got)
				}
				if m.keys != 1 {
					t.Errorf("%d keys were made", m.keys)
				}
			}
			m.single(t)
			m.clean(t, key)
		})
	}
}

// TestStepFails: a script whose join fails leaves no daemon that keeps trying, and the next one succeeds.
func TestStepFails(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		frozen bool // else the key is spent
		want   string
	}{
		{"silent-1", true, "timeout waiting for Tailscale service to enter a Running state"},
		{"spent-1", false, "authkey already used"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := ownServer(t)
			m := s.mac(t, tt.name)
			join, key := m.prepared(t)
			if tt.frozen {
				join.Command.Script = strings.ReplaceAll(join.Command.Script, "--timeout=30s", "--timeout=3s")
				s.freeze(t)
			} else if r := s.machine(t, "thief").up(t, strings.TrimSpace(key)); r.code != 0 {
				t.Fatalf("the thief: %+v", r)
			}
			a := m.Run(m.here(join.Command), key)
			if a.Exit != 1 || !strings.Contains(a.Stderr, tt.want) || !strings.Contains(a.Stderr, "tailscaled was stopped") {
				t.Errorf("a join that fails: %+v", a)
			}
			if m.Kept("pid") != "no file" || m.Kept("job") != "no file" {
				t.Error("tailscaled still runs")
			}
			if tt.frozen {
				s.thaw(t)
			}
			m.clean(t, key)
			if nodes := s.nodes(t, tt.name); len(nodes) > 0 {
				t.Errorf("without a daemon Headscale lists %+v", nodes)
			}
			m.apply(t)
			m.single(t)
		})
	}
}

// prepared makes all changes of a new host but the join, and returns that with its input.
func (m *mac) prepared(t *testing.T) (join plan.Change, key string) {
	t.Helper()
	join = m.upTo(t, func(c plan.Change) bool { return c.Input != plan.NoInput })
	return join, m.input(t, join)
}

// tries waits until the daemon tries to log in, so that it has the key.
func (m *mac) tries(t *testing.T) {
	t.Helper()
	must(t, await("login that "+m.host.Name+" tries", func() (bool, error) {
		log, err := os.ReadFile(m.Path("/var/log/tailscaled.log"))
		return bytes.Contains(log, []byte("doLogin(regen=")), err
	}))
}

// clean fails if a key is anywhere on the Mac.
func (m *mac) clean(t *testing.T, key string) {
	t.Helper()
	for path, text := range m.Files(m.Root) {
		if strings.Contains(text, strings.TrimSpace(key)) || strings.Contains(path, ".tailscale-key.") {
			t.Errorf("a key is in %s", path)
		}
	}
}
