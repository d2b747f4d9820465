// Package github simulates GitHub: the part of its API that concerns self-hosted runners, and the service that
// registers them, over a folder of JSON files that a person may edit.
package github

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/macfleet/macfleet/internal/sandbox/store"
)

// Options describe the world around the API.
type Options struct {
	Now func() time.Time // nil = time.Now
	// Archive returns the archive of a version of the runner, which GitHub offers with its digest.
	Archive func(version string) []byte
}

// API serves the simulated GitHub. It is safe for concurrent use, also by several processes on one folder. It calls
// nothing of a Mac, so a Mac may call it with its own lock held.
type API struct {
	dir     string
	options Options
	lock    *store.Locker
	mux     *http.ServeMux

	mu   sync.Mutex
	used map[string]window // requests of this process by credential
}

// Names in the folder.
const (
	runnersFolder = "runners"
	keysFolder    = "keys"
	settingsFile  = "settings.json"
	releasesFile  = "releases.json"
	tokensFile    = "tokens.json"
	faultsFile    = "faults.json"
	listenersFile = "listeners.json"
	lockFile      = "lock"
)

// New returns the API over the state in dir, which it creates if it is missing.
func New(dir string, options Options) (*API, error) {
	for _, name := range []string{runnersFolder, keysFolder} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
			return nil, fmt.Errorf("create the sandbox's GitHub: %w", err)
		}
	}
	if options.Now == nil {
		options.Now = time.Now
	}
	if options.Archive == nil {
		options.Archive = func(version string) []byte { return []byte(version) }
	}
	a := &API{dir: dir, options: options, lock: store.NewLocker(filepath.Join(dir, lockFile)), mux: http.NewServeMux(), used: map[string]window{}}
	a.routes()
	return a, nil
}

func (a *API) path(name string) string { return filepath.Join(a.dir, name) }

// answer is a status and a body, which is nil for none.
type answer struct {
	status int
	body   any
	header http.Header
}

// routes fills the mux. Each route of runners exists for an organization and for a repository.
func (a *API) routes() {
	a.route("GET /orgs/{owner}/installation", a.asApp(a.installation))
	a.route("GET /repos/{owner}/{repo}/installation", a.asApp(a.installation))
	a.route("GET /repos/{owner}/{repo}", a.asInstallation(a.repository))
	a.route("GET /app/installations/{id}", a.asApp(a.installationOf))
	a.route("POST /app/installations/{id}/access_tokens", a.asApp(a.mint))
	for route, serve := range map[string]func(*call) (answer, *failure){
		"GET runners":                               a.listRunners,
		"GET runners/{id}":                          a.getRunner,
		"DELETE runners/{id}":                       a.deleteRunner,
		"POST runners/registration-token":           a.registrationToken,
		"POST runners/remove-token":                 a.removeToken,
		"GET runners/downloads":                     a.downloads,
		"GET runners/{id}/{part}":                   a.ofRunner,
		"PUT runners/{id}/labels":                   a.setLabels,
		"POST runners/{id}/labels":                  a.addLabels,
		"DELETE runners/{id}/labels":                a.clearLabels,
		"DELETE runners/{id}/labels/{label}":        a.deleteLabel,
		"GET runner-groups":                         a.listGroups,
		"GET runner-groups/{group}":                 a.getGroup,
		"GET runner-groups/{group}/runners":         a.listGroup,
		"PUT runner-groups/{group}/runners/{id}":    a.moveRunner,
		"GET runner-groups/{group}/repositories":    a.groupRepositories,
		"DELETE runner-groups/{group}/runners/{id}": a.leaveGroup,
	} {
		method, path, _ := strings.Cut(route, " ")
		a.route(method+" /orgs/{owner}/actions/"+path, a.asInstallation(serve))
		a.route(method+" /repos/{owner}/{repo}/actions/"+path, a.asInstallation(serve))
	}
	a.route("/", func(c *call) (answer, *failure) {
		return answer{}, &failure{status: http.StatusNotImplemented, message: fmt.Sprintf("the sandbox does not model %s %s", c.r.Method, c.r.URL.Path)}
	})
}

// route adds a route. Its function returns the answer instead of writing it, so that the lock is released before a
// slow client reads.
func (a *API) route(pattern string, serve func(*call) (answer, *failure)) {
	a.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		out, failed := a.locked(r, serve)
		if failed != nil {
			failed.write(w)
			return
		}
		for name, values := range out.header {
			w.Header()[name] = values
		}
		reply(w, out.status, out.body)
	})
}

// call is one request with the state that it works on.
type call struct {
	r     *http.Request
	own   Settings
	now   time.Time
	scope string // acme or acme/app
	token *issued
}

func (a *API) locked(r *http.Request, serve func(*call) (answer, *failure)) (answer, *failure) {
	unlock, err := a.lock.Lock()
	if err != nil {
		return answer{}, internal(err)
	}
	defer unlock()
	own, err := a.settings()
	if err != nil {
		return answer{}, internal(err)
	}
	c := &call{r: r, own: own, now: a.now(own), scope: r.PathValue("owner")}
	if repo := r.PathValue("repo"); repo != "" {
		c.scope += "/" + repo
	}
	return serve(c)
}

// now is the time of GitHub's clock.
func (a *API) now(own Settings) time.Time {
	ahead, _ := own.Ahead.or(0) // checked when read
	return a.options.Now().Add(ahead)
}

// ServeHTTP answers one request.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	own, err := a.settings()
	header := w.Header()
	header.Set("Content-Type", "application/json; charset=utf-8")
	header.Set("Server", "github.com (sandbox)")
	header.Set("X-GitHub-Request-Id", requestID())
	header.Set("Date", a.now(own).UTC().Format(http.TimeFormat))
	if err == nil {
		err = a.unfit(r)
	}
	failed, ok := err.(*failure)
	if err != nil && !ok {
		failed = internal(err)
	}
	if failed != nil {
		failed.write(w)
		return
	}
	if a.limited(w, r, own) || a.failing(w, r, own) {
		return
	}
	a.mux.ServeHTTP(w, r)
}

// versions are those of the API that GitHub supports.
var versions = map[string]bool{"": true, "2022-11-28": true, "2026-03-10": true}

// unfit returns what GitHub refuses before it reads who asks.
func (a *API) unfit(r *http.Request) error {
	if r.Header.Get("User-Agent") == "" {
		return &failure{status: http.StatusForbidden, message: "Request forbidden by administrative rules. Please make sure your request has a User-Agent header"}
	}
	if v := r.Header.Get("X-GitHub-Api-Version"); !versions[v] {
		return &failure{status: http.StatusBadRequest, message: "Version " + v + " is not a supported version."}
	}
	return nil
}

// reply writes an answer. A disconnected client is ignored.
func reply(w http.ResponseWriter, status int, body any) {
	if body == nil {
		w.WriteHeader(status)
		return
	}
	data, err := json.Marshal(body)
	if err != nil {
		internal(err).write(w)
		return
	}
	w.WriteHeader(status)
	_, _ = w.Write(data)
}

// maxBody is far above what any request of this API needs.
const maxBody = 1 << 20

// read decodes the body of a request. GitHub ignores fields that it does not know.
func (c *call) read(into any) *failure {
	data, err := io.ReadAll(io.LimitReader(c.r.Body, maxBody))
	if err != nil {
		return internal(fmt.Errorf("read the request: %w", err))
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return nil
	}
	if err := json.Unmarshal(data, into); err != nil {
		return &failure{status: http.StatusBadRequest, message: "Problems parsing JSON"}
	}
	return nil
}
