package githubrunner_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/maintest"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/steps/stepstest"
)

func TestMain(m *testing.M) { maintest.Main(m) }

const (
	step   plan.StepID = "github_runner"
	label              = "actions.runner.acme." + stepstest.Name
	root               = "/Users/m1/actions-runner"
	worker             = "812 Runner.Worker\n"
)

// scene is a builder in sync, and what is changed of it.
type scene struct {
	runner stepstest.Runner
	spec   fleet.GithubRunner
	view   plan.View
}

func newScene() *scene {
	s := &scene{runner: stepstest.SettledRunner(stepstest.Name, stepstest.RunnerPlist(stepstest.Name)), spec: *stepstest.GithubRunner()}
	s.view = stepstest.View(stepstest.Host(fleet.Spec{}), nil)
	s.view.Peers, s.view.Servers = []plan.HostPeer{{Peer: inventory.CIService, Works: true, Seen: stepstest.Service(stepstest.Name)}}, map[string]bool{stepstest.Name: true, "acme-prod-macos-m2-fffff": true}
	s.view.Taken = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	return s
}

func (s *scene) find(t *testing.T) plan.Finding {
	t.Helper()
	s.view.Host = stepstest.Host(fleet.Spec{GithubRunner: &s.spec, AutoLogin: &fleet.AutoLogin{}})
	s.view.Facts = plan.Facts{"github_runner.state/m1": inventory.Present(s.runner.Answer())}
	return stepstest.Find(t, step, s.view)
}

// agent is the entry at GitHub.
func (s *scene) agent() *inventory.Agent { return &s.view.Peers[0].Seen.Agents.Agents[0] }

// stopped lets the listener end with the code 0 after it has said something.
func (s *scene) stopped(line string) {
	s.runner.Job = stepstest.StoppedJob(label, root, "0")
	s.runner.Log += line + "\n"
	s.agent().Online = false
}

func (s *scene) settings(old, fresh string) {
	s.runner.Settings = strings.Replace(s.runner.Settings, old, fresh, 1)
}

// new is a Mac without a runner, which GitHub does not list either.
func (s *scene) new() { s.runner, s.view.Peers[0].Seen.Agents.Agents = stepstest.FactoryRunner(), nil }

// named is a runner with another name, here and at GitHub.
func (s *scene) named(name string) {
	s.settings(stepstest.Name, name)
	s.agent().Name = name
}

// groups are those of the organization: the default one, and one with a name.
func (s *scene) groups(name string, public bool) {
	s.view.Peers[0].Seen.Agents.Groups = inventory.Present([]inventory.AgentGroup{{ID: "1", Name: "Default", Default: true, Public: public}, {ID: "4", Name: name}})
}

// label gives the runner's job another label.
func (s *scene) label(text string) {
	s.runner.Label, s.runner.Job = text, stepstest.RunningJob(text, root)
}

// old makes the runner an old version, and GitHub's answer about it.
func (s *scene) old(version string, until time.Time) {
	s.runner.Version = version
	s.view.Peers[0].Seen.Agents.Sunsets = map[string]inventory.Sunset{version: {Running: until}}
}

// brief shows changes as code, script or verb, and class, those of one code together; then what refuses them, and warnings.
func brief(f plan.Finding) string {
	lines := stepstest.Lines(f, func(c plan.Change) string {
		what := strings.TrimPrefix(c.Command.Name, "github_runner-")
		if c.Peer != nil {
			what = string(c.Peer.Verb) + " " + c.Peer.Entry.ID
		}
		if what == "job" {
			what += " " + c.Command.Args[4]
		}
		if c.Disruption != plan.NoDisruption {
			what += " (" + c.Disruption.String() + ")"
		}
		return c.Reason.Code.String() + ": " + what
	})
	for i := len(lines) - 1; i > 0; i-- {
		code, what, _ := strings.Cut(lines[i], ": ")
		if strings.HasPrefix(lines[i-1], code+": ") {
			lines[i-1] += ", " + what
			lines = slices.Delete(lines, i, i+1)
		}
	}
	return strings.Join(lines, "\n")
}

// again is what a new registration takes, where the stop is of a class.
func again(code, stop string) string {
	return code + ": " + stop + ", delete 21, register, job load"
}

const (
	conflict = "A session for this runner already exists.\n"
	clock    = "The local machine's clock may be out of sync with the server time by more than five minutes."
	weak     = "\nwarns fence-weak"
	setUp    = "runner-missing: install\nrunner-not-registered: register, job load"
	replaced = "runner-missing: install\nrunner-not-registered: delete 21, register, job load" // an entry
)

