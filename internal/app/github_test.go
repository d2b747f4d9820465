package app

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/agents"
	"github.com/macfleet/macfleet/internal/doctor"
	"github.com/macfleet/macfleet/internal/sandbox"
	sim "github.com/macfleet/macfleet/internal/sandbox/github"
	"github.com/macfleet/macfleet/internal/secret"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/providers/github"
	"github.com/macfleet/macfleet/providers/transport"
)

// gitHubWorld is a sandbox, and macfleet's client of its GitHub.
type gitHubWorld struct {
	*testing.T
	world *sandbox.World
	env   *Env
	// session is the one that agents opened last.
	session *session
}

func newGitHubWorld(t *testing.T) *gitHubWorld {
	t.Helper()
	world, err := sandbox.Open(t.TempDir(), sandbox.Seed{Hosts: 1})
	must(t, err)
	t.Cleanup(func() {
		if err := world.Close(); err != nil {
			t.Error(err)
		}
	})
	return &gitHubWorld{T: t, world: world, env: &Env{}}
}

// client returns a client as the App with the keys that the references name.
func (g *gitHubWorld) client(scope github.Scope, refs ...string) *github.Client {
	g.Helper()
	app := &github.App{ID: "4711"}
	for _, ref := range refs {
		text, err := g.world.Secret(ref)
		must(g, err)
		key, err := secret.New(text)
		must(g, err)
		app.Keys = append(app.Keys, key)
	}
	web := &http.Client{Transport: &http.Transport{}}
	g.Cleanup(web.CloseIdleConnections)
	c, err := github.New(github.Options{Scope: scope, Credentials: github.Credentials{App: app}, HTTP: web, URL: g.world.GitHubURL() + "/"})
	must(g, err)
	return c
}

func (g *gitHubWorld) set(change func(*sim.Settings)) {
	g.Helper()
	must(g, g.world.GitHub().Set(change))
}

func (g *gitHubWorld) put(r sim.Runner) {
	g.Helper()
	r.Group, r.Client, r.Created = 1, "client", time.Now()
	must(g, g.world.GitHub().Put(r))
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
		must(t, err)
	}
	all, _, err := c.Runners(ctx)
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
	all, _, err = c.Runners(ctx)
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
	one, _, err := g.client(github.Scope{Organization: "acme", Repository: "app"}, sandbox.GitHubKeyRef).Runners(ctx)
	if ok(err); len(one) != 1 || one[0].Name != "of-a-repository" || one[0].Group != "" {
		t.Errorf("the repository's: %+v", one)
	}
}

// is reports whether a value was seen and fits.
func is[T any](seen inventory.Seen[T], fits func(T) bool) bool {
	v, ok := seen.Get()
	return ok && fits(v)
}

