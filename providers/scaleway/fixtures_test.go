package scaleway_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/providers/scaleway"
)

// serverID is the server of the fixtures, and today their day.
const serverID = "0b1b2c3d-0000-4000-8000-000000000001"

var today = time.Date(2026, 3, 25, 10, 0, 0, 0, time.UTC)

// replay answers every request with what recorded returns: the bytes of an HTTP answer.
type replay struct {
	t        *testing.T
	lock     sync.Mutex
	asked    []string
	recorded func(r *http.Request) []byte
}

// RoundTrip parses the recorded bytes.
func (p *replay) RoundTrip(r *http.Request) (*http.Response, error) {
	p.lock.Lock()
	p.asked = append(p.asked, r.Method+" "+r.URL.Path)
	p.lock.Unlock()
	return http.ReadResponse(bufio.NewReader(bytes.NewReader(p.recorded(r))), r)
}

// replayed is a client whose answers are recorded, and the pauses that it made.
func replayed(t *testing.T, recorded func(r *http.Request) []byte) (*scaleway.Client, *replay, *[]time.Duration) {
	t.Helper()
	p := &replay{t: t, recorded: recorded}
	c := client(t, func(o *scaleway.Options) { o.HTTP = &http.Client{Transport: p} })
	var pauses []time.Duration
	c.Sleep(func(d time.Duration) { pauses = append(pauses, d) })
	c.At(today)
	return c, p, &pauses
}

// fixture reads the bytes of a recorded answer.
func fixture(t testing.TB, path ...string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(append([]string{"testdata"}, path...)...))
	must(t, err)
	return data
}

// repeats of a read that met a fault: six requests in all.
var repeats = []time.Duration{200 * time.Millisecond, 400 * time.Millisecond, 800 * time.Millisecond, 1600 * time.Millisecond, 3200 * time.Millisecond}

