// Package cloud simulates Scaleway: the part of its Apple-silicon API that macfleet uses, with the
// traps of the real answers, over a folder of JSON files that a person may edit.
package cloud

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/macfleet/macfleet/internal/sandbox/store"
)

// Options describe the world that the API serves.
type Options struct {
	AccessKey         string           // names the key in the account
	SecretKey         string           // the only secret key that is accepted
	ProjectID         string           // the only project the key may see
	OrganizationID    string           // of that project
	SSHUser           string           // login user of new servers; "" = m1
	Zones             []string         // the zones that exist
	Keys              []string         // SSH keys of the project, until the first change of them
	RequestsPerSecond int              // above it the answer is 429; 0 = 50, as seen on the real API
	Lock              *store.Locker    // guards the state between processes; nil = a lock in the folder
	Now               func() time.Time // nil = time.Now

	// Changed is called after the provider has started to reinstall or restart a server, without any lock.
	// The Mac's side may also follow later, from the server's Life. nil = nothing follows.
	Changed func(Server) error
	// Deleted is called after a server is gone, with the lock held. nil = nothing follows.
	Deleted func(Server) error
	// Health returns what the provider sees of a server's Mac. nil = nothing is wrong.
	Health func(Server) (Health, error)
}

// API serves the simulated Scaleway. It is safe for concurrent use, also by several processes on one
// folder.
type API struct {
	options Options
	lock    *store.Locker
	limit   *limiter
	state   *state
	rights  string // file with the rights that the key lacks
	own     string // file with the settings of the provider

	keyring, diagnosed, faults string // other files
	mux                        *http.ServeMux

	byAddress map[netip.Addr]string // server ids, guarded by lock
}

// New returns the API over the state in dir, whose servers are in dir/servers, one file each.
func New(dir string, options Options) (*API, error) {
	servers := filepath.Join(dir, "servers")
	if err := os.MkdirAll(servers, 0o700); err != nil {
		return nil, fmt.Errorf("create the sandbox's Scaleway: %w", err)
	}
	if options.Now == nil {
		options.Now = time.Now
	}
	if options.Lock == nil {
		options.Lock = store.NewLocker(filepath.Join(dir, "lock"))
	}
	api := &API{
		options: options,
		lock:    options.Lock,
		limit:   &limiter{limit: cmp.Or(options.RequestsPerSecond, 50)},
		state:   &state{dir: servers, now: options.Now, gone: options.Deleted, cache: map[string]cached{}},
		rights:  filepath.Join(dir, "rights.json"),
		own:     filepath.Join(dir, settingsFile),

		keyring:   filepath.Join(dir, keysFile),
		diagnosed: filepath.Join(dir, "diagnostics.json"),
		faults:    filepath.Join(dir, faultsFile),
		mux:       http.NewServeMux(),

		byAddress: map[netip.Addr]string{},
	}
	api.routes()
	return api, nil
}

// routes fills the mux. A route's function returns the answer instead of writing it, so that the lock
// is released before a slow client reads.
func (a *API) routes() {
	const zone, iam = "/apple-silicon/v1alpha1/zones/{zone}", "/iam/v1alpha1"
	for pattern, serve := range map[string]func(*http.Request) (any, *failure){
		"GET " + zone + "/servers":                       a.listServers,
		"GET " + zone + "/servers/{id}":                  a.getServer,
		"PATCH " + zone + "/servers/{id}":                a.updateServer,
		"DELETE " + zone + "/servers/{id}":               a.deleteServer,
		"POST " + zone + "/connectivity-diagnostics":     a.startDiagnosis,
		"GET " + zone + "/connectivity-diagnostics/{id}": a.getDiagnosis,
		"GET " + iam + "/ssh-keys":                       a.listKeys,
		"POST " + iam + "/ssh-keys":                      a.createKey,
		"GET " + iam + "/ssh-keys/{id}":                  a.getKey,
		"PATCH " + iam + "/ssh-keys/{id}":                a.updateKey,
		"DELETE " + iam + "/ssh-keys/{id}":               a.deleteKey,
		"GET " + iam + "/api-keys/{key}":                 a.getAPIKey,
		"GET " + iam + "/quota":                          a.listQuota,
		"POST " + zone + "/servers/{id}/reinstall":       a.reinstallServer,
		"POST " + zone + "/servers/{id}/reboot":          a.rebootServer,
		"GET " + zone + "/os":                            a.listOS,
		"GET " + zone + "/os/{id}":                       a.getOS,
		"GET " + zone + "/server-types":                  a.listServerTypes,
		"GET " + zone + "/server-type/{type}":            a.getServerType,
		"GET /metadata":                                  metadata,
		"/":                                              unknownRoute,
	} {
		a.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			body, failed := a.locked(r, serve)
			if failed != nil {
				reply(w, failed.status, failed.body)
				return
			}
			if body == nil {
				w.WriteHeader(http.StatusNoContent)
				return
			}
			reply(w, http.StatusOK, body)
		})
	}
}

