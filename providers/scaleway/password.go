package scaleway

import (
	"context"
	"errors"
	"net/url"
	"strings"

	"github.com/macfleet/macfleet/internal/secret"
)

// The reasons why Scaleway does not provide a password.
var (
	// ErrSealed says that the placeholder <sealed> is in its place, as it is
	// for keys that may not see it. Encoded into kcpassword it locked four hosts
	// out of their session.
	//
	//lint:ignore ST1005 it begins with a name
	ErrSealed = errors.New("Scaleway returns <sealed> instead: the API key may not read it")
	// ErrNotDisclosed says that the field is empty: Scaleway stops providing it
	// some hours after the order.
	//
	//lint:ignore ST1005 it begins with a name
	ErrNotDisclosed = errors.New("Scaleway no longer provides it")
)

// Password is a password that Scaleway provides.
type Password struct {
	Value  secret.Value
	Source string // where it was, in words
}

// Passwords returns the login passwords that Scaleway provides for a server, the most
// likely one first: that of the server, and the one in its VNC address. They come
// from the one call that shows them; answers to lists and writes hold a
// placeholder. Without any, the error is or wraps ErrSealed or ErrNotDisclosed.
func (c *Client) Passwords(ctx context.Context, zone, id string) ([]Password, error) {
	s, err := c.get(ctx, zone, id)
	if err != nil {
		return nil, err
	}
	var out []Password
	reason := ErrNotDisclosed
	for _, p := range []struct{ text, source string }{
		{s.SudoPassword, "Scaleway"}, {fromVNC(s.VncURL), "Scaleway's VNC address"},
	} {
		v, err := secret.New(p.text)
		switch {
		case err == nil && (len(out) == 0 || out[0].Value.Reveal() != p.text):
			out = append(out, Password{v, p.source})
		case err != nil && p.text != "":
			reason = ErrSealed
		}
	}
	if len(out) == 0 {
		return nil, reason
	}
	return out, nil
}

// fromVNC returns the password of vnc://user:password@address. Where the address
// is not a URL, as with a password that is not escaped, it is cut by hand; and an
// address may be nothing but the placeholder.
func fromVNC(address string) string {
	if u, err := url.Parse(address); err == nil && u.User != nil {
		password, _ := u.User.Password()
		return password
	}
	if _, err := secret.New(address); address != "" && err != nil {
		return address
	}
	_, rest, _ := strings.Cut(address, "://")
	at := strings.LastIndex(rest, "@")
	_, password, _ := strings.Cut(rest[:max(at, 0)], ":")
	return password
}
