package realtailnet

import (
	"maps"
	"strings"
	"testing"

	"github.com/macfleet/macfleet/plan"
)

// TestRoll rolls the real daemon as over its own connection: the step's undo brings back the former one, which keeps its device; a
// daemon that ends at once is replaced at once; a confirmed roll leaves nothing behind.
func TestRoll(t *testing.T) {
	t.Parallel()
	m := server(t).mac(t, "rolled-1")
	m.apply(t)
	id := m.id(t)
	m.path = "tailscale"
	former := m.host.Spec.Tailscale.Artifact
	before := m.programs()

	m.host.Spec.Tailscale.Artifact = m.artifact(t, "# another one")
	start := m.rolls(t)
	m.awaitState(t, "Running")
	if maps.Equal(before, m.programs()) {
		t.Error("the roll changed nothing")
	}
	if a := m.Run(m.here(*start.Guard.Restore), ""); a.Exit != 0 {
		t.Fatalf("the undo: %+v", a)
	}
	m.isBack(t, id, before)

	m.host.Spec.Tailscale.Artifact = m.artifact(t, "sleep 2; exit 1")
	start = m.rollsUpTo(t)
	start.Command.Script = strings.NewReplacer("settled 15", "settled 2", "settled 12", "settled 2").Replace(start.Command.Script) // less patience
	if a := m.perform(t, start); a.Exit != 70 || !strings.Contains(a.Stderr, "the former version runs again") {
		t.Errorf("a daemon that ends: %+v", a)
	}
	m.isBack(t, id, before)

	m.host.Spec.Tailscale.Artifact = former
	m.settled(t)
	if f := m.look(t); len(f.Changes) > 0 {
		t.Errorf("after the undo there is\n%s", changes(f))
	}
	m.host.Spec.Tailscale.Artifact = m.artifact(t, "# another one")
	start = m.rolls(t)
	if a := m.Run(m.here(start.Guard.Persist), ""); a.Exit != 0 {
		t.Fatalf("the confirmation: %+v", a)
	}
	m.converged(t)
	m.single(t)
	if m.id(t) != id {
		t.Errorf("the device %s became %s", id, m.id(t))
	}
	for path := range m.Files(m.Path("/usr/local/lib/macfleet")) {
		if strings.Contains(path, "before") {
			t.Errorf("there is still %s", path)
		}
	}
}

// rollsUpTo makes the changes before the guarded one, and returns that.
func (m *mac) rollsUpTo(t *testing.T) plan.Change {
	t.Helper()
	return m.upTo(t, func(c plan.Change) bool { return c.Guard != nil })
}

// rolls makes all changes of a roll, and returns the guarded one, which is not confirmed.
func (m *mac) rolls(t *testing.T) plan.Change {
	t.Helper()
	c := m.rollsUpTo(t)
	if a := m.perform(t, c); a.Exit != 0 {
		t.Fatalf("the roll: %+v\n%s", a, tail([]byte(m.Read("/var/log/tailscaled.log")), 20))
	}
	return c
}

// programs are the installed files that a roll changes.
func (m *mac) programs() map[string]string {
	out := make(map[string]string)
	for _, path := range []string{"/usr/local/bin/tailscale", "/usr/local/bin/tailscaled", "/usr/local/lib/macfleet/tailscale.receipt",
		"/usr/local/lib/macfleet/tailscale.job", "/Library/LaunchDaemons/com.tailscale.tailscaled.plist"} {
		out[path] = m.Read(path)
	}
	return out
}

// isBack fails unless the former daemon runs, with its device.
func (m *mac) isBack(t *testing.T, id string, before map[string]string) {
	t.Helper()
	m.awaitState(t, "Running")
	for path, text := range before {
		if m.Read(path) != text {
			t.Errorf("%s is not the former one", path)
		}
	}
	if m.id(t) != id {
		t.Errorf("the device %s became %s", id, m.id(t))
	}
}
