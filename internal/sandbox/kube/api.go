// Package kube is a simulated Kubernetes API server: the part of the API that macfleet uses, over
// a folder of JSON objects that a person may edit. What it does not model it refuses loudly.
package kube

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/macfleet/macfleet/internal/sandbox/store"
)

// Options say which cluster the API serves.
type Options struct {
	Token string        // the only bearer token that is accepted
	Lock  *store.Locker // guards the state between processes; nil = a lock in the folder
}

// API serves the simulated cluster. It is safe for use by several goroutines, and by several
// processes on one folder.
type API struct {
	token string
	lock  *store.Locker
	state *state
	mux   *http.ServeMux
}

// New gives the API over the objects in dir: nodes/NAME.json, namespaces/NAME.json and
// secrets/NAMESPACE/NAME.json.
func New(dir string, options Options) (*API, error) {
	for _, kind := range kinds() {
		if err := os.MkdirAll(filepath.Join(dir, kind.resource), 0o700); err != nil {
			return nil, fmt.Errorf("make the sandbox's cluster: %w", err)
		}
	}
	lock := options.Lock
	if lock == nil {
		lock = store.NewLocker(filepath.Join(dir, "lock"))
	}
	api := &API{token: options.Token, lock: lock, state: &state{dir: dir}, mux: http.NewServeMux()}
	api.routes()
	return api, nil
}

// answer is what a route gives back: it is written when the lock is free again.
type answer struct {
	code int
	body any
}

func (a *API) routes() {
	for pattern, serve := range map[string]func(*http.Request) (answer, error){
		"GET /version":          version,
		"GET /api":              discovery(apiVersions),
		"GET /apis":             discovery(apiGroups),
		"GET /api/v1":           discovery(apiResources),
		"GET /api/v1/nodes":     a.list(nodes),
		"POST /api/v1/nodes":    a.createNode,
		"GET /api/v1/nodes/{n}": a.get(nodes),

		"PATCH /api/v1/nodes/{n}":  a.patchNode,
		"DELETE /api/v1/nodes/{n}": a.deleteNode,

		"GET /api/v1/namespaces":                  a.list(namespaces),
		"GET /api/v1/namespaces/{n}":              a.get(namespaces),
		"GET /api/v1/secrets":                     a.list(secrets),
		"GET /api/v1/namespaces/{ns}/secrets":     a.list(secrets),
		"GET /api/v1/namespaces/{ns}/secrets/{n}": a.get(secrets),

		"/": notModelled,
	} {
		a.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			answered, err := a.locked(r, serve)
			if err != nil {
				answered = failure(err)
			}
			reply(w, answered)
		})
	}
}

// ServeHTTP answers one request.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok || token != a.token {
		reply(w, failure(apierrors.NewUnauthorized("Unauthorized")))
		return
	}
	a.mux.ServeHTTP(w, r)
}

func (a *API) locked(r *http.Request, serve func(*http.Request) (answer, error)) (answer, error) {
	unlock, err := a.lock.Lock()
	if err != nil {
		return answer{}, err
	}
	defer unlock()
	return serve(r)
}

// failure turns an error into the Status object a client expects.
func failure(err error) answer {
	known, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok {
		known = apierrors.NewInternalError(err)
	}
	status := known.Status()
	status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	return answer{int(status.Code), status}
}

func notModelled(r *http.Request) (answer, error) {
	return answer{}, &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure,
		Code:   http.StatusNotFound,
		Reason: metav1.StatusReasonNotFound,
		Message: fmt.Sprintf("%s %s is NOT MODELLED by the sandbox's Kubernetes; it serves nodes, namespaces and secrets",
			r.Method, r.URL.Path),
	}}
}

func reply(w http.ResponseWriter, answered answer) {
	data, err := json.Marshal(answered.body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(answered.code)
	// A client that went away is not this side's concern.
	_, _ = w.Write(data)
}