// TestFindings: what was seen of a builder in the three places, and what follows.
func TestFindings(t *testing.T) {
	t.Parallel()
	const other = "acme-prod-macos-m2-fffff"
	at := func(days int) time.Time { return time.Date(2026, 11, 20+days, 12, 0, 0, 0, time.UTC) }
	gone := func(s *scene) { s.view.Peers[0].Seen.Agents.Agents = nil }
	for name, tc := range map[string]struct {
		seen func(*scene)
		want string
	}{
		"in sync":           {func(*scene) {}, ""},
		"updated by itself": {func(s *scene) { s.runner.Version = "2.338.0" }, ""},
		"newer than offered": {func(s *scene) {
			s.runner.Version, s.view.Peers[0].Seen.Agents.Newest = "2.999.0", inventory.Absent[inventory.AgentRelease]()
		}, ""},
		"refreshed by GitHub": {func(s *scene) { s.runner.Files[".runner_migrated"], s.runner.Files[".credentials_migrated"] = 300, 260 }, ""},
		"labels in another case": {func(s *scene) {
			s.spec.Labels, s.agent().Labels = []string{"Tart", "self-hosted", "macOS"}, []string{"tart"}
		}, ""},
		"nothing":                   {(*scene).new, setUp},
		"an entry of a former host": {func(s *scene) { s.runner = stepstest.FactoryRunner(); s.agent().Online = false }, replaced},
		"half registered": {func(s *scene) {
			delete(s.runner.Files, ".runner")
			s.runner.Settings, s.runner.Job, s.agent().Online = "", "", false
		}, again("runner-half-registered", "stop")},
		"only a key": {func(s *scene) {
			s.runner.Settings, s.runner.Job, s.runner.Label = "", "", ""
			s.runner.Files = map[string]int64{".credentials_rsaparams": 1700, "bin/runsvc.sh": 590, "bin/Runner.Listener": 1}
			gone(s)
		}, "runner-half-registered: stop, register, job load"},
		"deregistered": {func(s *scene) {
			s.stopped("Failed to create a session. The runner registration has been deleted from the server, please re-configure.")
			gone(s)
		}, "runner-deregistered: stop, register, job load"},
		"deregistered, not noticed yet": {gone, "runner-deregistered: stop (restart), register, job load"},
		"replaced elsewhere": {func(s *scene) { s.agent().ID = "21"; s.settings(`"agentId": 21`, `"agentId": 9`); s.stopped("x") },
			again("runner-stale-registration", "stop")},
		"replaced elsewhere, online there": {func(s *scene) { s.settings(`"agentId": 21`, `"agentId": 9`) },
			again("runner-stale-registration", "stop (restart)") + "\nrefused runner-name-in-use"},
		"another host's": {func(s *scene) { s.named(other) }, "runner-on-two-hosts: stop (drain), register, job load" + weak},
		"of a host that moves": {func(s *scene) {
			const old = "acme-prod-old-m2-0a1b2"
			s.named(old)
			s.view.Server.Name, s.view.Servers[old] = old, true
		}, again("runner-renamed", "stop (drain)") + weak},
		"by hand under another name": {func(s *scene) { s.named("mini-7") }, again("runner-renamed", "stop (drain)") + weak},
		"at another organization": {func(s *scene) { s.settings("https://github.com/acme", "https://github.com/globex"); gone(s) },
			"runner-scope-differs: stop (restart), register, job load"},
		"below min_version": {func(s *scene) { s.runner.Version = "2.330.0"; s.spec.MinVersion = new("2.336.0") },
			"runner-below-floor: stop (drain), install, job load" + weak},
		"refused by GitHub": {func(s *scene) {
			s.old("2.334.0", at(-10))
			s.stopped("An error occurred: Runner version v2.334.0 is deprecated and cannot receive messages.")
		}, "runner-below-floor: install, job load"},
		"expires soon":          {func(s *scene) { s.old("2.336.0", at(3)) }, "runner-version-expires: stop (drain), install, job load" + weak},
		"expires later":         {func(s *scene) { s.old("2.336.0", at(20)) }, ""},
		"newest expires soon":   {func(s *scene) { s.old("2.337.0", at(3)) }, ""},
		"the newest is refused": {func(s *scene) { s.stopped("Runner version v2.337.0 is deprecated and cannot receive messages.") }, "newest-version-refused: job kick"},
		"update broken":         {func(s *scene) { s.runner.Files["runsvc.sh"], s.runner.Files["bin/runsvc.sh"] = 0, 0 }, "runner-update-broken: stop (drain), install, job load" + weak},
		"runsvc.sh empty":       {func(s *scene) { s.runner.Files["runsvc.sh"] = 0 }, "runner-job-edited: job keep"},
		"stopped itself": {func(s *scene) {
			s.stopped("Runner listener exit with terminated error, stop the service, no retry needed.")
		}, "runner-stopped-itself: job kick"},
		"crashed": {func(s *scene) {
			s.runner.Job = stepstest.StoppedJob(label, root, "78: EX_CONFIG")
			s.agent().Online = false
		}, "runner-crashed: job kick"},
		"not loaded": {func(s *scene) { s.runner.Job = ""; s.agent().Online = false }, "runner-not-loaded: job load"},
		"in conflict": {func(s *scene) {
			s.runner.Log += conflict
			s.agent().Online = false
		}, again("runner-session-conflict", "stop (restart)")},
		"stopped in conflict":    {func(s *scene) { s.stopped("Stop retry on SessionConflictException after retried for 240 seconds.") }, again("runner-session-conflict", "stop")},
		"a conflict that passed": {func(s *scene) { s.runner.Log = conflict + s.runner.Log }, ""},
		"clock":                  {func(s *scene) { s.stopped(clock) }, "runner-stopped-itself: job kick"},
		"clock, still running": {func(s *scene) {
			s.runner.Log += clock + "\n"
			s.agent().Online = false
		}, "runner-offline: job kick (drain)\nrefused runner-clock-off" + weak},
		"too old to register": {func(s *scene) { s.runner.Version = "2.330.0"; s.stopped("x"); gone(s) },
			"runner-deregistered: stop, install, register, job load"},
		"the name is in use": {func(s *scene) { s.runner = stepstest.FactoryRunner() }, replaced + "\nrefused runner-name-in-use"},
		"in conflict with a machine that runs a job": {func(s *scene) {
			s.runner.Log += conflict
			s.agent().Busy = true
		}, again("runner-session-conflict", "stop (restart)") + "\nrefused runner-name-in-use\nwarns busy-stuck"},
		"a label in another case": {func(s *scene) { s.label("actions.runner.Acme." + stepstest.Name) },
			"runner-not-loaded: stop (drain), job load" + weak},
		"by hand, running under its own label": {func(s *scene) { s.label("actions.runner.acme.mini-7"); s.named("mini-7") }, again("runner-renamed", "stop (drain)") + weak},
		"a job's name": {func(s *scene) {
			s.runner.Log += "2026-11-20 10:05:00Z: Running job: is deprecated and cannot receive messages\n" +
				"2026-11-20 10:06:00Z: Job session for this runner already exists completed with result: Succeeded\n"
		}, ""},
		"offline":            {func(s *scene) { s.agent().Online = false }, "runner-offline: job kick (drain)" + weak},
		"offline with a job": {func(s *scene) { s.agent().Online, s.runner.Work = false, worker }, "runner-offline: job kick (drain)\nbusy\nwarns busy-false-while-running" + weak},
		"labels edited":      {func(s *scene) { s.agent().Labels = []string{"edited-by-hand"} }, "labels-edited: restore 21"},
		"fence left": {func(s *scene) {
			s.spec.Labels, s.view.Fence = []string{"tart"}, &plan.Fence{Run: "20261120-1", At: at(-1)}
		}, "fence-left-by-run: restore 21"},
		"fence left, nothing moved": {func(s *scene) { s.view.Fence = &plan.Fence{Run: "20261120-1", At: at(-1)} }, "fence-left-by-run: restore 21"},
		"fenced by this run":        {func(s *scene) { s.spec.Labels, s.view.Fenced = []string{"tart"}, true }, ""},
		"default labels": {func(s *scene) {
			s.spec.DefaultLabels, s.spec.Labels, s.agent().Labels = new(false), []string{"tart"}, []string{"tart"}
		},
			again("runner-options-differ", "stop (drain)") + weak},
		"work folder":     {func(s *scene) { s.spec.WorkFolder = new("/opt/work") }, again("runner-options-differ", "stop (drain)") + weak},
		"ephemeral":       {func(s *scene) { s.settings("\"agentId\"", "\"ephemeral\": true,\n  \"agentId\"") }, again("runner-options-differ", "stop (drain)") + weak},
		"search path":     {func(s *scene) { s.runner.Path = "/usr/bin:/bin\n" }, "runner-job-edited: job kick (drain)" + weak},
		"job file edited": {func(s *scene) { s.runner.Plist = strings.Repeat("0", 64) }, "runner-job-edited: stop (drain), job load" + weak},
		"svc.sh's timeout": {func(s *scene) {
			s.runner.Job = strings.Replace(s.runner.Job, "exit timeout = 60", "exit timeout = 5", 1)
		}, "runner-job-edited: stop (drain), job load" + weak},
		"busy, unseen":        {func(s *scene) { s.runner.Work = worker }, "warns busy-false-while-running"},
		"busy":                {func(s *scene) { s.runner.Work, s.agent().Busy = worker, true }, ""},
		"busy-stuck":          {func(s *scene) { s.agent().Busy = true }, "warns busy-stuck"},
		"group":               {func(s *scene) { s.spec.RunnerGroup = new("bakers"); s.groups("Bakers", false) }, "labels-edited: restore 21"},
		"no such group":       {func(s *scene) { s.spec.RunnerGroup = new("bakers") }, "refused runner-group-missing"},
		"groups unread":       {func(s *scene) { s.view.Peers[0].Seen.Agents.Groups = inventory.Unread[[]inventory.AgentGroup]("502") }, ""},
		"public":              {func(s *scene) { s.groups("bakers", true) }, "refused runner-public"},
		"a public repository": {func(s *scene) { s.view.Peers[0].Seen.Agents.Public = inventory.Present(true) }, "refused runner-public"},
		"public, allowed":     {func(s *scene) { s.spec.AllowPublicRepositories = new(true); s.groups("bakers", true) }, ""},
		"no fence group":      {func(s *scene) { s.spec.FenceGroup = new("parked") }, "warns runner-group-missing"},
		"read-only": {func(s *scene) {
			s.view.Peers[0].Seen.Agents.ReadOnly, s.agent().Labels = true, []string{"edited-by-hand"}
		}, "labels-edited: restore 21\nrefused runner-read-only"},
		"read-only, in sync": {func(s *scene) { s.view.Peers[0].Seen.Agents.ReadOnly = true }, ""},
		"unfinished":         {func(s *scene) { s.view.Pending = true }, "unfinished: job keep"},
		"no session":         {func(s *scene) { s.runner.NoSession, s.runner.Job, s.agent().Online = true, "", false }, "runner-not-loaded: job load"},
		"disk full":          {func(s *scene) { s.new(); s.runner.FreeBlocks = 1000 }, setUp + "\nrefused disk-full"},
		"no digest":          {func(s *scene) { s.new(); s.spec.Version = new("2.330.0") }, setUp + "\nrefused runner-archive-unknown"},
		"GitHub unread":      {func(s *scene) { s.view.Peers[0].Seen = &plan.PeerSeen{Trouble: plan.CodeDiskFull.Trouble("no answer")} }, "unread the CI service could not be read (disk-full)"},
		"GitHub not listed":  {func(s *scene) { s.view.Peers[0].Seen = nil }, "unread it was not read"},
	} {
		s := newScene()
		tc.seen(s)
		stepstest.Expect(t, name, tc.want, brief(s.find(t)))
	}
}

