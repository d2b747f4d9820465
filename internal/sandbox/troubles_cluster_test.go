package sandbox_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/macfleet/macfleet/internal/sandbox"
	"github.com/macfleet/macfleet/internal/sandbox/agent"
	"github.com/macfleet/macfleet/internal/sandbox/store"
)

// query sends a request to the cluster as its administrator.
func (p *patient) query(method, path, body string, into any) int {
	p.Helper()
	request, err := http.NewRequestWithContext(p.Context(), method, p.world.KubernetesURL()+path, strings.NewReader(body))
	must(p, err)
	request.Header.Set("Authorization", "Bearer "+p.world.KubernetesToken())
	request.Header.Set("Content-Type", "application/json")
	transport := &http.Transport{DisableKeepAlives: true}
	response, err := transport.RoundTrip(request)
	must(p, err)
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	must(p, err)
	if into != nil && response.StatusCode < http.StatusBadRequest {
		if err := json.Unmarshal(data, into); err != nil {
			p.Fatalf("%s %s: %v", method, path, err)
		}
	}
	return response.StatusCode
}

// identity creates what a kubelet needs to join the cluster, and returns its token.
func (p *patient) identity(name string) string {
	p.Helper()
	const rbac = "/apis/rbac.authorization.k8s.io/v1/"
	for path, body := range map[string]string{
		"/api/v1/namespaces/macfleet/serviceaccounts": `{"metadata":{"name":%q}}`,
		rbac + "clusterroles": `{"metadata":{"name":%q},"rules":[{"apiGroups":["","coordination.k8s.io"],
			"resources":["nodes","nodes/status","pods","pods/status","leases"],"verbs":["*"]}]}`,
		rbac + "clusterrolebindings": `{"metadata":{"name":%[1]q},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":%[1]q},
			"subjects":[{"kind":"ServiceAccount","namespace":"macfleet","name":%[1]q}]}`,
	} {
		if code := p.query("POST", path, fmt.Sprintf(body, name), nil); code != http.StatusCreated {
			p.Fatalf("%s: %d", path, code)
		}
	}
	secret := fmt.Sprintf(`{"metadata":{"name":"%[1]s-token","annotations":{"kubernetes.io/service-account.name":%[1]q}},"type":"kubernetes.io/service-account-token"}`, name)
	if code := p.query("POST", "/api/v1/namespaces/macfleet/secrets", secret, nil); code != http.StatusCreated {
		p.Fatalf("the Secret: %d", code)
	}
	var made struct{ Data map[string]string }
	p.query("GET", "/api/v1/namespaces/macfleet/secrets/"+name+"-token", "", &made)
	token, err := base64.StdEncoding.DecodeString(made.Data["token"])
	if err != nil || len(token) == 0 {
		p.Fatalf("no token: %v %v", made, err)
	}
	return string(token)
}

// join creates the host a Node.
func (p *patient) join() {
	p.Helper()
	p.runKubelet(agent.Kubelet{
		ServerID: p.host.ID, Job: "dev.macfleet.tart-kubelet", PID: 100, Started: time.Now().Add(-time.Hour), Node: "mini-1",
		ProviderID: "scw-applesilicon://fr-par-1/" + p.host.ID, Address: p.host.Address, MaxPods: 3, Version: "0.4.0", Token: p.identity("tart-kubelet-mini-1"),
	})
}

func (p *patient) runKubelet(k agent.Kubelet) {
	p.Helper()
	must(p, store.WriteJSON(filepath.Join(p.dir, "kubernetes", "agents.json"), map[string][]agent.Kubelet{p.host.ID: {k}}))
}

type node struct {
	Metadata struct{ Name string }
	Spec     struct{ ProviderID string }
	Status   struct {
		Conditions []struct{ Type, Status, Reason string }
	}
}

// node returns the host's Node; missing values are "".
func (p *patient) node() (n node, ready string) {
	p.Helper()
	p.query("GET", "/api/v1/nodes/mini-1", "", &n)
	for _, c := range n.Status.Conditions {
		if c.Type == "Ready" {
			ready = c.Status
		}
	}
	return n, ready
}

