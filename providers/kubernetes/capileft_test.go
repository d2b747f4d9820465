package kubernetes_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/providers/kubernetes"
)

// connected is a cluster whose Cluster API an administrator connected, and options without the block.
func (c *cluster) connected(t *testing.T) (with, without kubernetes.Options) {
	t.Helper()
	with = c.withCAPI(t)
	c.control(t)
	prepare(t, c.client(t, with))
	without = with
	without.CAPI = nil
	return with, without
}

// remote is the binding of the account by which the Cluster API is connected.
func (c *cluster) remote(t *testing.T) *rbacv1.ClusterRoleBinding {
	t.Helper()
	b, err := c.admin.RbacV1().ClusterRoleBindings().Get(t.Context(), "macfleet-capi-remote-"+ns(t), metav1.GetOptions{})
	must(t, err)
	return b
}

// made are the names of what connects the Cluster API and this account may remove.
func made(t *testing.T) []string {
	return []string{"Secret acme-kubeconfig", "Secret capi-remote-token", "ServiceAccount capi-remote",
		"ClusterRoleBinding macfleet-capi-remote-" + ns(t)}
}

// surplus are the objects to delete, in their order; those of an administrator apart.
func surplus(list []inventory.Object) (own, prepared []inventory.Object) {
	for _, o := range list {
		switch {
		case o.State == inventory.ObjectSurplus && o.Prepared:
			prepared = append(prepared, o)
		case o.State == inventory.ObjectSurplus:
			own = append(own, o)
		}
	}
	return own, prepared
}

func named(list []inventory.Object) []string {
	var out []string
	for _, o := range list {
		out = append(out, o.Kind+" "+o.Name)
	}
	return out
}

// TestCAPILeaves removes what connected the Cluster API once the block is gone: what an apply may
// delete with macfleet's own account, the rest as an administrator. Wherever it is interrupted, the next
// read finds what is left.
func TestCAPILeaves(t *testing.T) {
	t.Parallel()
	eachCluster(t, func(t *testing.T, c *cluster) {
		with, without := c.connected(t)
		boss := c.client(t, without)
		client := c.itself(t, boss, without)
		for n := range made(t) {
			own, _ := surplus(objects(t, client))
			if diff := cmp.Diff(made(t)[n:], named(own)); diff != "" {
				t.Fatalf("after %d: %s", n, diff)
			}
			for range 2 { // already deleted: nothing to do
				must(t, client.Remove(t.Context(), own[0]))
			}
		}
		own, prepared := surplus(objects(t, client))
		if len(own) != 0 {
			t.Errorf("left: %v", named(own))
		}
		// The role is shared by the whole cluster: tests that run at the same time may have bound it.
		prepared = slices.DeleteFunc(prepared, func(o inventory.Object) bool { return o.Kind == "ClusterRole" })
		is(t, named(prepared), []string{"RoleBinding macfleet", "Role macfleet"})
		prepare(t, boss)
		kept(t, boss)
		// With the block again all is made again.
		prepare(t, c.client(t, with))
		c.capiSecret(t, with)
	})
}

// TestCAPIOfAnother removes the kubeconfig of the Cluster that the block named before, and no other.
func TestCAPIOfAnother(t *testing.T) {
	t.Parallel()
	eachCluster(t, func(t *testing.T, c *cluster) {
		with := c.withCAPI(t)
		with.CAPI.Namespace = ns(t)
		c.control(t)
		prepare(t, c.client(t, with))
		for _, cluster := range []string{"beta", "gamma"} {
			other := *with.CAPI
			before := other.Cluster + "-kubeconfig"
			other.Cluster = cluster
			with.CAPI = &other
			client := c.client(t, with)
			want := map[string]string{"Secret " + cluster + "-kubeconfig": "missing",
				"Secret " + before: "surplus the capi block names " + ns(t) + "/" + cluster}
			list := objects(t, client)
			if diff := cmp.Diff(want, wrong(list)); diff != "" {
				t.Fatal(diff)
			}
			for _, o := range list {
				do := client.Keep
				if o.State == inventory.ObjectSurplus {
					do = client.Remove
				}
				must(t, do(t.Context(), o))
			}
			kept(t, client)
		}
		if got := c.places(t); !slices.Equal(got, []string{ns(t) + "/gamma-kubeconfig"}) {
			t.Errorf("noted %v", got)
		}
	})
}

