package sandbox_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	applesilicon "github.com/scaleway/scaleway-sdk-go/api/applesilicon/v1alpha1"

	"github.com/macfleet/macfleet/internal/sandbox"
	"github.com/macfleet/macfleet/internal/sandbox/github"
	"github.com/macfleet/macfleet/internal/sandbox/mac"
)

// TestRunnerLives follows a runner from its registration to its removal.
func TestRunnerLives(t *testing.T) {
	t.Parallel()
	b := newBuilder(t, "2.337.0")
	equal(t, strings.TrimSpace(b.sh(runnerRoot+"/bin/Runner.Listener --version", 0)), "2.337.0", "the version")
	has(t, b.config(0, "--labels xcode,MacOS"), "√ Settings Saved", "config.sh printed")
	b.expect("offline", false)
	b.start("")
	b.log("Listening for Jobs")
	b.expect("online", false)
	if r := b.one(); r.Version != "2.337.0" || len(r.Labels) != 4 || r.Labels[3].Name != "xcode" {
		t.Errorf("the entry: %+v", r)
	}
	if left := b.sh("ls -A "+runnerRoot+"/_diag", 0); !strings.HasPrefix(left, "Runner_") {
		t.Errorf("_diag has %q", left)
	}
	if _, err := b.world.RunJob("acme/app", "build", "self-hosted", "Xcode"); err != nil {
		t.Fatal(err)
	}
	b.expect("online", true)
	b.log("Running job: build")
	b.sh("pgrep -f '"+runnerRoot+"/bin/Runner.Worker spawnclient'", 0)
	b.github.ask(fmt.Sprintf("DELETE /orgs/acme/actions/runners/%d", b.one().ID), "", 422, nil)
	must(t, b.world.FinishJob(b.id))
	b.sh("pgrep -f Runner.Worker", 1)
	b.log("Job build completed with result: Succeeded")
	b.sh("launchctl bootout "+runnerJob, 0)
	b.expect("offline", false)
	b.sh("cd "+runnerRoot+" && ./config.sh remove --token "+b.token("remove"), 0)
	if all := b.entries(); len(all) != 0 {
		t.Errorf("after the removal: %+v", all)
	}
	if left := b.sh("ls -A "+runnerRoot, 0); strings.Contains(left, ".runner\n") || strings.Contains(left, ".credentials") {
		t.Errorf("after the removal the folder has %s", left)
	}
}

// TestConfigRefuses checks what config.sh refuses, each with its only exit code.
func TestConfigRefuses(t *testing.T) {
	t.Parallel()
	b := newBuilder(t, "2.337.0")
	must(t, b.world.GitHub().Put(github.Runner{ID: 7, Scope: "acme", Name: "taken", Group: 1, Client: "other", Created: time.Now()}))
	root := "cd " + runnerRoot + " && "
	refused := func(command, says string) {
		t.Helper()
		has(t, b.sh(root+command, 1), says, command, "printed")
	}
	const config = "./config.sh --unattended --url https://github.com/acme "
	refused(config+"--token wrong", "NotFound")
	refused(config+"--token "+b.token("remove"), "NotFound")
	refused("./config.sh --unattended --url https://github.com/acme/app --token "+b.token("registration"), "NotFound")
	refused(config+"--name taken --token "+b.token("registration"), "A runner exists with the same name")
	refused(config+"--runnergroup fence --token "+b.token("registration"), `Could not find any self-hosted runner group named "fence"`)
	b.sh(root+"ACTIONS_RUNNER_INPUT_UNATTENDED=1 ./config.sh --url https://github.com/acme --token x", 64) // only the word true counts
	refused("./config.sh --unattended", "Invalid configuration provided for url")
	if all := b.entries(); len(all) != 1 {
		t.Errorf("a refusal made an entry: %+v", all)
	}
	if result, err := b.machine.Run(t.Context(), "root", root+config+"--token x"); err != nil || result.Exit != 1 || !strings.Contains(string(result.Stdout), "Must not run with sudo") {
		t.Errorf("as root: %+v (%v)", result, err)
	}
	has(t, b.config(0, "--fancy"), "Unrecognized command-line input arguments: 'fancy'", "an unknown argument")
	refused(config+"--token x", "already configured")
	old := newBuilder(t, "2.334.0")
	has(t, old.config(1, ""), "can no longer register", "an old version")
}

