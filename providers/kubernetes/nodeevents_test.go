package kubernetes_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/macfleet/macfleet/plan"
)

// TestAddNodeEvent reports, with no more rights than macfleet has, what happens to a Node,
// and where kubectl looks for it.
func TestAddNodeEvent(t *testing.T) {
	t.Parallel()
	eachCluster(t, func(t *testing.T, c *cluster) {
		c.addNamespace(t)
		admin, node := c.client(t, c.options(t)), c.addNode(t, name(t, "mac"), "")
		prepare(t, admin)
		token, _, err := admin.IssueToken(t.Context(), time.Hour)
		must(t, err)
		o := c.options(t)
		o.Token = token.Reveal()
		client := c.client(t, o) // which has no time of the cluster yet
		run := plan.Run{ID: "k3j5abcd", Who: "ana@desk"}
		eventually(t, "the event", func() error {
			return client.AddNodeEvent(t.Context(), node, run, "tart_kubelet (artifact-changed) restarts")
		})
		all, err := c.admin.CoreV1().Events("default").List(t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.name=" + node.Name})
		must(t, err)
		if len(all.Items) != 1 {
			t.Fatalf("%d events", len(all.Items))
		}
		got := all.Items[0]
		if got.InvolvedObject.Kind != "Node" || string(got.InvolvedObject.UID) != node.UID || got.Reason != "Macfleet" || time.Since(got.LastTimestamp.Time) > time.Hour ||
			got.Message != "tart_kubelet (artifact-changed) restarts (macfleet run k3j5abcd of ana@desk)" || got.Source.Component != "macfleet" {
			t.Errorf("the event is %+v", got)
		}
	})
}
