package kubernetes_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/secret"
	"github.com/macfleet/macfleet/providers/kubernetes"
)

const kubeconfig = `apiVersion: v1
kind: Config
current-context: other
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}]
contexts: [{name: other, context: {cluster: c}}, {name: acme, context: {cluster: c}}]
`

// What the engine asks of a cluster.
var _ interface {
	ID(context.Context) (inventory.ClusterID, error)
	Nodes(context.Context) ([]inventory.Node, error)
	Observe(context.Context, bool) (inventory.Seen[[]inventory.Node], inventory.Cluster)
	Revoke(ctx context.Context, host string) error
	Identify(ctx context.Context, host string) (inventory.Identity, error)
	Token(ctx context.Context, host string) (secret.Value, error)
	SetProviderID(ctx context.Context, n inventory.Node, id string) error
	DeleteNode(ctx context.Context, n inventory.Node) error
	ReleasePod(ctx context.Context, p inventory.Pod) error
	Keep(ctx context.Context, o inventory.Object) error
} = (*kubernetes.Client)(nil)

// TestContext uses the kubeconfig as kubectl's users have it.
func TestContext(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config")
	must(t, os.WriteFile(path, []byte(kubeconfig), 0o600))
	t.Setenv("KUBECONFIG", path)
	for context, problem := range map[string]string{"acme": "", "": "", "akme": `no context "akme"; it has: acme, other`} {
		_, err := kubernetes.New(kubernetes.Options{Context: context})
		if problem == "" && err != nil || problem != "" && (err == nil || !strings.Contains(err.Error(), problem)) {
			t.Errorf("context %q: %v", context, err)
		}
	}
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "missing"))
	if _, err := kubernetes.New(kubernetes.Options{Context: "acme"}); err == nil || !strings.Contains(err.Error(), "missing") {
		t.Errorf("without a file: %v", err)
	}
}

// serve is a client of a server that answers in JSON.
func serve(t *testing.T, o kubernetes.Options, answer http.HandlerFunc) *kubernetes.Client {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		answer(w, r)
	}))
	t.Cleanup(s.Close)
	o.URL, o.Token = s.URL, "t"
	c, err := kubernetes.New(o)
	must(t, err)
	t.Cleanup(c.Close)
	return c
}

// texts answers by path, and all else with a status.
func texts(status int, answers map[string]string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, ok := answers[r.URL.Path]
		if !ok {
			w.WriteHeader(status)
			body = fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"code":%d,"message":"no"}`,
				strings.ReplaceAll(http.StatusText(status), " ", ""), status)
		}
		_, _ = w.Write([]byte(body))
	}
}

func TestNodes(t *testing.T) {
	t.Parallel()
	c := serve(t, kubernetes.Options{}, texts(http.StatusForbidden, map[string]string{
		"/api/v1/nodes": `{"kind":"NodeList","apiVersion":"v1","items":[
			{"metadata":{"name":"b"},"spec":{"providerID":"scw-applesilicon://fr-par-1/id-b","unschedulable":true},
			 "status":{"conditions":[{"type":"Ready","status":"False","reason":"KubeletDown","message":"it stopped"}]}},
			{"metadata":{"name":"a"},"status":{"conditions":[{"type":"Ready","status":"True"}]}},
			{"metadata":{"name":"c"}}]}`,
		"/api/v1/namespaces/kube-system":    `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"kube-system","uid":"u-1"}}`,
		"/api/v1/namespaces/ns/secrets/key": `{"kind":"Secret","apiVersion":"v1","metadata":{"name":"key"},"data":{"id":"eA=="}}`,
	}))
	nodes, err := c.Nodes(t.Context())
	must(t, err)
	want := []inventory.Node{
		{Name: "a", Ready: inventory.Ready, Conditions: []inventory.Condition{{Type: "Ready", Status: "True"}}},
		{Name: "b", ProviderID: "scw-applesilicon://fr-par-1/id-b", Ready: inventory.NotReady, Cordoned: true, Why: "it stopped",
			Conditions: []inventory.Condition{{Type: "Ready", Status: "False", Why: "it stopped"}}},
		{Name: "c", Ready: inventory.ReadyUnknown},
	}
	for i := range want {
		want[i].Taints = inventory.Present([]inventory.Taint{})
	}
	is(t, nodes, want)
	if nodes[1].ServerID() != "id-b" {
		t.Errorf("server id %q", nodes[1].ServerID())
	}
	if uid, err := c.ID(t.Context()); err != nil || uid.UID != "u-1" {
		t.Errorf("uid %q, %v", uid, err)
	}
	if v, err := c.Secret(t.Context(), "ns", "key", "id"); err != nil || v != "x" {
		t.Errorf("secret %q, %v", v, err)
	}
	if _, err := c.Secret(t.Context(), "ns", "key", "other"); err == nil || !strings.Contains(err.Error(), `no key "other"; it has: id`) {
		t.Errorf("missing key: %v", err)
	}
	if _, err := c.Secret(t.Context(), "ns", "other", "id"); err == nil || !strings.Contains(err.Error(), "lacks this permission") {
		t.Errorf("forbidden: %v", err)
	}
}
