package github_test

import (
	"crypto/rsa"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/secret"
	"github.com/macfleet/macfleet/providers/github"
)

var acme = github.Scope{Organization: "acme"}

const list = "/orgs/acme/actions/runners"

func entry(id int, name string) map[string]any {
	return map[string]any{"id": id, "name": name, "os": "macOS", "status": "online", "busy": id%2 == 0, "runner_group_id": 1, "version": "2.336.0",
		"labels": []map[string]any{{"name": "self-hosted", "type": "read-only"}, {"name": "macOS", "type": "read-only"}, {"name": "Bare-Metal", "type": "custom"}}}
}

// TestAddresses: the API and the address at which a runner registers, by host.
func TestAddresses(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		scope    github.Scope
		api, web string
	}{
		{github.Scope{Organization: "acme"}, "https://api.github.com/", "https://github.com/acme"},
		{github.Scope{Host: "www.github.com", Organization: "acme", Repository: "app"}, "https://api.github.com/", "https://github.com/acme/app"},
		{github.Scope{Host: "acme.ghe.com", Organization: "acme"}, "https://api.acme.ghe.com/", "https://acme.ghe.com/acme"},
		{github.Scope{Host: "ghe.acme.com", Organization: "acme", Repository: "app"}, "https://ghe.acme.com/api/v3/", "https://ghe.acme.com/acme/app"},
		{github.Scope{Host: "github.acme.com", Organization: "acme"}, "https://github.acme.com/api/v3/", "https://github.acme.com/acme"},
	} {
		if api, web := test.scope.API(), test.scope.Web(); api != test.api || web != test.web {
			t.Errorf("%+v: %s, %s", test.scope, api, web)
		}
	}
}

// TestRunners reads all pages with one narrowed token.
func TestRunners(t *testing.T) {
	t.Parallel()
	s, c := client(t, acme)
	s.answers["GET "+list] = func(w http.ResponseWriter, r *http.Request) {
		all := make([]map[string]any, 0, 100)
		from, to := 1, 100
		if r.URL.Query().Get("page") == "2" {
			from, to = 101, 130
		} else {
			w.Header().Set("Link", fmt.Sprintf(`<http://%s%s?per_page=100&page=2>; rel="next"`, r.Host, r.URL.Path))
		}
		for id := from; id <= to; id++ {
			all = append(all, entry(id, fmt.Sprintf("acme-%d", id)))
		}
		say(w, 200, map[string]any{"total_count": 130, "runners": all})
	}
	for range 2 {
		got, churned, err := c.Runners(t.Context())
		if err != nil || churned || len(got) != 130 {
			t.Fatalf("%d runners, %v", len(got), err)
		}
		want := inventory.Agent{ID: "2", Name: "acme-2", Labels: []string{"bare-metal"}, Fixed: []string{"macos", "self-hosted"}, Online: true, Busy: true, Group: "1", Version: "2.336.0"}
		if d := cmp.Diff(want, got[1]); d != "" {
			t.Error(d)
		}
	}
	if want := []string{`{"permissions":{"organization_self_hosted_runners":"write"}}`}; !slices.Equal(trimmed(s.requested), want) {
		t.Errorf("tokens %q", s.requested)
	}
}

func trimmed(all []string) []string {
	out := make([]string, len(all))
	for i, a := range all {
		out[i] = strings.TrimSpace(a)
	}
	return out
}

// TestAListInPart: runners came and went between two pages, so the list is read again. If each reading lacks some, all that any had count.
func TestAListInPart(t *testing.T) {
	t.Parallel()
	s, c := client(t, acme)
	reads := 0
	s.answers["GET "+list] = func(w http.ResponseWriter, _ *http.Request) {
		reads++
		all := []map[string]any{entry(1, "a")}
		if reads > 2 {
			all = append(all, entry(2, "b"))
		}
		say(w, 200, map[string]any{"total_count": 2, "runners": all})
	}
	if got, churned, err := c.Runners(t.Context()); err != nil || churned || len(got) != 2 || reads != 3 {
		t.Errorf("%d runners after %d reads, %v", len(got), reads, err)
	}
	reads = 0
	s.answers["GET "+list] = func(w http.ResponseWriter, _ *http.Request) {
		reads++
		say(w, 200, map[string]any{"total_count": 2, "runners": []any{entry(reads, "a")}})
	}
	if got, churned, err := c.Runners(t.Context()); err != nil || !churned || len(got) != 3 || reads != 3 || got[2].ID != "3" {
		t.Errorf("%v after %d reads, %v, %v", got, reads, churned, err)
	}
	for _, bad := range []any{map[string]any{"runners": []any{}}, map[string]any{"total_count": 1, "runners": []any{entry(0, "a")}}} {
		s.answer("GET "+list, 200, bad)
		if got, _, err := c.Runners(t.Context()); inventory.ClassOf(err) != inventory.UnexpectedAnswer {
			t.Errorf("%v: %v, %v", bad, got, err)
		}
	}
}