// TestRunnerFiles checks the form of the files and the half states that a killed config.sh leaves, each of which a new
// registration that replaces the entry repairs.
func TestRunnerFiles(t *testing.T) {
	t.Parallel()
	b := newBuilder(t, "2.337.0")
	states := [][]string{}
	for n := 0; n < 40; n++ {
		b.sh("cd "+runnerRoot+" && rm -f .env .runner .credentials svc.sh .credentials_rsaparams", 0)
		for _, r := range b.entries() {
			b.github.ask(fmt.Sprintf("DELETE /orgs/acme/actions/runners/%d", r.ID), "", 204, nil)
		}
		b.machine.InterruptAfter(n, mac.Killed)
		_, _, err := exec(t.Context(), b.world, signer(t, b.world), host(t, b.world, b.id).Address, "cd "+runnerRoot+" && ./config.sh --unattended --url https://github.com/acme --name builder-1 --token "+b.token("registration"))
		if !b.machine.Interrupted() {
			must(t, err)
			break
		}
		var state []string
		for name := range strings.SplitSeq(b.sh("ls -A "+runnerRoot, 0), "\n") {
			if strings.HasPrefix(name, ".credentials") || name == ".runner" || name == "svc.sh" {
				state = append(state, name)
			}
		}
		if len(b.entries()) > 0 {
			state = append(state, "entry")
		}
		if len(states) == 0 || !slices.Equal(states[len(states)-1], state) {
			states = append(states, state)
		}
	}
	want := [][]string{nil, {".credentials_rsaparams"}, {".credentials_rsaparams", "entry"}, {".credentials", ".credentials_rsaparams", "entry"},
		{".credentials", ".credentials_rsaparams", ".runner", "entry"}}
	equal(t, fmt.Sprint(states), fmt.Sprint(want))
	id := b.one().ID
	b.sh("cd "+runnerRoot+" && rm -f .runner .credentials svc.sh", 0)
	b.config(1, "")
	b.config(0, "--replace")
	data, err := os.ReadFile(filepath.Join(b.dir, "macs", b.id, "root", runnerRoot, ".runner"))
	must(t, err)
	var settings struct {
		ID  int64  `json:"agentId"`
		URL string `json:"gitHubUrl"`
	}
	rest, hasMark := strings.CutPrefix(string(data), "\ufeff")
	if err := json.Unmarshal([]byte(rest), &settings); err != nil || !hasMark || settings.ID != id || settings.URL != "https://github.com/acme" {
		t.Errorf(".runner: %s (%v)", data, err)
	}
	equal(t, b.sh("stat -f %Lp "+runnerRoot+"/.credentials_rsaparams "+runnerRoot+"/.credentials", 0), "600\n644\n", "the modes are")
}

// TestRunnerStops checks why a listener stops: for good, with exit code 0 of the job, and with the reason in its log.
func TestRunnerStops(t *testing.T) {
	t.Parallel()
	b := newBuilder(t, "2.337.0")
	b.config(0, "--disableupdate")
	b.start("")
	stopped := func(says string) {
		t.Helper()
		b.log(says)
		if !b.job("last exit code = 0") || b.job("state = running") {
			t.Errorf("%s: the job did not stop with 0: %s", says, b.sh("launchctl print "+runnerJob, 0))
		}
		b.later(time.Minute)
		if b.job("state = running") {
			t.Errorf("%s: launchd started it again", says)
		}
	}
	again := func() {
		t.Helper()
		b.sh("rm -f "+runnerLog+" && launchctl kickstart "+runnerJob, 0)
		b.settle()
	}
	edit := func(change func(*github.Runner)) {
		t.Helper()
		if found, err := b.world.GitHub().Edit(b.one().ID, change); err != nil || !found {
			t.Fatal(found, err)
		}
	}
	for _, code := range []int{0, 1, 5} {
		must(t, b.machine.EndListener(code))
		stopped("stop the service, no retry needed")
		again()
	}
	for _, code := range []int{2, 3, 4, 6} {
		must(t, b.machine.EndListener(code))
		b.expect("offline", false)
		b.later(6 * time.Second)
		b.expect("online", false)
	}
	edit(func(r *github.Runner) { r.Conflict = true })
	b.later(time.Minute)
	b.log("A session for this runner already exists.")
	b.expect("offline", false)
	b.later(2 * time.Minute)
	b.later(2 * time.Minute)
	stopped("Stop retry on SessionConflictException")
	edit(func(r *github.Runner) { r.Conflict, r.ClockOff = false, true })
	again()
	b.log("clock may be out of sync")
	b.later(31 * time.Minute)
	stopped("clock may be out of sync")
	edit(func(r *github.Runner) { r.ClockOff = false })
	ended := func(until time.Time) {
		t.Helper()
		must(t, b.world.GitHub().SetReleases(func(all []github.Release) []github.Release { all[0].RunsUntil = until; return all }))
	}
	ended(time.Now())
	again()
	stopped("Runner version v2.337.0 is deprecated and cannot receive messages.")
	ended(time.Time{})
	again()
	b.expect("online", false)
	must(t, b.world.GitHub().Delete(b.one().ID))
	b.later(time.Minute)
	stopped("The runner registration has been deleted from the server, please re-configure")
	again()
	stopped("Failed to create a session. The runner registration has been deleted")
	b.sh("cd "+runnerRoot+" && ./config.sh remove --local", 0)
	again()
	stopped("Not configured. Run config.(sh/cmd) to configure the runner.")
}

