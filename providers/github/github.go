// Package github sees and changes the self-hosted runners of an organization or repository. Only it and the simulator
// know GitHub's API.
package github

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	gh "github.com/google/go-github/v92/github"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/secret"
	"github.com/macfleet/macfleet/providers/transport"
)

// Options say how GitHub is reached.
type Options struct {
	Scope       Scope
	Credentials Credentials
	HTTP        *http.Client
	Waiting     func(transport.Waiting) // called before a request is sent again, from many goroutines; nil: no call
	URL         string                  // of the API, with a slash at its end; empty: that of the scope's host
}

// Client sees and changes the runners of one scope.
type Client struct {
	scope  Scope
	app    *parsed // nil: static is the token
	static secret.Value
	api    *gh.Client
	pauses *transport.Pauses
	minted minted
}

// minted is an installation's token, made at the first request that needs one. A channel guards it, not a mutex: others
// wait for it as long as GitHub takes.
type minted struct {
	turn    chan struct{}
	token   secret.Value
	expires time.Time
	times   int         // how many were made
	write   atomic.Bool // it may change runners
}

// RequestsPerSecond keeps far below GitHub's secondary limits, which count points per minute: 900, and 5 for a write.
const RequestsPerSecond = 10

// ErrNoCredentials says that neither an App nor a token is configured.
var ErrNoCredentials = errors.New("no credentials for GitHub; fix: give the fleet's github_runner block an app or a token")

// New returns a client. The error joins all faults of the credentials.
func New(o Options) (*Client, error) {
	c := &Client{scope: o.Scope, static: o.Credentials.Token, pauses: transport.NewPauses(), minted: minted{turn: make(chan struct{}, 1)}}
	if app := o.Credentials.App; app != nil {
		p, faults := app.parse()
		if err := JoinFaults(faults); err != nil {
			return nil, fmt.Errorf("the GitHub App for the %s: %w", o.Scope.thing(), err)
		}
		c.app = &p
	} else if c.static.IsZero() {
		return nil, ErrNoCredentials
	}
	// A redirect would carry the token to another place.
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	next := *o.HTTP
	next.CheckRedirect = stay
	patient := transport.Patient{Next: &next, Waiting: o.Waiting, Pauses: c.pauses, RequestID: "X-GitHub-Request-Id", Judge: judge}
	address := o.URL
	if address == "" {
		address = o.Scope.API()
	}
	var err error
	// The library's own check of limits remembers an old answer, and refuses without a request.
	c.api, err = gh.NewClient(gh.WithHTTPClient(&http.Client{Transport: transport.Around(next.Transport, patient.Do), CheckRedirect: stay}),
		gh.WithURLs(&address, nil), gh.WithUserAgent("macfleet"), gh.WithDisableRateLimitCheck())
	if err != nil {
		return nil, fmt.Errorf("the address %s of GitHub's API: %w", address, err)
	}
	return c, nil
}

// judge notes what an error answer says, and whether the rate is limited. A redirect is not followed: GitHub sends it
// for an organization or repository that was renamed.
func judge(t *transport.Trail, resp *http.Response, body []byte) error {
	good := resp.StatusCode >= 200 && resp.StatusCode <= 299
	usedUp := resp.Header.Get("X-Ratelimit-Remaining") == "0"
	refused := resp.StatusCode == http.StatusForbidden || resp.StatusCode == http.StatusTooManyRequests
	t.Limited = refused && (usedUp || resp.Header.Get("Retry-After") != "" || resp.StatusCode == http.StatusTooManyRequests)
	t.UsedUp = t.Limited && usedUp
	if good && len(body) == 0 && t.Method != http.MethodGet {
		return nil
	}
	if !json.Valid(body) {
		if !good && resp.StatusCode >= 500 || resp.StatusCode >= 300 && resp.StatusCode < 400 {
			return nil
		}
		return &transport.StrangeAnswer{Text: fmt.Sprintf("%s with %d bytes of %.80q instead of JSON", t.Text, len(body), resp.Header.Get("Content-Type"))}
	}
	if good {
		return nil
	}
	var said struct {
		Message string `json:"message"`
		Errors  []struct {
			Message string `json:"message"`
		} `json:"errors"`
	}
	_ = json.Unmarshal(body, &said)
	for _, e := range said.Errors {
		if e.Message != "" {
			said.Message += ": " + e.Message
		}
	}
	t.Said = transport.Plain(said.Message)
	return nil
}

