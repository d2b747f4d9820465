package app

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/sandbox"
	sim "github.com/macfleet/macfleet/internal/sandbox/github"
	"github.com/macfleet/macfleet/internal/secret"
	"github.com/macfleet/macfleet/providers/github"
)

// gitHubWorld is a sandbox, and macfleet's client of its GitHub.
type gitHubWorld struct {
	*testing.T
	world *sandbox.World
}

func newGitHubWorld(t *testing.T) gitHubWorld {
	t.Helper()
	world, err := sandbox.Open(t.TempDir(), sandbox.Seed{Hosts: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := world.Close(); err != nil {
			t.Error(err)
		}
	})
	return gitHubWorld{t, world}
}

// client returns a client as the App with the keys that the references name.
func (g gitHubWorld) client(scope github.Scope, refs ...string) *github.Client {
	g.Helper()
	app := &github.App{ID: "4711"}
	for _, ref := range refs {
		text, err := g.world.Secret(ref)
		if err != nil {
			g.Fatal(err)
		}
		key, err := secret.New(text)
		if err != nil {
			g.Fatal(err)
		}
		app.Keys = append(app.Keys, key)
	}
	web := &http.Client{Transport: &http.Transport{}}
	g.Cleanup(web.CloseIdleConnections)
	c, err := github.New(github.Options{Scope: scope, Credentials: github.Credentials{App: app}, HTTP: web, URL: g.world.GitHubURL() + "/"})
	if err != nil {
		g.Fatal(err)
	}
	return c
}

func (g gitHubWorld) set(change func(*sim.Settings)) {
	g.Helper()
	if err := g.world.GitHub().Set(change); err != nil {
		g.Fatal(err)
	}
}

func (g gitHubWorld) put(r sim.Runner) {
	g.Helper()
	r.Group, r.Client, r.Created = 1, "client", time.Now()
	if err := g.world.GitHub().Put(r); err != nil {
		g.Fatal(err)
	}
}

// TestGitHubClientInTheSandbox sends every request of the client to the simulated GitHub.
func TestGitHubClientInTheSandbox(t *testing.T) {
	t.Parallel()
	g := newGitHubWorld(t)
	for id := int64(1); id <= 120; id++ {
		g.put(sim.Runner{ID: id, Scope: "acme", Name: fmt.Sprintf("builder-%d", id), Labels: []string{"Xcode"}})
	}
	g.put(sim.Runner{ID: 130, Scope: "acme/app", Name: "of-a-repository"})
	g.set(func(s *sim.Settings) {
		s.Groups = []sim.Group{{ID: 1, Name: "Default", Visibility: "all"}, {ID: 5, Name: "fence", Visibility: "selected"}}
	})
	c, ctx := g.client(github.Scope{Organization: "acme"}, sandbox.GitHubKeyRef), t.Context()
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	all, err := c.Runners(ctx)
	if ok(err); len(all) != 120 || all[119].ID != "120" || !slices.Equal(all[0].Labels, []string{"xcode"}) || len(all[0].Fixed) != 3 || all[0].Group != "1" {
		t.Errorf("%d runners, the first is %+v", len(all), all[0])
	}
	seen, err := c.Groups(ctx)
	groups, _ := seen.Get()
	if ok(err); len(groups) != 2 || !groups[0].All || !groups[0].Default || groups[1].All || groups[1].Default {
		t.Errorf("groups: %+v", groups)
	}
	ok(c.Label(ctx, "1", []string{"tart"}))
	ok(c.Move(ctx, "1", "5"))
	ok(c.Remove(ctx, "2"))
	ok(c.Remove(ctx, "2"))
	all, err = c.Runners(ctx)
	if ok(err); len(all) != 119 || !slices.Equal(all[0].Labels, []string{"tart"}) || all[0].Group != "5" {
		t.Errorf("after the changes: %d runners, the first is %+v", len(all), all[0])
	}
	r, err := c.Register(ctx)
	if ok(err); r.URL != "https://github.com/acme" || r.Token.IsZero() || time.Until(r.Expires) < 50*time.Minute {
		t.Errorf("registration: %s until %s", r.URL, r.Expires)
	}
	newest, err := c.Newest(ctx)
	if ok(err); !is(newest, func(r inventory.AgentRelease) bool { return r.Version == "2.337.0" && len(r.SHA256) == 64 }) {
		t.Errorf("the newest: %+v", newest)
	}
	sunset, err := c.Sunset(ctx, "2.334.0")
	if ok(err); !is(sunset, func(s inventory.Sunset) bool { return s.Running.Before(time.Now()) }) {
		t.Errorf("the sunset of an old version: %+v", sunset)
	}
	one, err := g.client(github.Scope{Organization: "acme", Repository: "app"}, sandbox.GitHubKeyRef).Runners(ctx)
	if ok(err); len(one) != 1 || one[0].Name != "of-a-repository" || one[0].Group != "" {
		t.Errorf("the repository's: %+v", one)
	}
}