// TestSessionLeft checks that a listener that launchd kills leaves its session for four minutes, and that a longer
// ExitTimeOut prevents it.
func TestSessionLeft(t *testing.T) {
	t.Parallel()
	for keys, want := range map[string]string{"": "offline", "<key>ExitTimeOut</key><integer>60</integer>": "online"} {
		b := newBuilder(t, "2.337.0")
		b.config(0, "--disableupdate")
		b.start(keys)
		b.sh("launchctl kickstart -k "+runnerJob, 0)
		b.settle()
		b.expect(want, false)
		b.later(3*time.Minute + 30*time.Second)
		b.later(31 * time.Second)
		b.expect("online", false)
	}
}

// TestSelfUpdate checks that a listener updates itself by links to folders of the version, and that a broken update is
// noticed only at the next start.
func TestSelfUpdate(t *testing.T) {
	t.Parallel()
	b := newBuilder(t, "2.336.0")
	b.config(0, "")
	b.start("")
	if r := b.one(); r.Version != "2.336.0" {
		t.Fatalf("the entry: %+v", r)
	}
	b.later(2 * time.Minute)
	b.later(10 * time.Second)
	if r := b.one(); r.Version != "2.337.0" || r.Status != "online" {
		t.Errorf("after the update: %+v", r)
	}
	if to := b.sh("readlink "+runnerRoot+"/bin && ls -d "+runnerRoot+"/bin.2.336.0", 0); to != runnerRoot+"/bin.2.337.0\n"+runnerRoot+"/bin.2.336.0\n" {
		t.Errorf("bin is a link to %q", to)
	}
	must(t, b.machine.UpdateRunner(t.Context(), "2.337.0", true))
	b.expect("online", false)
	b.sh("test -f "+runnerRoot+"/runsvc.sh && test ! -s "+runnerRoot+"/runsvc.sh && launchctl kickstart -k "+runnerJob, 0)
	b.settle()
	b.expect("offline", false)
	if !b.job("78") {
		t.Errorf("the job: %s", b.sh("launchctl print "+runnerJob, 0))
	}
}

