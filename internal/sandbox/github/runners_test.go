package github_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/macfleet/macfleet/internal/sandbox/github"
)

const runners = "/orgs/acme/actions/runners"

func TestRunners(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for id := int64(1); id <= 65; id++ {
		w.put(id, nil)
	}
	w.put(70, func(r *github.Runner) { r.Scope, r.Name = "acme/app", "of-a-repository" })
	w.put(71, func(r *github.Runner) { r.Busy, r.Name = "yes", "works" })
	token := w.token("")
	next := regexp.MustCompile(`<([^>]*)>; rel="next"`)
	var found []string
	pages := 0
	for at := runners; at != ""; pages++ {
		response, text := w.ask(token, "GET "+at, "")
		var page struct {
			Total   int `json:"total_count"`
			Runners []struct{ Name string }
		}
		if w.decode(text, &page); page.Total != 66 {
			t.Fatalf("%d runners, want 66", page.Total)
		}
		for _, r := range page.Runners {
			found = append(found, r.Name)
		}
		at = ""
		if m := next.FindStringSubmatch(response.Header.Get("Link")); m != nil {
			at = strings.TrimPrefix(m[1], w.server.URL)
		}
	}
	if pages != 3 || len(found) != 66 {
		t.Errorf("%d runners on %d pages, want 66 on 3", len(found), pages)
	}
	w.expect(token, "GET "+runners+"?per_page=1000", "", 200, `"name":"builder-65"`)
	w.expect(token, "GET "+runners+"?name=builder-6", "", 200, `"total_count":1`)
	w.expect(token, "GET "+runners+"?page=9", "", 200, `"runners":[],"total_count":66`)
	w.expect(token, "GET "+runners+"/1", "", 200, `"status":"offline"`)
	w.expect(token, "GET "+runners+"/70", "", 404, "Not Found")
	w.expect(token, "GET /repos/acme/app/actions/runners/70", "", 200, `"of-a-repository"`)
	w.expect(token, "DELETE "+runners+"/71", "", 422, `Bad request - Runner \"works\" is still running a job`)
	w.expect(token, "DELETE "+runners+"/1", "", 204, "")
	w.expect(token, "DELETE "+runners+"/1", "", 404, "Not Found")
	w.expect(token, "POST "+runners+"/generate-jitconfig", "{}", 501, "does not model")
}

// TestUnused checks that GitHub deletes entries that no listener has used for 14 days.
func TestUnused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put(1, nil)
	w.put(2, func(r *github.Runner) { r.Seen = w.now.Add(24 * time.Hour) })
	w.put(3, func(r *github.Runner) { r.Ephemeral = true })
	for _, step := range []struct {
		after time.Duration
		want  string
	}{{23 * time.Hour, `"total_count":3`}, {25 * time.Hour, `"total_count":2`}, {15*24*time.Hour - time.Minute, `"total_count":1`}, {16 * 24 * time.Hour, `"total_count":0`}} {
		w.now = start.Add(step.after)
		w.expect(w.token(""), "GET "+runners, "", 200, step.want)
	}
}