// TestBuilderWithoutAScope: a block without an organization or repository keeps the record that earlier versions wrote.
func TestBuilderWithoutAScope(t *testing.T) {
	t.Parallel()
	spec := fleet.Spec{GithubRunner: &fleet.GithubRunner{}, TartKubelet: &fleet.TartKubelet{Artifact: stepstest.KubeletArtifact()}}
	if d := plan.DigestOf(stepstest.WantedBy(t, step, spec), "Pods=\"none\"\n"); d.Wanted != d.Facts || !strings.HasPrefix(d.Wanted, "sha256:665bc046deab") {
		t.Errorf("the record is %+v", d)
	}
}

// TestJob: the stock shape, without which the runner's own update breaks.
func TestJob(t *testing.T) {
	t.Parallel()
	s := newScene()
	s.new()
	changes := s.find(t).Changes
	job := changes[len(changes)-1].Command.Args[3]
	for _, part := range []string{
		"<key>Label</key>\n\t<string>" + label + "</string>",
		"<key>ProgramArguments</key>\n\t<array>\n\t\t<string>" + root + "/runsvc.sh</string>\n\t</array>",
		"<key>WorkingDirectory</key>\n\t<string>" + root + "</string>",
		"<key>KeepAlive</key>\n\t<dict>\n\t\t<key>SuccessfulExit</key>\n\t\t<false/>\n\t</dict>",
		"<key>ExitTimeOut</key>\n\t<integer>60</integer>",
		"<key>SoftResourceLimits</key>\n\t<dict>\n\t\t<key>NumberOfFiles</key>",
		"<key>SessionCreate</key>\n\t<true/>", "<key>ACTIONS_RUNNER_SVC</key>",
	} {
		if !strings.Contains(job, part) {
			t.Errorf("the job lacks %q:\n%s", part, job)
		}
	}
}

