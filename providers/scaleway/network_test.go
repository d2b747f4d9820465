package scaleway_test

import (
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/providers/scaleway"
)

// TestNoAnswer: a request that never reached Scaleway is sent again, whatever it is. One that may have is sent again only
// if it reads, and the error of a write names the doubt.
func TestNoAnswer(t *testing.T) {
	t.Parallel()
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	reset := &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
	read := func(c *scaleway.Client) error {
		_, err := c.Get(t.Context(), "fr-par-1", serverID)
		return err
	}
	write := func(c *scaleway.Client) error { return c.Reboot(t.Context(), "fr-par-1", serverID) }
	for name, tc := range map[string]struct {
		err    error
		do     func(*scaleway.Client) error
		asked  int
		unsure bool
		text   string
	}{
		"read, refused":    {refused, read, 6, false, "no connection to Scaleway: dial tcp: connection refused"},
		"write, refused":   {refused, write, 6, false, "no connection to Scaleway"},
		"write, no name":   {&net.DNSError{Err: "no such host", Name: "api.example", IsNotFound: true}, write, 6, false, "no such host"},
		"read, reset":      {reset, read, 6, false, "no answer from Scaleway"},
		"write, reset":     {reset, write, 1, true, "the request may have been carried out"},
		"write, no answer": {io.EOF, write, 1, true, "no answer from Scaleway: EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asked := 0
			c := client(t, func(o *scaleway.Options) {
				o.HTTP = &http.Client{Transport: roundTrip(func(*http.Request) (*http.Response, error) { asked++; return nil, tc.err })}
			})
			c.Sleep(func(time.Duration) {})
			err := tc.do(c)
			var e *inventory.ProviderError
			if !errors.As(err, &e) || e.Class != inventory.NetworkFault || e.Unsure != tc.unsure || !strings.Contains(err.Error(), tc.text) {
				t.Errorf("error %v", err)
			}
			if asked != tc.asked {
				t.Errorf("%d requests, want %d", asked, tc.asked)
			}
			if strings.Contains(err.Error(), key) || strings.Contains(err.Error(), "api.example/") {
				t.Errorf("%q has the address or the key", err)
			}
		})
	}
}

// TestListsWithoutContent: an answer without the list and its count is never an empty list.
func TestListsWithoutContent(t *testing.T) {
	t.Parallel()
	for _, body := range []string{`{}`, `{"message":"hello"}`, `null`, `[]`, ``, `"servers"`} {
		c, _, _ := replayed(t, func(*http.Request) []byte {
			return []byte("HTTP/1.1 200 OK\nContent-Type: application/json\n\n" + body)
		})
		list, err := c.List(t.Context())
		if list != nil || inventory.ClassOf(err) != inventory.UnexpectedAnswer {
			t.Errorf("%q: servers %v, error %v", body, list, err)
		}
		catalogue, err := c.Catalogue(t.Context())
		if len(catalogue.Offers)+len(catalogue.Systems) != 0 || inventory.ClassOf(err) != inventory.UnexpectedAnswer {
			t.Errorf("%q: catalogue %v, error %v", body, catalogue, err)
		}
		if keys, err := c.Keys(t.Context()); keys != nil || inventory.ClassOf(err) != inventory.UnexpectedAnswer {
			t.Errorf("%q: keys %v, error %v", body, keys, err)
		}
	}
}
