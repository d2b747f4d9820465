package engine_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/internal/sandbox/mac"
)

const kubeletBinary = "/usr/local/bin/tart-kubelet"

// TestPinnedProgram: launchd pins a job's program when it is loaded. So an update, a repair and a roll back of a
// kubelet that is signed ad hoc load its job anew, once each, and nothing else does: not the same bytes, and not
// another version of the same team. No kubelet is killed on the way, and virtual machines run on.
func TestPinnedProgram(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, suffix string
		pin, ends    string
		drain        string // how long a kubelet takes to end
		loads        int    // of an update, a repair and a roll back
	}{
		{"ad hoc, killed", "", "killed", "group", "3s", 1},
		{"ad hoc, 78", "", "78", "group", "3s", 1},
		{"ad hoc, where a kickstart would do", "", "never", "group", "3s", 1},
		{"ad hoc, machines in the job's hands", "", "killed", "all", "3s", 1},
		{"ad hoc, slow to end", "", "killed", "group", "20s", 1},
		{"of one team", "-signed", "killed", "group", "3s", 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			version := func(v string) *fleet.Artifact { return sample("kubelet", v, "tart-kubelet-"+v+tc.suffix) }
			c := nodes(1)
			kubelet := c.Fleets[0].Groups[0].Spec.TartKubelet
			kubelet.Artifact = version("0.4.0")
			w, e, host := longNode(t, c)
			m, err := w.Mac(host)
			if err != nil {
				t.Fatal(err)
			}
			for name, value := range map[string]string{"launchd-pins-program": tc.pin, "launchd-ends-with-job": tc.ends,
				"launchctl-bootstrap-of-new-file": "5", "launchd-drain-time": tc.drain} {
				if err := m.SetSwitch(name, value); err != nil {
					t.Fatal(err)
				}
			}
			if err := w.RunPod(host, "acme-runners", "job-of-"+host); err != nil {
				t.Fatal(err)
			}
			loads, runs := registrations(t, m), runsOf(t, m)
			after := func(what, version string, want int) {
				t.Helper()
				converges(t, e)
				runAll(t, w, []string{host}, version, "")
				switch got, ran := registrations(t, m), runsOf(t, m); {
				case got-loads != want:
					t.Errorf("%s: the job was loaded %d times, want %d", what, got-loads, want)
				case want > 0 && ran != 1, want == 0 && ran-runs > 1:
					t.Errorf("%s: it was started %d times, and %d before", what, ran, runs)
				}
				loads, runs = registrations(t, m), runsOf(t, m)
				if err := m.Advance(10 * time.Minute); err != nil {
					t.Fatal(err)
				}
			}
			text, err := m.ReadFile(kubeletBinary)
			if err != nil {
				t.Fatal(err)
			}
			put := func(text []byte) {
				t.Helper()
				if err := m.WriteFile(kubeletBinary, text, 0, 0, 0o755); err != nil {
					t.Fatal(err)
				}
			}

			kubelet.Artifact = version("0.5.0")
			after("an update", "0.5.0", tc.loads)
			put(append(text, "edited\n"...))
			after("a repair", "0.5.0", tc.loads)
			e.Selection.Rollback = true
			after("a roll back", "0.4.0", tc.loads)
			e.Selection.Rollback = false
			after("forth again", "0.5.0", tc.loads)

			same, err := m.ReadFile(kubeletBinary)
			if err != nil {
				t.Fatal(err)
			}
			put(same)
			after("the same bytes as a new file", "0.5.0", 0)
			if err := m.Reboot(t.Context()); err != nil {
				t.Fatal(err)
			}
			runs = runsOf(t, m)
		})
	}
}

// registrations are how often somebody has loaded the kubelet's job, as macOS's list of background items counts.
func registrations(t *testing.T, m *mac.Machine) (n int) {
	t.Helper()
	said, err := m.Run(t.Context(), "root", "sfltool dumpbtm")
	if err != nil {
		t.Fatal(err)
	}
	_, item, _ := strings.Cut(string(said.Stdout), "Identifier: dev.macfleet.tart-kubelet")
	_, item, _ = strings.Cut(item, "Generation: ")
	if _, err := fmt.Sscan(item, &n); err != nil {
		t.Fatalf("%v in %q", err, said.Stdout)
	}
	return n
}

// runsOf is how often launchd has started the kubelet since it was loaded.
func runsOf(t *testing.T, m *mac.Machine) int {
	t.Helper()
	job, ok, err := m.Job("system/dev.macfleet.tart-kubelet")
	if err != nil || !ok {
		t.Fatalf("the kubelet's job: loaded %t, %v", ok, err)
	}
	return job.Runs
}