// TestGitHubCredentials sends requests with good and bad credentials and settings to the simulated GitHub. Each refusal has its
// class, names the check of doctor github that fails, and says what to do.
func TestGitHubCredentials(t *testing.T) {
	t.Parallel()
	const second = "file://keys/github-app-2.pem"
	const write, read = "write", "read"
	acme, key := "acme", secret.Ref{Scheme: secret.File, Path: strings.TrimPrefix(sandbox.GitHubKeyRef, "file://")}
	keyTwo := secret.Ref{Scheme: secret.File, Path: strings.TrimPrefix(second, "file://")}
	app := func(installation string, previous secret.Ref) fleet.GithubRunner {
		return fleet.GithubRunner{Organization: &acme, App: &fleet.GitHubApp{Name: "builders", AppID: fleet.Known{Text: "4711"},
			InstallationID: fleet.Known{Text: installation}, PrivateKey: key, PreviousPrivateKey: previous}}
	}
	token := fleet.GithubRunner{Organization: &acme, Token: &secret.Ref{Scheme: secret.Env, Path: "TOKEN"}}
	installed := func(account, permission, level string, suspended bool) func(*sim.Settings) {
		return func(s *sim.Settings) {
			s.Installations = []sim.Installation{{ID: 9, Account: account, Permissions: map[string]string{permission: level}, Suspended: suspended}}
		}
	}
	const org = "organization_self_hosted_runners"
	asked := func(level string) func(*sim.Settings) {
		return func(s *sim.Settings) {
			for token := range s.Personal {
				s.Personal[token] = level
			}
		}
	}
	plain, rotated := app("", secret.Ref{}), app("", keyTwo)
	for name, test := range map[string]struct {
		set   func(*sim.Settings)
		with  fleet.GithubRunner
		class inventory.Class
		says  []string
		check string // of doctor github that is not ok
	}{
		"a clock a minute behind": {func(s *sim.Settings) { s.Ahead = "1m" }, plain, "", nil, ""},
		"a clock a minute ahead":  {func(s *sim.Settings) { s.Ahead = "-1m" }, plain, "", nil, ""},
		"a clock six behind":      {func(s *sim.Settings) { s.Ahead = "6m30s" }, plain, inventory.Unauthenticated, []string{"behind GitHub's", "sudo sntp -sS time.apple.com", "timedatectl set-ntp true"}, "credentials"},
		"a clock six ahead":       {func(s *sim.Settings) { s.Ahead = "-6m30s" }, plain, inventory.Unauthenticated, []string{"ahead of GitHub's", "set the clock"}, "credentials"},
		"key revoked":             {func(s *sim.Settings) { s.RevokedKeys = []string{"github-app.pem"} }, plain, inventory.Unauthenticated, []string{"was revoked", "generate a key on the App's page"}, "credentials"},
		"one of two revoked":      {func(s *sim.Settings) { s.RevokedKeys = []string{"github-app.pem"} }, rotated, "", nil, "credentials"},
		"both revoked":            {func(s *sim.Settings) { s.RevokedKeys = []string{"github-app.pem", "github-app-2.pem"} }, rotated, inventory.Unauthenticated, []string{"neither private key", "generate a key"}, "credentials"},
		"another App":             {func(s *sim.Settings) { s.App = "4712" }, plain, inventory.Unauthenticated, []string{"Integration not found", "check app_id"}, "credentials"},
		"not installed":           {installed("globex", org, write, false), plain, inventory.NotFound, []string{"is not installed", "install it there"}, "installation"},
		"wrong installation":      {installed(acme, org, write, false), app("8", secret.Ref{}), inventory.NotFound, []string{"no installation 8", "correct installation_id, or leave it out"}, "installation"},
		"installation elsewhere":  {installed("globex", org, write, false), app("9", secret.Ref{}), inventory.NotFound, []string{"check its name in the configuration"}, "installation"},
		"suspended":               {installed(acme, org, write, true), plain, inventory.Denied, []string{"suspended", "an owner unsuspends it"}, "installation"},
		"without the permission":  {installed(acme, "metadata", read, false), plain, inventory.Denied, []string{"lacks the permission Self-hosted runners", "let an owner of the organization accept"}, "permission"},
		"only of repositories":    {installed(acme, "administration", write, false), plain, inventory.Denied, []string{"lacks the permission Self-hosted runners (of the organization)", "grant it on the App's page"}, "permission"},
		"reads only":              {installed(acme, org, read, false), plain, inventory.Denied, []string{"for reading only", "grant write on the App's page"}, "permission"},
		"renamed":                 {func(s *sim.Settings) { s.Moved = map[string]string{acme: "globex"} }, plain, inventory.NotFound, []string{"it was renamed", "its new name"}, "runners"},
		"opaque tokens":           {func(s *sim.Settings) { s.Tokens = "opaque" }, plain, "", nil, ""},
		"token of an owner":       {func(*sim.Settings) {}, token, "", nil, ""},
		"token of a member":       {asked("none"), token, inventory.Denied, []string{"Resource not accessible by personal access token", "an owner as its user", "use a GitHub App, or a token of an owner"}, "credentials"},
		"token revoked":           {func(s *sim.Settings) { s.Personal = nil }, token, inventory.Unauthenticated, []string{"revoked or expired", "make another one"}, "credentials"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGitHubWorld(t)
			for _, ref := range []string{sandbox.GitHubKeyRef, second} { // GitHub has both keys
				if _, err := g.world.Secret(ref); err != nil {
					t.Fatal(err)
				}
			}
			static, err := g.world.GitHubSecret("token", "env://TOKEN")
			must(t, err)
			g.set(test.set)
			a := g.agents(test.with, static)
			scope := a.Scopes()[0]
			_, err = a.Admit(t.Context(), scope.URL, "")
			if inventory.ClassOf(err) != test.class || test.class == "" && err != nil {
				t.Fatalf("class %q, want %q: %v", inventory.ClassOf(err), test.class, err)
			}
			text, fix := "", ""
			if err != nil {
				text, fix = plan.SplitFix(err)
			}
			for _, says := range test.says {
				if !strings.Contains(text+"; fix: "+fix, says) {
					t.Errorf("no %q in %v", says, err)
				}
			}
			if err != nil && fix == "" {
				t.Errorf("no fix in %v", err)
			}
			var bad []string
			for _, c := range doctor.ExamineService(service(t.Context(), a, scope)).Checks {
				if c.State != doctor.OK && c.State != doctor.Untested {
					bad = append(bad, c.Name)
				}
			}
			if strings.Join(bad, ", ") != test.check {
				t.Errorf("doctor finds %q", bad)
			}
		})
	}
}

