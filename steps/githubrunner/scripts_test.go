package githubrunner_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/internal/scripttest"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/steps/stepstest"
)

// registration is the change that registers the runner of a scene.
func (s *scene) registration(t *testing.T) plan.Change {
	t.Helper()
	s.new()
	for _, c := range s.find(t).Changes {
		if c.Command.Name == "github_runner-register" {
			return c
		}
	}
	t.Fatal("nothing registers the runner")
	return plan.Change{}
}

// configScript stands for config.sh: it notes its arguments, where the token can be seen, and answers as the test has set.
const configScript = `#!/bin/sh
printf '%s\n' "$@" >"$STATE/arguments"
printf '%s' "$ACTIONS_RUNNER_INPUT_TOKEN" >"$STATE/input"
for list in /proc/[0-9]*/cmdline; do
  tr '\000' ' ' <"$list" 2>/dev/null
  echo
done >"$STATE/processes"
env >"$STATE/environment"
tr '\000' '\n' <"/proc/$PPID/environ" >"$STATE/caller" 2>/dev/null
[ ! -e "$STATE/fails" ] || { echo "A runner exists with the same name $ACTIONS_RUNNER_INPUT_TOKEN"; echo "Try again"; exit 1; }
[ -e "$STATE/silent" ] || printf '{"agentId": 21}' >.runner
`

// TestTheTokenIsSeenInOnePlace registers with a planted token: it reaches config.sh by its environment, and no command line,
// file or output has it. A connection that was cut off, so that no token comes, leaves no half registration.
func TestTheTokenIsSeenInOnePlace(t *testing.T) {
	t.Parallel()
	const token = "AHBRTPLANTEDTOKEN"
	scripttest.InShells(t, func(t *testing.T, shell []string) {
		for _, failing := range []string{"", "fails", "silent"} {
			m := scripttest.New(t, shell, "/Users")
			m.Tool("sync", "exit 0")
			m.Put("/Users/m1/actions-runner/x", "")
			scripttest.Write(t, m.Path("/Users/m1/actions-runner/config.sh"), configScript, 0o755)
			if failing != "" {
				m.Set(failing, "")
			}
			s := newScene()
			s.spec.Labels = []string{"tart", "bare-metal"}
			c := s.registration(t).Command
			for i, arg := range c.Args {
				c.Args[i] = m.Here(arg)
			}
			for _, input := range []string{"", "\n"} {
				if a := m.Run(c, input); a.Exit == 0 || m.Kept("arguments") != "no file" {
					t.Errorf("input %q: exit code %d, config.sh got %q", input, a.Exit, m.Kept("arguments"))
				}
			}
			a := m.Run(c, token+"\n")
			if (a.Exit == 0) != (failing == "") || strings.Contains(a.Stdout+a.Stderr, token) {
				t.Errorf("%q: exit code %d, %s%s", failing, a.Exit, a.Stdout, a.Stderr)
			}
			if failing == "fails" && !strings.Contains(a.Stderr, "Try again") {
				t.Errorf("the output of config.sh is lost: %q", a.Stderr)
			}
			if got := m.Get("input"); got != token {
				t.Errorf("config.sh got the token %q", got)
			}
			if !strings.Contains(m.Kept("processes"), "--unattended") {
				t.Error("the process table was not read")
			}
			for _, place := range []string{"arguments", "processes", "caller"} {
				if strings.Contains(m.Kept(place), token) {
					t.Errorf("the token is in the %s:\n%s", place, m.Kept(place))
				}
			}
			for name, text := range m.Files(m.Root) {
				if strings.Contains(text, token) {
					t.Errorf("the token is in %s", name)
				}
			}
			want := "--unattended --replace --url https://github.com/acme --name " + stepstest.Name + " --work _work --labels bare-metal,tart"
			if got := strings.Join(strings.Fields(m.Kept("arguments")), " "); got != want {
				t.Errorf("config.sh got %q, want %q", got, want)
			}
		}
	})
}

