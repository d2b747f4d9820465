package plan_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/fleet/load"
	"github.com/macfleet/macfleet/internal/secret"
	"github.com/macfleet/macfleet/plan"
)

// listed says whether a configuration may list a namespace, as the loader sees it.
func listed(t *testing.T, namespace string) bool {
	t.Helper()
	text := fmt.Sprintf(`macfleet {
  name = "acme"
}
scaleway {
  zones       = ["fr-par-1"]
  pool_prefix = "pool-"
}
ssh {
  private_key = secret("k8s://keys/fleet-ssh/id")
}
kubernetes {
  pod_namespaces = ["ci", %q]
}
`, namespace)
	r, _ := load.Dir(fstest.MapFS{"main.fleet.hcl": {Data: []byte(text)}}, load.Options{})
	return r.Config != nil
}

// TestPodNamespaceRemedy checks the fix for Pods of a namespace that is not listed: one that the
// loader refuses is never advised.
func TestPodNamespaceRemedy(t *testing.T) {
	t.Parallel()
	for _, ns := range []string{"web", "default", "kube-system", "kube-public", "macfleet", "macfleet-agents", "keys"} {
		for what, pod := range map[string]inventory.Pod{"running": {Namespace: ns, Name: "a", Node: first, Phase: "Running"},
			"stuck": func() inventory.Pod { p := stuckPod("a", "Failed"); p.Namespace = ns; return p }()} {
			w := joined()
			w.cfg.Kubernetes = &fleet.Kubernetes{Namespace: "macfleet", LabelPrefix: "acme.dev", PodNamespaces: []string{"ci"}}
			w.cfg.SSH.PrivateKey = must(secret.ParseRef("k8s://keys/fleet-ssh/id"))
			w.pods(pod)
			p := w.plan(t)
			remedy := podNamespaceRemedy(p)
			switch advised := strings.Contains(remedy, fmt.Sprintf("add %q to pod_namespaces", ns)); {
			case remedy == "":
				t.Errorf("%s of %s: nothing is reported", what, ns)
			case advised != listed(t, ns):
				t.Errorf("%s of %s: the loader takes it: %t; remedy: %s", what, ns, listed(t, ns), remedy)
			case what == "stuck" && !advised && !strings.Contains(remedy, "kubectl -n "+ns+" patch pod a "):
				t.Errorf("%s of %s: no way out in %s", what, ns, remedy)
			}
		}
	}
}

// podNamespaceRemedy is the fix for such Pods.
func podNamespaceRemedy(p *plan.Plan) string {
	for _, w := range p.Hosts[0].Warnings {
		if w.Code.String() == "pod-namespace-not-listed" {
			return w.Remedy
		}
	}
	for _, a := range p.Actions {
		if a.Refusal != nil && a.Refusal.Code.String() == "pod-namespace-not-listed" {
			return a.Refusal.Remedy
		}
	}
	return ""
}
