package agents_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/agents"
	sim "github.com/macfleet/macfleet/internal/sandbox/github"
	"github.com/macfleet/macfleet/plan"
)

// TestObserve reads each scope of the run once: its list, its groups, the newest program, and the versions of our hosts.
func TestObserve(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for id := int64(1); id <= 120; id++ {
		w.put(sim.Runner{ID: id, Scope: "acme", Name: fmt.Sprintf("elsewhere-%d", id), Version: "2.335.1"})
	}
	w.put(sim.Runner{ID: 201, Scope: "acme", Name: "acme-production-builders-m2-0bccd", Version: "2.334.0"},
		sim.Runner{ID: 202, Scope: "acme", Name: "Acme-Legacy-01", Version: "2.336.0"},
		sim.Runner{ID: 203, Scope: "acme/app", Name: "acme-production-apps-m2-0bccd", Version: "2.334.0"})
	cfg := config(map[string]*fleet.GithubRunner{"builders": at(acme), "more": at(acme), "apps": at(repo), "runners": at(other), "none": {}})
	a := w.open(cfg, func(of fleet.Specified) bool { return of.Fleet != "runners" })
	if got := w.requests(""); len(got) != 0 || len(w.resolved) != 0 {
		t.Errorf("opened: %q, %q", got, w.resolved)
	}
	seen := a.Observe(t.Context())
	if len(seen) != 2 || seen[acme].Trouble != nil || seen[repo].Trouble != nil {
		t.Fatalf("%d scopes: %+v, %+v", len(seen), seen[acme].Trouble, seen[repo].Trouble)
	}
	if n := len(seen[acme].Agents.Agents); n != 122 {
		t.Errorf("%d agents of the organization", n)
	}
	if groups, ok := seen[acme].Agents.Groups.Get(); !ok || len(groups) != 1 || !groups[0].Default {
		t.Errorf("groups %+v", seen[acme].Agents.Groups)
	}
	if !seen[repo].Agents.Groups.IsAbsent() || len(seen[repo].Agents.Agents) != 1 {
		t.Errorf("of the repository: %+v, %d agents", seen[repo].Agents.Groups, len(seen[repo].Agents.Agents))
	}
	if newest, ok := seen[acme].Agents.Newest.Get(); !ok || newest.Version == "" {
		t.Errorf("newest %+v", seen[acme].Agents.Newest)
	}
	if _, ok := seen[acme].Agents.Sunsets["2.334.0"]; !ok || seen[acme].Agents.SunsetsUnread != "" {
		t.Errorf("sunsets %+v, %q", seen[acme].Agents.Sunsets, seen[acme].Agents.SunsetsUnread)
	}
	want := map[string]int{"GET /orgs/acme/actions/runners": 2, "GET /repos/acme/app": 1, "GET /repos/acme/app/actions/runners": 1, "GET /orgs/acme/actions/runner-groups": 1,
		"GET /orgs/acme/actions/runners/downloads": 1, "GET /repos/acme/app/actions/runners/downloads": 1,
		"GET /orgs/acme/actions/runners/deprecations/2.334.0": 1, "GET /orgs/acme/actions/runners/deprecations/2.336.0": 1, "GET /repos/acme/app/actions/runners/deprecations/2.334.0": 1}
	got := make(map[string]int)
	for _, r := range w.requests("") {
		got[r]++
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("requests (-want +got):\n%s", d)
	}
	if want := []string{"token", "token"}; !slices.Equal(w.resolved, want) {
		t.Errorf("resolved %q", w.resolved)
	}
}

// TestNoAgents: a configuration whose runners someone else registers has no services.
func TestNoAgents(t *testing.T) {
	t.Parallel()
	if a, err := agents.New(agents.Options{Config: config(map[string]*fleet.GithubRunner{"builders": {}, "runners": nil})}); a != nil || err != nil {
		t.Errorf("%v, %v", a, err)
	}
}

// TestDifferentCredentials: one scope has one client, so its users must agree.
func TestDifferentCredentials(t *testing.T) {
	t.Parallel()
	second := at(acme)
	second.Token, second.App = nil, &fleet.GitHubApp{Name: "builders", PrivateKey: ref("KEY")}
	_, err := agents.New(agents.Options{Config: config(map[string]*fleet.GithubRunner{"builders": at(acme), "bakers": second})})
	if err == nil || !strings.Contains(err.Error(), acme+" with different credentials; fix: ") || !strings.Contains(err.Error(), "fleet bakers, group m2") {
		t.Error(err)
	}
}

