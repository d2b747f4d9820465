package agents_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/internal/agents"
	"github.com/macfleet/macfleet/internal/maintest"
	sim "github.com/macfleet/macfleet/internal/sandbox/github"
	"github.com/macfleet/macfleet/internal/secret"
)

func TestMain(m *testing.M) { maintest.Main(m) }

const (
	acme  = "https://github.com/acme"
	repo  = "https://github.com/acme/app"
	other = "https://github.com/globex"
	token = "ghp_writes"
)

// world is a simulated GitHub, and what a configuration's references resolve to.
type world struct {
	*testing.T
	github *sim.API
	server *httptest.Server
	values map[string]string // by reference

	mu       sync.Mutex
	sent     []string // method and path
	answers  map[string]http.HandlerFunc
	resolved []string
	learned  []string
	now      time.Time
}

func newWorld(t *testing.T) *world {
	t.Helper()
	api, err := sim.New(t.TempDir(), sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{T: t, github: api, values: map[string]string{"env://TOKEN": token}, answers: make(map[string]http.HandlerFunc), now: time.Now()}
	w.set(func(s *sim.Settings) { s.Personal = map[string]string{token: "write"} })
	w.server = httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		w.mu.Lock()
		w.sent = append(w.sent, r.Method+" "+r.URL.Path)
		answer := w.answers[r.Method+" "+r.URL.Path]
		w.mu.Unlock()
		if answer != nil {
			answer(out, r)
			return
		}
		api.ServeHTTP(out, r)
	}))
	t.Cleanup(w.server.Close)
	t.Cleanup(w.server.Client().CloseIdleConnections)
	return w
}

func (w *world) set(change func(*sim.Settings)) {
	w.Helper()
	if err := w.github.Set(change); err != nil {
		w.Fatal(err)
	}
}

func (w *world) put(all ...sim.Runner) {
	w.Helper()
	for _, r := range all {
		r.Group, r.Client, r.Created = max(r.Group, 1), "client", time.Now()
		if err := w.github.Put(r); err != nil {
			w.Fatal(err)
		}
	}
}

// refuse makes GitHub refuse a request.
func (w *world) refuse(request string, status int, message string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answers[request] = func(out http.ResponseWriter, _ *http.Request) {
		out.Header().Set("Content-Type", "application/json")
		if status == http.StatusTooManyRequests {
			out.Header().Set("Retry-After", "3600") // too long to wait for
		}
		out.WriteHeader(status)
		_, _ = out.Write([]byte(`{"message": "` + message + `"}`))
	}
}

// requests returns those so far that contain a text.
func (w *world) requests(containing string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(w.sent), func(s string) bool { return !strings.Contains(s, containing) })
}

// open returns the services of a configuration.
func (w *world) open(cfg *fleet.Config, touches func(fleet.Specified) bool) *agents.Agents {
	w.Helper()
	a, err := agents.New(agents.Options{Config: cfg, Touches: touches, HTTP: w.server.Client(), URL: w.server.URL + "/",
		Now: func() time.Time { return w.now },
		Learn: func(v string) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.learned = append(w.learned, v)
		},
		Resolve: func(_ context.Context, attribute string, ref secret.Ref) (secret.Value, error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.resolved = append(w.resolved, attribute)
			if text, ok := w.values[ref.String()]; ok {
				return secret.New(text)
			}
			return secret.Value{}, errors.New("secret " + ref.String() + ": the variable is not set")
		}})
	if err != nil {
		w.Fatal(err)
	}
	return a
}

func ref(name string) secret.Ref { return secret.Ref{Scheme: secret.Env, Path: name} }

// at is a block that registers in a scope, with a token.
func at(scope string) *fleet.GithubRunner {
	host, owner, _ := strings.Cut(strings.TrimPrefix(scope, "https://"), "/")
	r := fleet.GithubRunner{Host: &host, Token: new(fleetToken)}
	if strings.Contains(owner, "/") {
		r.Repository = &owner
	} else {
		r.Organization = &owner
	}
	return &r
}

var fleetToken = ref("TOKEN")

// config is a configuration of fleets with one group each.
func config(fleets map[string]*fleet.GithubRunner) *fleet.Config {
	cfg := &fleet.Config{Owner: fleet.Owner{Name: "acme", Environment: "production"},
		Hosts: []fleet.Listed{{Name: "acme-legacy-01", Fleet: "builders", Group: "m2"}}}
	for name, r := range fleets {
		cfg.Fleets = append(cfg.Fleets, fleet.Fleet{Name: name, Groups: []fleet.Group{{Name: "m2", Spec: fleet.Spec{GithubRunner: r}}}})
	}
	return cfg
}

func builders() *fleet.Config { return config(map[string]*fleet.GithubRunner{"builders": at(acme)}) }
