package scaleway_test

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/providers/scaleway"
)

// FuzzRefusals: every error answer has a known class and a text on one line without control characters. None has a
// negative wait, a denial is one only in the provider's own form, and a good answer is never taken from a body that is not
// this server.
func FuzzRefusals(f *testing.F) {
	entries, err := os.ReadDir("testdata/errors")
	if err != nil {
		f.Fatal(err)
	}
	for i, entry := range entries {
		head, body, _ := strings.Cut(string(fixture(f, "errors", entry.Name())), "\n\n")
		var status int
		if _, err := fmt.Sscanf(head, "HTTP/1.1 %d", &status); err != nil {
			f.Fatal(err)
		}
		f.Add(status, []string{"application/json", "text/html", ""}[i%3], "1", body)
	}
	classes := map[inventory.Class]bool{inventory.Denied: true, inventory.Unauthenticated: true, inventory.NotFound: true, inventory.QuotaExceeded: true,
		inventory.Transient: true, inventory.Locked: true, inventory.OutOfStock: true, inventory.Precondition: true, inventory.InvalidRequest: true,
		inventory.Expired: true, inventory.RateLimited: true, inventory.ServerFault: true, inventory.NetworkFault: true, inventory.UnexpectedAnswer: true}
	f.Fuzz(func(t *testing.T, status int, contentType, retryAfter, body string) {
		if status < 200 || status > 599 || strings.ContainsFunc(contentType+retryAfter, unicode.IsControl) {
			return
		}
		answer := fmt.Appendf(nil, "HTTP/1.1 %d Whatever\nContent-Type: %s\nRetry-After: %s\nX-Request-Id: id\n\n%s", status, contentType, retryAfter, body)
		c, _, _ := replayed(t, func(*http.Request) []byte { return answer })
		got, err := c.Get(t.Context(), "fr-par-1", serverID)
		if err == nil {
			if got.ID != serverID || status > 299 {
				t.Errorf("%d was accepted as %+v", status, got)
			}
			return
		}
		class := inventory.ClassOf(err)
		if !classes[class] {
			t.Errorf("class %q: %v", class, err)
		}
		if strings.ContainsFunc(err.Error(), unicode.IsControl) {
			t.Errorf("control characters in %q", err)
		}
		if class == inventory.Denied && !strings.HasPrefix(strings.TrimSpace(body), "{") {
			t.Errorf("a denial that is not Scaleway's: %v", err)
		}
	})
}

// FuzzHeaders: whatever the headers say, the wait is not negative, not shorter than a plain number of seconds, and the
// same for both headers.
func FuzzHeaders(f *testing.F) {
	for _, value := range []string{"1", "0", "-1", "1, 1;w=1", "0.5", "1e300", "NaN", "Inf", "-Inf", "Wed, 25 Mar 2026 10:00:05 GMT", "1774432805", "99999999999999999999", "", "soon"} {
		f.Add(value)
	}
	f.Fuzz(func(t *testing.T, value string) {
		reset := scaleway.Asked(http.Header{"X-Ratelimit-Reset": {value}}, today)
		after := scaleway.Asked(http.Header{"Retry-After": {value}}, today)
		if reset != after || reset < -1 {
			t.Errorf("%q: %s and %s", value, reset, after)
		}
		var seconds uint16
		if n, err := fmt.Sscanf(value, "%d", &seconds); n == 1 && err == nil && fmt.Sprint(seconds) == value && reset != time.Duration(seconds)*time.Second {
			t.Errorf("%q: %s", value, reset)
		}
	})
}

// TestHeaders: both headers have several forms, and the longer wait counts.
func TestHeaders(t *testing.T) {
	t.Parallel()
	const silent = time.Duration(-1)
	for _, tc := range []struct {
		reset, after string
		want         time.Duration
	}{
		{"", "", silent},
		{"1", "", time.Second},
		{"", "7", 7 * time.Second},
		{"1", "7", 7 * time.Second},
		{"9", "7", 9 * time.Second},
		{"0", "", 0},
		{"1, 1;w=1", "", time.Second},
		{" 2 ; w=1", "", 2 * time.Second},
		{"0.25", "", 250 * time.Millisecond},
		{"1774432830", "", 30 * time.Second},
		{"1774432000", "", 0},
		{"", "Wed, 25 Mar 2026 10:00:05 GMT", 5 * time.Second},
		{"", "Wed, 25 Mar 2026 09:00:00 GMT", 0},
		{"-5", "", silent},
		{"soon", "", silent},
		{"NaN", "Inf", 1<<62 - 1},
	} {
		header := http.Header{}
		for name, value := range map[string]string{"X-Ratelimit-Reset": tc.reset, "Retry-After": tc.after} {
			if value != "" {
				header.Set(name, value)
			}
		}
		if got := scaleway.Asked(header, today); got != tc.want {
			t.Errorf("%q, %q: %s, want %s", tc.reset, tc.after, got, tc.want)
		}
	}
}
