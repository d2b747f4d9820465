package engine_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/agents"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/sandbox"
	"github.com/macfleet/macfleet/internal/sandbox/github"
	"github.com/macfleet/macfleet/internal/secret"
	"github.com/macfleet/macfleet/internal/wire"
)

// wiretap collects the secrets that are sent to GitHub and answered by it.
type wiretap struct {
	next http.RoundTripper

	mu    sync.Mutex
	found map[string]string // kind by secret
}

var tokenInAnswer = regexp.MustCompile(`"token": ?"([^"]+)"`)

// RoundTrip sends a request.
func (w *wiretap) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := w.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(answer.Body)
	answer.Body = io.NopCloser(bytes.NewReader(body))
	w.mu.Lock()
	defer w.mu.Unlock()
	_, sent, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if w.found[sent] == "" {
		w.found[sent] = "sent to " + r.URL.Path
	}
	if m := tokenInAnswer.FindSubmatch(body); m != nil {
		w.found[string(m[1])] = "answered by " + r.URL.Path
	}
	return answer, err
}

// process is what a list of processes shows of one.
type process struct {
	argv    []string
	environ map[string]string
}

// registers reports whether a process is config.sh, or one that it starts: GitHub's runner has no other way to get a token.
func (p process) registers() bool {
	all := strings.Join(p.argv, " ")
	return strings.Contains(all, "config.sh") || strings.Contains(all, "Runner.Listener configure") || all == "id -u" || all == "touch .env"
}

// wrongTokens are services that register with a token that GitHub does not accept.
type wrongTokens struct {
	engine.Fencer
	token string
}

// Admit returns the token.
func (w wrongTokens) Admit(context.Context, string, string) (engine.Admission, error) {
	v, err := secret.New(w.token)
	return engine.Admission{Secret: v, Expires: time.Now().Add(time.Hour)}, err
}

// TestRunnerSecretsShowNowhere sets a builder up, registers it again, lets config.sh fail and releases it. The key of the App,
// its JWTs and all tokens are in no file of a Mac, no command line, no event, plan, snapshot, result or error, although nothing
// is scrubbed here. Only config.sh has the registration token, in its environment.
func TestRunnerSecretsShowNowhere(t *testing.T) {
	t.Parallel()
	for _, form := range []string{"stateless", "opaque"} {
		for _, flow := range []string{"classic", "v2"} {
			parallel(t, form+" "+flow, func(t *testing.T) {
				runnerSecrets(t, func(s *github.Settings) {
					s.Tokens, s.Flow = form, flow
					s.Groups = []github.Group{{ID: 1, Name: "Default", Visibility: "all"}, {ID: 3, Name: "bakers", Visibility: "all"}}
				})
			})
		}
	}
}

func runnerSecrets(t *testing.T, set func(*github.Settings)) {
	declares(t, 6, "the secrets of one registration are followed through all that comes after it")
	w, dir := world(t, 3)
	must(t, w.GitHub().Set(set))
	tap := &wiretap{found: map[string]string{}}
	c := byApp(builders(1))
	runner := c.Fleets[0].Groups[0].Spec.GithubRunner
	e := installs(t, w, runBuilders(t, w, c, func(o *agents.Options) {
		tap.next, o.HTTP.Transport = o.HTTP.Transport, tap
	}))
	var said strings.Builder
	e.Emit = func(ev engine.Event) { fmt.Fprintf(&said, "%+v %v\n", ev, ev.Err) }
	var mu sync.Mutex
	var seen []process
	m := macOf(t, w, planned(t, e).Hosts[0].Server.ID)
	m.Watch(func(argv []string, environ map[string]string) {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, process{argv, environ})
	})
	applies := func(fails string, between func()) {
		t.Helper()
		snap, p, err := e.Observe(t.Context())
		must(t, err)
		for _, encode := range []func() ([]byte, error){wire.NewRecord(c.Owner, snap).Encode, wire.NewPlanFile(p).Encode} {
			content, err := encode()
			must(t, err)
			said.Write(content)
		}
		between()
		r := performed(t, e, p)
		fmt.Fprintf(&said, "%+v %q\n", r, failed(r))
		if got := strings.Join(failed(r), "\n"); r.Converged() != (fails == "") || !strings.Contains(got, fails) {
			t.Errorf("failures %s, want %q; left %+v", got, fails, r.After.Summarise())
		}
		tap.hidden(t, filepath.Join(dir, "macs"), "")
	}
	nothing := func() {}
	applies("", nothing)
	host := member(t, w)
	deregister := func() {
		t.Helper()
		inject(t, w, host, "runner-deregistered")
	}
	deregister()
	applies("", nothing)

	deregister()
	honest := e.Peers[inventory.CIService]
	e.Peers[inventory.CIService] = wrongTokens{honest.(engine.Fencer), "AHBRTNOTACCEPTED"}
	tap.found["AHBRTNOTACCEPTED"] = "of nobody"
	applies("NotFound", nothing)
	e.Peers[inventory.CIService] = honest
	runner.RunnerGroup = new("bakers")
	applies("Could not find any self-hosted runner group", func() {
		must(t, w.GitHub().Set(func(s *github.Settings) { s.Groups = s.Groups[:1] }))
	})
	must(t, w.GitHub().Set(set))
	applies("", nothing)
	c.Fleets[0].Groups[0].Replicas = 0
	applies("", nothing)

	tap.hidden(t, "", said.String())
	got := false
	mu.Lock()
	defer mu.Unlock()
	for _, p := range seen {
		for value, kind := range tap.found {
			if strings.Contains(strings.Join(p.argv, "\x00"), value) {
				t.Errorf("the command line of %s has a secret %s", p.argv[0], kind)
			}
			for name, text := range p.environ {
				has := strings.Contains(text, value)
				got = got || has
				if has && (name != "ACTIONS_RUNNER_INPUT_TOKEN" || !p.registers()) {
					t.Errorf("%q has in %s a secret %s", p.argv, name, kind)
				}
			}
		}
	}
	if !got || len(seen) < 500 || said.Len() < 10_000 {
		t.Errorf("%d processes and %d bytes were seen, and the token in an environment: %t", len(seen), said.Len(), got)
	}
	kinds := slices.Sorted(func(yield func(string) bool) {
		for value, kind := range tap.found {
			if value != "" && !yield(kind) {
				return
			}
		}
	})
	for _, kind := range []string{"sent to /orgs/acme/installation", "answered by /app/", "registration-token", "of nobody"} {
		if !slices.ContainsFunc(kinds, func(k string) bool { return strings.Contains(k, kind) }) {
			t.Errorf("no secret was %s: %q", kind, kinds)
		}
	}
	key, err := w.Secret(sandbox.GitHubKeyRef)
	must(t, err)
	tap.found[strings.Split(key, "\n")[1]] = "the App's key"
	tap.hidden(t, filepath.Join(dir, "macs"), said.String())
}

// hidden finds none of the secrets in the files of a folder and in a text.
func (w *wiretap) hidden(t *testing.T, folder, text string) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.found, "")
	has := func(where, text string) {
		for value, kind := range w.found {
			if strings.Contains(text, value) {
				t.Errorf("%s has a secret %s", where, kind)
			}
		}
	}
	has("what macfleet says", text)
	if folder == "" {
		return
	}
	files := 0
	if err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		files++
		content, err := os.ReadFile(path)
		has(path, string(content))
		return err
	}); err != nil || files < 20 {
		t.Fatalf("%d files, %v", files, err)
	}
}
