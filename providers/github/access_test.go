package github_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/secret"
	"github.com/macfleet/macfleet/providers/github"
)

// TestAccess: what credentials may do, without a change.
func TestAccess(t *testing.T) {
	t.Parallel()
	const installation = "/orgs/acme/installation"
	const needed = "Self-hosted runners (of the organization)"
	granted := func(level string) map[string]any {
		return map[string]any{"id": 7, "account": map[string]any{"login": "Acme"}, "permissions": map[string]any{"organization_self_hosted_runners": level}}
	}
	elsewhere := map[string]any{"id": 9, "account": map[string]any{"login": "globex"}, "permissions": map[string]any{}}
	suspended := granted("write")
	suspended["suspended_at"] = "2026-11-01T00:00:00Z"
	for name, test := range map[string]struct {
		installation string // as configured
		path         string
		status       int
		answer       map[string]any
		want         inventory.AgentAccess
		class        inventory.Class
		says         string
	}{
		"write":            {"", installation, 200, granted("write"), inventory.AgentAccess{App: issuer, Key: 2, Installation: "7", Permission: needed, Level: "write"}, "", ""},
		"read":             {"7", "/app/installations/7", 200, granted("read"), inventory.AgentAccess{App: issuer, Key: 2, Installation: "7", Permission: needed, Level: "read"}, "", ""},
		"none":             {"", installation, 200, granted(""), inventory.AgentAccess{}, inventory.Denied, "lacks the permission " + needed},
		"suspended":        {"", installation, 200, suspended, inventory.AgentAccess{}, inventory.Denied, "is suspended; fix: an owner unsuspends it"},
		"another account":  {"9", "/app/installations/9", 200, elsewhere, inventory.AgentAccess{}, inventory.NotFound, "is on globex, not on acme; fix: correct installation_id"},
		"no such":          {"8", "/app/installations/8", 404, map[string]any{"message": "Not Found"}, inventory.AgentAccess{}, inventory.NotFound, "has no installation 8; fix: correct installation_id"},
		"is not installed": {"", installation, 404, map[string]any{"message": "Not Found"}, inventory.AgentAccess{}, inventory.NotFound, "is not installed on the organization acme"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, _ := client(t, acme)
			s.answers["GET "+test.path] = func(w http.ResponseWriter, r *http.Request) {
				if s.isApp(w, strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")) {
					say(w, test.status, test.answer)
				}
			}
			keys := []secret.Value{inPEM(t, keys()[1], false), inPEM(t, keys()[0], false)} // the first one was revoked
			c := s.as(github.Credentials{App: &github.App{ID: issuer, Installation: test.installation, Keys: keys}}, acme)
			got, err := c.Access(t.Context())
			if inventory.ClassOf(err) != test.class || err != nil && !strings.Contains(err.Error(), test.says) {
				t.Fatalf("class %q, %v", inventory.ClassOf(err), err)
			}
			if d := cmp.Diff(test.want, got); err == nil && d != "" {
				t.Error(d)
			}
			if s.tokens != 0 {
				t.Error("a token was made")
			}
		})
	}
}

// TestAccessOfAToken: GitHub names the scopes of classic tokens only.
func TestAccessOfAToken(t *testing.T) {
	t.Parallel()
	for scopes, level := range map[string]string{"admin:org, repo": "write", "": ""} {
		s, _ := client(t, acme)
		c := s.as(github.Credentials{Token: value(t, "ghp_static")}, acme)
		s.answers["GET "+list] = func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-OAuth-Scopes", scopes)
			say(w, 200, map[string]any{"total_count": 0, "runners": []any{}})
		}
		if got, err := c.Access(t.Context()); err != nil || got.Level != level || got.App != "" || got.Key != 0 {
			t.Errorf("%q: %+v, %v", scopes, got, err)
		}
	}
}

// TestRunner: one entry, and one that does not exist.
func TestRunner(t *testing.T) {
	t.Parallel()
	s, c := client(t, acme)
	s.answer("GET "+list+"/5", 200, entry(5, "acme-5"))
	if got, err := c.Runner(t.Context(), "5"); err != nil || got.IsAbsent() {
		t.Errorf("%v, %v", got, err)
	} else if one, _ := got.Get(); one.Name != "acme-5" || one.Group != "1" {
		t.Errorf("%+v", one)
	}
	if got, err := c.Runner(t.Context(), "6"); err != nil || !got.IsAbsent() {
		t.Errorf("%v, %v", got, err)
	}
	s.answer("GET "+list+"/7", 500, map[string]any{"message": "Server Error"})
	if got, err := c.Runner(t.Context(), "7"); inventory.ClassOf(err) != inventory.ServerFault || !got.IsUnread() {
		t.Errorf("%v, %v", got, err)
	}
}

