package kube

import (
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
)

// request is a request with the meaning of its path and method: the attributes that the real server
// uses for authorization.
type request struct {
	*http.Request
	data        []byte // the body
	contentType string
	query       url.Values
	now         time.Time
	user        user

	verb            string
	group, version  string
	resource        string // "" = a path without an object
	namespace, name string
	sub             string // status, eviction, token
	kind            *kind  // nil = no object, or an unknown kind
}

// maxBody is the real server's limit.
const maxBody = 3 << 20

// newRequest reads the body, which may take time, before anything is locked.
func (a *API) newRequest(r *http.Request) (*request, error) {
	data, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	if err != nil {
		return nil, apierrors.NewBadRequest("read the body: " + err.Error())
	}
	if len(data) > maxBody {
		return nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("limit is %d", maxBody))
	}
	if r.Header.Get("Impersonate-User") != "" {
		return nil, apierrors.NewBadRequest("impersonation is NOT MODELLED by the sandbox's Kubernetes")
	}
	req := &request{Request: r, data: data, query: r.URL.Query()}
	req.contentType = r.Header.Get("Content-Type")
	if kind, _, err := mime.ParseMediaType(req.contentType); err == nil {
		req.contentType = kind
	}
	if err := req.parse(); err != nil {
		return nil, err
	}
	if req.resource != "" {
		req.kind = a.kinds.find(a.state.dir, req.group, req.version, req.resource)
	}
	return req, nil
}

// parse splits the path: /api/V/… or /apis/G/V/…, then namespaces/NS/ if there is one, then
// RESOURCE[/NAME[/SUBRESOURCE]].
func (r *request) parse() error {
	r.verb = strings.ToLower(r.Method)
	var parts []string
	for part := range strings.SplitSeq(strings.Trim(r.URL.EscapedPath(), "/"), "/") {
		plain, err := url.PathUnescape(part)
		if err != nil {
			return apierrors.NewBadRequest("path: " + err.Error())
		}
		parts = append(parts, plain)
	}
	switch {
	case parts[0] == "api" && len(parts) >= 2:
		r.version, parts = parts[1], parts[2:]
	case parts[0] == "apis" && len(parts) >= 3:
		r.group, r.version, parts = parts[1], parts[2], parts[3:]
	default:
		return nil
	}
	if len(parts) == 0 {
		return nil
	}
	if parts[0] == namespaces && len(parts) > 1 {
		r.namespace = parts[1]
		if len(parts) > 2 && parts[2] != "status" && parts[2] != "finalize" {
			parts = parts[2:]
		}
	}
	r.resource = parts[0]
	if len(parts) > 1 {
		r.name = parts[1]
	}
	if len(parts) > 2 {
		r.sub = strings.Join(parts[2:], "/")
	}
	r.setVerb()
	return nil
}

func (r *request) setVerb() {
	switch r.Method {
	case http.MethodPost:
		r.verb = "create"
	case http.MethodPut:
		r.verb = "update"
	case http.MethodGet, http.MethodDelete:
		if r.name != "" {
			break
		}
		r.verb = "list"
		if watch := r.query.Get("watch"); watch != "" && watch != "false" && watch != "0" {
			r.verb = "watch"
		}
		if r.Method == http.MethodDelete {
			r.verb = "deletecollection"
		}
		// A list of one name counts as a request for that name, so that a right to it suffices.
		if selector, err := fields.ParseSelector(r.query.Get("fieldSelector")); err == nil && selector != nil {
			r.name, _ = selector.RequiresExactMatch("metadata.name")
		}
	}
}

// objectNamespace returns the object's namespace. A Namespace has none, though the request counts as
// one in it.
func (r *request) objectNamespace() string {
	if r.kind.namespaced {
		return r.namespace
	}
	return ""
}

// dryRun reports whether the request must not change anything.
func (r *request) dryRun() bool { return slices.Contains(r.query["dryRun"], "All") }
