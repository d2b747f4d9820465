package engine_test

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/sandbox"
	"github.com/macfleet/macfleet/internal/sandbox/mac"
	"github.com/macfleet/macfleet/plan"
)

const kubeletBinary = "/usr/local/bin/tart-kubelet"

// TestPinnedProgram: launchd pins a job's program when it is loaded. So an update, a repair and a roll back of a
// kubelet that is signed ad hoc load its job again, once each, and nothing else does: not the same bytes, and not
// another version of the same team. No kubelet is killed on the way, and virtual machines run on.
func TestPinnedProgram(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, suffix string
		pin, ends    string
		drain        string // how long a kubelet takes to end
		loads        int    // of an update, a repair and a roll back
	}{
		{"ad hoc, killed, slow to end", "", "killed", "group", "20s", 1},
		{"ad hoc, 78, machines in the job's hands", "", "78", "all", "3s", 1},
		{"ad hoc, where a kickstart would do", "", "never", "group", "3s", 1},
		{"of one team", "-signed", "killed", "group", "3s", 0},
	} {
		parallel(t, tc.name, func(t *testing.T) {
			declares(t, 4, "each load of the job is counted from the one before")
			version := func(v string) *fleet.Artifact { return sample("kubelet", v, "tart-kubelet-"+v+tc.suffix) }
			c := nodes(1)
			kubelet := c.Fleets[0].Groups[0].Spec.TartKubelet
			kubelet.Artifact = version("0.4.0")
			w, e, host := longNode(t, c)
			m := macOf(t, w, host)
			for name, value := range map[string]string{"launchd-pins-program": tc.pin, "launchd-ends-with-job": tc.ends,
				"launchctl-bootstrap-of-new-file": "5", "launchd-drain-time": tc.drain} {
				must(t, m.SetSwitch(name, value))
			}
			must(t, w.RunPod(host, "default", "job-of-"+host))
			loads, runs := registrations(t, m), runsOf(t, m)
			after := func(what, version string, want int) {
				t.Helper()
				converges(t, e)
				runAll(t, w, []string{host}, version, "")
				got, ran := registrations(t, m), runsOf(t, m)
				if got-loads != want || want > 0 && ran != 1 || want == 0 && ran-runs > 1 {
					t.Errorf("%s: the job was loaded %d times, want %d, and started %d times after %d", what, got-loads, want, ran, runs)
				}
				loads, runs = got, ran
				must(t, m.Advance(10*time.Minute))
			}
			put := func(added string) {
				t.Helper()
				text, err := m.ReadFile(kubeletBinary)
				must(t, err)
				must(t, m.WriteFile(kubeletBinary, append(text, added...), 0, 0, 0o755))
			}
			kubelet.Artifact = version("0.5.0")
			after("an update", "0.5.0", tc.loads)
			put("edited\n")
			after("a repair", "0.5.0", tc.loads)
			put("")
			after("the same bytes as a new file", "0.5.0", 0)
			e.Selection.Rollback = true
			after("a roll back", "0.4.0", tc.loads)
		})
	}
}

// TestJobThatKeepsMachines: a host that an older macfleet has set up has a job that its virtual machines may end with. The
// host is drained before that job is booted out, and launchd ends no virtual machine. One that no drain ends is waited for.
func TestJobThatKeepsMachines(t *testing.T) {
	t.Parallel()
	parallel(t, "of a Pod", func(t *testing.T) {
		w, e, host, m := olderJob(t)
		must(t, w.RunPod(host, "default", "job-of-"+host))
		if p := planned(t, e); len(p.Actions) != 1 || p.Actions[0].Disruption != plan.Drain || !p.Actions[0].Drains || p.Actions[0].Evicts != 1 {
			t.Errorf("it would do %+v", p.Actions)
		}
		var l log
		e.Emit = l.emit
		if r := apply(t, e); !r.Converged() {
			t.Errorf("failures %+v, left %q", r.Failures, codesOf(r.After, host))
		}
		if !slices.ContainsFunc(l.events, func(ev engine.Event) bool { return ev.Type == engine.Evicting }) {
			t.Error("the Pod was not evicted")
		}
		if text, err := m.ReadFile(kubeletList); err != nil || !strings.Contains(string(text), abandons) {
			t.Errorf("%v: %s", err, text)
		}
	})
	parallel(t, "of no one", func(t *testing.T) {
		_, e, host, m := olderJob(t)
		must(t, m.StartVM("bake"))
		if said := codesOf(planned(t, e), host); !slices.Contains(said, "refused waits-for-idle") {
			t.Errorf("it says %q", said)
		}
		r := apply(t, e)
		if vms, err := m.VMs(); err != nil || len(vms) != 1 || !vms[0].Running || r.Done > 0 {
			t.Errorf("%+v, %v; done %d", vms, err, r.Done)
		}
	})
}

// The kubelet's property list, and what that of an older macfleet lacks.
const (
	kubeletList = "/Library/LaunchDaemons/dev.macfleet.tart-kubelet.plist"
	abandons    = "\t<key>AbandonProcessGroup</key>\n\t<true/>\n"
)

// olderJob gives a host whose kubelet runs from the job of an older macfleet, and has just looked for virtual machines to
// delete. A drain that does not end fails after seconds.
func olderJob(t *testing.T) (*sandbox.World, *engine.Engine, string, *mac.Machine) {
	t.Helper()
	w, e, host := longNode(t, nodes(1))
	e.Drain.Within = 20 * time.Second
	m := macOf(t, w, host)
	text, err := m.ReadFile(kubeletList)
	older := regexp.MustCompile(`,(node\.kubernetes|topology)[^,<]*`).ReplaceAllString(strings.Replace(string(text), abandons, "", 1), "")
	if err != nil || strings.Contains(older, "Abandon") || strings.Contains(older, "topology") {
		t.Fatalf("%v: %s", err, older)
	}
	must(t, errors.Join(m.SetSwitch("launchd-ends-with-job", "all"), m.WriteFile(kubeletList, []byte(older), 0, 0, 0o644),
		m.UnloadJob("system/dev.macfleet.tart-kubelet"), m.Advance(time.Minute), m.LoadJob(kubeletList), m.Settle(t.Context()),
		m.Advance(10*time.Minute), m.Settle(t.Context())))
	return w, e, host, m
}

// registrations are how often someone has loaded the kubelet's job, as macOS's list of background items counts.
func registrations(t *testing.T, m *mac.Machine) (n int) {
	t.Helper()
	said := printed(t, m, "sfltool dumpbtm")
	_, item, _ := strings.Cut(said, "Identifier: dev.macfleet.tart-kubelet")
	_, item, _ = strings.Cut(item, "Generation: ")
	if _, err := fmt.Sscan(item, &n); err != nil {
		t.Fatalf("%v in %q", err, said)
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
