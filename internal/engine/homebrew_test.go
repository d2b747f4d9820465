package engine_test

import (
	"strings"
	"testing"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/internal/sandbox"
	"github.com/macfleet/macfleet/internal/sandbox/mac"
)

// runs runs a script on a Mac and returns its output.
func runs(t *testing.T, m *mac.Machine, user, script string) string {
	t.Helper()
	r, err := m.Run(t.Context(), user, script)
	must(t, err)
	if r.Exit != 0 {
		t.Fatalf("%s: exit code %d: %s%s", script, r.Exit, r.Stdout, r.Stderr)
	}
	return strings.TrimSpace(string(r.Stdout))
}

// TestHomebrew: on hosts with Homebrew 5, with Homebrew 6, and with none, one apply installs, trusts and pins the formulae, Xcode stays
// selected, and the next one changes nothing, also after a job ran brew upgrade.
func TestHomebrew(t *testing.T) {
	t.Parallel()
	c := hostCore("production", 3)
	w, e := converged(t, 6, c)
	for i, version := range []string{"5.0.3", "6.0.18"} {
		m := macOf(t, w, planned(t, e).Hosts[i].Server.ID)
		runs(t, m, "root", "xcodebuild -license accept")
		installer := string(sandbox.Sample("https://acme.dev/homebrew-" + version + ".sh"))
		runs(t, m, "m1", "cat >/tmp/install.sh <<'INSTALLER'\n"+installer+"INSTALLER\nNONINTERACTIVE=1 /bin/bash /tmp/install.sh && /opt/homebrew/bin/brew install git-lfs hashicorp/tap/packer && rm -rf ~/.homebrew /tmp/install.sh")
		if got := runs(t, m, "m1", "xcode-select -p"); got != "/Library/Developer/CommandLineTools" {
			t.Fatalf("the installer selected %q", got)
		}
	}
	c.Fleets[0].Groups[0].Spec.BuildTools = &fleet.BuildTools{Homebrew: sample("homebrew", "6.0.18", "homebrew-6.0.18.sh"), Formulae: []string{"git-lfs", "hashicorp/tap/packer"}}
	c.Fleets[0].Groups[0].Spec = c.Fleets[0].Groups[0].Spec.WithDefaults()
	e = run(t, w, c)
	converges(t, e)
	for _, h := range planned(t, e).Hosts {
		m := macOf(t, w, h.Server.ID)
		if got := runs(t, m, "m1", "xcode-select -p"); got != "/Applications/Xcode.app/Contents/Developer" {
			t.Errorf("%s has %q selected", h.Name, got)
		}
		const pinned = "git-lfs\npacker"
		if got := runs(t, m, "m1", "/opt/homebrew/bin/brew upgrade >/dev/null; ls /opt/homebrew/var/homebrew/pinned"); got != pinned {
			t.Errorf("%s has %q pinned", h.Name, got)
		}
		if got := runs(t, m, "m1", "/opt/homebrew/bin/packer"); got != "packer 1.15.4" {
			t.Errorf("%s has %q", h.Name, got)
		}
	}
	if r := apply(t, e); !r.Converged() || r.Done > 0 {
		t.Errorf("the next apply did %d actions: %+v", r.Done, r.After.Summarise())
	}
}