// ask sends one request with the scope's token, and decodes its answer into out unless it is nil. A token that GitHub
// does not accept any more is minted again, once.
func (c *Client) ask(ctx context.Context, of subject, method, path string, body, out any) (*gh.Response, error) {
	rejected := 0
	for {
		token, number, err := c.token(ctx, rejected)
		if err != nil {
			return nil, err
		}
		resp, t, err := c.send(ctx, token, method, path, body, out)
		if err == nil {
			return resp, nil
		}
		if c.app != nil && rejected == 0 && t.Status == http.StatusUnauthorized {
			rejected = number
			continue
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, c.explain(of, err, t)
	}
}

// send sends one request with a credential.
func (c *Client) send(ctx context.Context, credential secret.Value, method, path string, body, out any) (*gh.Response, *transport.Trail, error) {
	ctx, t := transport.Follow(ctx)
	r, err := c.api.NewRequest(ctx, method, path, body)
	if err != nil {
		return nil, t, fmt.Errorf("build the request %s %s: %w", method, path, err)
	}
	r.Header.Set("Authorization", "Bearer "+credential.Reveal())
	resp, err := c.api.Do(r, out)
	return resp, t, err
}

// token returns the token that requests carry, and its number. Its number is above the rejected one.
func (c *Client) token(ctx context.Context, rejected int) (secret.Value, int, error) {
	if c.app == nil {
		return c.static, 0, nil
	}
	select {
	case c.minted.turn <- struct{}{}:
		defer func() { <-c.minted.turn }()
	case <-ctx.Done():
		return secret.Value{}, 0, context.Cause(ctx)
	}
	if c.minted.times > rejected && c.pauses.Now().Before(c.minted.expires.Add(-5*time.Minute)) {
		return c.minted.token, c.minted.times, nil
	}
	installation := c.app.installation
	if installation == 0 {
		found, err := c.installation(ctx)
		if err != nil {
			return secret.Value{}, 0, err
		}
		installation = found.GetID()
	}
	err := c.mint(ctx, installation, "write")
	c.minted.write.Store(err == nil)
	if notGranted(err) { // an App with read rights only can still plan: nothing may be requested that is not granted
		err = c.mint(ctx, installation, "read")
	}
	if err != nil {
		return secret.Value{}, 0, fmt.Errorf("make a token of the App %s: %w", c.app.issuer, err)
	}
	c.minted.times++
	return c.minted.token, c.minted.times, nil
}

// mint makes a token that can do no more than what runners need.
func (c *Client) mint(ctx context.Context, installation int64, level string) error {
	key, _ := c.scope.permission()
	narrow := struct {
		Repositories []string          `json:"repositories,omitempty"`
		Permissions  map[string]string `json:"permissions"`
	}{Permissions: map[string]string{key: level}}
	if c.scope.Repository != "" {
		narrow.Repositories = []string{c.scope.Repository}
	}
	var answer struct {
		Token   string    `json:"token"`
		Expires time.Time `json:"expires_at"`
	}
	if _, err := c.asApp(ctx, minting, http.MethodPost, fmt.Sprintf("app/installations/%d/access_tokens", installation), narrow, &answer); err != nil {
		return err
	}
	token, err := secret.New(answer.Token)
	if err != nil {
		return &inventory.ProviderError{Class: inventory.UnexpectedAnswer, Text: "unexpected answer from GitHub: it made a token that is empty; fix: run the command again"}
	}
	c.minted.token, c.minted.expires = token, answer.Expires
	return nil
}

// asApp sends a request as the App itself, and returns which key GitHub accepted, from 1. While the keys are rotated, it
// accepts one or both of them.
func (c *Client) asApp(ctx context.Context, of subject, method, path string, body, out any) (int, error) {
	for i, key := range c.app.keys {
		proof, err := c.app.sign(key, c.pauses.Now())
		if err != nil {
			return 0, err
		}
		_, t, err := c.send(ctx, proof, method, path, body, out)
		switch {
		case err == nil:
			return i + 1, nil
		case ctx.Err() != nil:
			return 0, context.Cause(ctx)
		case t.Status != http.StatusUnauthorized || i == len(c.app.keys)-1:
			return 0, c.explain(of, err, t)
		}
	}
	return 0, ErrNoCredentials
}

// sorted returns lower-case texts in order, each once.
func sorted(all []string) []string {
	slices.Sort(all)
	return slices.Compact(all)
}