// TestGroups: the default one is marked, and where GitHub shows no groups there are none.
func TestGroups(t *testing.T) {
	t.Parallel()
	s, c := client(t, acme)
	s.answer("GET /orgs/acme/actions/runner-groups", 200, map[string]any{"total_count": 3, "runner_groups": []any{
		map[string]any{"id": 1, "name": "Default", "visibility": "all", "default": true, "allows_public_repositories": true},
		map[string]any{"id": 3, "name": "fence", "visibility": "selected"}, map[string]any{"id": 4, "name": "own", "visibility": "private"}}})
	seen, err := c.Groups(t.Context())
	got, _ := seen.Get()
	want := []inventory.AgentGroup{{ID: "1", Name: "Default", Public: true, All: true, Default: true}, {ID: "3", Name: "fence"}, {ID: "4", Name: "own", All: true}}
	if d := cmp.Diff(want, got); err != nil || d != "" {
		t.Errorf("%v %s", err, d)
	}
	s.answer("GET /orgs/acme/actions/runner-groups/3/repositories", 200, map[string]any{"total_count": 2, "repositories": []any{map[string]any{"id": 8, "full_name": "acme/web"}, map[string]any{"id": 9, "full_name": "acme/app"}}})
	if names, err := c.Repositories(t.Context(), "3"); err != nil || strings.Join(names, " ") != "acme/app acme/web" {
		t.Errorf("%q, %v", names, err)
	}
	for _, status := range []int{403, 404} {
		s.answer("GET /orgs/acme/actions/runner-groups", status, map[string]any{"message": "Not available"})
		if seen, err := c.Groups(t.Context()); err != nil || !seen.IsAbsent() {
			t.Errorf("%d: %v, %v", status, seen, err)
		}
	}
	s.answer("GET /orgs/acme/actions/runner-groups", 500, map[string]any{"message": "Server Error"})
	if seen, err := c.Groups(t.Context()); err == nil || !seen.IsUnread() {
		t.Errorf("%v, %v", seen, err)
	}
	own := s.as(github.Credentials{Token: value(t, "ghp_static")}, github.Scope{Organization: "acme", Repository: "app"})
	if seen, err := own.Groups(t.Context()); err != nil || !seen.IsAbsent() || len(s.sent("/repos/acme/app/")) != 0 {
		t.Errorf("of a repository: %v, %v", seen, err)
	}
}

// TestChangesAreVerified: what GitHub answers after a change counts, not that it accepted it.
func TestChangesAreVerified(t *testing.T) {
	t.Parallel()
	s, c := client(t, acme)
	labels := func(custom ...string) {
		all := []map[string]any{{"name": "macOS", "type": "read-only"}}
		for _, l := range custom {
			all = append(all, map[string]any{"name": l, "type": "custom"})
		}
		s.answer("PUT "+list+"/5/labels", 200, map[string]any{"total_count": len(all), "labels": all})
	}
	for _, test := range []struct {
		wanted, now []string
		ok          bool
	}{{nil, nil, true}, {nil, []string{"tart"}, false}, {[]string{"tart"}, []string{"Tart"}, true}, {[]string{"tart"}, nil, false}, {[]string{"macos"}, nil, true}} {
		labels(test.now...)
		if err := c.Label(t.Context(), "5", test.wanted); (err == nil) != test.ok {
			t.Errorf("%q, afterwards %q: %v", test.wanted, test.now, err)
		}
	}
	s.answers["PUT /orgs/acme/actions/runner-groups/3/runners/5"] = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }
	for group, says := range map[int]string{3: "", 0: "", 1: "is in group 1 afterwards"} {
		s.answer("GET "+list+"/5", 200, map[string]any{"id": 5, "runner_group_id": group})
		if err := c.Move(t.Context(), "5", "3"); says == "" && err != nil || says != "" && !strings.Contains(fmt.Sprint(err), says) {
			t.Errorf("group %d: %v", group, err)
		}
	}
	for what, err := range map[string]error{"label": c.Label(t.Context(), "6", nil), "move": c.Move(t.Context(), "6", "3")} {
		if inventory.ClassOf(err) != inventory.NotFound || !strings.Contains(err.Error(), "fix: run macfleet plan again") {
			t.Errorf("%s a deleted runner: %v", what, err)
		}
	}
}

// TestRegisterJIT: the finished configuration of a runner is a secret.
func TestRegisterJIT(t *testing.T) {
	t.Parallel()
	s, c := client(t, acme)
	var sent string
	s.answers["POST "+list+"/generate-jitconfig"] = func(w http.ResponseWriter, r *http.Request) {
		say(w, 201, map[string]any{"runner": entry(5, "acme-5"), "encoded_jit_config": "cGxhbnRlZA=="})
	}
	s.body = func(r *http.Request, text string) {
		if strings.HasSuffix(r.URL.Path, "jitconfig") {
			sent = text
		}
	}
	r, err := c.RegisterJIT(t.Context(), "acme-5", "3", []string{"tart"}, "_work")
	if err != nil || r.Encoded.Reveal() != "cGxhbnRlZA==" || !r.Token.IsZero() || r.URL != "https://github.com/acme" || strings.Contains(fmt.Sprintf("%+v", r), "cGxh") {
		t.Errorf("%+v, %v", r, err)
	}
	if want := `{"name":"acme-5","runner_group_id":3,"labels":["tart"],"work_folder":"_work"}`; strings.TrimSpace(sent) != want {
		t.Errorf("sent %s", sent)
	}
	if _, err := c.RegisterJIT(t.Context(), "acme-5", "Default", nil, ""); err == nil || !strings.Contains(err.Error(), "fix: give the group's number") {
		t.Error(err)
	}
	s.answer("POST "+list+"/generate-jitconfig", 201, map[string]any{})
	if _, err := c.RegisterJIT(t.Context(), "acme-5", "3", nil, ""); inventory.ClassOf(err) != inventory.UnexpectedAnswer {
		t.Error(err)
	}
}
