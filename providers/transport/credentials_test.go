package transport_test

import (
	"net/http"
	"slices"
	"testing"

	"github.com/macfleet/macfleet/providers/transport"
)

// TestWatch reports every credential before its request goes out.
func TestWatch(t *testing.T) {
	t.Parallel()
	url, _ := answers(t)
	var reported []string
	sent := func(r *http.Request) (*http.Response, error) {
		if len(reported) == 0 {
			t.Error("the request went out first")
		}
		return http.DefaultTransport.RoundTrip(r)
	}
	client := http.Client{Transport: transport.Watch(roundTripper(sent), func(c string) { reported = append(reported, c) })}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Auth-Token", "scaleway-key")
	r.Header.Set("Authorization", "Bearer kube-token")
	resp, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	client.CloseIdleConnections()
	if want := []string{"scaleway-key", "kube-token"}; !slices.Equal(reported, want) {
		t.Errorf("reported %q, want %q", reported, want)
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
