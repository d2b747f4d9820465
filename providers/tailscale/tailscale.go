// Package tailscale sees and changes the devices and auth keys of a tailnet. Only it and the simulator know Tailscale's API.
// The vendor's client is not used: its token request ignores context and timeouts, a redirect becomes an empty object, and
// an error page loses its status.
package tailscale

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/secret"
	"github.com/macfleet/macfleet/providers/transport"
)

// Credentials are an OAuth client or a federated identity.
type Credentials struct {
	Secret   secret.Value // of an OAuth client: tskey-client-…; zero: a federated identity
	ClientID string       // of a federated identity
	Token    secret.Value // the token (a JWT) that the identity trusts
}

// The kinds of secrets, by their prefixes.
const (
	clientPrefix = "tskey-client-"
	apiPrefix    = "tskey-api-"
)

// IsAuthKey reports whether a secret is an auth key made by hand, of Tailscale or of Headscale.
func IsAuthKey(v secret.Value) bool {
	return strings.HasPrefix(v.Reveal(), "tskey-auth-") || strings.HasPrefix(v.Reveal(), "hskey-auth-")
}

// fault says what is wrong with credentials; nil: nothing that shows without a request.
func (c Credentials) fault() error {
	switch text := c.Secret.Reveal(); {
	case c.Secret.IsZero() && (c.ClientID == "" || c.Token.IsZero()):
		return errors.New("no credentials for the tailnet; fix: give the tailnet block auth, or client_id and identity_token")
	case strings.HasPrefix(text, apiPrefix):
		return errors.New("auth is an access token of a person, which expires; fix: create an OAuth client (Settings, OAuth clients) and give its secret, tskey-client-…")
	case !c.Secret.IsZero() && !strings.HasPrefix(text, clientPrefix):
		return errors.New("auth is neither the secret of an OAuth client (tskey-client-…) nor an auth key (tskey-auth-…); fix: correct what it refers to")
	}
	return nil
}

// Options say how the API is reached.
type Options struct {
	Credentials Credentials
	Tags        []string // that hosts get
	HTTP        *http.Client
	Learn       func(value string)      // called with each secret that the API returns, before it is used
	Waiting     func(transport.Waiting) // called before a request is sent again, from many goroutines; nil: no call
	URL         string                  // of the API, without a slash at its end; empty: Tailscale's
	Now         func() time.Time
}

// RequestsPerSecond keeps far below Tailscale's limits, which are not published.
const RequestsPerSecond = 10

// Client sees and changes one tailnet: that of its credentials.
type Client struct {
	options Options
	patient transport.Patient
	turn    chan struct{} // guards token: others wait for it as long as Tailscale takes
	token   secret.Value
	expires time.Time
}

// New returns a client. It sends no request.
func New(o Options) (*Client, error) {
	if err := o.Credentials.fault(); err != nil {
		return nil, err
	}
	if o.URL == "" {
		o.URL = "https://api.tailscale.com"
	}
	// A redirect would carry the token to another place.
	next := *o.HTTP
	next.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &Client{options: o, turn: make(chan struct{}, 1), patient: transport.Patient{Next: &next, Waiting: o.Waiting, Pauses: transport.NewPauses(), Judge: judge}}, nil
}

// judge notes what an error answer says. An answer that is not JSON keeps its status, and is never decoded.
func judge(t *transport.Trail, resp *http.Response, body []byte) error {
	good := resp.StatusCode >= 200 && resp.StatusCode <= 299
	switch {
	case good && json.Valid(body), good && len(bytes.TrimSpace(body)) == 0 && t.Method != http.MethodGet:
		return nil
	case good:
		return &transport.StrangeAnswer{Text: fmt.Sprintf("%s with %d bytes of %.80q instead of JSON", t.Text, len(body), resp.Header.Get("Content-Type"))}
	}
	var said struct {
		Message string `json:"message"`
		Error   string `json:"error_description"`
	}
	if json.Unmarshal(body, &said) == nil {
		t.Said = transport.Plain(strings.TrimSpace(said.Message + " " + said.Error))
	}
	return nil
}

