package kubernetes_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
)

// TestCordonNode: a run closes Nodes, takes over what another run left, and opens neither
// what a person closed nor what is gone.
func TestCordonNode(t *testing.T) {
	t.Parallel()
	eachCluster(t, func(t *testing.T, c *cluster) {
		c.addNamespace(t)
		client, node := c.client(t, c.options(t)), c.addNode(t, name(t, "mac"), "")
		c.addPod(t, node.Name, "runner", owned("ReplicaSet", "runner"))
		c.phase(t, "runner", corev1.PodRunning, "")
		seen := func() inventory.Node {
			t.Helper()
			all, err := client.Nodes(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, n := range all {
				if n.Name == node.Name {
					return n
				}
			}
			t.Fatalf("%s is gone", node.Name)
			return inventory.Node{}
		}
		check := func(what string, cordoned bool, by, run string) {
			t.Helper()
			if n := seen(); n.Cordoned != cordoned || n.CordonedBy != by || n.CordonRun != run {
				t.Errorf("%s: %+v", what, n)
			}
		}
		closes := func(run string, want bool) {
			t.Helper()
			if ours, err := client.CordonNode(t.Context(), node, plan.Run{ID: run, Who: "ci"}); err != nil || ours != want {
				t.Errorf("%s closes: %t, %v", run, ours, err)
			}
		}
		opens := func() {
			t.Helper()
			if err := client.UncordonNode(t.Context(), node); err != nil {
				t.Error(err)
			}
		}
		opens()
		closes("r1", true)
		check("closed", true, "ci", "r1")
		closes("r1", true)
		closes("r2", true)
		check("taken over", true, "ci", "r2")
		opens()
		check("open", false, "", "")
		if err := cordon(t, client, node, "mona"); err != nil {
			t.Fatal(err)
		}
		closes("r3", false)
		opens()
		check("a person's", true, "mona", "")
		if _, err := client.Uncordon(t.Context(), node); err != nil {
			t.Fatal(err)
		}
		closes("r4", true)
		if err := cordon(t, client, node, "mona"); err != nil {
			t.Fatal(err)
		}
		opens()
		check("a person takes it over", true, "mona", "")
		pods, err := client.PodsOn(t.Context(), node)
		if err != nil || len(pods) != 1 || pods[0].Name != "runner" || pods[0].Controller != "ReplicaSet" {
			t.Errorf("%+v, %v", pods, err)
		}
		if err := client.DeleteNode(t.Context(), node); err != nil {
			t.Fatal(err)
		}
		opens()
	})
}