func TestLabels(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put(1, nil)
	w.put(2, func(r *github.Runner) { r.NoDefault = true })
	token := w.token("")
	names := func(id string) string {
		_, text := w.ask(token, "GET "+runners+"/"+id+"/labels", "")
		var out struct{ Labels []struct{ Name, Type string } }
		w.decode(text, &out)
		var all []string
		for _, l := range out.Labels {
			all = append(all, strings.TrimSuffix(l.Name+"!"+l.Type, "!custom"))
		}
		return strings.Join(all, " ")
	}
	const fixed = "self-hosted!read-only macOS!read-only ARM64!read-only"
	for _, step := range []struct {
		request, body string
		status        int
		want          string
	}{
		{"PUT 1/labels", `{"labels":["a","A","macos","b"]}`, 200, fixed + " a b"},
		{"POST 1/labels", `{"labels":["c","B"]}`, 200, fixed + " a b c"},
		{"POST 1/labels", `{"labels":[]}`, 422, fixed + " a b c"},
		{"PUT 1/labels", `{}`, 422, fixed + " a b c"},
		{"PUT 1/labels", `{"labels":["` + strings.Repeat("x", 257) + `"]}`, 422, fixed + " a b c"},
		{"DELETE 1/labels/C", "", 200, fixed + " a b"},
		{"DELETE 1/labels/c", "", 404, fixed + " a b"},
		{"DELETE 1/labels/arm64", "", 422, fixed + " a b"},
		{"DELETE 1/labels", "", 200, fixed},
		{"PUT 1/labels", `{"labels":`, 400, fixed},
		{"PUT 2/labels", `{"labels":["macOS"]}`, 200, "macOS"},
	} {
		method, path, _ := strings.Cut(step.request, " ")
		w.expect(token, method+" "+runners+"/"+path, step.body, step.status, "")
		if got := names(path[:1]); got != step.want {
			t.Errorf("after %s %s: %s, want %s", step.request, step.body, got, step.want)
		}
	}
}

func TestGroups(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put(1, nil)
	token := w.token("")
	const groups = "/orgs/acme/actions/runner-groups"
	w.expect(token, "GET "+groups, "", 200, `"name":"Default"`)
	w.set(func(s *github.Settings) {
		s.Groups = []github.Group{{ID: 1, Name: "Default", Visibility: "all"}, {ID: 5, Name: "fence", Visibility: "selected"}}
	})
	w.expect(token, "PUT "+groups+"/5/runners/1", "", 204, "")
	w.expect(token, "GET "+runners+"/1", "", 200, `"runner_group_id":5`)
	w.expect(token, "GET "+groups+"/5/runners", "", 200, `"total_count":1`)
	w.expect(token, "GET "+groups+"/5/repositories", "", 200, `"total_count":0`)
	w.expect(token, "PUT "+groups+"/6/runners/1", "", 404, "Not Found")
	w.expect(token, "PUT "+groups+"/5/runners/9", "", 404, "Not Found")
	w.expect(token, "GET /repos/acme/app/actions/runner-groups", "", 404, "Not Found")
	w.expect(token, "DELETE "+groups+"/5/runners/1", "", 204, "")
	w.expect(token, "GET "+groups+"/1", "", 200, `"default":true`)
	w.expect(token, "GET "+runners+"/1", "", 200, `"runner_group_id":1`)
}

func TestReleases(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	token := w.token("")
	// The digest of "archive 2.337.0".
	w.expect(token, "GET "+runners+"/downloads", "", 200, `"filename":"actions-runner-osx-arm64-2.337.0.tar.gz","os":"osx","sha256_checksum":"`+digest("archive 2.337.0")+`"`)
	w.expect(token, "GET "+runners+"/deprecations/2.337.0", "", 200, `"runtime_deprecates_at":null`)
	w.expect(token, "GET "+runners+"/deprecations/2.336.0", "", 200, `"runtime_deprecates_at":"2026-12-18T00:00:00Z"`)
	w.expect(token, "GET "+runners+"/deprecations/9.9.9", "", 404, "Not Found")
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	token := w.token("")
	response, text := w.ask(token, "GET "+runners, "", "User-Agent", "")
	if response.StatusCode != 403 || !strings.Contains(text, "User-Agent") {
		t.Errorf("without a User-Agent: %d %s", response.StatusCode, text)
	}
	response, text = w.ask(token, "GET "+runners, "", "X-GitHub-Api-Version", "2020-01-01")
	if response.StatusCode != 400 || !strings.Contains(text, "not a supported version") {
		t.Errorf("an unknown version: %d %s", response.StatusCode, text)
	}
	w.set(func(s *github.Settings) {
		s.Ahead, s.Missing, s.Moved = "10m", []string{"gone"}, map[string]string{"old": "acme"}
	})
	response, _ = w.ask(token, "GET "+runners, "")
	if date, err := http.ParseTime(response.Header.Get("Date")); err != nil || !date.Equal(w.now.Add(10*time.Minute)) {
		t.Errorf("the date is %s (%v), want GitHub's clock", date, err)
	}
	if response.Header.Get("X-GitHub-Request-Id") == "" {
		t.Error("no id of the request")
	}
	w.expect(token, "GET /orgs/gone/actions/runners", "", 404, "Not Found")
	response, _ = w.ask(token, "GET /orgs/old/actions/runners", "")
	if to := response.Header.Get("Location"); response.StatusCode != 301 || !strings.HasSuffix(to, runners) {
		t.Errorf("a renamed organization: %d %s", response.StatusCode, to)
	}
	w.expect(w.jwt(keys()[0], nil), mint, "", 401, "'exp')")
}

