package engine_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/macfleet/macfleet/hosts"
	"github.com/macfleet/macfleet/plan"
)

// TestFailureStaysOnItsHost breaks one host between the plan and the apply.
func TestFailureStaysOnItsHost(t *testing.T) {
	t.Parallel()
	w, _ := world(t, 5)
	e := run(t, w, config("production", 3))
	p := planned(t, e)
	broken := p.Hosts[1]
	names := filepath.Join(root(t, w, broken.Server.ID), "Library/Preferences/SystemConfiguration/preferences.plist")
	good, err := os.ReadFile(names)
	must(t, err)
	must(t, os.WriteFile(names, []byte("rubbish"), 0o644))
	r := performed(t, e, p)
	if len(r.Failures) != 1 || r.Failures[0].Action.Host != broken.Name || r.Failures[0].Action.Step != "hostname" {
		t.Fatalf("failures: %+v", r.Failures)
	}
	if s := r.After.Summarise(); s.Converged != 2 {
		t.Errorf("summary %+v", s)
	}
	must(t, os.WriteFile(names, good, 0o644))
	converges(t, e)
}

// TestLostVerificationStaysOnItsHost cannot reach the host whose verification is lost: another
// host is repaired anyway.
func TestLostVerificationStaysOnItsHost(t *testing.T) {
	t.Parallel()
	w, e := converged(t, 4, config("production", 2))
	p := planned(t, e)
	lost, drifted := p.Hosts[0].Name, p.Hosts[1].Name
	edit(t, filepath.Join(root(t, w, lost), "etc/macfleet/host.json"), `"power": {`, `"of another version": {`)
	inject(t, w, drifted, "sleep-enabled")
	p = planned(t, e)
	inject(t, w, lost, "unreachable")
	r := performed(t, e, p)
	if len(r.Failures) != 1 || r.Failures[0].Action.Host != lost || r.Done != 1 {
		t.Errorf("done %d, failures %+v", r.Done, r.Failures)
	}
}

// TestPinsCannotBeKept finds out before the first change.
func TestPinsCannotBeKept(t *testing.T) {
	t.Parallel()
	w, _ := world(t, 4)
	e := run(t, w, config("production", 1))
	p := planned(t, e)
	before := names(t, w)
	blocked := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(blocked, nil, 0o644))
	e.Pins = hosts.KnownHosts{Path: filepath.Join(blocked, "known_hosts")}
	if _, err := applying(t, t.Context(), e, p); err == nil || !strings.Contains(err.Error(), "pinned host keys") {
		t.Errorf("error %v", err)
	}
	if after := names(t, w); !slices.Equal(before, after) {
		t.Errorf("servers were renamed: %v", after)
	}
}

func TestOtherCluster(t *testing.T) {
	t.Parallel()
	w, _ := world(t, 3)
	c := config("production", 1)
	c.ClusterUID = "0b1f4c52-6a0e-4d0b-9a55-3f1f5d2c7e11"
	_, err := run(t, w, c).Plan(t.Context())
	if err == nil || !strings.Contains(err.Error(), plan.CodeOtherCluster.String()) {
		t.Errorf("error %v", err)
	}
}

// edit changes a JSON file of a world as a person would.
func edit(t *testing.T, path, from, to string) {
	t.Helper()
	text, err := os.ReadFile(path)
	must(t, err)
	if !strings.Contains(string(text), from) {
		t.Fatalf("%s lacks %q:\n%s", path, from, text)
	}
	must(t, os.WriteFile(path, []byte(strings.Replace(string(text), from, to, 1)), 0o644))
}

// TestLostProof takes a step's verification out of the marker, as a run that is killed
// between a change and its verification leaves it. An apply without changes enters it
// again, and a later edit is drift and not pending configuration.
func TestLostProof(t *testing.T) {
	t.Parallel()
	w, e := converged(t, 4, config("production", 1))
	host := planned(t, e).Hosts[0].Name
	edit(t, filepath.Join(root(t, w, host), "etc/macfleet/host.json"), `"power": {`, `"of another version": {`)
	converges(t, e)
	inject(t, w, host, "sleep-enabled")
	p := planned(t, e)
	if s := p.Summarise(); s.Drift != 1 || s.Pending != 0 {
		t.Errorf("summary %+v", s)
	}
}
