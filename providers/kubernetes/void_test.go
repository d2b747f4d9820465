package kubernetes_test

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/macfleet/macfleet/fleet/inventory"
)

// TestVoid distinguishes a binding without subjects, which counts as none, from one with
// other subjects. Roles of the whole cluster belong to all tests, so none is changed here.
func TestVoid(t *testing.T) {
	t.Parallel()
	eachCluster(t, func(t *testing.T, c *cluster) {
		client := c.client(t, c.options(t))
		prepare(t, client)
		bindings := c.admin.RbacV1().RoleBindings("default")
		of := func() inventory.Object {
			t.Helper()
			for _, o := range objects(t, client) {
				if o.Kind == "RoleBinding" && o.Namespace == "default" {
					return o
				}
			}
			t.Fatal("the binding is not checked")
			return inventory.Object{}
		}
		if o := of(); o.Lacking() || o.Gates != inventory.GatePods || !o.Prepared {
			t.Errorf("as it was made: %+v", o)
		}
		change := func(edit func(*rbacv1.RoleBinding)) {
			t.Helper()
			b, err := bindings.Get(t.Context(), "macfleet-tart-kubelet-"+ns(t), metav1.GetOptions{})
			must(t, err)
			edit(b)
			must(t, errOf(bindings.Update(t.Context(), b, metav1.UpdateOptions{})))
		}
		change(func(b *rbacv1.RoleBinding) {
			b.Subjects = append(b.Subjects, rbacv1.Subject{Kind: "User", APIGroup: rbacv1.GroupName, Name: "ann"})
		})
		if o := of(); o.State != inventory.ObjectDiffers || o.Lacking() {
			t.Errorf("with a subject more: %+v", o)
		}
		change(func(b *rbacv1.RoleBinding) { b.Subjects = nil })
		if o := of(); o.State != inventory.ObjectDiffers || !o.Lacking() {
			t.Errorf("without a subject: %+v", o)
		}
	})
}
