package kubernetes_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kube "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	sandbox "github.com/macfleet/macfleet/internal/sandbox/kube"
	"github.com/macfleet/macfleet/providers/kubernetes"
)

// cluster is a cluster that the suite runs against: the real server, or the
// sandbox's.
type cluster struct {
	name string
	url  string
	ca   []byte
	dir  string // of the sandbox
	// admin may do everything.
	admin kube.Interface
}

// eachCluster runs a test of the suite against both.
func eachCluster(t *testing.T, test func(t *testing.T, c *cluster)) {
	t.Helper()
	t.Run("real", func(t *testing.T) {
		t.Parallel()
		test(t, realCluster(t))
	})
	t.Run("sandbox", func(t *testing.T) {
		t.Parallel()
		test(t, sandboxCluster(t))
	})
}

// controllers replaces the kube-controller-manager of a real API server: it
// fills token Secrets and publishes the authority and the address.
var controllers struct {
	once sync.Once
	err  error
}

func realCluster(t testing.TB) *cluster {
	t.Helper()
	s := realServer(t)
	c := &cluster{name: "real", url: s.url, ca: s.ca}
	c.admin = c.as(t, adminToken)
	controllers.once.Do(func() { controllers.err = publish(c.admin, s.ca) })
	if controllers.err != nil {
		t.Fatal(controllers.err)
	}
	return c
}

// publish makes what kube-controller-manager and kubeadm make in kube-public.
func publish(admin kube.Interface, ca []byte) error {
	ctx := context.Background()
	info := "apiVersion: v1\nkind: Config\nclusters: [{name: \"\", cluster: {server: \"https://api.acme.test:6443\"}}]\n"
	for _, m := range []*corev1.ConfigMap{
		{ObjectMeta: metav1.ObjectMeta{Name: "kube-root-ca.crt"}, Data: map[string]string{"ca.crt": string(ca)}},
		{ObjectMeta: metav1.ObjectMeta{Name: "cluster-info"}, Data: map[string]string{"kubeconfig": info}},
	} {
		if _, err := admin.CoreV1().ConfigMaps("kube-public").Create(ctx, m, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	// Tests share the Cluster API's role, which goes with the last binding to it.
	other := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "another-configuration", Labels: map[string]string{"app.kubernetes.io/managed-by": "macfleet"}},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "macfleet-capi-remote"}}
	_, err := admin.RbacV1().ClusterRoleBindings().Create(ctx, other, metav1.CreateOptions{})
	return err
}

// trusting is a transport that trusts one authority.
func trusting(ca []byte) *http.Transport {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	return &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: true}
}

// as is client-go's own client, with a token.
func (c *cluster) as(t testing.TB, token string) kube.Interface {
	t.Helper()
	config := &rest.Config{Host: c.url, BearerToken: token, TLSClientConfig: rest.TLSClientConfig{CAData: c.ca}, QPS: 1000, Burst: 1000}
	client, err := rest.HTTPClientFor(config)
	must(t, err)
	api, err := kube.NewForConfigAndClient(config, client)
	must(t, err)
	t.Cleanup(client.CloseIdleConnections)
	return api
}

// ns is a name of a namespace that only this test has.
func ns(t *testing.T) string {
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		}
		return '-'
	}, t.Name())
	return strings.Trim(name, "-")
}

// agents is the namespace of this test's hosts' accounts.
func agents(t *testing.T) string { return ns(t) + "-agents" }

// options are those of a configuration that only this test has.
func (c *cluster) options(t *testing.T) kubernetes.Options {
	return kubernetes.Options{URL: c.url, Token: adminToken, CA: c.ca, Namespace: ns(t), LabelPrefix: "acme.dev", Owner: ns(t)}
}

// client is the provider's client under test.
func (c *cluster) client(t *testing.T, o kubernetes.Options) *kubernetes.Client {
	t.Helper()
	client, err := kubernetes.New(o)
	must(t, err)
	t.Cleanup(client.Close)
	return client
}

// prepared is a client of a cluster that `init cluster` went over.
func (c *cluster) prepared(t *testing.T) *kubernetes.Client {
	t.Helper()
	client := c.client(t, c.options(t))
	prepare(t, client)
	c.control(t)
	return client
}