// TestGitHubTokensAreLearned: the App's signature, the installation's token and the registration are known to the scrubber
// before the first of them is sent.
func TestGitHubTokensAreLearned(t *testing.T) {
	t.Parallel()
	g := newGitHubWorld(t)
	acme := "acme"
	a := g.agents(fleet.GithubRunner{Organization: &acme, App: &fleet.GitHubApp{Name: "builders", AppID: fleet.Known{Ref: secret.Ref{Scheme: secret.OnePass, Path: "acme/BUILDERS/app-id"}},
		PrivateKey: secret.Ref{Scheme: secret.OnePass, Path: "acme/BUILDERS/private-key"}}}, "ghp_static")
	var sent []string
	next := a.HTTP.Transport
	a.HTTP.Transport = transport.Around(next, func(r *http.Request) (*http.Response, error) {
		resp, err := next.RoundTrip(r)
		sent = append(sent, strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
		return resp, err
	})
	r, err := a.Admit(t.Context(), a.Scopes()[0].URL, "")
	if err != nil || len(sent) != 3 {
		t.Fatalf("%d requests, %v", len(sent), err)
	}
	for i, value := range append(sent, r.Secret.Reveal()) {
		if text := g.env.secrets.Scrub("begins " + value + " ends"); strings.Contains(text, value) {
			t.Errorf("credential %d is not known", i)
		}
	}
	if text := g.env.secrets.Scrub("App 4711"); text != "App 4711" || g.env.secrets.Short() {
		t.Errorf("the App's id counts as a secret: %s", text)
	}
	if n := g.session.peered[0].Requests(); n != 3 {
		t.Errorf("%d requests are counted", n)
	}
}

// agents returns the CI services of a configuration with one block, as a session opens them.
func (g *gitHubWorld) agents(r fleet.GithubRunner, static string) *agents.Agents {
	g.Helper()
	host := "github.com"
	r.Host = &host
	cfg := &fleet.Config{Owner: fleet.Owner{Name: "acme"}, Fleets: []fleet.Fleet{{Name: "builders", Groups: []fleet.Group{{Name: "m2", Spec: fleet.Spec{GithubRunner: &r}}}}}}
	s := &session{env: g.env, world: g.world, need: need{config: cfg}}
	g.session = s
	a, err := s.agents(nil)
	must(g, err)
	g.Cleanup(func() {
		for _, c := range s.closers {
			c()
		}
	})
	a.Resolve = func(ctx context.Context, attribute string, ref secret.Ref) (secret.Value, error) {
		if attribute == agents.Token { // as it was before the settings were changed
			return secret.New(static)
		}
		return s.credential(ctx, attribute, ref)
	}
	return a
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
	must(t, g.world.GitHub().SetFaults(sim.Fault{Requests: 1, Answer: "secondary", After: 1}))
	if all, _, err := c.Runners(t.Context()); err != nil || len(all) != 1 {
		t.Errorf("after a limit of a second: %d runners, %v", len(all), err)
	}
}

// TestPublicRepository: a repository says whether everyone can read it, and an organization says nothing.
func TestPublicRepository(t *testing.T) {
	t.Parallel()
	g := newGitHubWorld(t)
	g.set(func(s *sim.Settings) { s.PublicRepositories = []string{"Acme/site"} })
	for scope, want := range map[github.Scope]inventory.Seen[bool]{
		{Organization: "acme", Repository: "site"}: inventory.Present(true),
		{Organization: "acme", Repository: "app"}:  inventory.Present(false),
		{Organization: "acme"}:                     inventory.Absent[bool](),
	} {
		if got, err := g.client(scope, sandbox.GitHubKeyRef).Public(t.Context()); err != nil || got != want {
			t.Errorf("%s: %+v, %v", scope, got, err)
		}
	}
}