// TestRegistrationArguments: what config.sh gets, and never the token.
func TestRegistrationArguments(t *testing.T) {
	t.Parallel()
	s := newScene()
	s.groups("bakers", false)
	s.spec.Labels, s.spec.DefaultLabels, s.spec.RunnerGroup = []string{"Tart", "bare-metal"}, new(false), new("bakers")
	c := s.registration(t)
	stepstest.Expect(t, "arguments", []string{root, stepstest.RunnerScope, stepstest.Name, "bare-metal,tart", "bakers", "_work", "bare"}, c.Command.Args)
	if c.Input != plan.Admission || c.Command.As != plan.Login {
		t.Errorf("input %q as %s", c.Input, c.Command.As)
	}
}

// TestShownRegistration: a plan of a new registration has no line for what GitHub sets by itself, only for what is configured.
func TestShownRegistration(t *testing.T) {
	t.Parallel()
	shown := func(s *scene) (names []string) {
		for _, f := range stepstest.FieldsOf(s.find(t)) {
			names = append(names, f.Name)
		}
		return names
	}
	s := newScene()
	s.new()
	s.groups("bakers", false)
	quiet := []string{"GitHub's own labels", "group", "work folder", "status at GitHub"}
	if got := shown(s); !slices.Contains(got, "registration") || slices.ContainsFunc(quiet, func(name string) bool { return slices.Contains(got, name) }) {
		t.Errorf("with defaults the plan shows %q", got)
	}
	s.spec.Labels, s.spec.DefaultLabels, s.spec.RunnerGroup, s.spec.WorkFolder = []string{"tart"}, new(false), new("bakers"), new("bakes")
	for _, name := range quiet[:3] {
		if got := shown(s); !slices.Contains(got, name) {
			t.Errorf("the plan does not show %s, which is configured: %q", name, got)
		}
	}
}