// ask sends a request and decodes the answer into out, nil for none. A token that is refused is replaced once.
func (c *Client) ask(ctx context.Context, method, path string, body, out any) error {
	for try := 1; ; try++ {
		token, err := c.access(ctx)
		if err != nil {
			return err
		}
		err = c.send(ctx, method, path, "application/json", "Bearer "+token.Reveal(), body, out)
		if inventory.ClassOf(err) != inventory.Unauthenticated || try == 2 {
			return err
		}
		c.forget(token)
	}
}

// send sends one request. The body is JSON, or a form.
func (c *Client) send(ctx context.Context, method, path, kind, authorization string, body, out any) error {
	var data io.Reader
	switch b := body.(type) {
	case nil:
	case url.Values:
		data = strings.NewReader(b.Encode())
	default:
		text, err := json.Marshal(b)
		if err != nil {
			return fmt.Errorf("encode the request: %w", err)
		}
		data = bytes.NewReader(text)
	}
	ctx, trail := transport.Follow(ctx)
	r, err := http.NewRequestWithContext(ctx, method, c.options.URL+path, data)
	if err != nil {
		return fmt.Errorf("the address %s of Tailscale's API: %w", c.options.URL, err)
	}
	r.Header.Set("User-Agent", "macfleet")
	if body != nil {
		r.Header.Set("Content-Type", kind)
	}
	if authorization != "" {
		r.Header.Set("Authorization", authorization)
	}
	resp, err := c.patient.Do(r)
	if err != nil {
		if ctx.Err() != nil {
			err = errors.Join(context.Cause(ctx), err)
		}
		return c.explain(err, trail)
	}
	defer resp.Body.Close() // it is in memory
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return c.explain(errors.New(resp.Status), trail)
	}
	if out == nil {
		return nil
	}
	if err := json.NewDecoder(resp.Body).Decode(out); err != nil {
		return c.explain(fmt.Errorf("decode the answer: %w", err), trail)
	}
	return nil
}

// early is how long before its end a token is replaced.
const early = 2 * time.Minute

// access returns a token for the API.
func (c *Client) access(ctx context.Context) (secret.Value, error) {
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return secret.Value{}, context.Cause(ctx)
	}
	if !c.token.IsZero() && c.options.Now().Before(c.expires.Add(-early)) {
		return c.token, nil
	}
	path, form := "/api/v2/oauth/token", url.Values{"grant_type": {"client_credentials"}, "client_id": {"macfleet"}}
	if own := c.options.Credentials; !own.Secret.IsZero() {
		form.Set("client_secret", own.Secret.Reveal())
	} else {
		path, form = "/api/v2/oauth/token-exchange", url.Values{"client_id": {own.ClientID}, "jwt": {own.Token.Reveal()}}
	}
	var answer struct {
		Token   string `json:"access_token"`
		Seconds int64  `json:"expires_in"`
	}
	if err := c.send(ctx, http.MethodPost, path, "application/x-www-form-urlencoded", "", form, &answer); err != nil {
		return secret.Value{}, fmt.Errorf("get an access token: %w", err)
	}
	token, err := secret.New(answer.Token)
	if err != nil {
		return secret.Value{}, strange("an access token that is empty")
	}
	c.options.Learn(answer.Token)
	if answer.Seconds <= 0 {
		answer.Seconds = 3600
	}
	c.token, c.expires = token, c.options.Now().Add(time.Duration(min(answer.Seconds, 24*3600))*time.Second)
	return token, nil
}

// forget drops a token that was refused.
func (c *Client) forget(token secret.Value) {
	c.turn <- struct{}{}
	defer func() { <-c.turn }()
	if c.token.Reveal() == token.Reveal() {
		c.token = secret.Value{}
	}
}

// strange is an answer of an unknown form.
func strange(what string) error {
	return &inventory.ProviderError{Class: inventory.UnexpectedAnswer, Text: "unexpected answer from Tailscale: " + what + "; fix: run the command again"}
}