// refusals are the classes of the recorded answers. Pauses are those of a read; a write is sent once, except after 429.
var refusals = map[string]struct {
	class  inventory.Class
	wait   time.Duration
	pauses []time.Duration
	write  bool // a write that is answered so has succeeded
	unsure bool // a write that is answered so may have been carried out
	text   string
}{
	"denied":                  {class: inventory.Denied, text: `denies "read server" (insufficient permissions) in project ` + project},
	"denied-keys":             {class: inventory.Denied, text: `denies "list ssh_key"`},
	"denied-no-details":       {class: inventory.Denied, text: "the missing permission is not named"},
	"denied-other-details":    {class: inventory.Denied, text: "the missing permission is not named"},
	"unauthenticated":         {class: inventory.Unauthenticated, text: "rejects the API key (api_key: not_found)"},
	"unauthenticated-expired": {class: inventory.Unauthenticated, text: "rejects the API key (api_key: expired)"},
	"not-found":               {class: inventory.NotFound, text: "has no server " + serverID},
	"quota":                   {class: inventory.QuotaExceeded, text: "apple_silicon_m2_l 10 of 10"},
	"transient":               {class: inventory.Transient, wait: 3 * time.Second, text: "server " + serverID + " has the passing status reinstalling"},
	"conflict":                {class: inventory.Transient, wait: 3 * time.Second, text: "has a passing status"},
	"html-429": {class: inventory.RateLimited, wait: 4 * time.Second, pauses: slices.Repeat([]time.Duration{4 * time.Second}, 22),
		text: "next request in 4s"},
	"locked-423":       {class: inventory.Locked, text: "server " + serverID + " is locked by Scaleway"},
	"locked-403":       {class: inventory.Locked, text: "is locked by Scaleway"},
	"out-of-stock-409": {class: inventory.OutOfStock, text: "has no server of this type in stock"},
	"out-of-stock-503": {class: inventory.OutOfStock, pauses: repeats, text: "in stock"},
	"precondition":     {class: inventory.Precondition, text: "server cannot be deleted before 2026-03-24T10:00:00Z"},
	"invalid":          {class: inventory.InvalidRequest, text: "os_id (constraint): this OS is not available for this server type"},
	"other-message":    {class: inventory.InvalidRequest, text: "400 Bad Request"},
	"expired":          {class: inventory.Expired, text: "expired at 2026-03-20T10:00:00Z"},
	"rate-limited":     {class: inventory.RateLimited, wait: time.Second, pauses: slices.Repeat([]time.Duration{time.Second}, 90), text: "next request in 1s"},
	"rate-limited-retry-after": {class: inventory.RateLimited, wait: 7 * time.Second, pauses: slices.Repeat([]time.Duration{7 * time.Second}, 12),
		text: "next request in 7s"},
	"rate-limited-date":     {class: inventory.RateLimited, wait: 5 * time.Second, pauses: slices.Repeat([]time.Duration{5 * time.Second}, 18), text: "next request in 5s"},
	"rate-limited-for-long": {class: inventory.RateLimited, wait: 10 * time.Minute, text: "next request in 10m0s"},
	"rate-limited-silent":   {class: inventory.RateLimited, wait: time.Second, pauses: repeats, text: "next request in 1s"},
	"internal":              {class: inventory.ServerFault, wait: 10 * time.Second, pauses: repeats, unsure: true, text: "500 Internal Server Error: internal error"},
	"html-502":              {class: inventory.ServerFault, wait: 10 * time.Second, pauses: repeats, unsure: true, text: "502 Bad Gateway"},
	"empty-504":             {class: inventory.ServerFault, wait: 10 * time.Second, pauses: repeats, unsure: true, text: "504 Gateway Timeout"},
	"retry-after-503": {class: inventory.ServerFault, wait: 20 * time.Second, pauses: slices.Repeat([]time.Duration{20 * time.Second}, 4), unsure: true,
		text: "503 Service Unavailable"},
	"not-modelled":     {class: inventory.ServerFault, unsure: true, text: "501 Not Implemented: not implemented"},
	"html-403":         {class: inventory.UnexpectedAnswer, unsure: true, text: `403 Forbidden with 62 bytes of "text/html; charset=utf-8" instead of JSON`},
	"html-200":         {class: inventory.UnexpectedAnswer, pauses: repeats, unsure: true, text: "instead of JSON"},
	"empty-200":        {class: inventory.UnexpectedAnswer, pauses: repeats, write: true, text: "200 OK with 0 bytes"},
	"empty-object-200": {class: inventory.UnexpectedAnswer, write: true, text: `it returned the server ""`},
	"array-200":        {class: inventory.UnexpectedAnswer, pauses: repeats, unsure: true, text: "instead of JSON"},
	"null-200":         {class: inventory.UnexpectedAnswer, pauses: repeats, unsure: true, text: "instead of JSON"},
	"cut-200":          {class: inventory.UnexpectedAnswer, pauses: repeats, unsure: true, text: "instead of JSON"},
	"wrong-field-200":  {class: inventory.UnexpectedAnswer, unsure: true, text: "vnc_port"},
	"redirect":         {class: inventory.UnexpectedAnswer, unsure: true, text: "302 Found"},
	"unknown-type":     {class: inventory.UnexpectedAnswer, unsure: true, text: "418 I'm a teapot: short and stout"},
	"unknown-type-403": {class: inventory.Denied, text: "the missing permission is not named"},
	"problem-json":     {class: inventory.NotFound, text: "has no server " + serverID},
}

var requestID = regexp.MustCompile(`(?m)^X-Request-Id: (.*)$`)

// TestRefusals replays every recorded error answer through the client: the right class, wait and message with the
// request id, for a read and for a write. No part of a body that is not an error's is in a message.
func TestRefusals(t *testing.T) {
	t.Parallel()
	entries, err := os.ReadDir("testdata/errors")
	must(t, err)
	if len(entries) != len(refusals) {
		t.Errorf("%d fixtures, %d expectations", len(entries), len(refusals))
	}
	for _, entry := range entries {
		name := strings.TrimSuffix(entry.Name(), ".http")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			data := fixture(t, "errors", entry.Name())
			want, ok := refusals[name]
			if !ok {
				t.Fatal("no expectation")
			}
			recorded := func(*http.Request) []byte { return data }
			c, sent, pauses := replayed(t, recorded)
			_, err := c.Get(t.Context(), "fr-par-1", serverID)
			e := refused(t, err, string(data))
			if e.Class != want.class || e.Wait != want.wait || !strings.Contains(e.Error(), want.text) || e.Unsure {
				t.Errorf("read: class %s, wait %s, unsure %t: %v", e.Class, e.Wait, e.Unsure, e)
			}
			if errors.Is(err, inventory.ErrDenied) != (want.class == inventory.Denied) {
				t.Errorf("ErrDenied: %t", errors.Is(err, inventory.ErrDenied))
			}
			if !slices.Equal(*pauses, want.pauses) || len(sent.asked) != len(want.pauses)+1 {
				t.Errorf("read: %d requests, pauses %v, want %v", len(sent.asked), *pauses, want.pauses)
			}

			c, sent, pauses = replayed(t, recorded)
			err = c.Reinstall(t.Context(), "fr-par-1", serverID, "os-1")
			if want.write {
				if err != nil || len(sent.asked) != 1 {
					t.Errorf("write: %d requests, error %v", len(sent.asked), err)
				}
				return
			}
			e = refused(t, err, string(data))
			if e.Class != want.class || e.Unsure != want.unsure {
				t.Errorf("write: class %s, unsure %t: %v", e.Class, e.Unsure, e)
			}
			if want.class != inventory.RateLimited && (len(sent.asked) != 1 || len(*pauses) != 0) {
				t.Errorf("write: %d requests, pauses %v", len(sent.asked), *pauses)
			}
		})
	}
}

