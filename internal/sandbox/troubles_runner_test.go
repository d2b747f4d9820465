package sandbox_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/macfleet/macfleet/internal/sandbox"
)

// running returns a builder whose runner is online.
func running(t testing.TB) *builder {
	t.Helper()
	b := newBuilder(t, "2.337.0")
	b.config(0, "--labels xcode")
	b.start("<key>ExitTimeOut</key><integer>60</integer>")
	b.expect("online", false)
	return b
}

// seen is what GitHub and the Mac show of a runner.
func (b *builder) seen() string {
	b.Helper()
	b.settle()
	state, err := b.machine.Runner()
	must(b, err)
	var text []string
	for _, r := range b.entries() {
		labels := r.Labels[len(r.Labels)-1].Name
		text = append(text, fmt.Sprintf("%d %s %s busy=%v %s %s", r.ID, r.Name, r.Status, r.Busy, r.Version, labels))
	}
	job, _, err := b.machine.Job(runnerJob)
	must(b, err)
	text = append(text, fmt.Sprintf("file=%d runs=%v state=%d job=%q installed=%s", state.ID, job.PID != 0, state.State, state.Job, state.Installed))
	return strings.Join(text, "; ")
}

// TestRunnerIncidents checks what GitHub and the Mac show with each incident, that a second injection changes nothing,
// and that healing restores the state before.
func TestRunnerIncidents(t *testing.T) {
	t.Parallel()
	const before = `21 builder-1 online busy=false 2.337.0 xcode; file=21 runs=true state=0 job="" installed=2.337.0`
	for incident, want := range map[string]string{
		"runner-deregistered":       `file=21 runs=false state=0 job="" installed=2.337.0`,
		"runner-stale-registration": `1021 builder-1 offline busy=false 2.337.0 xcode; file=21 runs=false state=0 job="" installed=2.337.0`,
		"runner-offline":            `21 builder-1 offline busy=false 2.337.0 xcode; file=21 runs=true state=0 job="" installed=2.337.0`,
		"runner-below-floor":        `21 builder-1 offline busy=false 2.337.0 xcode; file=21 runs=false state=0 job="" installed=2.335.1`,
		"runner-stopped-itself":     `21 builder-1 offline busy=false 2.337.0 xcode; file=21 runs=false state=0 job="" installed=2.337.0`,
		"runner-session-conflict":   `21 builder-1 offline busy=false 2.337.0 xcode; file=21 runs=true state=2 job="" installed=2.337.0`,
		"runner-update-broken":      before,
		"busy-false-while-running":  `21 builder-1 online busy=false 2.337.0 xcode; file=21 runs=true state=0 job="build" installed=2.337.0`,
		"busy-stuck":                `21 builder-1 online busy=true 2.337.0 xcode; file=21 runs=true state=0 job="" installed=2.337.0`,
		"runner-busy":               `21 builder-1 online busy=true 2.337.0 xcode; file=21 runs=true state=0 job="build" installed=2.337.0`,
		"labels-edited":             `21 builder-1 online busy=false 2.337.0 edited-by-hand; file=21 runs=true state=0 job="" installed=2.337.0`,
	} {
		t.Run(incident, func(t *testing.T) {
			t.Parallel()
			b := running(t)
			check := func(what, want string) {
				t.Helper()
				equal(t, b.seen(), want, what)
			}
			check("before", before)
			for range 2 {
				must(t, b.world.Inject(b.id, incident))
				check("injected", want)
			}
			for range 2 {
				must(t, b.world.Heal(b.id, incident))
				check("healed", before)
			}
		})
	}
}

// TestUpdateBroken checks that the runner is dead after its next start, and works again after healing.
func TestUpdateBroken(t *testing.T) {
	t.Parallel()
	b := running(t)
	must(t, b.world.Inject(b.id, "runner-update-broken"))
	b.sh("launchctl kickstart -k "+runnerJob, 0)
	b.settle()
	b.expect("offline", false)
	must(t, b.world.Heal(b.id, ""))
	b.later(10 * time.Second)
	b.expect("online", false)
}