func TestLimits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.set(func(s *github.Settings) { s.PerHour = 2 })
	token := w.token("")
	for left := range 2 {
		response, _ := w.ask(token, "GET "+runners, "")
		if got := response.Header.Get("X-RateLimit-Remaining"); got != []string{"1", "0"}[left] {
			t.Errorf("remaining: %s", got)
		}
	}
	response, text := w.ask(token, "GET "+runners, "")
	if response.StatusCode != 403 || !strings.Contains(text, "rate limit exceeded") || response.Header.Get("X-RateLimit-Reset") == "" {
		t.Errorf("over the limit: %d %s %v", response.StatusCode, text, response.Header)
	}
	w.now = w.now.Add(time.Hour)
	w.set(func(s *github.Settings) { s.PerHour = 0 })
	token = w.token("")
	if err := w.api.SetFaults(github.Fault{Requests: 1, Answer: "limit", After: 7}, github.Fault{Requests: 1, Answer: "secondary", After: 3},
		github.Fault{Requests: 1, Answer: "502"}, github.Fault{Requests: 1, Answer: "lost", Only: "DELETE"}); err != nil {
		t.Fatal(err)
	}
	response, _ = w.ask(token, "GET "+runners, "")
	if response.StatusCode != 429 || response.Header.Get("X-RateLimit-Remaining") != "0" {
		t.Errorf("the primary limit: %d %v", response.StatusCode, response.Header)
	}
	response, text = w.ask(token, "GET "+runners, "")
	if response.StatusCode != 403 || response.Header.Get("Retry-After") != "3" || !strings.Contains(text, "secondary rate limit") {
		t.Errorf("a secondary limit: %d %s", response.StatusCode, text)
	}
	w.put(1, nil)
	w.expect(token, "GET "+runners, "", 502, "<html>")
	w.expect(token, "DELETE "+runners+"/1", "", 502, "<html>")
	w.expect(token, "GET "+runners, "", 200, `"total_count":0`)
}

// TestEdited checks that a person's edits count, and that a broken file is named.
func TestEdited(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put(1, nil)
	token := w.token("")
	path := filepath.Join(w.dir, "runners", "1.json")
	whole, err := os.ReadFile(path)
	must(t, err)
	write := func(name, text string) {
		must(t, os.WriteFile(filepath.Join(w.dir, name), []byte(text), 0o600))
	}
	write("runners/1.json", strings.Replace(string(whole), "builder-1", "by-hand", 1))
	w.expect(token, "GET "+runners, "", 200, "by-hand")
	write("runners/1.json", strings.Replace(string(whole), `"labels"`, `"lables"`, 1))
	w.expect(token, "GET "+runners, "", 500, quoted(path))
	write("runners/1.json", strings.Replace(string(whole), `"id": 1`, `"id": 2`, 1))
	w.expect(token, "GET "+runners, "", 500, quoted(path))
	write("runners/1.json", string(whole))
	for _, text := range []string{`{"tokens":"jwt"}`, `{"ahead":"soon"}`} {
		write("settings.json", text)
		w.expect(token, "GET "+runners, "", 500, "settings.json")
	}
}

// quoted is a text as it is in JSON.
func quoted(text string) string {
	data, _ := json.Marshal(text)
	return strings.Trim(string(data), `"`)
}