// TestJobsFindRunners checks which jobs a runner gets: custom labels do not fence it, a group without repositories does,
// and the labels of a replaced entry still count.
func TestJobsFindRunners(t *testing.T) {
	t.Parallel()
	b := newBuilder(t, "2.337.0")
	b.config(0, "--labels old")
	b.sh("cd "+runnerRoot+" && ./config.sh remove --local", 0)
	b.config(0, "--labels xcode --replace")
	b.start("")
	if err := b.world.GitHub().Set(func(s *github.Settings) {
		s.Groups = []github.Group{{ID: 1, Name: "Default", Visibility: "all"}, {ID: 5, Name: "fence", Visibility: "selected"}, {ID: 6, Name: "app", Visibility: "selected", Repositories: []string{"app"}}}
	}); err != nil {
		t.Fatal(err)
	}
	path := fmt.Sprintf("/orgs/acme/actions/runners/%d", b.one().ID)
	gets := func(want bool, repository string, labels ...string) {
		t.Helper()
		_, err := b.world.RunJob(repository, "build", labels...)
		if want != (err == nil) || err != nil && !errors.Is(err, sandbox.ErrWaits) {
			t.Errorf("%s with %q: %v", repository, labels, err)
		}
		must(t, b.world.FinishJob(b.id))
	}
	gets(true, "acme/app", "self-hosted", "macos", "XCODE")
	gets(true, "acme/app", "old")
	gets(false, "acme/app", "linux")
	gets(false, "globex/app", "xcode")
	b.github.ask("DELETE "+path+"/labels", "", 200, nil)
	gets(false, "acme/app", "xcode")
	gets(true, "acme/app", "self-hosted", "macOS")
	group := func(id int) {
		t.Helper()
		b.github.ask(fmt.Sprintf("PUT /orgs/acme/actions/runner-groups/%d/runners/%d", id, b.one().ID), "", 204, nil)
	}
	group(5)
	gets(false, "acme/app", "self-hosted")
	group(6)
	gets(true, "acme/app", "self-hosted")
	gets(false, "acme/web", "self-hosted")
	if _, err := b.world.RunJob("acme/app", "first"); err != nil {
		t.Fatal(err)
	}
	if _, err := b.world.RunJob("acme/app", "second"); !errors.Is(err, sandbox.ErrWaits) {
		t.Errorf("a busy runner got a second job: %v", err)
	}
}

// TestRunnerAfterRestarts checks that a runner is offline without a session at the screen, and after a
// reinstallation.
func TestRunnerAfterRestarts(t *testing.T) {
	t.Parallel()
	b := running(t)
	if _, err := b.machine.Run(t.Context(), "root", "shutdown -r now"); err != nil {
		t.Fatal(err)
	}
	b.expect("offline", false)
	b.later(2 * time.Minute)
	b.expect("offline", false)
	must(t, b.machine.LogIn())
	b.settle()
	b.expect("online", false)
	if _, err := scaleway(t, b.world).ReinstallServer(&applesilicon.ReinstallServerRequest{Zone: "fr-par-1", ServerID: b.id}); err != nil {
		t.Fatal(err)
	}
	b.expect("offline", false)
}

// TestMigratedFiles checks that the listener prefers refreshed files, and that they keep an old identity alive.
func TestMigratedFiles(t *testing.T) {
	t.Parallel()
	b := running(t)
	must(t, b.machine.MigrateRunner())
	b.sh("cd "+runnerRoot+" && rm .runner .credentials && launchctl kickstart -k "+runnerJob, 0)
	b.settle()
	b.expect("online", false)
	has(t, b.config(1, "--replace"), "already configured", "with .runner_migrated")
	b.sh("cd "+runnerRoot+" && rm .runner_migrated && launchctl bootout "+runnerJob, 0)
	b.config(0, "--replace")
	b.later(time.Minute)
	b.sh("launchctl bootstrap gui/501 /Users/m1/Library/LaunchAgents/runner.plist", 0)
	b.settle()
	b.log("Failed to create a session")
	b.sh("cd "+runnerRoot+" && ./config.sh remove --local && ls -A | grep -c migrated", 1)
}

// TestRunnerClosesItsSession: a runner that gets SIGTERM closes its session in time, however short ExitTimeOut is; one that is booted
// out with the default does not, and the next one finds its session.
func TestRunnerClosesItsSession(t *testing.T) {
	t.Parallel()
	for _, asked := range []bool{true, false} {
		b := newBuilder(t, "2.337.0")
		b.config(0, "")
		b.start("")
		b.expect("online", false)
		if asked {
			b.sh("launchctl kill SIGTERM "+runnerJob, 0)
			if !b.job("state = running") {
				t.Error("it ended at once")
			}
			b.later(10 * time.Second)
			if b.job("state = running") || !b.job("last exit code = 0") {
				t.Error("it did not end well")
			}
			b.sh("launchctl kill SIGTERM "+runnerJob, 3)
		}
		b.sh("launchctl bootout "+runnerJob, 0)
		b.later(10 * time.Second)
		b.sh("launchctl kill SIGTERM "+runnerJob, 113)
		b.sh("launchctl bootstrap gui/501 /Users/m1/Library/LaunchAgents/runner.plist", 0)
		b.settle()
		if state, err := b.machine.Runner(); err != nil || (state.State == 0) != asked {
			t.Errorf("asked %t: %+v, %v", asked, state, err)
		}
	}
}
