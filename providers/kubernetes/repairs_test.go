package kubernetes_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/providers/kubernetes"
)

// TestRepairs: failed repairs are an annotation that every read finds. One that cannot be read counts as a quarantine.
func TestRepairs(t *testing.T) {
	t.Parallel()
	eachCluster(t, func(t *testing.T, c *cluster) {
		client, node := c.client(t, c.options(t)), c.addNode(t, name(t, "01"), "")
		at := time.Date(2026, 11, 24, 10, 0, 0, 0, time.UTC)
		want := &inventory.Repairs{Failed: 3, Last: at, Run: "r1", Reason: "node-not-ready: \"x\"", Who: "ann@laptop", Since: at}
		for _, r := range []*inventory.Repairs{nil, want, want, {Failed: 1, Last: at}, nil} {
			must(t, client.SetRepairs(t.Context(), node, r))
			n := nodesOf(t, client)[0]
			if diff := cmp.Diff(r, n.Repairs); diff != "" || n.Repairs.Quarantined() != (r == want) {
				t.Errorf("repairs (-want +got):\n%s", diff)
			}
		}
		note := func(notes map[string]any) inventory.Node {
			c.annotate(t, node.Name, notes)
			return nodesOf(t, client)[0]
		}
		if n := note(map[string]any{"acme.dev/repairs": "three"}); !n.Repairs.Quarantined() || n.Repairs.Unread == "" {
			t.Errorf("unreadable: %+v", n.Repairs)
		}
		if n := note(map[string]any{"cluster.x-k8s.io/machine": "m-1", "cluster.x-k8s.io/cluster-namespace": "macs"}); n.Machine != "macs/m-1" {
			t.Errorf("its Machine is %q", n.Machine)
		}
		another := node
		another.UID = "0b1f4c52-6a0e-4d0b-9a55-000000000000"
		if err := client.SetRepairs(t.Context(), another, want); !errors.Is(err, kubernetes.ErrReplaced) {
			t.Errorf("a recreated Node: %v", err)
		}
	})
}