// TestChanges: which requests are sent.
func TestChanges(t *testing.T) {
	t.Parallel()
	s, c := client(t, acme)
	s.answer("POST "+list+"/registration-token", 201, map[string]any{"token": "AREGISTRATION", "expires_at": s.now.Add(time.Hour)})
	r, err := c.Register(t.Context())
	if err != nil || r.URL != "https://github.com/acme" || r.Token.Reveal() != "AREGISTRATION" || r.Expires.IsZero() || strings.Contains(fmt.Sprintf("%+v", r), "AREG") {
		t.Errorf("%+v, %v", r, err)
	}
	none := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }
	s.answers["DELETE "+list+"/5"] = none
	s.answers["PUT /orgs/acme/actions/runner-groups/3/runners/5"] = none
	s.answer("GET "+list+"/5", 200, map[string]any{"id": 5, "runner_group_id": 3})
	s.answer("PUT "+list+"/5/labels", 200, map[string]any{"total_count": 0, "labels": []any{}})
	for _, err := range []error{c.Remove(t.Context(), "5"), c.Remove(t.Context(), "6"), c.Move(t.Context(), "5", "3"), c.Label(t.Context(), "5", nil)} {
		if err != nil {
			t.Error(err)
		}
	}
	s.answer("DELETE "+list+"/5", 422, map[string]any{"message": `Bad request - Runner "x" is still running a job`})
	if err := c.Remove(t.Context(), "5"); inventory.ClassOf(err) != inventory.Precondition {
		t.Error(err)
	}
}

// TestWritesAreNotRepeated: what was not carried out for certain is looked up by the caller.
func TestWritesAreNotRepeated(t *testing.T) {
	t.Parallel()
	s, c := client(t, acme)
	s.answer("DELETE "+list+"/5", 502, map[string]any{"message": "Bad Gateway"})
	err := c.Remove(t.Context(), "5")
	if !inventory.Unsure(err) || inventory.ClassOf(err) != inventory.ServerFault || len(s.sent("DELETE")) != 1 || !strings.Contains(err.Error(), "request id ACME:") {
		t.Errorf("%d requests, %v", len(s.sent("DELETE")), err)
	}
}

// TestTokenIsMadeAgain: a token that GitHub does not accept any more is replaced once.
func TestTokenIsMadeAgain(t *testing.T) {
	t.Parallel()
	s, c := client(t, acme)
	s.answers["GET "+list] = func(w http.ResponseWriter, r *http.Request) {
		if s.tokens < 2 {
			refuse(w, 401, "Bad credentials")
			return
		}
		say(w, 200, map[string]any{"total_count": 0, "runners": []any{}})
	}
	if _, _, err := c.Runners(t.Context()); err != nil || s.tokens != 2 {
		t.Errorf("%d tokens, %v", s.tokens, err)
	}
	s.answer("GET "+list, 401, map[string]any{"message": "Bad credentials"})
	if _, _, err := c.Runners(t.Context()); inventory.ClassOf(err) != inventory.Unauthenticated || s.tokens != 3 {
		t.Errorf("%d tokens, %v", s.tokens, err)
	}
}

// TestClock: a difference of a minute is accepted, one of six is named.
func TestClock(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		off  time.Duration
		says string
	}{{time.Minute, ""}, {-time.Minute, ""}, {6*time.Minute + 30*time.Second, "6m30s ahead of GitHub's"}, {-7 * time.Minute, "7m0s behind GitHub's"}} {
		s, c := client(t, acme)
		s.answer("GET "+list, 200, map[string]any{"total_count": 0, "runners": []any{}})
		c.At(s.now.Add(test.off))
		_, _, err := c.Runners(t.Context())
		if test.says == "" && err != nil || test.says != "" && (err == nil || !strings.Contains(err.Error(), test.says)) {
			t.Errorf("%s: %v", test.off, err)
		}
	}
}

// TestKeys: both forms of a key, and two of which one was revoked.
func TestKeys(t *testing.T) {
	t.Parallel()
	s, _ := client(t, acme)
	s.answer("GET "+list, 200, map[string]any{"total_count": 0, "runners": []any{}})
	revoked, active := inPEM(t, keys()[1], false), inPEM(t, keys()[0], true)
	for _, all := range [][]secret.Value{{active}, {revoked, active}, {active, revoked}} {
		c := s.as(github.Credentials{App: &github.App{ID: issuer, Installation: "7", Keys: all}}, acme)
		if _, _, err := c.Runners(t.Context()); err != nil {
			t.Error(err)
		}
	}
	c := s.as(github.Credentials{App: &github.App{ID: issuer, Keys: []secret.Value{revoked}}}, acme)
	if _, _, err := c.Runners(t.Context()); inventory.ClassOf(err) != inventory.Unauthenticated || !strings.Contains(err.Error(), "revoked") {
		t.Error(err)
	}
}