// TestScriptsLeaveAJob: a workflow's job started after the plan was made. No script stops, replaces or removes its runner.
func TestScriptsLeaveAJob(t *testing.T) {
	t.Parallel()
	scripttest.InShells(t, func(t *testing.T, shell []string) {
		m := scripttest.New(t, shell, "/Users", "/etc/", "/usr/local/")
		m.Tool("ps", "echo '812 1 01:02 /Users/m1/actions-runner/bin/Runner.Worker spawnclient 120 123'")
		m.Tool("launchctl", `echo "$*" >>"$STATE/launchctl"`)
		m.Tool("id", "echo 501")
		fresh, renamed, removed := newScene(), newScene(), newScene()
		fresh.new()
		renamed.named("another")
		removed.find(t) // sets the facts
		removed.view.Host = stepstest.Host(fleet.Spec{})
		tried := make(map[string]bool)
		for _, f := range []plan.Finding{fresh.find(t), renamed.find(t), stepstest.Find(t, step, removed.view)} {
			for _, c := range f.Changes {
				switch c.Command.Name {
				case "github_runner-stop", "github_runner-install", "github_runner-job", "github_runner-remove":
					tried[c.Command.Name] = true
					m.Fails(c.Command, "", "work started on the host after the plan was made")
				}
			}
		}
		if files := m.Files(m.Root); len(tried) != 4 || len(files) > 0 || m.Kept("launchctl") != "no file" {
			t.Errorf("%v ran, launchctl got %q, files %v", tried, m.Kept("launchctl"), files)
		}
	})
}

// TestWhatTheScriptsRemove: a stop that forgets deletes each file that identifies the runner and nothing else, the end of the step deletes the
// whole folder only if macfleet installed it, and an incomplete archive replaces no program.
func TestWhatTheScriptsRemove(t *testing.T) {
	t.Parallel()
	const programs = ".env bin/Runner.Listener bin/runsvc.sh config.sh"
	const all = ".credentials .credentials_migrated .credentials_rsaparams .env .runner .runner_migrated .service bin/Runner.Listener bin/runsvc.sh config.sh"
	fresh, renamed, removed := newScene(), newScene(), newScene()
	fresh.new()
	renamed.named("another")
	removed.find(t) // sets the facts
	removed.view.Host = stepstest.Host(fleet.Spec{})
	left := stepstest.Find(t, step, removed.view).Changes
	commands := map[string]plan.Command{"stop": renamed.find(t).Changes[0].Command, "install": fresh.find(t).Changes[0].Command, "forget": left[len(left)-1].Command}
	scripttest.InShells(t, func(t *testing.T, shell []string) {
		for _, tc := range []struct{ script, arg, left string }{
			{"stop", "forget", programs},
			{"stop", "keep", all},
			{"forget", "whole", ""},
			{"forget", "", programs},
			{"install", "bin/runsvc.sh bin/Runner.Listener", all},
			{"install", "bin/runsvc.sh config.sh", all},
		} {
			m := scripttest.New(t, shell, "/Users", "/etc/", "/usr/local/")
			m.Folders("/usr/local")
			m.Stub("case $name in id) echo 501 ;; launchctl) exit 113 ;; esac", "ps", "sync", "chown", "id", "launchctl")
			for _, name := range strings.Fields(all) {
				scripttest.Write(t, m.Path(root+"/"+name), "x", 0o755)
			}
			c, says := commands[tc.script], ""
			c.Args = strings.Split(m.Here(strings.Join(c.Args, "\n")), "\n")
			c.Args[map[string]int{"stop": 3, "install": 2, "forget": 1}[tc.script]] = tc.arg
			if tc.script == "install" {
				m.Archive(root, strings.Fields(tc.arg)...)
				c.Args[2], says = m.Path("/usr/local/archive"), "lacks"
			}
			a := m.Run(c, "")
			got := strings.ReplaceAll(strings.Join(slices.Sorted(maps.Keys(m.Files(m.Path("/Users/m1")))), " "), "/actions-runner/", "")
			if (a.Exit == 0) != (says == "") || !strings.Contains(a.Stderr, says) || got != tc.left {
				t.Errorf("%s %q: exit code %d, %s; left %s", tc.script, tc.arg, a.Exit, a.Stderr, got)
			}
		}
	})
}

// TestNoSession: the job is loaded into a session at the screen only.
func TestNoSession(t *testing.T) {
	t.Parallel()
	s := newScene()
	s.new()
	all := s.find(t).Changes
	c := all[slices.IndexFunc(all, func(c plan.Change) bool { return c.Command.Name == "github_runner-job" })].Command
	scripttest.InShells(t, func(t *testing.T, shell []string) {
		for _, session := range []string{"echo 'session = Background'", "echo 'session = Aqua'; exit 36"} {
			m := scripttest.New(t, shell, "/Users", "/etc/", "/usr/local/")
			m.Folders("/usr/local/lib/macfleet")
			m.Stub("case $name in id) echo 501 ;; launchctl) "+session+" ;; esac", "ps", "sync", "sleep", "chown", "id", "launchctl")
			m.Put(root+"/bin/runsvc.sh", "x")
			m.Fails(plan.Command{Script: c.Script, Args: strings.Split(m.Here(strings.Join(c.Args, "\n")), "\n")}, "", "not logged in at the screen")
		}
	})
}