func TestIncidentsNeedANode(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	for _, name := range []string{"empty-provider-id", "node-deleted", "token-revoked", "stuck-terminating-pods"} {
		if err := p.world.Inject(p.host.ID, name); !errors.Is(err, sandbox.ErrNoNode) {
			t.Errorf("%s on a host without a Node: %v", name, err)
		}
	}
}

func TestNodeIncidents(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	p.join()
	own := "scw-applesilicon://fr-par-1/" + p.host.ID
	for _, test := range []struct{ incident, providerID, ready string }{
		{"empty-provider-id", "", "True"},
		{"different-provider-id", "other", "True"},
		{"node-not-ready", own, "Unknown"},
		{"node-deleted", "", ""},
	} {
		p.inject(test.incident)
		n, ready := p.node()
		id := n.Spec.ProviderID
		if id != own && id != "" && strings.HasPrefix(id, "scw-applesilicon://") {
			id = "other"
		}
		p.want(test.incident+": id", id, test.providerID)
		p.want(test.incident+": ready", ready, test.ready)
		p.heal(test.incident)
		n, ready = p.node()
		p.want(test.incident+" healed: id", n.Spec.ProviderID, own)
		p.want(test.incident+" healed: ready", ready, "True")
	}
}

func TestTokenRevoked(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	p.join()
	p.node()
	const secret = "/api/v1/namespaces/macfleet/secrets/tart-kubelet-mini-1-token"
	const binding = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/tart-kubelet-mini-1"
	for _, want := range []int{404, 200} {
		if want == 404 {
			p.inject("token-revoked")
		} else {
			p.heal("token-revoked")
		}
		for _, path := range []string{secret, binding} {
			equal(t, p.query("GET", path, "", nil), want, path)
		}
	}
	_, ready := p.node()
	p.want("ready after healing", ready, "True")
}

func TestPodIncidents(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	p.join()
	p.node()
	type podList struct {
		Items []struct {
			Metadata struct {
				DeletionTimestamp string
				Finalizers        []string
			}
			Status struct{ Phase, Reason string }
		}
	}
	for _, test := range []struct {
		incident, phase, reason string
		count                   int
	}{
		{"stuck-terminating-pods", "Succeeded", "TartRunExited", sandbox.StuckPods},
		{"pod-on-builder", "Running", "", 1},
		{"tart-create-failed", "Pending", "TartCreateFailed", 1},
	} {
		p.inject(test.incident)
		var list podList
		p.query("GET", "/api/v1/pods?fieldSelector=spec.nodeName%3Dmini-1", "", &list)
		p.want(test.incident, fmt.Sprint(len(list.Items)), fmt.Sprint(test.count))
		for _, pod := range list.Items {
			p.want(test.incident, pod.Status.Phase+pod.Status.Reason, test.phase+test.reason)
			if test.count > 1 && (pod.Metadata.DeletionTimestamp == "" || len(pod.Metadata.Finalizers) != 1) {
				t.Errorf("the Pod is not stuck: %+v", pod.Metadata)
			}
		}
		p.heal(test.incident)
		var after podList
		p.query("GET", "/api/v1/pods", "", &after)
		p.want(test.incident+" healed", fmt.Sprint(len(after.Items)), "0")
	}
}

// TestStuckPodsAreFreed removes the Pods as macfleet does, by removing the finalizer.
func TestStuckPodsAreFreed(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	p.join()
	p.inject("stuck-terminating-pods")
	path := "/api/v1/namespaces/default/pods/macfleet-sandbox-stuck-00-" + p.host.ID[:8]
	var pod map[string]any
	if code := p.query("GET", path, "", &pod); code != http.StatusOK {
		t.Fatalf("no stuck Pod: %d", code)
	}
	delete(pod["metadata"].(map[string]any), "finalizers")
	body, err := json.Marshal(pod)
	must(t, err)
	equal(t, p.query("PUT", path, string(body), nil), http.StatusOK, "removing the finalizer")
	equal(t, p.query("GET", path, "", nil), http.StatusNotFound, "the Pod without a finalizer")
}