// TestConfigurationIsNoDrift: another configuration changes nothing of what is observed, so it is not taken for a person's edit.
func TestConfigurationIsNoDrift(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(*fleet.GithubRunner){
		"labels":         func(g *fleet.GithubRunner) { g.Labels = []string{"tart"} },
		"default labels": func(g *fleet.GithubRunner) { g.DefaultLabels = new(false) },
		"group":          func(g *fleet.GithubRunner) { g.RunnerGroup = new("bakers") },
		"work folder":    func(g *fleet.GithubRunner) { g.WorkFolder = new("bakes") },
	} {
		s := newScene()
		s.groups("bakers", false)
		before := s.find(t)
		edit(&s.spec)
		after := s.find(t)
		if len(before.Changes) > 0 || len(after.Changes) == 0 || before.Facts != after.Facts {
			t.Errorf("%s: %d changes before, %d after; facts\n%s\nand\n%s", name, len(before.Changes), len(after.Changes), before.Facts, after.Facts)
		}
	}
}

// TestLeave: the runner of a host that leaves, or that should have none any more.
func TestLeave(t *testing.T) {
	t.Parallel()
	s := newScene()
	s.find(t)
	leave := func() plan.Finding {
		s.view.Facts = plan.Facts{"github_runner.state/m1": inventory.Present(s.runner.Answer())}
		keeper, ok := stepstest.StepOf(t, step, s.view.Host).(plan.AgentKeeper)
		if !ok {
			t.Fatal("the step keeps no agent")
		}
		return keeper.Leave(s.view)
	}
	const whole = "runner-not-wanted: remove (drain), delete 21, forget"
	stepstest.Expect(t, "with the block", whole, brief(leave()))
	s.view.Host.Spec.GithubRunner = nil
	s.view.Facts = plan.Facts{"github_runner.traces/m1": inventory.Present(s.runner.Answer())}
	stepstest.Expect(t, "without the block", whole, brief(stepstest.StepOf(t, step, s.view.Host).Diff(s.view)))
	s.view.Peers[0].Seen = nil
	stepstest.Expect(t, "without credentials", "runner-not-wanted: remove (drain), forget\nwarns runner-entry-stays", brief(stepstest.StepOf(t, step, s.view.Host).Diff(s.view)))
	s.runner.Receipt = ""
	stepstest.Expect(t, "a runner that someone else set up", "", brief(leave()))
}
