package github_test

import (
	"crypto/rsa"
	"encoding/pem"
	"strings"
	"testing"
	"time"

	"github.com/macfleet/macfleet/internal/sandbox/github"
)

const mint = "POST /app/installations/7/access_tokens"

func TestAppToken(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	at := func(d time.Duration) int64 { return w.now.Add(d).Unix() }
	for name, test := range map[string]struct {
		key    *rsa.PrivateKey
		change map[string]any
		says   string // "" = accepted
	}{
		"right":                {keys()[0], nil, ""},
		"another key":          {keys()[1], nil, "A JSON web token could not be decoded"},
		"expired":              {keys()[0], map[string]any{"exp": at(-time.Second)}, "'exp') must be a numeric value"},
		"without an end":       {keys()[0], map[string]any{"exp": nil}, "'exp') must be a numeric value"},
		"too long":             {keys()[0], map[string]any{"exp": at(11 * time.Minute)}, "'exp') is too far in the future"},
		"too long from before": {keys()[0], map[string]any{"iat": at(-6 * time.Minute)}, "'exp') is too far in the future"},
		"issued in the future": {keys()[0], map[string]any{"iat": at(time.Minute)}, "'iat') must be an Integer"},
		"a fraction":           {keys()[0], map[string]any{"iat": float64(at(-time.Minute)) + 0.5}, "'iat') must be an Integer"},
		"nobody":               {keys()[0], map[string]any{"iss": nil}, "Integration not found"},
		"another App":          {keys()[0], map[string]any{"iss": "4712"}, "Integration not found"},
	} {
		t.Run(name, func(t *testing.T) {
			w.set(func(s *github.Settings) { s.App = "4711" })
			status := 401
			if test.says == "" {
				status = 201
			}
			w.expect(w.jwt(test.key, test.change), mint, "", status, test.says)
		})
	}
	w.expect("no.jwt.here", mint, "", 401, "could not be decoded")
	w.set(func(s *github.Settings) { s.RevokedKeys = []string{"github-app.pem"} })
	w.expect(w.jwt(keys()[0], nil), mint, "", 401, "could not be decoded")
}

// TestKey checks that a key is created once, in the form in which GitHub hands it out.
func TestKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	made, err := w.api.Key("github-app-2.pem")
	must(t, err)
	if block, _ := pem.Decode([]byte(made)); block == nil || block.Type != "RSA PRIVATE KEY" {
		t.Errorf("not PKCS#1: %.40s", made)
	}
	if again, err := w.api.Key("github-app-2.pem"); err != nil || again != made {
		t.Errorf("the second call returned another key (%v)", err)
	}
	if _, err := w.api.Key("../settings.pem"); err == nil {
		t.Error("a key outside the folder")
	}
}

func TestInstallations(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	app := w.jwt(keys()[0], nil)
	w.expect(app, "GET /orgs/acme/installation", "", 200, `"repository_selection":"all"`)
	w.set(func(s *github.Settings) {
		s.Installations = []github.Installation{
			{ID: 7, Account: "acme", Repositories: []string{"app"}, Permissions: map[string]string{"organization_self_hosted_runners": "read", "administration": "write"}},
			{ID: 8, Account: "globex", Permissions: map[string]string{"administration": "write"}, Suspended: true},
		}
		s.Missing = []string{"acme/gone"}
	})
	w.expect(app, "GET /orgs/acme/installation", "", 200, `"id":7`)
	w.expect(app, "GET /repos/acme/app/installation", "", 200, `"repository_selection":"selected"`)
	w.expect(app, "GET /repos/acme/web/installation", "", 404, "Not Found")
	w.expect(app, "GET /orgs/initech/installation", "", 404, "Not Found")
	w.expect(app, "POST /app/installations/9/access_tokens", "", 404, "Not Found")
	w.expect(app, "POST /app/installations/8/access_tokens", "", 403, "suspended")
	w.expect(app, mint, `{"permissions":{"organization_self_hosted_runners":"write"}}`, 422, "permissions requested are not granted")
	w.expect(app, mint, `{"repositories":["web"]}`, 422, "not accessible to the parent installation")

	reader := w.token(`{"permissions":{"organization_self_hosted_runners":"read"}}`)
	w.expect(reader, "GET /orgs/acme/actions/runners", "", 200, `"total_count":0`)
	w.expect(reader, "POST /orgs/acme/actions/runners/registration-token", "", 403, "Resource not accessible by integration")
	w.expect(reader, "GET /repos/acme/app/actions/runners", "", 403, "Resource not accessible by integration")
	w.expect(reader, "GET /orgs/globex/actions/runners", "", 404, "Not Found")
	writer := w.token(`{"repositories":["app"],"permissions":{"administration":"write"}}`)
	w.expect(writer, "POST /repos/acme/app/actions/runners/registration-token", "", 201, `"expires_at":"2026-11-23T10:00:00Z"`)
	w.expect(writer, "POST /repos/acme/web/actions/runners/registration-token", "", 404, "Not Found")

	w.now = w.now.Add(time.Hour)
	w.expect(writer, "GET /repos/acme/app/actions/runners", "", 401, "Bad credentials")
}

func TestTokenForms(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if long := w.token(""); !strings.HasPrefix(long, "ghs_") || strings.Count(long, ".") != 2 || len(long) < 480 || len(long) > 560 {
		t.Errorf("the stateless form: %d characters, %s", len(long), long)
	}
	_, text := w.ask(w.jwt(keys()[0], nil), mint, "", "X-GitHub-Stateless-S2S-Token", "disabled")
	var out struct{ Token string }
	if w.decode(text, &out); len(out.Token) != 40 || strings.Contains(out.Token, ".") {
		t.Errorf("the opaque form: %s", out.Token)
	}
	w.set(func(s *github.Settings) { s.Tokens = "opaque"; s.Personal = map[string]string{"ghp_reader": "read"} })
	if short := w.token(""); len(short) != 40 {
		t.Errorf("the opaque form as a setting: %s", short)
	}
	w.expect(out.Token, "GET /orgs/acme/actions/runners", "", 200, "runners")
	must(t, w.api.Revoke())
	w.expect(out.Token, "GET /orgs/acme/actions/runners", "", 401, "Bad credentials")
	w.expect("ghp_reader", "GET /orgs/acme/actions/runners", "", 200, "runners")
	w.expect("ghp_reader", "POST /orgs/acme/actions/runners/remove-token", "", 403, "Resource not accessible by personal access token")
}
