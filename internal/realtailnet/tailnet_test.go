package realtailnet

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// record is a flag: the folder into which the tests write what the real programs print.
var record = flag.String("record", "", "folder for recorded outputs")

// recorded writes what a command printed, if -record names a folder.
func (m *machine) recorded(t testing.TB, name string, args ...string) {
	t.Helper()
	if *record == "" {
		return
	}
	r := m.cli(t, args...)
	text := regexp.MustCompile(`hskey-[A-Za-z]+-[\w-]+`).ReplaceAllString(r.out, "hskey-x")
	must(t, os.WriteFile(filepath.Join(*record, name), []byte(text), 0o644))
}

// TestJoin: a host joins with a one-use key, and no second one does.
func TestJoin(t *testing.T) {
	t.Parallel()
	s := server(t)
	m := s.machine(t, "acme-1")
	m.recorded(t, "status-new.json", "status", "--json")
	m.recorded(t, "prefs-new.json", "debug", "prefs")
	key := s.key(t, fleetTag)
	if r := m.up(t, key); r.code != 0 {
		t.Fatalf("up: %+v", r)
	}
	got := m.await(t, "joined daemon", func(s status) bool { return s.BackendState == "Running" })
	m.recorded(t, "status-running.json", "status", "--json")
	m.recorded(t, "prefs-running.json", "debug", "prefs")
	m.recorded(t, "get.json", "get", "--json")
	m.recorded(t, "version.json", "version", "--json")
	if got.label() != "acme-1" || !slices.Equal(got.Self.Tags, []string{fleetTag}) {
		t.Errorf("status = %+v", got)
	}
	nodes := s.nodes(t, "acme-1")
	if len(nodes) != 1 || strconv.Itoa(nodes[0].ID) != got.Self.ID || !slices.Equal(nodes[0].Addresses, got.Self.Addresses) {
		t.Errorf("Headscale lists %+v, the daemon says %+v", nodes, got.Self)
	}
	if r := m.up(t, key); r.code != 0 {
		t.Errorf("the same again on a host that has joined: %+v", r)
	}

	other := s.machine(t, "acme-2")
	r := other.up(t, key)
	if r.code == 0 || !strings.Contains(r.errout, "authkey already used") {
		t.Errorf("with a spent key: %+v", r)
	}
	if got := other.status(t); got.BackendState == "Running" {
		t.Errorf("after a spent key: %+v", got)
	}
	if nodes := s.nodes(t, "acme-2"); len(nodes) != 0 {
		t.Errorf("a spent key made %+v", nodes)
	}
}

// TestNameTaken: a name in use is given a number, and only the DNS name shows it.
func TestNameTaken(t *testing.T) {
	t.Parallel()
	s := server(t)
	s.machine(t, "taken-1").join(t, fleetTag)
	second := s.machine(t, "taken-1")
	got := second.join(t, fleetTag)
	second.recorded(t, "status-name-taken.json", "status", "--json")
	second.recorded(t, "prefs-name-taken.json", "debug", "prefs")
	if got.label() != "taken-1-1" || got.Self.HostName != "taken-1" {
		t.Errorf("the second device is named %s, and calls itself %s", got.label(), got.Self.HostName)
	}
}

// TestRetagAndExpire: new tags reach the daemon without a command on the host. An expired node key leaves addresses behind, so addresses
// do not show that a host has joined.
func TestRetagAndExpire(t *testing.T) {
	t.Parallel()
	s := server(t)
	m := s.machine(t, "expired-1")
	id := m.join(t, fleetTag).Self.ID
	s.ask(t, nil, "nodes", "tag", "--identifier", id, "--tags", retagged)
	got := m.await(t, "device with new tags", func(s status) bool { return slices.Equal(s.Self.Tags, []string{retagged}) })
	m.recorded(t, "status-retagged.json", "status", "--json")
	m.recorded(t, "prefs-retagged.json", "debug", "prefs")
	if got.BackendState != "Running" {
		t.Errorf("retagged: %+v", got)
	}
	got = m.await(t, "expired device", s.expires(t, id))
	m.recorded(t, "status-expired.json", "status", "--json")
	m.recorded(t, "prefs-expired.json", "debug", "prefs")
	if !got.Self.Expired || !got.HaveNodeKey || len(got.Self.Addresses) == 0 {
		t.Errorf("expired: %+v", got)
	}
	if r := m.cli(t, "ip", "-4"); r.code != 0 || strings.TrimSpace(r.out) != got.Self.Addresses[0] {
		t.Errorf("tailscale ip of an expired device: %+v", r)
	}
}

