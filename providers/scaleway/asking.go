package scaleway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/scaleway/scaleway-sdk-go/scw"

	"github.com/macfleet/macfleet/fleet/inventory"
)

// doer sends the SDK's requests. It answers GET /metadata itself: the SDK asks that once per client, without a context
// and without a lock, only to write its own name into servers. Unanswered, it would hold every call for minutes.
type doer struct{ next *http.Client }

// metadata is what the real API answers.
const metadata = `{"platform":"scaleway","partition":"scw","domain":"scw"}`

// Do sends a request, and notes what the provider calls it.
func (d doer) Do(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/metadata") {
		return &http.Response{StatusCode: http.StatusOK, Status: "200 OK", Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
			Header: http.Header{"Content-Type": {"application/json"}}, ContentLength: int64(len(metadata)),
			Body: io.NopCloser(strings.NewReader(metadata))}, nil
	}
	resp, err := d.next.Do(r)
	if t, ok := r.Context().Value(trailKey{}).(*trail); ok && resp != nil {
		t.id = resp.Header.Get("X-Request-Id")
	}
	return resp, err
}

// trail is what is known of the last request of a call.
type trail struct{ id string }

type trailKey struct{}

// ask calls the SDK. An error says what is known of its cause, and how the provider calls the request.
func ask[T any](ctx context.Context, c *Client, of subject, call func(scw.RequestOption) (T, error)) (T, error) {
	var t trail
	out, err := call(scw.WithContext(context.WithValue(ctx, trailKey{}, &t)))
	switch {
	case err == nil:
		return out, nil
	case ctx.Err() != nil:
		return out, context.Cause(ctx)
	}
	err = c.explain(of, err)
	if t.id != "" {
		err = fmt.Errorf("%w (request id %s)", err, t.id)
	}
	return out, err
}

// subject is what a request is about.
type subject int

const (
	inventoryOf subject = iota
	oneServer
	sshKeys
)

// right is the permission set that requests about a subject need.
func (s subject) right() string {
	if s == sshKeys {
		return "SSHKeysFullAccess"
	}
	return "AppleSiliconFullAccess"
}

// explain adds what a person can do to the errors whose cause is known.
func (c *Client) explain(of subject, err error) error {
	var denied *scw.PermissionsDeniedError
	var auth *scw.DeniedAuthenticationError
	switch {
	case errors.As(err, &denied):
		text := fmt.Sprintf("Scaleway denies %s (insufficient permissions) in project %s; the API key needs %s there",
			deniedOf(denied), c.project, of.right())
		if of == oneServer {
			text += ". A deleted server gives the same error: check whether macfleet hosts -o wide still lists it"
		}
		return &deniedError{text, err}
	case errors.As(err, &auth):
		return fmt.Errorf("%w; the API key is unknown or expired; fix: run scw init or set SCW_ACCESS_KEY and SCW_SECRET_KEY", err)
	}
	return err
}

// deniedOf says which actions were denied.
func deniedOf(err *scw.PermissionsDeniedError) string {
	var all []string
	for _, d := range err.Details {
		if text := strings.TrimSpace(d.Action + " " + d.Resource); text != "" {
			all = append(all, fmt.Sprintf("%q", text))
		}
	}
	if len(all) == 0 {
		return "the request (the missing permission is not named)"
	}
	return strings.Join(all, ", ")
}

// deniedError is a denial in macfleet's words. It is inventory.ErrDenied.
type deniedError struct {
	text  string
	cause error
}

// Error returns the text.
func (e *deniedError) Error() string { return inventory.ErrDenied.Error() + ": " + e.text }

// Unwrap returns what it is, for errors.Is and errors.As.
func (e *deniedError) Unwrap() []error { return []error{inventory.ErrDenied, e.cause} }

// What a passing state forbids is tried so often, and in between is waited so long: two minutes in all.
const (
	settleTries = 40
	settleEvery = 3 * time.Second
)

// settled does something with a server, and once more when the server has left the passing state that forbids it.
// A state that is not passing, and one that does not pass in time, is the error.
func (c *Client) settled(ctx context.Context, do func() error) error {
	err := do()
	for tried := 1; passing(err) && tried < settleTries; tried++ {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(c.settleEvery):
		}
		err = do()
	}
	if passing(err) {
		return fmt.Errorf("%w; it did not leave that state within %s; fix: check it in the Scaleway console, then run the command again",
			err, settleTries*c.settleEvery)
	}
	return err
}

// passing reports whether an error is that of a server in a state that passes by itself.
func passing(err error) bool {
	var transient *scw.TransientStateError
	return errors.As(err, &transient)
}