// TestDeletedWhileRunning checks the trap of a wrong busy: GitHub deletes a runner whose job runs.
func TestDeletedWhileRunning(t *testing.T) {
	t.Parallel()
	b := running(t)
	must(t, b.world.Inject(b.id, "busy-false-while-running"))
	b.sh("pgrep -f Runner.Worker", 0)
	b.github.ask("DELETE /orgs/acme/actions/runners/21", "", http.StatusNoContent, nil)
}

// TestGitHubIncidents checks the incidents of the App and of the releases.
func TestGitHubIncidents(t *testing.T) {
	t.Parallel()
	b := running(t)
	must(t, b.world.Inject(sandbox.GitHubAccount, "newest-version-refused"))
	b.later(time.Minute)
	b.expect("offline", false)
	b.sh("cd "+runnerRoot+" && ./config.sh remove --local", 0)
	b.config(1, "--replace")
	must(t, b.world.Heal(sandbox.GitHubAccount, ""))
	b.config(0, "--replace")
	must(t, b.world.Inject(sandbox.GitHubAccount, "app-key-revoked"))
	b.github.ask("GET /orgs/acme/actions/runners", "", http.StatusUnauthorized, nil)
	must(t, b.world.Heal("", ""))
	gitHub(t, b.world).ask("GET /orgs/acme/actions/runners", "", http.StatusOK, nil)
	if err := b.world.Inject(b.id, "app-key-revoked"); err == nil || !strings.Contains(err.Error(), "inject github app-key-revoked") {
		t.Errorf("on a host: %v", err)
	}
	if err := b.world.Inject(sandbox.GitHubAccount, "runner-offline"); err == nil {
		t.Error("an incident of a host was injected into the account")
	}
}

// TestRunnerOnTwoHosts checks that only one of two hosts with a registration has a session, and that the other stops.
func TestRunnerOnTwoHosts(t *testing.T) {
	t.Parallel()
	const incident = "runner-on-two-hosts"
	alone := running(t)
	if err := alone.world.Inject(alone.id, incident); err == nil || !strings.Contains(err.Error(), "no other host") {
		t.Errorf("with one host: %v", err)
	}
	w, dir := newWorld(t, 2)
	var pair [2]*builder
	for i, h := range hosts(t, w) {
		pair[i] = builderOn(t, w, dir, h.ID, "2.337.0")
		pair[i].config(0, fmt.Sprintf("--name builder-%d", i+1))
		pair[i].start("<key>ExitTimeOut</key><integer>60</integer>")
	}
	check := func(first, second string) {
		t.Helper()
		pair[1].settle()
		if all := pair[0].entries(); len(all) != 2 || all[0].Status != first || all[1].Status != second {
			t.Errorf("%+v, want %s and %s", all, first, second)
		}
	}
	check("online", "online")
	for range 2 {
		must(t, w.Inject(pair[1].id, incident))
		check("online", "offline")
	}
	pair[1].log("A session for this runner already exists.")
	pair[1].later(5 * time.Minute)
	if pair[1].job("state = running") {
		t.Error("the second listener did not stop")
	}
	for range 2 {
		must(t, w.Heal("", incident))
		check("online", "online")
	}
}

// TestRunnerIncidentsNeedOne checks that a host without a registered runner has none of the incidents.
func TestRunnerIncidentsNeedOne(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	if err := p.world.Inject(p.host.ID, "runner-offline"); err == nil || !strings.Contains(err.Error(), "apply a fleet with github_runner") {
		t.Errorf("without a runner: %v", err)
	}
	b := running(t)
	must(t, b.world.Inject(b.id, "runner-deregistered"))
	if err := b.world.Inject(b.id, "runner-offline"); err == nil {
		t.Error("a host without an entry has the incident")
	}
}
