package engine_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/macfleet/macfleet/internal/sandbox"
)

// TestPauseOfAMachine: the pause of a Machine does not stop a set-up.
func TestPauseOfAMachine(t *testing.T) {
	t.Parallel()
	w, e := converged(t, 3, nodes(1))
	host := planned(t, e).Hosts[0]
	inject(t, w, host.Name, "owned-by-cluster-api")
	const annotated, whole = `{"metadata":{"annotations":{"cluster.x-k8s.io/paused":"true"}}}`, `{"spec":{"paused":true}}`
	machine := "macfleet-sandbox-owned-by-cluster-api-" + host.Server.ID[:8]
	refused := []string{"refused owned-by-cluster-api"}
	for _, step := range []struct {
		what, path, patch string
		want              []string
	}{
		{"the Machine", "/apis/cluster.x-k8s.io/v1beta1/namespaces/default/machines/" + machine, annotated, refused},
		{"the provider's part", "/apis/infrastructure.cluster.x-k8s.io/v1alpha1/namespaces/default/scalewayapplesiliconmachines/" + machine, annotated, nil},
		{"nothing", "/apis/infrastructure.cluster.x-k8s.io/v1alpha1/namespaces/default/scalewayapplesiliconmachines/" + machine, `{"metadata":{"annotations":null}}`, refused},
		{"the Cluster", "/apis/cluster.x-k8s.io/v1beta1/namespaces/default/clusters/macfleet-sandbox-macs", whole, nil},
	} {
		patchObject(t, w, step.path, step.patch)
		if said := codesOf(planned(t, e), host.Name); !slices.Equal(said, step.want) {
			t.Errorf("with %s paused it says %q", step.what, said)
		}
	}
}

// patchObject changes an object of the simulated cluster, as kubectl would.
func patchObject(t *testing.T, w *sandbox.World, path, patch string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPatch, w.KubernetesURL()+path, strings.NewReader(patch))
	must(t, err)
	r.Header.Set("Authorization", "Bearer "+w.KubernetesToken())
	r.Header.Set("Content-Type", "application/merge-patch+json")
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Do(r)
	must(t, err)
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s", path, answer.Status)
	}
}
