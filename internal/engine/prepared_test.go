package engine_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/sandbox"
	"github.com/macfleet/macfleet/internal/scripttest"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/providers/kubernetes"
)

// deleteObject deletes an object of the simulated cluster as its administrator.
func deleteObject(t *testing.T, w *sandbox.World, o inventory.Object) {
	t.Helper()
	path, plural := "/apis/rbac.authorization.k8s.io/v1", strings.ToLower(o.Kind)+"s"
	switch o.Kind {
	case "Namespace", "ServiceAccount", "ConfigMap", "Secret":
		path = "/api/v1"
	case "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding":
		path = "/apis/admissionregistration.k8s.io/v1"
	}
	plural = strings.Replace(plural, "policys", "policies", 1)
	if o.Namespace != "" {
		path += "/namespaces/" + o.Namespace
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, w.KubernetesURL()+path+"/"+plural+"/"+o.Name, nil)
	must(t, err)
	request.Header.Set("Authorization", "Bearer "+w.KubernetesToken())
	answer, err := http.DefaultClient.Do(request)
	must(t, err)
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		t.Fatalf("delete %s: %s", o, answer.Status)
	}
}

// TestPreparedObjectGone deletes each object of init cluster, while the power setting of a host has drifted: the setting is
// seen and repaired anyway. Then init cluster brings the object back, and nothing is refused. A plain run tries one object of
// each kind for each thing that it gates.
func TestPreparedObjectGone(t *testing.T) {
	t.Parallel()
	_, e := converged(t, 3, nodes(1))
	all, err := e.Cluster.(*kubernetes.Client).Prepare(t.Context(), kubernetes.PrepareOptions{Dry: true})
	must(t, err)
	tried := make(map[string]bool)
	for n, o := range all {
		kind := fmt.Sprint(o.Kind, o.Gates)
		if tried[kind] && (plain() || !scripttest.Mine(n)) {
			continue
		}
		tried[kind] = true
		parallel(t, o.String(), func(t *testing.T) { withoutObject(t, o) })
	}
}

func withoutObject(t *testing.T, o inventory.Object) {
	t.Helper()
	w, e := converged(t, 3, nodes(1))
	host := member(t, w)
	deleteObject(t, w, o)
	must(t, w.Inject(host, "sleep-enabled"))
	p := planned(t, e)
	power := slices.IndexFunc(p.Actions, func(a plan.Action) bool { return a.Step == "power" })
	if h := p.Hosts[0]; h.Refused != nil || !h.Compared || power < 0 || !p.Actions[power].Origin.Drift || p.Actions[power].Refusal != nil {
		t.Errorf("it says %q", codesOf(p, host))
	}
	said := slices.IndexFunc(p.Actions, func(a plan.Action) bool { return a.Object != nil && a.Object.String() == o.String() })
	if o.Kind != "ConfigMap" && (said < 0 || !p.Actions[said].Origin.Drift || p.Actions[said].Reason.Code.String() != "prepared-object-missing") {
		t.Errorf("the plan does not say that it has gone: %+v", p.Actions)
	}
	e.Selection.Steps = []plan.StepID{"power"}
	if r := apply(t, e); !r.Converged() {
		t.Errorf("the power settings stay: %+v", r.Failures)
	}
	e.Selection.Steps = nil
	if _, err := e.Cluster.(*kubernetes.Client).Prepare(t.Context(), kubernetes.PrepareOptions{}); err != nil {
		t.Fatal(err)
	}
	converges(t, e) // the kubelet's token is revoked with its ServiceAccount
	if p := planned(t, e); p.Hosts[0].Refused != nil || len(p.Actions) > 0 {
		t.Errorf("in the end: %q", codesOf(p, host))
	}
}

// TestUnpreparedCluster: what the cluster lacks is reported about the hosts that a claim
// would take, and of no pool server: another one would not do either.
func TestUnpreparedCluster(t *testing.T) {
	t.Parallel()
	inMemory(t, 4, everyoneAtOnce, func(t *testing.T, w *nodesInMemory) {
		w.Config.Fleets[0].Groups[0].Replicas = 2
		w.Objects = []inventory.Object{{Kind: "ClusterRole", Name: "agents", State: inventory.ObjectMissing, Prepared: true, Gates: inventory.GateNodes}}
		p := planned(t, w.engine)
		if len(p.Rejected) > 0 || len(p.Shortages) > 0 || len(p.Hosts) != 2 {
			t.Fatalf("rejected %+v, short %+v, hosts %d", p.Rejected, p.Shortages, len(p.Hosts))
		}
		for _, h := range p.Hosts {
			if h.Refused == nil || h.Refused.Code.String() != "cluster-not-prepared" {
				t.Errorf("%s: refused %+v", h.Name, h.Refused)
			}
		}
	})
}
