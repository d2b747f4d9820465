package transport_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/macfleet/macfleet/providers/transport"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// answers serves the given status codes one after the other, then 200.
func answers(t *testing.T, codes ...int) (url string, served *atomic.Int64) {
	t.Helper()
	served = new(atomic.Int64)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := int(served.Add(1))
		if n <= len(codes) {
			w.Header().Set("X-Ratelimit-Reset", "0")
			w.WriteHeader(codes[n-1])
		}
		_, _ = io.Copy(w, r.Body)
	}))
	t.Cleanup(s.Close)
	return s.URL, served
}

// TestRepeats sends again what a server asked to have again, and reads that met
// a fault; a write is never sent twice unless the server refused the first.
func TestRepeats(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, method string
		codes        []int
		status       int
		sent         int64
	}{
		{"read", http.MethodGet, nil, 200, 1},
		{"read, limited", http.MethodGet, []int{429, 429}, 200, 3},
		{"read, fault", http.MethodGet, []int{503}, 200, 2},
		{"read, refused", http.MethodGet, []int{403}, 403, 1},
		{"read, not modelled", http.MethodGet, []int{501}, 501, 1},
		{"write", http.MethodPatch, nil, 200, 1},
		{"write, limited", http.MethodPatch, []int{429}, 200, 2},
		{"write, fault", http.MethodPatch, []int{503}, 503, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			url, served := answers(t, c.codes...)
			var counter transport.Counter
			client := transport.Downloads(&counter)
			defer client.CloseIdleConnections()
			req, err := http.NewRequestWithContext(t.Context(), c.method, url, strings.NewReader("body"))
			if err != nil {
				t.Fatal(err)
			}
			resp, err := client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			body, err := io.ReadAll(resp.Body)
			if err != nil || string(body) != "body" {
				t.Errorf("body %q, %v: every attempt must carry it", body, err)
			}
			if resp.StatusCode != c.status || served.Load() != c.sent || counter.Requests() != c.sent {
				t.Errorf("status %d, served %d, counted %d; want %d and %d", resp.StatusCode, served.Load(), counter.Requests(), c.status, c.sent)
			}
		})
	}
}

// TestWriteIsNotRepeatedAfterABreak cuts the connection under a write: whether
// it arrived is not known.
func TestWriteIsNotRepeatedAfterABreak(t *testing.T) {
	t.Parallel()
	for method, sent := range map[string]int64{http.MethodPatch: 1, http.MethodGet: 2} {
		var served atomic.Int64
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if served.Add(1) == 1 {
				panic(http.ErrAbortHandler)
			}
		}))
		var counter transport.Counter
		client := transport.Downloads(&counter)
		req, err := http.NewRequestWithContext(t.Context(), method, s.URL, strings.NewReader("body"))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(req)
		if (err == nil) != (sent == 2) || served.Load() != sent {
			t.Errorf("%s: %d requests, error %v", method, served.Load(), err)
		}
		if err == nil {
			resp.Body.Close()
		}
		client.CloseIdleConnections()
		s.Close()
	}
}

// TestPatientSendsAgain: every try carries the whole body, and none begins after the caller's deadline.
func TestPatientSendsAgain(t *testing.T) {
	t.Parallel()
	for within, want := range map[time.Duration]int{time.Hour: 3, 10 * time.Second: 1} {
		sent, pauses := 0, transport.NewPauses()
		pauses.Sleep = func(context.Context, time.Duration) error { return nil }
		next := &http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
			if body, err := io.ReadAll(r.Body); err != nil || string(body) != "body" {
				t.Errorf("body %q, %v", body, err)
			}
			sent++
			return transport.Answer(r, http.Header{"Retry-After": {"20"}}, nil, []int{429, 429, 200}[sent-1]), nil
		})}
		p := transport.Patient{Next: next, Pauses: pauses, Judge: func(*transport.Trail, *http.Response, []byte) error { return nil }}
		ctx, stop := context.WithTimeout(t.Context(), within)
		defer stop()
		req, _ := http.NewRequestWithContext(ctx, http.MethodPatch, "http://api.example.com", strings.NewReader("body"))
		if resp, err := p.Do(req); err != nil || resp.Body.Close() != nil || sent != want {
			t.Errorf("within %s: sent %d times, error %v", within, sent, err)
		}
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
	limited := &http.Response{StatusCode: http.StatusTooManyRequests, Header: http.Header{"X-Ratelimit-Reset": {"3600"}}}
	if got := transport.Wait(time.Second, 10*time.Second, 1, limited); got != 10*time.Second {
		t.Error(got)
	}
}
