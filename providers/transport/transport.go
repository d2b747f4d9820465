// Package transport is the HTTP client under every provider: it counts and paces
// requests.
package transport

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-retryablehttp"
	"golang.org/x/time/rate"
)

// Counter counts the requests that went out, repeated ones included.
type Counter struct {
	Report   func(Request) // of each of them, from many goroutines; nil: no call
	requests atomic.Int64
}

// Request is one request that was answered or failed, without query, header and
// body.
type Request struct {
	Method, Host, Path string
	ID                 string        // what the server calls it, by which its operators find it; empty: it does not say
	Status             int           // 0: there was no answer
	Took               time.Duration // until the answer started
	Err                error
}

// Requests returns the count so far.
func (c *Counter) Requests() int64 { return c.requests.Load() }

// Wrap returns a round tripper that counts what passes through it.
func (c *Counter) Wrap(next http.RoundTripper) http.RoundTripper {
	return c.paced(next, rate.NewLimiter(rate.Inf, 0))
}

// paced lets each request wait for its turn, and counts it.
func (c *Counter) paced(next http.RoundTripper, limit *rate.Limiter) http.RoundTripper {
	return Around(next, func(r *http.Request) (*http.Response, error) {
		if err := limit.Wait(r.Context()); err != nil {
			return nil, err
		}
		c.requests.Add(1)
		began := time.Now()
		resp, err := next.RoundTrip(r)
		if c.Report != nil {
			report := Request{Method: r.Method, Host: r.URL.Host, Path: r.URL.Path, Took: time.Since(began), Err: err}
			if resp != nil {
				report.Status, report.ID = resp.StatusCode, cmp.Or(resp.Header.Get("X-Request-Id"), resp.Header.Get("X-GitHub-Request-Id"))
			}
			c.Report(report)
		}
		return resp, err
	})
}

// Around returns a round tripper that does something around next, which trip calls.
func Around(next http.RoundTripper, trip func(*http.Request) (*http.Response, error)) http.RoundTripper {
	return around{next, trip}
}

type around struct {
	next http.RoundTripper
	trip func(*http.Request) (*http.Response, error)
}

// RoundTrip does one round trip.
func (a around) RoundTrip(r *http.Request) (*http.Response, error) { return a.trip(r) }

// CloseIdleConnections passes the call on, so that no idle connection is left
// when a command ends.
func (a around) CloseIdleConnections() {
	if c, ok := a.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// Watch returns a round tripper that reports every credential that leaves the
// process in a request's header, before the request goes out: whatever a server
// answers with, the credential is known by then, wherever it came from.
func Watch(next http.RoundTripper, learn func(credential string)) http.RoundTripper {
	return Around(next, func(r *http.Request) (*http.Response, error) {
		for _, name := range []string{"X-Auth-Token", "Authorization"} {
			for _, value := range r.Header.Values(name) {
				if scheme, rest, ok := strings.Cut(value, " "); ok && scheme != "" {
					value = rest // "Bearer …"
				}
				learn(value)
			}
		}
		return next.RoundTrip(r)
	})
}

// The limits of repeating: a request is sent at most tries+1 times, waiting at
// most longestWait in between, and has timeout for each.
const (
	tries       = 6
	longestWait = 10 * time.Second
	timeout     = 30 * time.Second
)

// New returns an HTTP client that sends at most perSecond requests in any second, so
// that many hosts at once do not meet the server's own limit. It repeats nothing: the
// provider's client knows what is safe to repeat.
func New(counter *Counter, perSecond int) *http.Client {
	// What a second lets through is the burst and what is refilled meanwhile.
	burst := max(1, perSecond/8)
	limit := rate.NewLimiter(rate.Limit(max(1, perSecond-burst)), burst)
	b := base()
	b.ResponseHeaderTimeout = timeout
	return &http.Client{Transport: counter.paced(b, limit)}
}

// Downloads returns an HTTP client that repeats a request the server answered with
// 429, waiting as long as it says, and a GET that failed on the way or met a
// server fault, until an answer begins. The answer takes as long as it takes: the
// reader decides when to stop. Nothing else is repeated: whether a write arrived is not
// known.
func Downloads(counter *Counter) *http.Client {
	b := base()
	b.ResponseHeaderTimeout = timeout
	b.DisableCompression = true // the bytes as they are: their digest counts
	return repeating(&http.Client{Transport: counter.Wrap(b)})
}

func base() *http.Transport {
	return &http.Transport{Proxy: http.ProxyFromEnvironment, DialContext: (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
		TLSHandshakeTimeout: 10 * time.Second, MaxIdleConnsPerHost: 16, IdleConnTimeout: 30 * time.Second, ForceAttemptHTTP2: true}
}

func repeating(client *http.Client) *http.Client {
	c := retryablehttp.NewClient()
	c.HTTPClient = client
	c.Logger = nil
	c.RetryMax = tries
	c.RetryWaitMin = 200 * time.Millisecond
	c.RetryWaitMax = longestWait
	c.CheckRetry = again
	c.Backoff = wait
	c.ErrorHandler = retryablehttp.PassthroughErrorHandler
	return c.StandardClient()
}

// again decides whether a request is sent once more.
func again(ctx context.Context, resp *http.Response, err error) (bool, error) {
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	if resp != nil && resp.StatusCode == http.StatusTooManyRequests {
		return true, nil
	}
	var failed *url.Error
	read := errors.As(err, &failed) && failed.Op == "Get" ||
		resp != nil && resp.Request != nil && resp.Request.Method == http.MethodGet
	if !read {
		return false, nil
	}
	return retryablehttp.DefaultRetryPolicy(ctx, resp, err)
}

// wait returns how long to wait: what X-Ratelimit-Reset says, in seconds, else
// Retry-After, else twice as long each time.
func wait(least, most time.Duration, attempt int, resp *http.Response) time.Duration {
	if resp != nil {
		if s, err := strconv.Atoi(resp.Header.Get("X-Ratelimit-Reset")); err == nil && s >= 0 {
			return min(most, max(least, time.Duration(s)*time.Second))
		}
	}
	return min(most, retryablehttp.DefaultBackoff(least, most, attempt, resp))
}