// TestTroubles: a list that cannot be read is the scope's trouble, and says what to do.
func TestTroubles(t *testing.T) {
	t.Parallel()
	const list = "GET /orgs/acme/actions/runners"
	for name, test := range map[string]struct {
		disturb func(*world)
		code    string
		remedy  string
	}{
		"rejected":    {func(w *world) { w.values["env://TOKEN"] = "ghp_unknown" }, "runner-credentials-rejected", "make another one"},
		"no right":    {func(w *world) { w.set(func(s *sim.Settings) { s.Personal[token] = "none" }) }, "runner-right-missing", "use a GitHub App"},
		"no scope":    {func(w *world) { w.set(func(s *sim.Settings) { s.Missing = []string{"acme"} }) }, "runner-scope-missing", "check its name"},
		"too many":    {func(w *world) { w.refuse(list, 429, "secondary rate limit") }, "rate-limited", "fewer macfleet commands"},
		"unavailable": {func(w *world) { w.refuse(list, 501, "Not Implemented") }, "provider-away", "githubstatus.com"},
		"no secret":   {func(w *world) { delete(w.values, "env://TOKEN") }, "runner-credentials-unread", "correct the references"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			test.disturb(w)
			ctx := t.Context()
			got := w.open(builders(), nil).Observe(ctx)[acme]
			if got.Trouble == nil || got.Trouble.Code.String() != test.code || !strings.Contains(got.Trouble.Remedy, test.remedy) || strings.Contains(got.Trouble.Text, "fix:") {
				t.Fatalf("%+v", got.Trouble)
			}
			if n := len(w.requests("downloads")) + len(w.requests("runner-groups")); n != 0 {
				t.Errorf("%d more requests", n)
			}
		})
	}
}

// TestExtrasAreUnread: what else cannot be read does not make the scope fail.
func TestExtrasAreUnread(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put(sim.Runner{ID: 1, Scope: "acme", Name: "acme-production-builders-m2-0bccd", Version: "2.334.0"})
	for _, path := range []string{"runner-groups", "runners/downloads", "runners/deprecations/2.334.0"} {
		w.refuse("GET /orgs/acme/actions/"+path, 400, "refused "+path)
	}
	got := w.open(builders(), nil).Observe(t.Context())[acme]
	if got.Trouble != nil || len(got.Agents.Agents) != 1 {
		t.Fatalf("%+v", got)
	}
	for path, why := range map[string]string{"runner-groups": got.Agents.Groups.Why(), "downloads": got.Agents.Newest.Why(), "deprecations": got.Agents.SunsetsUnread} {
		if !strings.Contains(why, path) {
			t.Errorf("%s: %q", path, why)
		}
	}
}

// TestRegister: the agents of a run share one registration until shortly before its end, and it is learned before it is used.
func TestRegister(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.open(builders(), nil)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if r, err := a.Admit(t.Context(), acme, ""); err != nil || r.Secret.IsZero() {
				t.Errorf("%+v, %v", r, err)
			}
		})
	}
	all.Wait()
	r, err := a.Admit(t.Context(), acme, "")
	if err != nil || len(w.requests("registration-token")) != 1 || !slices.Equal(w.learned, []string{r.Secret.Reveal()}) {
		t.Errorf("%d requests, %v", len(w.requests("registration-token")), err)
	}
	w.now = r.Expires.Add(-4 * time.Minute)
	if again, err := a.Admit(t.Context(), acme, ""); err != nil || again.Secret.Reveal() == r.Secret.Reveal() {
		t.Errorf("shortly before its end: %v", err)
	}
	if _, err := a.Admit(t.Context(), other, ""); err == nil || !strings.Contains(err.Error(), "no credentials for "+other) {
		t.Error(err)
	}
}