// TestDeleted: a daemon does not notice that its device was deleted until it restarts, and even then it may say that it
// is running, from the netmap on its disk: only the URL for a login shows that it is a stranger.
func TestDeleted(t *testing.T) {
	t.Parallel()
	s := server(t)
	m := s.machine(t, "deleted-1")
	id := m.join(t, fleetTag).Self.ID
	s.ask(t, nil, "nodes", "delete", "--identifier", id, "--force")
	if nodes := s.nodes(t, "deleted-1"); len(nodes) != 0 {
		t.Fatalf("Headscale lists %+v", nodes)
	}
	if got := m.status(t); got.BackendState != "Running" || got.Self.ID != id {
		t.Errorf("right after the deletion: %+v", got)
	}
	m.recorded(t, "status-deleted.json", "status", "--json")
	m.recorded(t, "prefs-deleted.json", "debug", "prefs")
	m.stop()
	m.start(t)
	got := m.await(t, "daemon that must log in", func(s status) bool { return s.AuthURL != "" })
	m.recorded(t, "status-deleted-restarted.json", "status", "--json")
	m.recorded(t, "prefs-deleted-restarted.json", "debug", "prefs")
	if got.Self.Online || got.BackendState != "Running" && got.BackendState != "NeedsLogin" {
		t.Errorf("after the restart: %+v", got)
	}
	if nodes := s.nodes(t, "deleted-1"); len(nodes) > 0 {
		t.Errorf("after the restart Headscale lists %+v", nodes)
	}
}

// TestRestart: with its state a daemon is back without a key, and without it the host is a stranger.
func TestRestart(t *testing.T) {
	t.Parallel()
	s := server(t)
	m := s.machine(t, "restart-1")
	before := m.join(t, fleetTag)
	m.stop()
	m.start(t)
	after := m.await(t, "daemon that is back", func(s status) bool { return s.BackendState == "Running" })
	if after.Self.ID != before.Self.ID || !slices.Equal(after.Self.Addresses, before.Self.Addresses) {
		t.Errorf("back as %+v, was %+v", after.Self, before.Self)
	}
	m.stop()
	must(t, os.Remove(m.file("state")))
	m.start(t)
	got := m.await(t, "daemon without a state", func(s status) bool { return s.BackendState == "NeedsLogin" })
	m.recorded(t, "status-no-state.json", "status", "--json")
	m.recorded(t, "prefs-no-state.json", "debug", "prefs")
	if got.HaveNodeKey || len(got.Self.Addresses) > 0 {
		t.Errorf("without a state: %+v", got)
	}
	if nodes := s.nodes(t, "restart-1"); len(nodes) != 1 {
		t.Errorf("Headscale lists %+v", nodes)
	}
}

// TestRecorded: the recorded outputs, which tests of parsers and of the simulator use, are the states of their names.
func TestRecorded(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		state                                string
		hasKey, expired, addressed, hasLogin bool
	}{
		"new":               {state: "NeedsLogin"},
		"running":           {state: "Running", hasKey: true, addressed: true},
		"name-taken":        {state: "Running", hasKey: true, addressed: true},
		"retagged":          {state: "Running", hasKey: true, addressed: true},
		"expired":           {state: "NeedsLogin", hasKey: true, expired: true, addressed: true},
		"deleted":           {state: "Running", hasKey: true, addressed: true},
		"deleted-restarted": {state: "Running", hasKey: true, addressed: true, hasLogin: true},
		"no-state":          {state: "NeedsLogin"},
		"refused":           {state: "NeedsLogin"},
		"down":              {state: "Stopped", hasKey: true, addressed: true},
		"logout":            {state: "NeedsLogin"},
	}
	for name, want := range tests {
		var s status
		text, err := os.ReadFile("testdata/status-" + name + ".json")
		if err == nil {
			err = json.Unmarshal(text, &s)
		}
		if err != nil {
			t.Error(err)
		}
		if s.BackendState != want.state || s.HaveNodeKey != want.hasKey || s.Self.Expired != want.expired ||
			len(s.Self.Addresses) > 0 != want.addressed || s.AuthURL != "" != want.hasLogin {
			t.Errorf("%s: %+v", name, s)
		}
	}
}