// TestCAPIOfOthers leaves, and names, what is not macfleet's or not any more.
func TestCAPIOfOthers(t *testing.T) {
	t.Parallel()
	eachCluster(t, func(t *testing.T, c *cluster) {
		with, without := c.connected(t)
		secrets, bindings := c.admin.CoreV1().Secrets(with.CAPI.Namespace), c.admin.RbacV1().ClusterRoleBindings()
		s, err := secrets.Get(t.Context(), "acme-kubeconfig", metav1.GetOptions{})
		must(t, err)
		b := c.remote(t)
		delete(s.Labels, "acme.dev/owner")
		others := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "macfleet-capi-remote-" + ns(t) + "-other",
			Labels: map[string]string{"app.kubernetes.io/managed-by": "macfleet"}}, RoleRef: b.RoleRef, Subjects: b.Subjects}
		must(t, errOf(secrets.Update(t.Context(), s, metav1.UpdateOptions{})), errOf(bindings.Create(t.Context(), others, metav1.CreateOptions{})))
		client := c.client(t, without)
		list := objects(t, client)
		if _, shared := wrong(list)["ClusterRole macfleet-capi-remote"]; shared {
			t.Error("a role that another configuration binds would be deleted")
		}
		at := slices.IndexFunc(list, func(o inventory.Object) bool { return o.State == inventory.ObjectForeign })
		if at < 0 || list[at].Name != "acme-kubeconfig" || !strings.Contains(list[at].Why, "acme.dev/owner") {
			t.Fatalf("named: %v", wrong(list))
		}
		if err := client.Remove(t.Context(), list[at]); !errors.Is(err, kubernetes.ErrForeign) {
			t.Errorf("remove: %v", err)
		}
		prepare(t, client)
		// Their kubeconfig, and the role of both.
		must(t, errOf(secrets.Get(t.Context(), "acme-kubeconfig", metav1.GetOptions{})),
			errOf(c.admin.RbacV1().ClusterRoles().Get(t.Context(), "macfleet-capi-remote", metav1.GetOptions{})))
		_ = bindings.Delete(t.Context(), others.Name, metav1.DeleteOptions{})
	})
}

// TestCAPIByHand leaves to an administrator what a role of an older version gives no right to delete,
// and the binding that says where it is.
func TestCAPIByHand(t *testing.T) {
	t.Parallel()
	eachCluster(t, func(t *testing.T, c *cluster) {
		with, without := c.connected(t)
		roles := c.admin.RbacV1().Roles(with.CAPI.Namespace)
		r, err := roles.Get(t.Context(), "macfleet", metav1.GetOptions{})
		must(t, err)
		for i := range r.Rules {
			r.Rules[i].Verbs = slices.DeleteFunc(r.Rules[i].Verbs, func(v string) bool { return v == "delete" })
		}
		must(t, errOf(roles.Update(t.Context(), r, metav1.UpdateOptions{})))
		own, prepared := surplus(objects(t, c.client(t, without)))
		is(t, named(own), made(t)[1:3])
		for _, name := range []string{made(t)[0], made(t)[3]} {
			if !slices.Contains(named(prepared), name) {
				t.Errorf("an administrator's: %v; want %s", named(prepared), name)
			}
		}
	})
}

// TestCAPIShared leaves the rights of another configuration that has the same namespace, and so the
// same account.
func TestCAPIShared(t *testing.T) {
	t.Parallel()
	eachCluster(t, func(t *testing.T, c *cluster) {
		with, without := c.connected(t)
		without.Owner = ns(t) + "-two"
		client := c.client(t, without)
		prepare(t, client)
		if own, prepared := surplus(objects(t, client)); len(own)+len(prepared) != 0 {
			t.Errorf("of the other configuration: %v %v", named(own), named(prepared))
		}
		c.capiSecret(t, with)
		kept(t, c.client(t, with))
	})
}

// TestCAPIByEarlierVersions finds a kubeconfig of which neither the binding nor a note exists: the role
// of macfleet's account names it. An administrator takes all away at once.
func TestCAPIByEarlierVersions(t *testing.T) {
	t.Parallel()
	eachCluster(t, func(t *testing.T, c *cluster) {
		with, without := c.connected(t)
		client := c.client(t, without)
		n, err := c.admin.CoreV1().Namespaces().Get(t.Context(), ns(t), metav1.GetOptions{})
		must(t, err)
		b := c.remote(t)
		n.Annotations, b.Annotations = nil, nil
		must(t, errOf(c.admin.CoreV1().Namespaces().Update(t.Context(), n, metav1.UpdateOptions{})),
			errOf(c.admin.RbacV1().ClusterRoleBindings().Update(t.Context(), b, metav1.UpdateOptions{})))
		own, _ := surplus(objects(t, client))
		is(t, named(own), made(t))
		prepare(t, client)
		kept(t, client)
		_, err = c.admin.CoreV1().Secrets(with.CAPI.Namespace).Get(t.Context(), "acme-kubeconfig", metav1.GetOptions{})
		_, gone := c.admin.RbacV1().Roles(with.CAPI.Namespace).Get(t.Context(), "macfleet", metav1.GetOptions{})
		if !apierrors.IsNotFound(err) || !apierrors.IsNotFound(gone) {
			t.Errorf("kubeconfig %v, role %v", err, gone)
		}
	})
}