// TestAllFaultsAtOnce: an App's faults are in one error, without a byte of a key.
func TestAllFaultsAtOnce(t *testing.T) {
	t.Parallel()
	planted := value(t, "-----BEGIN RSA PRIVATE KEY-----\nplantedplanted\n-----END RSA PRIVATE KEY-----\n")
	for id, ok := range map[string]bool{"4711": true, issuer: true, "Iv1.8a61f9b3a7aba766": true, "": false, "acme builders": false, strings.Repeat("0a1b2c3d", 5): false} {
		faults := github.App{ID: id, Keys: []secret.Value{inPEM(t, keys()[0], false)}}.Faults()
		if (faults[github.AppID] == nil) != ok || id != "" && strings.Contains(fmt.Sprint(faults), id) {
			t.Errorf("%q: %v", id, faults)
		}
	}
	_, err := github.New(github.Options{Scope: acme, HTTP: http.DefaultClient, Credentials: github.Credentials{App: &github.App{ID: " ", Installation: "x7", Keys: []secret.Value{planted}}}})
	for _, want := range []string{"app_id: ", "installation_id: ", "private_key: "} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in %v", want, err)
		}
	}
	if strings.Contains(fmt.Sprint(err), "planted") {
		t.Error(err)
	}
	if _, err := github.New(github.Options{Scope: acme, HTTP: http.DefaultClient}); err == nil {
		t.Error("no credentials, no error")
	}
}

// TestReadOnlyApp: an App with read rights plans; a change names the permission.
func TestReadOnlyApp(t *testing.T) {
	t.Parallel()
	s, c := client(t, acme)
	s.granted = "read"
	s.answer("GET "+list, 200, map[string]any{"total_count": 0, "runners": []any{}})
	s.answer("POST "+list+"/registration-token", 403, map[string]any{"message": "Resource not accessible by integration"})
	if _, _, err := c.Runners(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := c.Register(t.Context()); inventory.ClassOf(err) != inventory.Denied || !strings.Contains(err.Error(), "for reading only") {
		t.Error(err)
	}
}

// TestFailures: each error has its class and says what to do.
func TestFailures(t *testing.T) {
	t.Parallel()
	const tokens = "POST /app/installations/7/access_tokens"
	headers := func(status int, message string, pairs ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			for i := 0; i < len(pairs); i += 2 {
				w.Header().Set(pairs[i], pairs[i+1])
			}
			refuse(w, status, message)
		}
	}
	later := time.Date(2026, 11, 23, 9, 40, 0, 0, time.UTC).Unix()
	for name, test := range map[string]struct {
		request string
		answer  http.HandlerFunc
		class   inventory.Class
		says    string
		wait    time.Duration
		tries   int
	}{
		"not installed":         {"GET /orgs/acme/installation", headers(404, "Not Found"), inventory.NotFound, "is not installed on the organization acme", 0, 1},
		"suspended":             {tokens, headers(403, "This installation has been suspended"), inventory.Denied, "unsuspends", 0, 1},
		"wrong installation":    {tokens, headers(404, "Not Found"), inventory.NotFound, "correct installation_id", 0, 1},
		"permission":            {"GET " + list, headers(403, "Resource not accessible by integration"), inventory.Denied, "let an owner of the organization accept", 0, 1},
		"fine-grained token":    {"GET " + list, headers(403, "Resource not accessible by personal access token"), inventory.Denied, "token of an owner", 0, 1},
		"unknown organization":  {"GET " + list, headers(404, "Not Found"), inventory.NotFound, "no organization acme", 0, 1},
		"renamed":               {"GET " + list, headers(301, "Moved Permanently", "Location", "https://api.github.com/organizations/1"), inventory.NotFound, "its new name", 0, 1},
		"used up":               {"GET " + list, headers(403, "API rate limit exceeded", "X-Ratelimit-Remaining", "0", "X-Ratelimit-Reset", fmt.Sprint(later)), inventory.RateLimited, "next request in 40m0s", 40 * time.Minute, 1},
		"secondary":             {"GET " + list, headers(403, "You have exceeded a secondary rate limit", "Retry-After", "60", "X-Ratelimit-Remaining", "4000", "X-Ratelimit-Reset", fmt.Sprint(later)), inventory.RateLimited, "next request in 1m0s", time.Minute, 1},
		"secondary, short":      {"GET " + list, headers(429, "You have exceeded a secondary rate limit", "Retry-After", "20"), inventory.RateLimited, "next request in 20s", 20 * time.Second, 5},
		"server fault":          {"GET " + list, headers(503, "Service unavailable"), inventory.ServerFault, "githubstatus.com", 10 * time.Second, 6},
		"another server's page": {"GET " + list, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) }, inventory.UnexpectedAnswer, "check the host in the configuration (github.com)", 0, 6},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, c := client(t, acme)
			s.answers[test.request] = test.answer
			_, _, err := c.Runners(t.Context())
			if inventory.ClassOf(err) != test.class || !strings.Contains(err.Error(), test.says) || !strings.Contains(err.Error(), "ACME:") {
				t.Errorf("class %q, %v", inventory.ClassOf(err), err)
			}
			path := strings.Fields(test.request)[1]
			if n := len(s.sent(path)); n != test.tries {
				t.Errorf("%d requests: %q", n, s.asked)
			}
			if got := waitOf(err); got != test.wait {
				t.Errorf("wait %s", got)
			}
		})
	}
}

