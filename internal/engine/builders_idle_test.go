package engine_test

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/hosts"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/sandbox"
	"github.com/macfleet/macfleet/internal/sandbox/github"
	"github.com/macfleet/macfleet/plan"
)

// needIdle are changes of a configuration for which a builder must be idle.
var needIdle = map[string]func(*fleet.Config){
	"release": func(c *fleet.Config) { c.Fleets[0].Groups[0].Replicas = 0 },
	"tart": func(c *fleet.Config) {
		c.Fleets[0].Groups[0].Spec.Tart = &fleet.Tart{Artifact: sample("tart", "2.33.0", "tart-2.33.0.tar.gz")}
	},
	"removal": func(c *fleet.Config) { c.Fleets[0].Groups[0].Spec.GithubRunner = nil },
}

// bakery are two fleets of one organization: a builder, and no host. Without the second one, a removed block would leave a run
// without credentials.
func bakery() *fleet.Config {
	c := builders(1)
	c.Fleets[0].Groups[0].Spec.Tart = &fleet.Tart{Artifact: sample("tart", "2.32.1", "tart-2.32.1.tar.gz")}
	more := builders(0).Fleets[0]
	more.Name = "more"
	c.Fleets = append(c.Fleets, more)
	return c
}

// installs makes a world's provider reinstall in no time, and returns an engine that may erase servers.
func installs(t *testing.T, w *sandbox.World, e *engine.Engine) *engine.Engine {
	t.Helper()
	must(t, os.WriteFile(filepath.Join(folderOf(t, w), "scaleway", "settings.json"), []byte(`{"reinstall": "1ms"}`), 0o600))
	e.FleetKeys = []plan.FleetKey{hosts.FleetKey(fleetKey(t, w))}
	e.Install = engine.Install{Within: time.Minute, Every: 5 * time.Millisecond}
	return e
}

// edit changes the builder's entry at GitHub.
func (b builder) edit(t *testing.T, change func(*github.Runner)) {
	t.Helper()
	for _, r := range b.entries(t) {
		if _, err := b.GitHub().Edit(r.ID, change); err != nil {
			t.Fatal(err)
		}
	}
}

// away lets GitHub fail, or not any more.
func (b builder) away(t *testing.T, away bool) {
	t.Helper()
	var all []github.Fault
	if away {
		all = []github.Fault{{Requests: 1 << 20, Answer: "501"}} // which is not sent again
	}
	must(t, b.GitHub().SetFaults(all...))
}

// untouched finds the job running on the builder's one process, its entry at GitHub, and its programs on the disk.
func (b builder) untouched(t *testing.T, job string, pid int) {
	t.Helper()
	state, err := b.machine.Runner()
	if err != nil || state.Job != job || state.PID != pid || state.Installed == "" {
		t.Errorf("%s runs no more: %+v, %v", job, state, err)
	}
	if all := b.entries(t); len(all) != 1 || all[0].ID != state.ID {
		t.Errorf("GitHub has %+v", all)
	}
	if said, err := b.machine.Run(t.Context(), "root", "/usr/local/bin/tart --version"); err != nil || strings.TrimSpace(string(said.Stdout)) != "2.32.1" {
		t.Errorf("tart is %s, %v", said.Stdout, err)
	}
}

// TestBuilderWaits: whatever needs an idle builder waits for its job, whatever GitHub says, and for another that starts in
// between. Nothing is stopped, deleted or erased. Then the run continues.
func TestBuilderWaits(t *testing.T) {
	t.Parallel()
	says := map[string]func(*testing.T, builder){
		"busy":    func(*testing.T, builder) {},
		"idle":    func(t *testing.T, b builder) { b.edit(t, func(r *github.Runner) { r.Busy = "no" }) },
		"offline": func(t *testing.T, b builder) { b.edit(t, func(r *github.Runner) { r.Status = "offline" }) },
		"nothing": func(t *testing.T, b builder) { b.away(t, true) },
	}
	changes, answers := slices.Sorted(maps.Keys(needIdle)), slices.Sorted(maps.Keys(says))
	for _, row := range rows(t, len(changes), len(answers), 2) {
		change, answer, group := changes[row[0]], answers[row[1]], row[2] == 1
		name := change + ", GitHub says " + answer
		if group {
			name += ", with a fence group"
		}
		parallel(t, name, func(t *testing.T) {
			builderWaits(t, change, needIdle[change], answer, says[answer], group)
		})
	}
}

func builderWaits(t *testing.T, change string, configure func(*fleet.Config), answer string, disturb func(*testing.T, builder), group bool) {
	c := bakery()
	if group {
		fenced(c)
	}
	w, _ := converged(t, 3, c)
	b := builderOf(t, w, member(t, w))
	if _, err := w.RunJob("acme/images", "bake", bakeLabel); err != nil {
		t.Fatal(err)
	}
	state, err := b.machine.Runner()
	must(t, err)
	if answer != "nothing" {
		disturb(t, b)
	}
	configure(c)
	e := installs(t, w, runBuilders(t, w, c))
	var said []string
	late := false
	e.Emit = func(ev engine.Event) {
		if ev.Type != engine.Idling || !strings.Contains(ev.Text, "idle") && !strings.Contains(ev.Text, "unknown whether") {
			return
		}
		said = append(said, ev.Text)
		now, err := b.machine.Runner()
		if err != nil {
			t.Error(err)
			return
		}
		switch {
		case len(said) == 1: // the first job
			b.untouched(t, "bake", state.PID)
			if _, err := w.RunJob("acme/images", "another", bakeLabel); !errors.Is(err, sandbox.ErrWaits) {
				t.Errorf("a fenced builder gets a job: %v", err)
			}
			disturb(t, b)
			err = b.machine.FinishWork()
		case strings.Contains(ev.Text, "unknown whether"):
			b.away(t, false)
		case now.Job != "": // the second one
			b.untouched(t, "late", state.PID)
			err = b.machine.FinishWork()
		case !late && answer != "offline": // GitHub gives an offline runner no job
			late = true
			if _, err = w.RunJob("acme/images", "late", "self-hosted"); group && change != "removal" && errors.Is(err, sandbox.ErrWaits) {
				err = nil
			}
		}
		if err != nil {
			t.Error(err)
		}
	}
	r := apply(t, e)
	if !r.Converged() {
		t.Errorf("failures %v, left %+v, of the host %q, fenced %v", r.Failures, r.After.Summarise(), codesOf(r.After, r.After.Hosts[0].Name), r.LeftFenced)
	}
	b.away(t, false)
	all, jobs := strings.Join(said, "\n"), 2
	if answer == "offline" || group && change != "removal" {
		jobs = 1
	}
	if strings.Count(all, "a job of a GitHub runner") != jobs || strings.Contains(all, "unknown whether") != (answer == "nothing") {
		t.Errorf("it waits, want for %d jobs:\n%s", jobs, all)
	}
	switch change {
	case "release":
		if len(members(t, w)) > 0 || len(b.entries(t)) > 0 {
			t.Errorf("the pool has %q, GitHub %+v", names(t, w), b.entries(t))
		}
	case "removal":
		b.clean(t, 0)
		if _, err := b.machine.Runner(); err == nil || len(b.entries(t)) > 0 {
			t.Errorf("the runner: %v, GitHub has %+v", err, b.entries(t))
		}
	default:
		b.edit(t, func(r *github.Runner) { r.Busy = "" })
		b.takesJobs(t)
	}
}