// is reports whether a value was seen and fits.
func is[T any](seen inventory.Seen[T], fits func(T) bool) bool {
	v, ok := seen.Get()
	return ok && fits(v)
}

// TestGitHubRefusesTheClient checks that what the simulated GitHub refuses has the class that macfleet gives to it.
func TestGitHubRefusesTheClient(t *testing.T) {
	t.Parallel()
	const second = "file://keys/github-app-2.pem"
	acme := github.Scope{Organization: "acme"}
	reading := map[string]string{"organization_self_hosted_runners": "read"}
	for name, test := range map[string]struct {
		set   func(*sim.Settings)
		refs  []string
		class inventory.Class
		says  string
	}{
		"key revoked":            {func(s *sim.Settings) { s.RevokedKeys = []string{"github-app.pem"} }, []string{sandbox.GitHubKeyRef}, inventory.Unauthenticated, ""},
		"second key":             {func(s *sim.Settings) { s.RevokedKeys = []string{"github-app.pem"} }, []string{sandbox.GitHubKeyRef, second}, "", ""},
		"another App":            {func(s *sim.Settings) { s.App = "4712" }, []string{sandbox.GitHubKeyRef}, inventory.Unauthenticated, "Integration not found"},
		"not installed":          {func(s *sim.Settings) { s.Installations = []sim.Installation{{ID: 9, Account: "globex"}} }, []string{sandbox.GitHubKeyRef}, inventory.NotFound, "is not installed"},
		"without the permission": {func(s *sim.Settings) { s.Installations = []sim.Installation{{ID: 9, Account: "acme"}} }, []string{sandbox.GitHubKeyRef}, inventory.Denied, "lacks the permission"},
		"reads only": {func(s *sim.Settings) {
			s.Installations = []sim.Installation{{ID: 9, Account: "acme", Permissions: reading}}
		}, []string{sandbox.GitHubKeyRef}, inventory.Denied, "for reading only"},
		"suspended":     {func(s *sim.Settings) { s.Installations = []sim.Installation{{ID: 9, Account: "acme", Suspended: true}} }, []string{sandbox.GitHubKeyRef}, inventory.Denied, "suspended"},
		"renamed":       {func(s *sim.Settings) { s.Moved = map[string]string{"acme": "globex"} }, []string{sandbox.GitHubKeyRef}, inventory.NotFound, "renamed"},
		"clock behind":  {func(s *sim.Settings) { s.Ahead = "20m" }, []string{sandbox.GitHubKeyRef}, inventory.Unauthenticated, "clock"},
		"opaque tokens": {func(s *sim.Settings) { s.Tokens = "opaque" }, []string{sandbox.GitHubKeyRef}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGitHubWorld(t)
			g.set(test.set)
			_, err := g.client(acme, test.refs...).Register(t.Context())
			if inventory.ClassOf(err) != test.class || err != nil && !strings.Contains(err.Error(), test.says) {
				t.Errorf("class %q, want %q with %q: %v", inventory.ClassOf(err), test.class, test.says, err)
			}
		})
	}
}

// TestGitHubKeepsABusyRunner checks the refusal to delete, and a limit that passes.
func TestGitHubKeepsABusyRunner(t *testing.T) {
	t.Parallel()
	g := newGitHubWorld(t)
	g.put(sim.Runner{ID: 1, Scope: "acme", Name: "builder-1", Busy: "yes"})
	c := g.client(github.Scope{Organization: "acme"}, sandbox.GitHubKeyRef)
	if err := c.Remove(t.Context(), "1"); inventory.ClassOf(err) != inventory.Precondition {
		t.Errorf("a busy runner: %v", err)
	}
	if err := g.world.GitHub().SetFaults(sim.Fault{Requests: 1, Answer: "secondary", After: 1}); err != nil {
		t.Fatal(err)
	}
	if all, err := c.Runners(t.Context()); err != nil || len(all) != 1 {
		t.Errorf("after a limit of a second: %d runners, %v", len(all), err)
	}
}