// prepare does what `init cluster` does.
func prepare(t *testing.T, client *kubernetes.Client) {
	t.Helper()
	must(t, errOf(client.Prepare(t.Context(), kubernetes.PrepareOptions{})))
}

// kept fails unless a plan finds every object as it must be.
func kept(t *testing.T, client *kubernetes.Client) {
	t.Helper()
	if left := wrong(objects(t, client)); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

// control fills the token Secrets of this test's namespaces on the real server,
// as the token controller does: token, authority and the account's uid in
// one update. The sandbox does it itself.
func (c *cluster) control(t *testing.T) {
	t.Helper()
	if c.name != "real" {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	admin := c.as(t, adminToken)
	t.Cleanup(func() { cancel(); <-done })
	namespaces := []string{ns(t), agents(t)}
	go func() {
		defer close(done)
		pause := time.NewTicker(100 * time.Millisecond)
		defer pause.Stop()
		for {
			for _, namespace := range namespaces {
				list, err := admin.CoreV1().Secrets(namespace).List(ctx, metav1.ListOptions{FieldSelector: "type=" + string(corev1.SecretTypeServiceAccountToken)})
				for i := 0; err == nil && i < len(list.Items); i++ {
					fill(ctx, admin, &list.Items[i], c.ca)
				}
			}
			select {
			case <-ctx.Done():
				return
			case <-pause.C:
			}
		}
	}()
}

func fill(ctx context.Context, admin kube.Interface, s *corev1.Secret, ca []byte) {
	if len(s.Data["token"]) > 0 {
		return
	}
	accounts := admin.CoreV1().ServiceAccounts(s.Namespace)
	account, err := accounts.Get(ctx, s.Annotations[corev1.ServiceAccountNameKey], metav1.GetOptions{})
	if err != nil {
		return
	}
	answer, err := accounts.CreateToken(ctx, account.Name, &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		BoundObjectRef: &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Secret", Name: s.Name, UID: s.UID}}}, metav1.CreateOptions{})
	if err != nil {
		return
	}
	s.Annotations[corev1.ServiceAccountUIDKey] = string(account.UID)
	s.Data = map[string][]byte{"token": []byte(answer.Status.Token), "ca.crt": ca, "namespace": []byte(s.Namespace)}
	// A run that deleted it meanwhile is right.
	_, _ = admin.CoreV1().Secrets(s.Namespace).Update(ctx, s, metav1.UpdateOptions{})
}

// identified is a host's token.
func identified(t *testing.T, client *kubernetes.Client, host string) string {
	t.Helper()
	if i, err := client.Identify(t.Context(), host); err != nil || !i.Complete() {
		t.Fatalf("identify %s: %+v, %v", host, i, err)
	}
	token, err := client.Token(t.Context(), host)
	must(t, err)
	return token.Reveal()
}

// eventually asks until it has no complaint: RBAC and tokens are read from caches.
func eventually(t *testing.T, what string, ask func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	pause := time.NewTicker(10 * time.Millisecond)
	defer pause.Stop()
	for {
		err := ask()
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s: %v", what, err)
		case <-pause.C:
		}
	}
}

// name is a name in this test's own space.
func name(t *testing.T, suffix string) string { return fmt.Sprintf("%s-%s", ns(t), suffix) }

// sandboxCluster is a simulated cluster of this test's own.
func sandboxCluster(t testing.TB) *cluster {
	t.Helper()
	dir := t.TempDir()
	must(t, sandbox.Create(dir, sandbox.Seed{ClusterUID: "33333333-3333-4333-8333-333333333333", CreatedAt: time.Now().Add(-time.Hour)}))
	api, err := sandbox.New(dir, sandbox.Options{Token: adminToken})
	must(t, err)
	served := httptest.NewServer(api)
	t.Cleanup(served.Close)
	c := &cluster{name: "sandbox", url: served.URL, dir: dir}
	c.admin = c.as(t, adminToken)
	return c
}

// must ends a test at the first error.
func must(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// is fails unless something is as it must be.
func is[T any](t testing.TB, got, want T) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmp.Exporter(func(reflect.Type) bool { return true })); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
