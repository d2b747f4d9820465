package sandbox_test

import (
	"strings"
	"testing"
	"time"

	"github.com/macfleet/macfleet/internal/sandbox"
	"github.com/macfleet/macfleet/internal/sandbox/mac"
)

// builder is a Mac with GitHub's runner in ~/actions-runner.
type builder struct {
	testing.TB
	world   *sandbox.World
	dir     string
	id      string
	machine *mac.Machine
	github  *onGitHub
}

const (
	runnerRoot = "/Users/m1/actions-runner"
	runnerJob  = "gui/501/actions.runner.acme.builder-1"
	runnerLog  = "/Users/m1/Library/Logs/runner.log"
)

// newBuilder returns a Mac with an unpacked runner and a session at its screen.
func newBuilder(t testing.TB, version string) *builder {
	t.Helper()
	w, dir := newWorld(t, 1)
	return builderOn(t, w, dir, hosts(t, w)[0].ID, version)
}

// builderOn makes a builder of one of a world's Macs.
func builderOn(t testing.TB, w *sandbox.World, dir, id, version string) *builder {
	t.Helper()
	b := &builder{TB: t, world: w, dir: dir, id: id, github: gitHub(t, w)}
	b.machine = mustMac(t, w, b.id)
	must(t, b.machine.LogIn())
	b.sh("mkdir -p "+runnerRoot+" Library/Logs && cd "+runnerRoot+" && curl -fsSL -o /tmp/r.tar.gz "+mac.RunnerArchive(version)+" && tar -xzf /tmp/r.tar.gz", 0)
	return b
}

func mustMac(t testing.TB, w *sandbox.World, id string) *mac.Machine {
	t.Helper()
	machine, err := w.Mac(id)
	must(t, err)
	return machine
}

// sh runs a script as the login user in its home, compares the exit status and returns the output.
func (b *builder) sh(script string, status int) string {
	b.Helper()
	result, err := b.machine.Run(b.Context(), "m1", script)
	must(b, err)
	if result.Exit != status {
		b.Fatalf("%s: status %d, want %d: %s%s", script, result.Exit, status, result.Stdout, result.Stderr)
	}
	return string(result.Stdout)
}

// token returns a registration token, or one to remove with.
func (b *builder) token(kind string) string {
	b.Helper()
	var made struct{ Token string }
	b.github.ask("POST /orgs/acme/actions/runners/"+kind+"-token", "", 201, &made)
	return made.Token
}

// config runs config.sh, with the token in its environment.
func (b *builder) config(status int, args string) string {
	b.Helper()
	return b.sh("cd "+runnerRoot+" && ACTIONS_RUNNER_INPUT_TOKEN="+b.token("registration")+" ACTIONS_RUNNER_INPUT_UNATTENDED=true "+
		"./config.sh --url https://github.com/acme --name builder-1 "+args, status)
}

// start loads the runner's agent into the session at the screen.
func (b *builder) start(keys string) {
	b.Helper()
	plist := `<?xml version="1.0" encoding="UTF-8"?>
<plist version="1.0"><dict><key>Label</key><string>actions.runner.acme.builder-1</string><key>RunAtLoad</key><true/>
<key>KeepAlive</key><dict><key>SuccessfulExit</key><false/></dict><key>ProcessType</key><string>Interactive</string><key>SessionCreate</key><true/>
<key>WorkingDirectory</key><string>` + runnerRoot + `</string><key>StandardOutPath</key><string>` + runnerLog + `</string>
<key>ProgramArguments</key><array><string>` + runnerRoot + `/runsvc.sh</string></array>` + keys + `</dict></plist>`
	must(b, b.machine.WriteFile("/Users/m1/Library/LaunchAgents/runner.plist", []byte(plist), 501, 20, 0o644))
	b.sh("cp "+runnerRoot+"/bin/runsvc.sh "+runnerRoot+"/ && launchctl bootstrap gui/501 /Users/m1/Library/LaunchAgents/runner.plist", 0)
	b.settle()
}

// settle lets what is due happen.
func (b *builder) settle() {
	b.Helper()
	must(b, b.machine.Settle(b.Context()))
}

// later lets time pass on the Mac.
func (b *builder) later(d time.Duration) {
	b.Helper()
	must(b, b.machine.Advance(d))
	b.settle()
}

// entry is a runner as GitHub's API shows it.
type entry struct {
	ID      int64
	Name    string
	Status  string
	Busy    bool
	Version string
	Labels  []struct{ Name, Type string }
}

func (b *builder) entries() []entry {
	b.Helper()
	var list struct{ Runners []entry }
	b.github.ask("GET /orgs/acme/actions/runners", "", 200, &list)
	return list.Runners
}

// one returns the only entry.
func (b *builder) one() entry {
	b.Helper()
	all := b.entries()
	if len(all) != 1 {
		b.Fatalf("%d runners, want 1: %+v", len(all), all)
	}
	return all[0]
}

func (b *builder) expect(status string, busy bool) {
	b.Helper()
	if r := b.one(); r.Status != status || r.Busy != busy {
		b.Errorf("the runner is %s and busy is %v, want %s and %v", r.Status, r.Busy, status, busy)
	}
}

// log reports whether the job's output contains a text.
func (b *builder) log(text string) {
	b.Helper()
	data, err := b.machine.ReadFile(runnerLog)
	if err != nil || !strings.Contains(string(data), text) {
		b.Errorf("the log lacks %q (%v):\n%s", text, err, data)
	}
}

// job returns launchd's lines about the runner's job.
func (b *builder) job(line string) bool {
	b.Helper()
	return strings.Contains(b.sh("launchctl print "+runnerJob, 0), line)
}
