package kubernetes_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/providers/kubernetes"
)

// asked notes what goes out: a list once, however many pages it has.
type asked struct {
	mu    sync.Mutex
	lines []string
}

func (a *asked) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		if r.URL.Query().Has("continue") { // a further page: other tests may have filled the cluster with Pods
			return next.RoundTrip(r)
		}
		a.mu.Lock()
		line := r.Method + " " + r.URL.Path
		if r.Header.Get("Accept") != "" && strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadata") {
			line += " (metadata)"
		}
		a.lines = append(a.lines, line)
		a.mu.Unlock()
		return next.RoundTrip(r)
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestAsked counts what a read at a cluster costs, however many hosts it has, and
// keeps tokens out of it: of Secrets only the metadata is read.
func TestAsked(t *testing.T) {
	t.Parallel()
	eachCluster(t, func(t *testing.T, c *cluster) {
		o := c.withCAPI(t)
		c.control(t)
		prepare(t, c.client(t, o))
		var a asked
		o.Wrap = a.wrap
		client := c.client(t, o)
		must(t, errOf(client.Nodes(t.Context())))
		slices.Sort(a.lines)
		is(t, a.lines, []string{"GET /api/v1/nodes", "GET /apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"})
		a.lines = nil
		client.Observe(t.Context(), true)
		slices.Sort(a.lines)
		mine, rbac := "/api/v1/namespaces/"+ns(t), "/apis/rbac.authorization.k8s.io/v1/"
		want := []string{
			"GET /api/v1/nodes", "GET /apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases", "GET /api/v1/pods",
			"GET " + mine + "-agents/serviceaccounts", "GET " + mine + "-agents/secrets (metadata)", "GET /apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
			"GET /api/v1/namespaces/kube-public/configmaps/cluster-info", "GET /apis/cluster.x-k8s.io", "GET /api/v1/namespaces/kube-system",
			"GET " + mine, "GET " + mine + "-agents", "GET " + rbac + "clusterroles", "GET " + rbac + "clusterrolebindings",
			"GET " + rbac + "roles", "GET " + rbac + "rolebindings", "GET " + mine + "/serviceaccounts/macfleet",
			"GET /apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies", "GET /apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings",
			"GET " + mine + "/serviceaccounts/capi-remote", "GET " + mine + "/serviceaccounts/capi-remote",
			"GET " + mine + "/secrets/capi-remote-token (metadata)", "GET " + mine + "/secrets/capi-remote-token (metadata)",
			"GET " + mine + "-capi/secrets/acme-kubeconfig (metadata)", "GET /api/v1/namespaces/kube-public/configmaps/kube-root-ca.crt",
		}
		slices.Sort(want)
		got := slices.DeleteFunc(a.lines, func(l string) bool { // TestMachines may have brought the kinds already
			return strings.Contains(l, "cluster.x-k8s.io/") || strings.HasSuffix(l, "/infrastructure.cluster.x-k8s.io") || c.name == "real" && strings.HasSuffix(l, "kube-root-ca.crt")
		})
		if c.name == "real" { // what the cluster gives out there has no authority, so it is requested twice
			want = slices.DeleteFunc(want, func(l string) bool { return strings.HasSuffix(l, "kube-root-ca.crt") })
		}
		is(t, got, want)
	})
}

// TestPages reads on where an answer ends in the middle, and judges time by the
// clock of the cluster: this one's is two hours behind.
func TestPages(t *testing.T) {
	t.Parallel()
	now := time.Now().Add(-2 * time.Hour).UTC().Truncate(time.Second)
	const kind = `{"kind":"%sList","apiVersion":"%s","metadata":{"continue":"%s"},"items":[%s]}`
	stamp := func(ago time.Duration) string { return now.Add(-ago).Format("2006-01-02T15:04:05.000000Z") }
	pages := map[string]string{
		"/api/v1/nodes?": fmt.Sprintf(kind, "Node", "v1", "more",
			`{"metadata":{"name":"b","labels":{"kubernetes.io/os":"darwin"}},"status":{"conditions":[{"type":"Ready","status":"True"}]}}`),
		"/api/v1/nodes?more": fmt.Sprintf(kind, "Node", "v1", "",
			`{"metadata":{"name":"a"},"spec":{"providerID":"scw-applesilicon://fr-par-1/id"},"status":{"conditions":[{"type":"Ready","status":"True"}]}}`),
		"/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases?": fmt.Sprintf(kind, "Lease", "coordination.k8s.io/v1", "more",
			`{"metadata":{"name":"a"},"spec":{"leaseDurationSeconds":40,"renewTime":"`+stamp(55*time.Second)+`"}}`),
		"/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases?more": fmt.Sprintf(kind, "Lease", "coordination.k8s.io/v1", "",
			`{"metadata":{"name":"b"},"spec":{"leaseDurationSeconds":40,"renewTime":"`+stamp(65*time.Second)+`"}}`),
		"/api/v1/pods?": fmt.Sprintf(kind, "Pod", "v1", "more",
			`{"metadata":{"namespace":"x","name":"2","deletionTimestamp":"`+now.Add(-time.Minute).Format(time.RFC3339)+`"},"spec":{"nodeName":"a"}},
			 {"metadata":{"namespace":"x","name":"other"},"spec":{"nodeName":"linux"}}`),
		"/api/v1/pods?more": fmt.Sprintf(kind, "Pod", "v1", "",
			`{"metadata":{"namespace":"x","name":"1","deletionTimestamp":"`+now.Add(time.Minute).Format(time.RFC3339)+`"},"spec":{"nodeName":"b"}}`),
	}
	client := serve(t, kubernetes.Options{}, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Date", now.Format(http.TimeFormat))
		text, ok := pages[r.URL.Path+"?"+r.URL.Query().Get("continue")]
		if limit := r.URL.Query().Get("limit"); ok && limit != "500" {
			t.Errorf("%s: limit %q", r.URL, limit)
		}
		if !ok {
			w.WriteHeader(http.StatusNotFound)
		}
		_, _ = w.Write([]byte(text))
	})
	nodes, err := client.Nodes(t.Context())
	if err != nil || len(nodes) != 2 || nodes[0].Ready != inventory.Ready || nodes[1].Ready != inventory.ReadyUnknown {
		t.Errorf("nodes %+v, %v", nodes, err)
	}
	pods, _ := observe(t, client).Pods.Get()
	if len(pods) != 2 || pods[0].Name != "1" || pods[0].Overdue || !pods[1].Overdue {
		t.Errorf("pods %+v", pods)
	}
}
