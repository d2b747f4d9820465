package fleet

import (
	"strings"
	"testing"
)

func TestNearest(t *testing.T) {
	t.Parallel()
	names := []string{"group", "os", "disable", "rollout", "power", "hostname", "pool_prefix", "macos", "runners", "m2",
		"acme-prod-runners-m2-7aca1", "acme-prod-runners-m2-fba75"}
	tests := map[string]string{
		"grop": "group", "gruop": "group", "pwer": "power", "so": "os", "OS": "os", "poolprefix": "pool_prefix", "pool-prefix": "pool_prefix",
		"disabled": "disable", "host_name": "hostname", "macso": "macos", "maco": "macos", "runner": "runners", "m3": "m2",
		"tart": "", "tailnet": "", "host": "", "x": "", "": "", strings.Repeat("x", 1000): "", "auto_login": "", "github_runner": "", "builders": "",
		"acme-prod-runners-m2-7aca": "acme-prod-runners-m2-7aca1", "acme-prod-runners-m2-7aca2": "acme-prod-runners-m2-7aca1",
		"tower": "power", "towr": "", "powr": "power", "xroup": "group", "xrop": "",
		// Another machine is not a misspelling of this one.
		"acme-prod-runners-m2-zzzzz": "", "acme-prod-builders-m2-7aca1": "",
	}
	for name, want := range tests {
		if got := Nearest(name, names); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", name, got, want)
		}
	}
	if got := Nearest("runners", nil); got != "" {
		t.Errorf("Nearest among none = %q", got)
	}
}
