package kubernetes_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/providers/kubernetes"
)

// TestNotedCluster keeps on macfleet's namespace which cluster it was prepared in: found by
// every read, without being a desired object of the plan.
func TestNotedCluster(t *testing.T) {
	t.Parallel()
	eachCluster(t, func(t *testing.T, c *cluster) {
		client := c.client(t, c.options(t))
		own, err := c.admin.CoreV1().Namespaces().Get(t.Context(), "kube-system", metav1.GetOptions{})
		must(t, err)
		noted := func(what string, want inventory.Seen[inventory.ClusterID]) {
			t.Helper()
			here, got, err := client.Which(t.Context())
			_, seen := client.Observe(t.Context(), true)
			if err != nil || here.UID != string(own.UID) || got != want || seen.Noted != want {
				t.Errorf("%s: %+v and %+v, want %+v; here %+v, %v", what, got, seen.Noted, want, here, err)
			}
			all, _ := seen.Objects.Get()
			for _, o := range all {
				if o.Kind == "Namespace" && o.State == inventory.ObjectDiffers {
					t.Errorf("%s: the note is a difference: %+v", what, o)
				}
			}
		}
		noted("not prepared", inventory.Absent[inventory.ClusterID]())
		prepare := func(in inventory.ClusterID) {
			t.Helper()
			must(t, errOf(client.Prepare(t.Context(), kubernetes.PrepareOptions{In: in})))
		}
		prepare(inventory.ClusterID{})
		noted("prepared by an older version", inventory.Absent[inventory.ClusterID]())
		for _, uid := range []string{"u-1", "u-2"} {
			in := inventory.ClusterID{UID: uid, Context: "größer", Server: "https://api.acme.dev:6443"}
			prepare(in)
			noted(uid, inventory.Present(in))
		}
	})
}