// refused returns the provider's error, whose text has the request id, a remedy, and nothing of a page or a password.
func refused(t *testing.T, err error, answer string) *inventory.ProviderError {
	t.Helper()
	var e *inventory.ProviderError
	if !errors.As(err, &e) {
		t.Fatalf("error %v", err)
	}
	if id := requestID.FindStringSubmatch(answer); id != nil && e.Class != inventory.UnexpectedAnswer || e.RequestID != "" {
		if id == nil || e.RequestID != id[1] || !strings.Contains(err.Error(), "(request id "+id[1]+")") {
			t.Errorf("request id %q in %q", e.RequestID, err)
		}
	}
	if !strings.Contains(err.Error(), "fix: ") && !strings.Contains(err.Error(), "the API key needs") {
		t.Errorf("no remedy in %q", err)
	}
	for _, leaked := range []string{"<html", "planted", "\n"} {
		if strings.Contains(err.Error(), leaked) {
			t.Errorf("%q is in %q", leaked, err)
		}
	}
	return e
}

// TestBrokenAnswers: an answer that is interrupted, never ends or is too large is read again; a write is not.
func TestBrokenAnswers(t *testing.T) {
	t.Parallel()
	whole := fixture(t, "calls", "get-server.http")
	head, _, _ := bytes.Cut(whole, []byte("\n\n"))
	for name, tc := range map[string]struct {
		body  func(context.Context) io.Reader
		class inventory.Class
		text  string
	}{
		"cut":  {func(context.Context) io.Reader { return io.MultiReader(strings.NewReader(`{"id":`), cutOff{}) }, inventory.NetworkFault, "interrupted after 6 bytes"},
		"slow": {func(ctx context.Context) io.Reader { return io.MultiReader(strings.NewReader(`{`), silence{ctx}) }, inventory.NetworkFault, "did not arrive within"},
		"huge": {func(context.Context) io.Reader { return endless{} }, inventory.UnexpectedAnswer, "more than 8 MB"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			broken := true
			asked := 0
			trip := roundTrip(func(r *http.Request) (*http.Response, error) {
				asked++
				resp, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(whole)), r)
				if broken {
					resp, err = http.ReadResponse(bufio.NewReader(strings.NewReader(string(head)+"\n\n")), r)
					resp.Body = io.NopCloser(tc.body(r.Context()))
				}
				return resp, err
			})
			c := client(t, func(o *scaleway.Options) { o.HTTP = &http.Client{Transport: trip} })
			c.Patience(time.Millisecond)
			var waited int
			c.Sleep(func(time.Duration) { waited++; broken = waited < 2 })
			if _, err := c.Get(t.Context(), "fr-par-1", serverID); err != nil || asked != 3 {
				t.Errorf("read: %d requests, error %v", asked, err)
			}
			broken, asked = true, 0
			err := c.Reinstall(t.Context(), "fr-par-1", serverID, "os-1")
			var e *inventory.ProviderError
			if !errors.As(err, &e) || e.Class != tc.class || !e.Unsure || !strings.Contains(err.Error(), tc.text) || asked != 1 {
				t.Errorf("write: %d requests, error %v", asked, err)
			}
		})
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// cutOff is a connection that breaks, silence one that sends no more, endless one that does not stop.
type (
	cutOff  struct{}
	silence struct{ ctx context.Context }
	endless struct{}
)

func (cutOff) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func (s silence) Read([]byte) (int, error) {
	<-s.ctx.Done()
	return 0, s.ctx.Err()
}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}
