package hosts

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/scripttest"
	"github.com/macfleet/macfleet/plan"
)

func TestEnterLeft(t *testing.T) {
	t.Parallel()
	at := time.Unix(1794000000, 0).UTC()
	for name, c := range map[string]struct {
		text string
		want plan.HostSeen
	}{
		"nothing": {"", plan.HostSeen{}},
		"all": {"pending power\npending vm_firewall\nundone step vm_firewall\nundone id 7\nundone when 1794000000\nundone why no confirmation within 60 s\n" +
			"undone exit 1\nrefused scrypt:AAAA refused 1 1794000000\nrefused scrypt:BBBB trying 2 1794000000\n",
			plan.HostSeen{Pending: []plan.StepID{"power", "vm_firewall"},
				Undone:   &plan.Undone{Step: "vm_firewall", At: at, Why: "no confirmation within 60 s", Exit: 1},
				Refusals: []plan.Refusal{{Seal: "scrypt:AAAA", Refused: true, Tries: 1, At: at}, {Seal: "scrypt:BBBB", Tries: 2, At: at}}}},
		"rubbish": {"refused\nrefused a b c d\nrefused a refused 1\nundone why\nsomething else\n\n", plan.HostSeen{Refusals: make([]plan.Refusal, 3)}},
	} {
		seen := plan.HostSeen{Facts: plan.Facts{left: inventory.Present(plan.Answer{Stdout: c.text})}}
		enterLeft(&seen)
		if len(seen.Facts) > 0 {
			t.Errorf("%s: what a refused password is known by stayed among the facts", name)
		}
		seen.Facts = nil
		if diff := cmp.Diff(c.want, seen, cmp.Comparer(func(a, b inventory.Seen[string]) bool { return true }),
			cmp.Comparer(func(a, b inventory.Seen[plan.Marker]) bool { return true }), cmp.Comparer(func(a, b inventory.Seen[plan.Claim]) bool { return true }),
			cmp.Comparer(func(a, b inventory.Seen[[]plan.Job]) bool { return true }), cmp.Comparer(func(a, b inventory.Seen[[]string]) bool { return true })); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestFileScript: a file counts as absent only where its folder is absent, or could be searched.
func TestFileScript(t *testing.T) {
	inThreeShells(t, func(t *testing.T, s shell) {
		for name, c := range map[string]struct {
			made string // in /etc/
			exit int
		}{
			"no folder":       {"other/x", 4},
			"an empty folder": {"macfleet/x", 4},
			"no folder there": {"macfleet", 1},
			"the file":        {"macfleet/host.json", 0},
		} {
			m := scripttest.New(t, s.argv, "/etc/macfleet")
			m.Put("/etc/"+c.made, "{}")
			command := own("file", plan.Login, "host.json")
			if a := m.Run(command, ""); a.Exit != c.exit || (a.Stdout == "{}") != (c.exit == 0) {
				t.Errorf("%s: %+v", name, a)
			}
		}
	})
}

// TestLeftScript finds leftovers of every kind, also where the last line has no
// end, and nothing on a host without any.
func TestLeftScript(t *testing.T) {
	inThreeShells(t, func(t *testing.T, s shell) {
		need(t, s.argv[0])
		m, home := scripttest.New(t, s.argv, "/etc/macfleet"), t.TempDir()
		run := func() string {
			t.Helper()
			a := m.Run(plan.Command{Script: DefaultPrologue + file("scripts/left.sh")}, "", "HOME="+home)
			if a.Exit != 0 {
				t.Fatalf("%+v", a)
			}
			return a.Stdout + a.Stderr
		}
		if got := run(); got != "" {
			t.Errorf("on a fresh host: %q", got)
		}
		for name, text := range map[string]string{"pending/power": "", "pending/vm_firewall": "x", "undo/undone": "step vm_firewall\nwhy a \\ b  c\nexit 1"} {
			m.Put("/etc/macfleet/"+name, text)
		}
		must(t, os.Symlink("nowhere", m.Path("/etc/macfleet/pending/a")))
		write(t, filepath.Join(home, ".macfleet/refused"), "scrypt:AAAA refused 1 1794000000\n", 0o600)
		want := "pending power\npending vm_firewall\nundone step vm_firewall\nundone why a \\ b  c\nundone exit 1\nrefused scrypt:AAAA refused 1 1794000000\n"
		if got := run(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}
