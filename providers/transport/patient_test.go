package transport_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/macfleet/macfleet/providers/transport"
)

// TestPatientSendsAgain: every try carries the whole body, and a try that could only begin after the caller's deadline is not waited for.
func TestPatientSendsAgain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		within      time.Duration
		retryAfter  string
		sent, slept int
		status      int
	}{
		"in time":  {time.Hour, "20", 3, 2, 200},
		"too late": {10 * time.Second, "20", 1, 0, 429},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sent, slept := 0, 0
			pauses := transport.NewPauses()
			pauses.Sleep = func(context.Context, time.Duration) error { slept++; return nil }
			next := &http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
				if body, err := io.ReadAll(r.Body); err != nil || string(body) != "body" {
					t.Errorf("body %q, %v", body, err)
				}
				if sent++; sent < 3 {
					return transport.Answer(r, http.Header{"Retry-After": {c.retryAfter}}, nil, 429), nil
				}
				return transport.Answer(r, http.Header{}, nil, 200), nil
			})}
			p := transport.Patient{Next: next, Pauses: pauses, Judge: func(*transport.Trail, *http.Response, []byte) error { return nil }}
			ctx, stop := context.WithTimeout(t.Context(), c.within)
			defer stop()
			req, err := http.NewRequestWithContext(ctx, http.MethodPatch, "http://api.example.com", strings.NewReader("body"))
			if err != nil {
				t.Fatal(err)
			}
			resp, err := p.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if resp.StatusCode != c.status || sent != c.sent || slept != c.slept {
				t.Errorf("status %d, sent %d times, slept %d times", resp.StatusCode, sent, slept)
			}
		})
	}
}

// TestPlain: a server's text reaches a terminal without its control characters, on one line.
func TestPlain(t *testing.T) {
	t.Parallel()
	if got := transport.Plain("503\r\nbusy\x1b[2J\x00\x7f\u009bnow"); got != "503 busy [2J now" {
		t.Errorf("%q", got)
	}
}

// TestWaitIsCapped: a server cannot make a download wait longer than the longest pause.
func TestWaitIsCapped(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"X-Ratelimit-Reset", "Retry-After"} {
		limited := &http.Response{StatusCode: http.StatusTooManyRequests, Header: http.Header{name: {"3600"}}}
		if got := transport.Wait(time.Second, 10*time.Second, 1, limited); got != 10*time.Second {
			t.Errorf("%s: %s", name, got)
		}
	}
}
