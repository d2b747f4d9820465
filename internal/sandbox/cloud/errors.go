package cloud

import (
	"fmt"
	"net/http"
)

// failure is an error answer: the HTTP status and the body in the vendor's format.
type failure struct {
	status int
	body   any
}

func (f *failure) Error() string {
	return fmt.Sprintf("status %d: %v", f.status, f.body)
}

type detail map[string]any

// typedError has the fields of all error types in use.
type typedError struct {
	Details      []detail `json:"details,omitempty"`
	Message      string   `json:"message"`
	Type         string   `json:"type"`
	Method       string   `json:"method,omitempty"`
	Reason       string   `json:"reason,omitempty"`
	Resource     string   `json:"resource,omitempty"`
	ResourceID   string   `json:"resource_id,omitempty"`
	CurrentState string   `json:"current_state,omitempty"`
	Precondition string   `json:"precondition,omitempty"`
	HelpMessage  string   `json:"help_message,omitempty"`
}

// denied is the API's answer for a deleted server as well as for one out of reach. Its fields are in
// the order of the recorded body.
func denied(action string) *failure { return deniedFor("server", action) }

func deniedFor(resource, action string) *failure {
	return &failure{http.StatusForbidden, typedError{
		Type:    "permissions_denied",
		Message: "insufficient permissions",
		Details: []detail{{"action": action, "resource": resource}},
	}}
}

func unauthenticated(reason string) *failure {
	return &failure{http.StatusUnauthorized, typedError{
		Type:    "denied_authentication",
		Message: "authentication is denied",
		Method:  "api_key",
		Reason:  reason,
	}}
}

func invalidArgument(name, reason, help string) *failure {
	return &failure{http.StatusBadRequest, typedError{
		Type:    "invalid_arguments",
		Message: "invalid argument(s)",
		Details: []detail{{"argument_name": name, "reason": reason, "help_message": help}},
	}}
}

func notFound(resource, id string) *failure {
	return &failure{http.StatusNotFound, typedError{
		Type:       "not_found",
		Message:    "resource is not found",
		Resource:   resource,
		ResourceID: id,
	}}
}

// inTransition is the answer while the provider works on a server.
func inTransition(server Server) *failure {
	return &failure{http.StatusConflict, typedError{
		Type:         "transient_state",
		Message:      "resource is in a transient state",
		Resource:     "server",
		ResourceID:   server.ID,
		CurrentState: server.Status,
	}}
}

func locked(server Server) *failure {
	return &failure{http.StatusLocked, typedError{
		Type:       "locked",
		Message:    "resource is locked",
		Resource:   "server",
		ResourceID: server.ID,
	}}
}

func preconditionFailed(help string) *failure {
	return &failure{http.StatusPreconditionFailed, typedError{
		Type:         "precondition_failed",
		Message:      "precondition is not respected",
		Precondition: "unknown_precondition",
		HelpMessage:  help,
	}}
}

func tooManyRequests(limit int) *failure {
	return &failure{http.StatusTooManyRequests, typedError{
		Type:    "too_many_requests",
		Message: fmt.Sprintf("more than %d requests in one second; wait for the seconds in X-Ratelimit-Reset", limit),
	}}
}

func notModelled(r *http.Request) *failure {
	return &failure{http.StatusNotImplemented, typedError{
		Type:    "not_implemented",
		Message: fmt.Sprintf("the sandbox does not model %s %s", r.Method, r.URL.Path),
	}}
}

func internal(err error) *failure {
	return &failure{http.StatusInternalServerError, typedError{Type: "internal", Message: err.Error()}}
}
