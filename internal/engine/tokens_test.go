package engine_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
)

// TestTokenOutlivesARefusedRestart: a run that rotated a token was killed before the kubelet's new start, and macOS keeps the
// job from one already. The old token, which the process still has, stays good until it is started again.
func TestTokenOutlivesARefusedRestart(t *testing.T) {
	t.Parallel()
	w, e := converged(t, 3, nodes(1))
	host := planned(t, e).Hosts[0].Name
	m := macOf(t, w, host)
	before, err := e.Cluster.Token(t.Context(), host)
	must(t, err)
	_, err = e.Cluster.RenewToken(t.Context(), host)
	must(t, err)
	after, err := e.Cluster.Token(t.Context(), host)
	must(t, err)
	const config, pending = "/etc/tart-kubelet/kubeconfig", "/etc/macfleet/pending/tart_kubelet"
	text, err := m.ReadFile(config)
	if err != nil || !strings.Contains(string(text), before.Reveal()) || before == after {
		t.Fatalf("%v, or the host has another token", err)
	}
	must(t, m.WriteFile(config, []byte(strings.Replace(string(text), before.Reveal(), after.Reveal(), 1)), 501, 20, 0o600))
	must(t, m.WriteFile(pending, nil, 0, 0, 0o644))
	spent := func() []string {
		i, _ := planned(t, e).Hosts[0].Identity.Get()
		return i.Spent
	}
	must(t, w.Inject(host, "btm-disallowed"))
	r := apply(t, e)
	ends := func(a plan.Action) bool { return a.Kind == plan.RetireTokens }
	if len(spent()) != 1 || slices.ContainsFunc(r.After.Actions, ends) || len(r.After.Actions) == 0 {
		t.Errorf("old tokens %q; left %q", spent(), codesOf(r.After, host))
	}
	if n, _ := r.After.Hosts[0].Node.Get(); n.Ready != inventory.Ready {
		t.Errorf("the Node is %s", n.Ready)
	}
	must(t, m.AllowItem("dev.macfleet.tart-kubelet"))
	if r := apply(t, e); !r.Converged() || len(spent()) > 0 {
		t.Errorf("old tokens %q, failures %+v", spent(), r.Failures)
	}
}