// ServeHTTP answers one request.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Content-Type", "application/json")
	header.Set("Server", "Scaleway API Gateway (sandbox)")
	header.Set("X-Request-Id", requestID())
	if !a.limit.take(a.options.Now(), header) {
		failed := tooManyRequests(a.limit.limit)
		reply(w, failed.status, failed.body)
		return
	}
	if !a.failing(w, r) {
		a.mux.ServeHTTP(w, r)
	}
}

func (a *API) locked(r *http.Request, serve func(*http.Request) (any, *failure)) (any, *failure) {
	if failed := a.admit(r); failed != nil {
		return nil, failed
	}
	body, failed := a.guarded(r, serve)
	switch done := body.(type) {
	case started:
		return a.followed(done.server)
	case looked:
		return a.examined(done)
	}
	return body, failed
}

func (a *API) guarded(r *http.Request, serve func(*http.Request) (any, *failure)) (any, *failure) {
	unlock, err := a.lock.Lock()
	if err != nil {
		return nil, internal(err)
	}
	defer unlock()
	return serve(r)
}

// started is the answer of a route that started something that the Mac's side must follow.
type started struct{ server Server }

// followed lets the Mac's side follow, and returns the sealed server.
func (a *API) followed(server Server) (any, *failure) {
	if a.options.Changed != nil {
		if err := a.options.Changed(server); err != nil {
			return nil, internal(err)
		}
	}
	return server.sealed(), nil
}

// admit checks what all routes share: the client's key and the zone.
func (a *API) admit(r *http.Request) *failure {
	switch r.Header.Get("X-Auth-Token") {
	case a.options.SecretKey:
	case "":
		return unauthenticated("invalid_argument")
	default:
		return unauthenticated("not_found")
	}
	own, failed := a.lacking()
	if failed != nil {
		return failed
	}
	if reason := map[string]string{"revoked": "not_found", "expired": "expired"}[own.Key]; reason != "" {
		return unauthenticated(reason)
	}
	if zone := r.PathValue("zone"); zone != "" && !slices.Contains(a.options.Zones, zone) {
		return invalidArgument("zone", "constraint", fmt.Sprintf("the sandbox has the zones %q, not %q", a.options.Zones, zone))
	}
	return nil
}

func metadata(*http.Request) (any, *failure) {
	return map[string]string{"platform": "sandbox", "partition": "scw", "domain": "scw"}, nil
}

func unknownRoute(r *http.Request) (any, *failure) {
	return nil, notModelled(r)
}

// reply writes an answer. A disconnected client is ignored.
func reply(w http.ResponseWriter, status int, body any) {
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	// The real API sends the raw characters of <sealed>.
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(body); err != nil {
		failed := internal(err)
		status, body = failed.status, failed.body
		buffer.Reset()
		_ = encoder.Encode(body)
	}
	w.WriteHeader(status)
	_, _ = w.Write(bytes.TrimSpace(buffer.Bytes()))
}

// maxBody is far above what any request of this API needs.
const maxBody = 1 << 20

func readBody(r *http.Request) (map[string]json.RawMessage, *failure) {
	data, err := io.ReadAll(io.LimitReader(r.Body, maxBody))
	if err != nil {
		return nil, internal(fmt.Errorf("read the request: %w", err))
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(data, &fields); err != nil {
		return nil, invalidArgument("body", "format", "the body is not a JSON object: "+err.Error())
	}
	return fields, nil
}

// requestID returns a random UUID, like the real API's request ids.
func requestID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return FormatUUID(b)
}
