package kubernetes_test

import (
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/macfleet/macfleet/internal/secret"
	"github.com/macfleet/macfleet/providers/kubernetes"
)

// withKubeconfig makes the kubeconfig of a person: how its cluster is reached, and by whom.
func withKubeconfig(t *testing.T, cluster, user string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config")
	text := fmt.Sprintf("apiVersion: v1\nkind: Config\ncurrent-context: x\ncontexts: [{name: x, context: {cluster: c, user: u}}]\n"+
		"clusters: [{name: c, cluster: {%s}}]\nusers: [{name: u, user: {%s}}]\n", cluster, user)
	must(t, os.WriteFile(path, []byte(text), 0o600))
	t.Setenv("KUBECONFIG", path)
}

// TestPortable refuses to hand out a way to the cluster that another machine cannot use, and takes along all
// that belongs to one that it can.
func TestPortable(t *testing.T) {
	const only = "loopback address"
	for cluster, why := range map[string]string{
		`server: "https://api.acme.dev:6443"`:                                          "",
		`server: "https://10.0.0.7:6443"`:                                              "",
		`server: "api.acme.dev:6443"`:                                                  "",
		`server: "https://127.0.0.1:6443"`:                                             only,
		`server: "https://127.0.0.53:6443"`:                                            only,
		`server: "https://localhost:6443"`:                                             only,
		`server: "https://kind.localhost:6443"`:                                        only,
		`server: "localhost:6443"`:                                                     only,
		`server: "https://LOCALHOST.:6443"`:                                            only,
		`server: "https://[::1]:6443"`:                                                 only,
		`server: "https://[::ffff:127.0.0.1]:6443"`:                                    only,
		`server: "https://0.0.0.0:6443"`:                                               only,
		`server: "https://127.1:6443"`:                                                 "a name or a complete IP address",
		`server: "https://api.acme.dev:6443", proxy-url: "socks5://localhost:1080"`:    "its proxy-url is localhost:1080",
		`server: "https://api.acme.dev:6443", insecure-skip-tls-verify: true`:          "any server at",
		`server: "https://api.acme.dev:6443", proxy-url: "http://proxy.acme.dev:3128"`: "",
		`server: "https://api.acme.dev:6443", tls-server-name: "kubernetes.acme.dev"`:  "",
	} {
		withKubeconfig(t, cluster, "token: t")
		client, err := kubernetes.New(kubernetes.Options{})
		if err != nil {
			t.Fatalf("%s: %v", cluster, err)
		}
		t.Cleanup(client.Close)
		if err := client.Portable(); (err == nil) != (why == "") || err != nil && !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v; want %q", cluster, err, why)
		}
	}
}

// TestKubeconfigTakesAlong renders for CI what the person's own kubeconfig says of the way.
func TestKubeconfigTakesAlong(t *testing.T) {
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: httptestCA(t)})
	file := filepath.Join(t.TempDir(), "ca.crt")
	must(t, os.WriteFile(file, ca, 0o600))
	withKubeconfig(t, fmt.Sprintf(`server: "https://lb.acme.dev:6443", tls-server-name: kubernetes.acme.dev, proxy-url: "http://proxy.acme.dev:3128", certificate-authority: %q`, file), "token: t")
	client, err := kubernetes.New(kubernetes.Options{})
	must(t, err)
	t.Cleanup(client.Close)
	token, _ := secret.New("ci")
	text, err := client.Kubeconfig(token)
	must(t, err)
	config, err := clientcmd.Load([]byte(text.Reveal()))
	must(t, err)
	k := config.Clusters[config.Contexts[config.CurrentContext].Cluster]
	if k.Server != "https://lb.acme.dev:6443" || k.TLSServerName != "kubernetes.acme.dev" || k.ProxyURL != "http://proxy.acme.dev:3128" ||
		string(k.CertificateAuthorityData) != string(ca) || k.InsecureSkipTLSVerify {
		t.Errorf("cluster %+v", k)
	}
}

func httptestCA(t *testing.T) []byte {
	s := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(s.Close)
	return s.Certificate().Raw
}

// TestAuthProviders uses a kubeconfig from before credential plugins as kubectl does: one of OpenID Connect
// works, and one of a provider that client-go has dropped says what to use in its place.
func TestAuthProviders(t *testing.T) {
	var bearer atomic.Value // the client asks for several lists at once
	bearer.Store("")
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		bearer.Store(r.Header.Get("Authorization"))
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"kind":"NodeList","apiVersion":"v1","items":[]}`))
	}))
	t.Cleanup(s.Close)
	part := base64.RawURLEncoding.EncodeToString
	id := part([]byte(`{"alg":"none"}`)) + "." + part([]byte(fmt.Sprintf(`{"exp":%d}`, time.Now().Add(time.Hour).Unix()))) + "." + part([]byte("x"))
	provider := func(name string) string {
		return fmt.Sprintf(`auth-provider: {name: %s, config: {idp-issuer-url: "https://login.acme.dev", client-id: acme, id-token: "%s"}}`, name, id)
	}
	ca := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
	cluster := fmt.Sprintf("server: %q, certificate-authority-data: %q", s.URL, ca)
	withKubeconfig(t, cluster, provider("oidc"))
	client, err := kubernetes.New(kubernetes.Options{})
	must(t, err)
	t.Cleanup(client.Close)
	if _, err := client.Nodes(t.Context()); err != nil || bearer.Load() != "Bearer "+id {
		t.Errorf("%v; sent %q", err, bearer.Load())
	}
	for name, why := range map[string]string{"gcp": "gke-gcloud-auth-plugin", "azure": "kubelogin", "acme": "acme"} {
		withKubeconfig(t, cluster, provider(name))
		if _, err := kubernetes.New(kubernetes.Options{}); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
