package kubernetes_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/providers/kubernetes"
)

// TestJoin says how hosts reach the cluster, from the configuration or from what
// the cluster gives out, and refuses what no host could reach.
func TestJoin(t *testing.T) {
	t.Parallel()
	eachCluster(t, func(t *testing.T, c *cluster) {
		published := "https://api.acme.test:6443"
		if c.name == "sandbox" {
			published = "https://kubernetes.sandbox.internal:6443"
		}
		for _, want := range []struct{ set, server, why string }{
			{"", published, ""},
			{"https://api.acme.dev:6443", "https://api.acme.dev:6443", ""},
			{"https://127.0.0.1:6443", "", "loopback address"},
			{"https://[::1]:6443", "", "loopback address"},
			{"https://localhost", "", "loopback address"},
			{"https://0.0.0.0:6443", "", "loopback address"},
			{"http://api.acme.dev", "", "not an https URL"},
			{"api.acme.dev:6443", "", "hosts cannot use"},
		} {
			o := c.options(t)
			o.APIServer = want.set
			seen := observe(t, c.client(t, o)).Join
			join, ok := seen.Get()
			if ok != (want.why == "") || join.Server != want.server || !strings.Contains(seen.Why(), want.why) {
				t.Errorf("%q: %q, %q", want.set, join.Server, seen.Why())
			}
			if ok && !strings.HasPrefix(join.CA, "-----BEGIN CERTIFICATE-----") {
				t.Errorf("%q: authority %q", want.set, join.CA)
			}
			if !ok && !strings.Contains(seen.Why(), "set api_server in the kubernetes block") {
				t.Errorf("%q: no remedy in %q", want.set, seen.Why())
			}
		}
	})
}

// TestJoinUnknown names what is missing where the cluster says nothing.
func TestJoinUnknown(t *testing.T) {
	t.Parallel()
	c := serve(t, kubernetes.Options{}, texts(http.StatusForbidden, map[string]string{
		"/api/v1/namespaces/kube-public/configmaps/cluster-info": `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"cluster-info"}}`}))
	seen := observe(t, c)
	if why := seen.Join.Why(); !strings.Contains(why, "set api_server in the kubernetes block") {
		t.Errorf("join: %q", why)
	}
	// All else is refused: each part reports its own error.
	for what, why := range map[string]string{"pods": seen.Pods.Why(), "identities": seen.Identities.Why(), "objects": seen.Objects.Why(),
		"machines": seen.Machines.Why()} {
		if !strings.Contains(why, "lacks this permission") {
			t.Errorf("%s: %q", what, why)
		}
	}
	if _, err := kubernetes.New(kubernetes.Options{URL: "https://127.0.0.1:1", CA: []byte("no certificate")}); err == nil {
		t.Error("an authority that is none")
	}
}

// TestJoinWay takes over what the cluster says of the way to it, and lets the configuration say otherwise.
func TestJoinWay(t *testing.T) {
	t.Parallel()
	const ca = "-----BEGIN CERTIFICATE-----\\nMA==\\n-----END CERTIFICATE-----\\n"
	info := `clusters: [{name: \"\", cluster: {server: \"https://10.0.0.1:6443\", tls-server-name: api.acme.test, proxy-url: \"http://proxy.acme.test:3128\", certificate-authority-data: QQ==}}]`
	answers := texts(http.StatusNotFound, map[string]string{"/api/v1/namespaces/kube-public/configmaps/cluster-info": `{"kind":"ConfigMap","apiVersion":"v1",` +
		`"metadata":{"name":"cluster-info"},"data":{"kubeconfig":"apiVersion: v1\nkind: Config\n` + info + `\n"}}`})
	for _, tc := range []struct {
		o    kubernetes.Options
		want inventory.Join
	}{
		{kubernetes.Options{}, inventory.Join{Server: "https://10.0.0.1:6443", CA: "A", TLSServerName: "api.acme.test", ProxyURL: "http://proxy.acme.test:3128"}},
		{kubernetes.Options{APIServer: "https://lb.acme.dev"}, inventory.Join{Server: "https://lb.acme.dev", CA: "A"}},
		{kubernetes.Options{APIServer: "https://lb.acme.dev", APIServerCA: ca, TLSServerName: "k.acme.dev", ProxyURL: "http://p.acme.dev"},
			inventory.Join{Server: "https://lb.acme.dev", CA: ca, TLSServerName: "k.acme.dev", ProxyURL: "http://p.acme.dev"}},
		{kubernetes.Options{ProxyURL: "http://p.acme.dev"},
			inventory.Join{Server: "https://10.0.0.1:6443", CA: "A", TLSServerName: "api.acme.test", ProxyURL: "http://p.acme.dev"}},
	} {
		if got, ok := observe(t, serve(t, tc.o, answers)).Join.Get(); !ok || got != tc.want {
			t.Errorf("%+v: %+v", tc.o, got)
		}
	}
}