// TestFence: which labels and group an agent has after it is fenced, and after that is undone.
func TestFence(t *testing.T) {
	t.Parallel()
	const name = "acme-production-builders-m2-0bccd"
	groups := []sim.Group{{ID: 1, Name: "Default", Visibility: "all"}, {ID: 3, Name: "bakers", Visibility: "selected"}, {ID: 5, Name: "Fence", Visibility: "selected"}}
	for test, c := range map[string]struct {
		spec                   plan.AgentSpec
		labels                 []string
		group                  int64
		fencedLabels, labelled string
		fenced, grouped        string
		changes                int // requests that change something, both together
	}{
		"by labels":       {plan.AgentSpec{Scope: acme, Labels: []string{"tart"}}, []string{"Tart"}, 1, "", "tart", "1", "1", 2},
		"by group":        {plan.AgentSpec{Scope: acme, Labels: []string{"tart"}, FenceGroup: "fence"}, []string{"tart"}, 1, "tart", "tart", "5", "1", 2},
		"from a group":    {plan.AgentSpec{Scope: acme, Labels: []string{"tart"}, Group: "bakers", FenceGroup: "fence"}, []string{"tart"}, 3, "tart", "tart", "5", "3", 2},
		"edited":          {plan.AgentSpec{Scope: acme, Labels: []string{"tart", "xcode"}, Group: "bakers"}, []string{"other"}, 1, "", "tart xcode", "1", "3", 3},
		"of a repository": {plan.AgentSpec{Scope: repo, Labels: []string{"tart"}}, []string{"tart"}, 1, "", "tart", "", "", 2},
	} {
		t.Run(test, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.set(func(s *sim.Settings) { s.Groups = groups })
			scope := strings.TrimPrefix(c.spec.Scope, "https://github.com/")
			w.put(sim.Runner{ID: 9, Scope: scope, Name: name, Labels: c.labels, Group: c.group})
			a := w.open(config(map[string]*fleet.GithubRunner{"builders": at(c.spec.Scope)}), nil)
			look := func() inventory.Agent {
				t.Helper()
				seen, err := a.Entry(t.Context(), c.spec.Scope, "9")
				now, ok := seen.Get()
				if err != nil || !ok {
					t.Fatalf("%v, %v", seen, err)
				}
				return now.Agents.Agents[0]
			}
			before := look()
			if err := a.Fence(t.Context(), c.spec, before); err != nil {
				t.Fatal(err)
			}
			if now := look(); strings.Join(now.Labels, " ") != c.fencedLabels || now.Group != c.fenced {
				t.Errorf("fenced: %q in group %s", now.Labels, now.Group)
			}
			for range 2 { // the second time there is nothing to do
				if err := a.Unfence(t.Context(), c.spec, before); err != nil {
					t.Fatal(err)
				}
			}
			if now := look(); strings.Join(now.Labels, " ") != c.labelled || now.Group != c.grouped {
				t.Errorf("unfenced: %q in group %s", now.Labels, now.Group)
			}
			if n := len(w.requests("PUT")); n != c.changes {
				t.Errorf("%d changes: %q", n, w.requests("PUT"))
			}
		})
	}
}

// deregister deletes an entry.
func deregister(a *agents.Agents, ctx context.Context, scope, id string) error {
	return a.Change(ctx, plan.PeerChange{Realm: scope, Verb: inventory.DeleteEntry, Entry: inventory.Entry{ID: id}})
}

// TestFenceFails: each failure says what to do.
func TestFenceFails(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put(sim.Runner{ID: 9, Scope: "acme", Name: "builder"}, sim.Runner{ID: 10, Scope: "acme", Name: "busy", Busy: "yes"})
	a := w.open(config(map[string]*fleet.GithubRunner{"builders": at(acme), "apps": at(repo)}), nil)
	present, gone := inventory.Agent{ID: "9", Name: "builder"}, inventory.Agent{ID: "8", Name: "gone"}
	spec := func(scope, group, fence string) plan.AgentSpec {
		return plan.AgentSpec{Scope: scope, Group: group, FenceGroup: fence}
	}
	for name, c := range map[string]struct {
		err  error
		says string
	}{
		"unknown fence group":   {a.Fence(t.Context(), spec(acme, "", "fence"), present), `no runner group "fence"; fix: create it there without repositories`},
		"of a repository":       {a.Fence(t.Context(), spec(repo, "", "fence"), present), "or remove fence_group"},
		"deleted, by labels":    {a.Fence(t.Context(), spec(acme, "", ""), gone), "no such runner any more in the organization acme; fix: run macfleet plan again"},
		"deleted, by group":     {a.Fence(t.Context(), spec(acme, "", "default"), gone), "no longer has the runner or the group in the organization acme; fix: run macfleet plan again"},
		"deleted, then back":    {a.Unfence(t.Context(), spec(acme, "", ""), gone), "no such runner any more; fix: run macfleet plan again"},
		"unknown group":         {a.Unfence(t.Context(), spec(acme, "bakers", ""), present), `no runner group "bakers"; fix: create it there, or correct runner_group`},
		"unknown scope":         {deregister(a, t.Context(), other, "9"), "no credentials for " + other},
		"a job that GitHub has": {deregister(a, t.Context(), acme, "10"), "fix: wait for the job"},
	} {
		if c.err == nil || !strings.Contains(c.err.Error(), c.says) {
			t.Errorf("%s: %v", name, c.err)
		}
	}
	for _, id := range []string{"9", "9"} {
		if err := deregister(a, t.Context(), acme, id); err != nil {
			t.Error(err)
		}
	}
	if seen, err := a.Entry(t.Context(), acme, "9"); err != nil || !seen.IsAbsent() {
		t.Errorf("%v, %v", seen, err)
	}
}

