package realtailnet

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// TestStep runs the step against the real programs: it finds what happened, and repairs it.
func TestStep(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string // of the host
		cause func(t *testing.T, m *mac)
		want  string // the reasons
	}{
		{"set-1", func(t *testing.T, m *mac) { m.cli(t, "set", "--accept-dns=true") }, "tailscale-settings"},
		{"down-1", func(t *testing.T, m *mac) { m.cli(t, "down") }, "tailscale-down"},
		{"tags-1", func(t *testing.T, m *mac) {
			m.control.ask(t, nil, "nodes", "tag", "--identifier", m.id(t), "--tags", retagged)
			m.await(t, "daemon with new tags", func(s status) bool { return slices.Contains(s.Self.Tags, retagged) })
		}, "tags-edited"},
		{"renamed-1", func(t *testing.T, m *mac) {
			m.control.ask(t, nil, "nodes", "rename", "--identifier", m.id(t), "renamed-1-2") // the daemon may never learn it: see expires
		}, "device-renamed"},
		{"gone-1", func(t *testing.T, m *mac) {
			m.control.ask(t, nil, "nodes", "delete", "--identifier", m.id(t), "--force")
		}, "device-deleted"},
		{"expiry-1", func(t *testing.T, m *mac) {
			m.await(t, "expired device", m.control.expires(t, m.id(t)))
		}, "key-expired"},
		{"logout-1", func(t *testing.T, m *mac) {
			m.cli(t, "logout")
			err := await("disconnected device", func() (bool, error) { return !m.control.nodes(t, "logout-1")[0].Online, nil })
			if err != nil {
				t.Error(err)
			}
		}, "tailscale-logged-out"},
		{"stopped-1", func(t *testing.T, m *mac) {
			m.tool(t, "launchctl", "bootout", "system/com.tailscale.tailscaled")
		}, "tailscaled-stopped"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			m := server(t).mac(t, tt.name)
			if got := m.apply(t); got != "tailscale-missing tailscale-not-joined" {
				t.Errorf("a new host: %s", got)
			}
			m.single(t)
			tt.cause(t, m)
			if got := m.apply(t); got != tt.want {
				t.Errorf("reasons = %s, want %s", got, tt.want)
			}
			m.single(t)

			m.host.Spec.Tailscale = nil
			if got := m.apply(t); got != "tailscale-not-wanted" {
				t.Errorf("without the block: %s", got)
			}
			if nodes := m.control.nodes(t, tt.name); len(nodes) > 0 {
				t.Errorf("without the block Headscale lists %+v", nodes)
			}
			for path := range m.Files(m.Root) {
				if strings.Contains(strings.ToLower(path), "tailscale") {
					t.Errorf("without the block there is %s", path)
				}
			}
		})
	}
}

// await waits until the Mac's daemon says something of itself.
func (m *mac) await(t testing.TB, what string, says func(status) bool) {
	t.Helper()
	must(t, await(what+" on "+m.host.Name, func() (bool, error) {
		var s status
		out := m.cli(t, "status", "--json").out
		if out == "" { // it does not answer yet
			return false, nil
		}
		err := json.Unmarshal([]byte(out), &s)
		return says(s), err
	}))
}

// awaitState waits for a state of the Mac's daemon.
func (m *mac) awaitState(t testing.TB, state string) {
	t.Helper()
	m.await(t, state, func(s status) bool { return s.BackendState == state })
}
