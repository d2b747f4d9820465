// Package kube simulates a Kubernetes API server and the controllers of its cluster: the part that
// macfleet, kubectl and the kubelets of Mac minis use, over a folder of JSON objects that a person may
// edit. It refuses loudly what it does not model.
package kube

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/macfleet/macfleet/internal/sandbox/agent"
	"github.com/macfleet/macfleet/internal/sandbox/store"
)

// Options describe the cluster that the API serves.
type Options struct {
	Token string           // the administrator's bearer token
	Lock  *store.Locker    // guards the state between processes; nil = a lock in the folder
	Now   func() time.Time // the cluster's clock; nil = time.Now
}

// API serves the simulated cluster. It is safe for concurrent use, also by several processes on one
// folder.
type API struct {
	token string
	lock  *store.Locker
	clock func() time.Time
	kinds catalogue
	state *state
	keys  *signer
	ready bool // the objects of every new cluster exist

	agents  cached[map[string][]agent.Kubelet]
	tenants cached[map[string]bool]
	beats   map[string]*beat // by Node; recomputed whenever the lock is taken
}

// New returns the API over the objects in dir: RESOURCE/NAME.json or RESOURCE/NAMESPACE/NAME.json.
func New(dir string, options Options) (*API, error) {
	kinds := newCatalogue()
	if err := makeFolders(dir, kinds); err != nil {
		return nil, err
	}
	a := &API{
		token: options.Token, lock: options.Lock, clock: options.Now,
		kinds: kinds, state: newState(dir, kinds), keys: newSigner(dir),
	}
	if a.lock == nil {
		a.lock = store.NewLocker(filepath.Join(dir, "lock"))
	}
	if a.clock == nil {
		a.clock = time.Now
	}
	return a, nil
}

func makeFolders(dir string, kinds catalogue) error {
	for _, k := range kinds {
		if k.optional || k.only != nil {
			continue
		}
		if err := os.MkdirAll(filepath.Join(dir, k.resource), 0o700); err != nil {
			return fmt.Errorf("create the sandbox's cluster: %w", err)
		}
	}
	return nil
}

// answer is the answer to a request. It is written when the lock is released.
type answer struct {
	code int
	body any    // an object, a list of objects, or a document
	text string // instead of a body
}

// ServeHTTP answers one request.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	req, err := a.newRequest(r)
	var answered answer
	if err == nil {
		answered, err = a.locked(func(now time.Time) (answer, error) { return a.serve(req, now) })
	}
	if err == nil && req.verb == "watch" {
		a.watch(w, req)
		return
	}
	if err == nil {
		answered, err = render(req, answered)
	}
	if err != nil {
		answered = failure(err)
	}
	reply(w, answered)
}

// locked runs do with the state, after the cluster's controllers have caught up. They run again after
// a write, so that they know its time.
func (a *API) locked(do func(now time.Time) (answer, error)) (answer, error) {
	unlock, err := a.lock.Lock()
	if err != nil {
		return answer{}, err
	}
	defer unlock()
	if err := a.state.begin(); err != nil {
		return answer{}, err
	}
	now := a.clock().UTC()
	if err := a.state.trusting(func() error { return a.settle(now) }); err != nil {
		return answer{}, errors.Join(err, a.state.end())
	}
	before := a.state.version
	answered, failed := do(now)
	if a.state.version != before {
		err = a.state.trusting(func() error { return a.observe(now) })
	}
	err = errors.Join(err, a.state.end())
	if failed != nil {
		return answer{}, failed
	}
	return answered, err
}

// serve authenticates and authorizes a request, and dispatches it.
func (a *API) serve(r *request, now time.Time) (answer, error) {
	r.now = now
	var err error
	if r.user, err = a.authenticate(r.Header.Get("Authorization"), now); err != nil {
		return answer{}, err
	}
	if err := a.authorize(r); err != nil {
		return answer{}, err
	}
	switch {
	case r.resource == "":
		return a.document(r)
	case r.kind == nil:
		return answer{}, notModelled(r)
	case r.kind.only != nil:
		return a.review(r)
	case r.sub != "" && r.sub != "status":
		return a.subresource(r)
	case r.sub == "status" && !r.kind.status:
		return answer{}, notModelled(r)
	}
	switch r.verb {
	case "get":
		return a.get(r)
	case "list":
		return a.list(r)
	case "watch":
		return answer{}, a.checkWatch(r)
	}
	if r.sub == "" {
		switch r.verb {
		case "create":
			return a.create(r)
		case "delete":
			return a.delete(r)
		case "deletecollection":
			return a.deleteCollection(r)
		}
	}
	switch r.verb {
	case "update":
		return a.update(r)
	case "patch":
		return a.patch(r)
	}
	return answer{}, apierrors.NewMethodNotSupported(r.kind.groupResource(), r.verb)
}

// failure turns an error into the Status object a client expects.
func failure(err error) answer {
	known, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok {
		known = apierrors.NewInternalError(err)
	}
	status := known.Status()
	status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	return answer{code: int(status.Code), body: status}
}

func notModelled(r *request) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status:  metav1.StatusFailure,
		Code:    http.StatusNotFound,
		Reason:  metav1.StatusReasonNotFound,
		Message: fmt.Sprintf("%s %s is NOT MODELLED by the sandbox's Kubernetes", r.Method, r.URL.Path),
	}}
}

func reply(w http.ResponseWriter, answered answer) {
	data, kind := []byte(answered.text), "text/plain; charset=utf-8"
	if answered.text == "" {
		var err error
		if data, err = json.Marshal(answered.body); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		kind = "application/json"
	}
	w.Header().Set("Content-Type", kind)
	if status, ok := answered.body.(metav1.Status); ok && status.Details != nil && status.Details.RetryAfterSeconds > 0 {
		w.Header().Set("Retry-After", fmt.Sprint(status.Details.RetryAfterSeconds))
	}
	w.WriteHeader(answered.code)
	// A disconnected client is ignored.
	_, _ = w.Write(data)
}