func waitOf(err error) time.Duration {
	for e := err; e != nil; {
		if p, ok := e.(*inventory.ProviderError); ok {
			return p.Wait
		}
		u, ok := e.(interface{ Unwrap() error })
		if !ok {
			break
		}
		e = u.Unwrap()
	}
	return -1
}

// TestWrongApp: the App's id is another's.
func TestWrongApp(t *testing.T) {
	t.Parallel()
	s, _ := client(t, acme)
	c := s.as(github.Credentials{App: &github.App{ID: "12", Keys: []secret.Value{inPEM(t, keys()[0], false)}}}, acme)
	if _, _, err := c.Runners(t.Context()); err == nil || !strings.Contains(err.Error(), "GitHub has no App 12") {
		t.Error(err)
	}
	s.accepted = []*rsa.PublicKey{&keys()[1].PublicKey}
}

// TestStaticToken is sent as it is, and never made again.
func TestStaticToken(t *testing.T) {
	t.Parallel()
	s, _ := client(t, acme)
	c := s.as(github.Credentials{Token: value(t, "ghp_static")}, github.Scope{Organization: "acme", Repository: "app"})
	s.answer("GET /repos/acme/app/actions/runners", 200, map[string]any{"total_count": 0, "runners": []any{}})
	if _, _, err := c.Runners(t.Context()); err != nil || s.tokens != 0 {
		t.Error(err)
	}
	s.answer("GET /repos/acme/app/actions/runners", 401, map[string]any{"message": "Bad credentials"})
	if _, _, err := c.Runners(t.Context()); err == nil || !strings.Contains(err.Error(), "make another one") {
		t.Error(err)
	}
}

// TestReleases: the newest program, and until when a version is accepted.
func TestReleases(t *testing.T) {
	t.Parallel()
	s, c := client(t, acme)
	s.answer("GET "+list+"/downloads", 200, []map[string]any{
		{"os": "linux", "architecture": "arm64", "filename": "actions-runner-linux-arm64-2.338.0.tar.gz"},
		{"os": "osx", "architecture": "x64", "filename": "actions-runner-osx-x64-2.338.0.tar.gz"},
		{"os": "osx", "architecture": "arm64", "filename": "actions-runner-osx-arm64-2.338.0.tar.gz", "download_url": "https://github.com/x", "sha256_checksum": "ab"}})
	if got, err := c.Newest(t.Context()); err != nil || got != inventory.Present(inventory.AgentRelease{Version: "2.338.0", URL: "https://github.com/x", SHA256: "ab"}) {
		t.Errorf("%v, %v", got, err)
	}
	s.answer("GET "+list+"/downloads", 200, []any{})
	if got, err := c.Newest(t.Context()); err != nil || !got.IsAbsent() {
		t.Errorf("%v, %v", got, err)
	}
	s.answer("GET "+list+"/deprecations/2.330.0", 200, map[string]any{"runner_version": "2.330.0", "runtime_deprecates_at": "2026-12-01T00:00:00Z", "registration_deprecates_at": nil})
	got, err := c.Sunset(t.Context(), "2.330.0")
	if when, ok := got.Get(); err != nil || !ok || when.Running.Month() != time.December || !when.Registering.IsZero() {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := c.Sunset(t.Context(), "2.1.0"); err != nil || !got.IsAbsent() {
		t.Errorf("%v, %v", got, err)
	}
	own := s.as(github.Credentials{Token: value(t, "ghp_static")}, github.Scope{Host: "github.acme.com", Organization: "acme"})
	if got, err := own.Sunset(t.Context(), "2.330.0"); err != nil || !got.IsAbsent() {
		t.Errorf("%v, %v", got, err)
	}
}
