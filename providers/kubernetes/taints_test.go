package kubernetes_test

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/macfleet/macfleet/fleet/inventory"
)

// TestTaints restores the taint of a kubelet and keeps those of others, and sees who cordoned a
// Node where the cluster notes that.
func TestTaints(t *testing.T) {
	t.Parallel()
	eachCluster(t, func(t *testing.T, c *cluster) {
		client := c.client(t, c.options(t))
		node := c.addNode(t, name(t, "01"), "")
		patch := []byte(`{"spec":{"unschedulable":true,"taints":[{"key":"acme.dev/x","effect":"NoExecute"},{"key":"tuist.dev/macos","effect":"NoExecute"}]}}`)
		by := metav1.PatchOptions{FieldManager: "kubectl-cordon"}
		must(t, errOf(c.admin.CoreV1().Nodes().Patch(t.Context(), node.Name, types.MergePatchType, patch, by)))
		for range 2 {
			must(t, client.Taint(t.Context(), node, inventory.AgentTaint()))
		}
		seen := nodesOf(t, client)[0]
		taints, _ := seen.Taints.Get()
		var texts []string
		for _, taint := range taints {
			texts = append(texts, taint.String())
		}
		for _, want := range []string{"acme.dev/x:NoExecute", "tuist.dev/macos=true:NoSchedule"} {
			if !slices.Contains(texts, want) {
				t.Errorf("taints %q lack %s", texts, want)
			}
		}
		if slices.Contains(texts, "tuist.dev/macos:NoExecute") || !seen.Cordoned || seen.CordonedBy != "" {
			t.Errorf("taints %q, %+v", texts, seen)
		}
		have, err := c.admin.CoreV1().Nodes().Get(t.Context(), node.Name, metav1.GetOptions{})
		must(t, err)
		if noted := len(have.ManagedFields) > 0; noted != (seen.CordonClient == "kubectl-cordon") || noted && seen.CordonSince.IsZero() {
			t.Errorf("who cordoned it is %q since %s", seen.CordonClient, seen.CordonSince)
		}
	})
}
