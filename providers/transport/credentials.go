package transport

import (
	"net/http"
	"strings"
)

// Watch returns a round tripper that tells of every credential that leaves the
// process in a request's header, before the request goes out: whatever a server
// answers with, the credential is known by then, wherever it came from.
func Watch(next http.RoundTripper, tell func(credential string)) http.RoundTripper {
	return watched{next: next, tell: tell}
}

type watched struct {
	next http.RoundTripper
	tell func(string)
}

// RoundTrip tells of the request's credentials and passes it on.
func (w watched) RoundTrip(r *http.Request) (*http.Response, error) {
	for _, name := range []string{"X-Auth-Token", "Authorization"} {
		for _, value := range r.Header.Values(name) {
			if scheme, rest, ok := strings.Cut(value, " "); ok && scheme != "" {
				value = rest // "Bearer …"
			}
			w.tell(value)
		}
	}
	return w.next.RoundTrip(r)
}

// CloseIdleConnections passes the call on, so that no idle connection is left
// when a command ends.
func (w watched) CloseIdleConnections() {
	if c, ok := w.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}
