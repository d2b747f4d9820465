package engine_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/agents"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/sandbox"
	"github.com/macfleet/macfleet/internal/sandbox/github"
	"github.com/macfleet/macfleet/internal/sandbox/mac"
	"github.com/macfleet/macfleet/internal/secret"
	"github.com/macfleet/macfleet/providers/transport"
)

const (
	organization = "acme"
	bakeLabel    = "bakes-images"
)

// builders wants Macs that take jobs of an organization, with a personal token: the key of an App takes long to make.
func builders(replicas int) *fleet.Config {
	c := config("production", replicas)
	c.Fleets[0].Groups[0].Spec = buildersOf(organization)
	return c
}

// buildersOf is the specification of an organization's builders.
func buildersOf(organization string) fleet.Spec {
	return fleet.Spec{AutoLogin: &fleet.AutoLogin{}, GithubRunner: &fleet.GithubRunner{Token: &secret.Ref{Scheme: secret.Env, Path: "TOKEN"},
		Organization: &organization, Labels: []string{bakeLabel}}}.WithBuiltIn().WithDefaults()
}

// byApp lets the runners of a configuration register with an App.
func byApp(c *fleet.Config) *fleet.Config {
	key, _ := secret.ParseRef(sandbox.GitHubKeyRef)
	for _, f := range c.Fleets {
		for _, g := range f.Groups {
			g.Spec.GithubRunner.Token, g.Spec.GithubRunner.App = nil, &fleet.GitHubApp{Name: "builders", AppID: fleet.Known{Text: "4711"}, PrivateKey: key}
		}
	}
	return c
}

// fenced gives runners the group of fenceGroup, so that a fence keeps all jobs away.
func fenced(c *fleet.Config) *fleet.Config {
	for _, f := range c.Fleets {
		for _, g := range f.Groups {
			if g.Spec.GithubRunner != nil {
				g.Spec.GithubRunner.FenceGroup = new("fence")
			}
		}
	}
	return c
}

// runBuilders returns an engine for such a fleet, with the world's GitHub.
func runBuilders(t *testing.T, w *sandbox.World, c *fleet.Config, more ...func(*agents.Options)) *engine.Engine {
	t.Helper()
	var counter transport.Counter
	client := transport.New(&counter, 1000)
	t.Cleanup(client.CloseIdleConnections)
	o := agents.Options{Config: c, HTTP: client, URL: w.GitHubURL() + "/", Now: time.Now, Learn: func(string) {},
		Resolve: func(_ context.Context, attribute string, ref secret.Ref) (secret.Value, error) {
			text, err := w.GitHubSecret(attribute, ref.String())
			if err != nil {
				return secret.Value{}, err
			}
			return secret.New(text)
		}}
	for _, change := range more {
		change(&o)
	}
	a, err := agents.New(o)
	must(t, err)
	e := run(t, w, c)
	if a != nil {
		e.Peers = map[inventory.ServiceName]engine.Service{inventory.CIService: a}
	}
	e.Run = named("sam", 1)
	e.Ready = engine.Ready{Within: time.Minute, Every: 5 * time.Millisecond, Agent: time.Minute}
	e.Drain = engine.Drain{Within: time.Minute, Every: 5 * time.Millisecond, Quiet: 10 * time.Millisecond}
	return e
}

// builder is a simulated Mac with a runner.
type builder struct {
	*sandbox.World
	name    string
	machine *mac.Machine
}

// builderOf finds a host's Mac.
func builderOf(t *testing.T, w *sandbox.World, host string) builder {
	t.Helper()
	m := macOf(t, w, host)
	return builder{w, host, m}
}

// entries are those of GitHub with the builder's name.
func (b builder) entries(t *testing.T) []github.Runner {
	t.Helper()
	all, err := b.GitHub().Runners()
	must(t, err)
	return slices.DeleteFunc(all, func(r github.Runner) bool { return !strings.EqualFold(r.Name, b.name) })
}

// takesJobs finds the builder registered once, with its labels, in launchd once, and without anything that a run leaves
// behind; then it takes a job.
func (b builder) takesJobs(t *testing.T) {
	t.Helper()
	must(t, b.machine.Settle(t.Context()))
	entries := b.entries(t)
	if len(entries) != 1 || !slices.Equal(entries[0].Labels, []string{bakeLabel}) || entries[0].Group != 1 {
		t.Fatalf("GitHub has %+v", entries)
	}
	state, err := b.machine.Runner()
	if err != nil || state.ID != entries[0].ID || state.Client != entries[0].Client || state.State != 0 || state.PID == 0 {
		t.Fatalf("the host has %+v, %v", state, err)
	}
	b.clean(t, 1)
	for _, name := range []string{".credentials_migrated", ".runner_migrated", ".service"} {
		if _, err := b.machine.ReadFile(state.Root + "/" + name); err == nil {
			t.Errorf("%s is left", name)
		}
	}
	host, err := b.RunJob("acme/images", "bake", "self-hosted", bakeLabel)
	if err == nil {
		err = b.FinishJob(host)
	}
	if err != nil {
		t.Error(err)
	}
}

// clean finds this number of runners in launchd, and no temporary folder, unfinished work or fence.
func (b builder) clean(t *testing.T, jobs int) {
	t.Helper()
	said, err := b.machine.Run(t.Context(), "root", `launchctl print gui/501 | grep -c 'actions\.runner\.'
		for name in /Users/m1/*/.macfleet.* /usr/local/lib/macfleet/.put.* /etc/macfleet/pending/*; do [ ! -e "$name" ] || echo "$name"; done`)
	must(t, err)
	count, left, _ := strings.Cut(string(said.Stdout), "\n")
	if want := string(rune('0' + jobs)); count != want || left != "" {
		t.Errorf("launchd has %s runners, want %s; left is %q", count, want, left)
	}
	if marker, err := b.machine.ReadFile("/etc/macfleet/host.json"); jobs > 0 && (err != nil || strings.Contains(string(marker), `"fence"`)) {
		t.Errorf("the marker: %s, %v", marker, err)
	}
}