// TestApp: an App's values are read at the first request, once, and one with read rights lists.
func TestApp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	key, err := w.github.Key("github-app.pem")
	if err != nil {
		t.Fatal(err)
	}
	w.values["env://KEY"], w.values["env://INSTALLATION"] = key, "7"
	w.set(func(s *sim.Settings) {
		s.Installations = []sim.Installation{{ID: 7, Account: "acme", Permissions: map[string]string{"organization_self_hosted_runners": "read"}}}
	})
	cfg := builders()
	r := cfg.Fleets[0].Groups[0].Spec.GithubRunner
	r.Token, r.App = nil, &fleet.GitHubApp{Name: "builders", AppID: fleet.Known{Text: "4711"}, InstallationID: fleet.Known{Ref: ref("INSTALLATION")}, PrivateKey: ref("KEY")}
	a := w.open(cfg, nil)
	for range 2 {
		if got := a.Observe(t.Context())[acme]; got.Trouble != nil || !got.ReadOnly() {
			t.Errorf("%+v, read only %t", got.Trouble, got.ReadOnly())
		}
	}
	if want := []string{"installation_id", "private_key"}; !slices.Equal(w.resolved, want) {
		t.Errorf("resolved %q", w.resolved)
	}
	if access, err := a.Access(t.Context(), acme); err != nil || access.Level != "read" || access.App != "4711" || access.Installation != "7" || access.Key != 1 {
		t.Errorf("%+v, %v", access, err)
	}
}

// TestAllFaultsOfAnApp are in one trouble: of references, and of what was read. None has a part of a key.
func TestAllFaultsOfAnApp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.values["env://INSTALLATION"], w.values["env://PREVIOUS"] = "seven", "-----BEGIN RSA PRIVATE KEY-----\nplantedplanted\n-----END RSA PRIVATE KEY-----\n"
	cfg := builders()
	r := cfg.Fleets[0].Groups[0].Spec.GithubRunner
	r.Token, r.App = nil, &fleet.GitHubApp{Name: "builders", AppID: fleet.Known{Ref: ref("ID")}, InstallationID: fleet.Known{Ref: ref("INSTALLATION")},
		PrivateKey: ref("KEY"), PreviousPrivateKey: ref("PREVIOUS")}
	got := w.open(cfg, nil).Observe(t.Context())[acme].Trouble
	if got == nil || got.Code != plan.CodeRunnerCredentials {
		t.Fatalf("%+v", got)
	}
	want := "credentials for https://github.com/acme: github_app.builders: app_id: secret env://ID: the variable is not set; installation_id: it is not a number; " +
		"private_key: secret env://KEY: the variable is not set; previous_private_key: it is not an RSA key in PEM"
	if got.Text != want {
		t.Errorf("text %s", got.Text)
	}
	if strings.Contains(got.Text+got.Remedy, "planted") || !strings.Contains(got.Remedy, "copy the number") || !strings.Contains(got.Remedy, "use the file") {
		t.Errorf("remedy %s", got.Remedy)
	}
	if n := len(w.requests("")); n != 0 {
		t.Errorf("%d requests", n)
	}
}
