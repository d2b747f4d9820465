package github

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// failure is an error answer.
type failure struct {
	status  int
	message string
	header  http.Header
	errors  []fieldError
}

// fieldError is a part of an answer to a request with wrong values.
type fieldError struct {
	Resource string `json:"resource,omitempty"`
	Field    string `json:"field,omitempty"`
	Code     string `json:"code,omitempty"`
	Message  string `json:"message,omitempty"`
}

func (f *failure) Error() string { return fmt.Sprintf("status %d: %s", f.status, f.message) }

func (f *failure) write(w http.ResponseWriter) {
	for name, values := range f.header {
		w.Header()[name] = values
	}
	body := struct {
		Message string       `json:"message"`
		Errors  []fieldError `json:"errors,omitempty"`
		Docs    string       `json:"documentation_url"`
		Status  string       `json:"status"`
	}{f.message, f.errors, "https://docs.github.com/rest", strconv.Itoa(f.status)}
	reply(w, f.status, body)
}

func internal(err error) *failure {
	return &failure{status: http.StatusInternalServerError, message: err.Error()}
}

func notFound() *failure { return &failure{status: http.StatusNotFound, message: "Not Found"} }

func badCredentials() *failure {
	return &failure{status: http.StatusUnauthorized, message: "Bad credentials"}
}

func unauthorized(format string, args ...any) *failure {
	return &failure{status: http.StatusUnauthorized, message: fmt.Sprintf(format, args...)}
}

func forbidden(message string) *failure {
	return &failure{status: http.StatusForbidden, message: message}
}

func invalid(format string, args ...any) *failure {
	return &failure{status: http.StatusUnprocessableEntity, message: fmt.Sprintf(format, args...)}
}

// requestID returns an id in GitHub's form.
func requestID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return strings.ToUpper(fmt.Sprintf("%x:%x:%x:%x:%x", b[:2], b[2:5], b[5:8], b[8:12], b[12:]))
}
