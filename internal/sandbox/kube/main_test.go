package kube_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/macfleet/macfleet/internal/maintest"
	"github.com/macfleet/macfleet/internal/sandbox/kube"
)

func TestMain(m *testing.M) { maintest.Main(m) }

const (
	token      = "test-token"
	clusterUID = "33333333-3333-4333-8333-333333333333"
)

// cluster is one API over a folder of objects.
type cluster struct {
	dir    string
	api    *kube.API
	server *httptest.Server
}

func newCluster(t testing.TB) *cluster { return newClusterAt(t, nil) }

// newClusterAt creates a cluster with a separate clock.
func newClusterAt(t testing.TB, now func() time.Time) *cluster {
	t.Helper()
	dir := t.TempDir()
	err := kube.Create(dir, kube.Seed{
		ClusterUID: clusterUID,
		CreatedAt:  time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC),
		Secret:     &kube.Secret{Namespace: "macfleet", Name: "fleet-ssh", Key: "id_ed25519", Value: "the key\n"},
	})
	must(t, err)
	return serveAt(t, dir, now)
}

// serve opens the folder again, as another process would.
func serve(t testing.TB, dir string) *cluster { return serveAt(t, dir, nil) }

func serveAt(t testing.TB, dir string, now func() time.Time) *cluster {
	t.Helper()
	api, err := kube.New(dir, kube.Options{Token: token, Now: now})
	must(t, err)
	server := httptest.NewServer(api)
	t.Cleanup(server.Close)
	return &cluster{dir: dir, api: api, server: server}
}

// client returns the real typed client.
func (c *cluster) client(t testing.TB, bearer string) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfigAndClient(
		&rest.Config{Host: c.server.URL, QPS: -1}, &http.Client{Transport: bearerTransport{bearer, c.server.Client().Transport}})
	must(t, err)
	return client
}

// bearerTransport adds the token; a client with its own transport must do that itself.
type bearerTransport struct {
	token string
	next  http.RoundTripper
}

func (b bearerTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if b.token != "" {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+b.token)
	}
	return b.next.RoundTrip(r)
}

// ask sends one request and returns the answer's status and body.
func (c *cluster) ask(t testing.TB, method, path, contentType, body string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, c.server.URL+path, strings.NewReader(body))
	must(t, err)
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Content-Type", contentType)
	response, err := c.server.Client().Do(request)
	must(t, err)
	data, err := io.ReadAll(response.Body)
	must(t, err)
	must(t, response.Body.Close())
	return response.StatusCode, string(data)
}

// accept returns the body of an answer in the format of a header.
func (c *cluster) accept(t testing.TB, path, accept string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.server.URL+path, nil)
	must(t, err)
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Accept", accept)
	response, err := c.server.Client().Do(request)
	must(t, err)
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	must(t, err)
	return string(data)
}

// must ends the test at the first error.
func must(t testing.TB, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

func equal[T comparable](t testing.TB, got, want T, what ...any) {
	t.Helper()
	if got != want {
		t.Errorf("%v\n got %#v\nwant %#v", what, got, want)
	}
}
