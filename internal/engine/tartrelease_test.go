package engine_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/sandbox/mac"
)

// withTart gives a host that is a Node, and the Tart that is configured on it.
func withTart(t *testing.T) (*engine.Engine, string, *mac.Machine, *fleet.Tart) {
	t.Helper()
	c := nodes(1)
	w, e, host := longNode(t, c)
	e.Run = named("sam", 1) // whose cordons are opened again
	return e, host, macOf(t, w, host), c.Fleets[0].Groups[0].Spec.Tart
}

// printed is what a command prints as root.
func printed(t *testing.T, m *mac.Machine, script string) string {
	t.Helper()
	said, err := m.Run(t.Context(), "root", script)
	must(t, err)
	return string(said.Stdout)
}

// TestTartReleases: what counts of a release of Tart is that it runs and may run virtual machines. Releases up to 2.31
// have no sealed resources, so codesign finds them invalid, and they run. 2.33.0 was valid, and macOS killed it.
func TestTartReleases(t *testing.T) {
	t.Parallel()
	declares(t, 8, "each release is installed over the one before")
	e, host, m, tart := withTart(t)
	tart.Artifact = sample("tart", "2.31.0", "tart-2.31.0.tar.gz")
	converges(t, e)
	if err := m.StartVM("sample"); err != nil {
		t.Errorf("the unsealed release runs no virtual machine: %v", err)
	}
	must(t, m.RemoveVM("sample"))

	for _, tc := range []struct{ version, file, says string }{
		{"2.33.0", "tart-2.33.0-amfi.tar.gz", "failed with exit code 137, though its signature is valid; macOS rejects some releases, such as 2.33.0"},
		{"2.34.0", "tart-2.34.0-tampered.tar.gz", "failed with exit code 137, and its signature is invalid"},
		{"2.35.0", "tart-2.35.0-entitlements-none.tar.gz", "lacks the entitlement com.apple.security.virtualization"},
	} {
		tart.Artifact = sample("tart", tc.version, tc.file)
		r := apply(t, e)
		if len(r.Failures) == 0 || !strings.Contains(r.Failures[0].Err.Error(), tc.says) {
			t.Errorf("%s: %v, want %q", tc.file, r.Failures, tc.says)
		}
		if got := printed(t, m, "/usr/local/bin/tart --version; ls -A /usr/local/lib"); !strings.HasPrefix(got, "2.31.0\n") || strings.Contains(got, ".tart.") {
			t.Errorf("%s leaves\n%s", tc.file, got)
		}
	}

	// Both kinds are compared whole: what is deleted of them is seen, and what was never there is not missed.
	for _, tc := range []struct{ version, file, remove string }{
		{"2.31.0", "tart-2.31.0.tar.gz", "embedded.provisionprofile"},
		{"2.32.1", "tart-2.32.1.tar.gz", "_CodeSignature/CodeResources"},
	} {
		tart.Artifact = sample("tart", tc.version, tc.file)
		converges(t, e)
		if said := codesOf(planned(t, e), host); len(said) > 0 {
			t.Errorf("%s: it says %q", tc.version, said)
		}
		must(t, m.Remove("/usr/local/lib/tart.app/Contents/"+tc.remove))
		if said := codesOf(planned(t, e), host); !slices.Equal(said, []string{"drift tart-edited"}) {
			t.Errorf("%s without %s: it says %q", tc.version, tc.remove, said)
		}
		converges(t, e)
	}
}

// TestProtectedBundle: macOS keeps a bundle that was launched. An install that is done does not fail for it: the plan
// warns of what is left. Where not even the bundle can be moved aside, the version in use continues, and the failure
// says what helps.
func TestProtectedBundle(t *testing.T) {
	t.Parallel()
	declares(t, 6, "what one install leaves is found by the next")
	e, host, m, tart := withTart(t)
	protect := func(how string) {
		t.Helper()
		must(t, m.SetSwitch("app-management", how))
		if _, err := m.Run(t.Context(), "m1", "/usr/local/bin/tart --version"); err != nil {
			t.Fatal(err)
		}
	}
	release := func(version string) *fleet.Artifact { return sample("tart", version, "tart-"+version+".tar.gz") }
	protect("removal")
	for _, version := range []string{"2.33.0", "2.34.0"} { // the second finds what the first has left
		tart.Artifact = release(version)
		converges(t, e)
		if said := codesOf(planned(t, e), host); !slices.Equal(said, []string{"warning tart-leftover"}) {
			t.Errorf("%s: it says %q", version, said)
		}
	}
	protect("all")
	tart.Artifact = release("2.35.0")
	r := apply(t, e)
	if len(r.Failures) != 1 || !strings.Contains(r.Failures[0].Err.Error(), "allow full disk access for remote users") {
		t.Errorf("failures %v", r.Failures)
	}
	if got := printed(t, m, "/usr/local/bin/tart --version"); got != "2.34.0\n" {
		t.Errorf("it runs %q", got)
	}
	// A bundle that was never launched can be moved aside, and the new one was launched when it was tried.
	must(t, errors.Join(m.SetSwitch("app-management", "off"), m.Remove("/usr/local/lib/macfleet/tart.receipt")))
	tart.Artifact = release("2.34.0")
	converges(t, e)
	tart.Artifact = release("2.35.0")
	must(t, m.SetSwitch("app-management", "all"))
	if r := apply(t, e); len(r.Failures) != 1 || !strings.Contains(r.Failures[0].Err.Error(), "does not let macfleet replace") {
		t.Errorf("failures %v", r.Failures)
	}
	if got := printed(t, m, "/usr/local/bin/tart --version"); got != "2.34.0\n" {
		t.Errorf("it runs %q", got)
	}
	protect("off")
	converges(t, e)
	if said := codesOf(planned(t, e), host); len(said) > 0 {
		t.Errorf("with full disk access it says %q", said)
	}
}
