package kubernetes_test

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/providers/kubernetes"
)

// bind makes a ClusterRoleBinding of an account by hand.
func (c *cluster) bind(t *testing.T, name, role string, labels map[string]string, to rbacv1.Subject) *rbacv1.ClusterRoleBinding {
	t.Helper()
	b, err := c.admin.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{to}}, metav1.CreateOptions{})
	must(t, err)
	return b
}

// theirs are the labels of the controller that set Macs up before macfleet.
var theirs = map[string]string{"app.kubernetes.io/component": "tart-kubelet", "tuist.dev/managed-by": "capi-scaleway-applesilicon"}

// TestBindingOfOthers lets a host join whose former controller has a binding of the name that bindings had
// in earlier versions of macfleet, too. It is named, and stays.
func TestBindingOfOthers(t *testing.T) {
	t.Parallel()
	eachCluster(t, func(t *testing.T, c *cluster) {
		client := c.prepared(t)
		for i, labels := range []map[string]string{theirs, nil, {"app.kubernetes.io/managed-by": "macfleet", "acme.dev/owner": "other"}} {
			host := name(t, string(rune('a'+i)))
			b := c.bind(t, "tart-kubelet-"+host, "view", labels, rbacv1.Subject{Kind: "ServiceAccount", Namespace: "tuist", Name: "tart-kubelet-" + host})
			identified(t, client, host)
			foreign := slices.DeleteFunc(observe(t, client).Foreign, func(o inventory.Object) bool { return o.Name != b.Name })
			if len(foreign) != 1 || foreign[0].State != inventory.ObjectForeign || !strings.Contains(foreign[0].Why, "its label ") {
				t.Errorf("named: %+v", foreign)
			}
			if err := client.Revoke(t.Context(), host); err != nil {
				t.Error(err)
			}
			now, err := c.admin.RbacV1().ClusterRoleBindings().Get(t.Context(), b.Name, metav1.GetOptions{})
			if err != nil || now.UID != b.UID || now.ResourceVersion != b.ResourceVersion {
				t.Errorf("theirs is not as it was: %+v, %v", now, err)
			}
		}
	})
}

// TestBindingIsRenamed gives a host that joined by an earlier version the binding of this one, and takes the old one away after that, also
// where a run was killed between the two or someone edited the old one. Until then nothing is missing.
func TestBindingIsRenamed(t *testing.T) {
	t.Parallel()
	eachCluster(t, func(t *testing.T, c *cluster) {
		o, client, host := c.options(t), c.prepared(t), name(t, "01")
		agent := c.as(t, identified(t, client, host))
		bindings := c.admin.RbacV1().ClusterRoleBindings()
		now, err := bindings.Get(t.Context(), "macfleet-tart-kubelet-"+host, metav1.GetOptions{})
		must(t, err)
		for _, was := range []struct {
			what string
			old  rbacv1.Subject
			only bool // the old one
			asks []string
		}{
			{"both", now.Subjects[0], false, []string{"DELETE tart-kubelet-" + host}},
			{"both, the old one is edited", rbacv1.Subject{Kind: "Group", APIGroup: rbacv1.GroupName, Name: "system:authenticated"}, false,
				[]string{"DELETE tart-kubelet-" + host}},
			{"the old one", now.Subjects[0], true, []string{"POST", "DELETE tart-kubelet-" + host}},
		} {
			c.bind(t, "tart-kubelet-"+host, now.RoleRef.Name, now.Labels, was.old)
			if was.only {
				must(t, bindings.Delete(t.Context(), now.Name, metav1.DeleteOptions{}))
			}
			if i := identities(t, client); len(i) != 1 || !i[0].Complete() || !i[0].Former {
				t.Fatalf("%s: %+v", was.what, i)
			}
			var seen []string
			o.Wrap = changes(&seen)
			must(t, errOf(c.client(t, o).Identify(t.Context(), host)))
			if !slices.Equal(seen, was.asks) {
				t.Errorf("%s: asked %q; want %q", was.what, seen, was.asks)
			}
			if i := identities(t, client); len(i) != 1 || !i[0].Complete() || i[0].Former {
				t.Errorf("%s, after: %+v", was.what, i)
			}
		}
		must(t, errOf(agent.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})))
		c.bind(t, "tart-kubelet-"+host, now.RoleRef.Name, now.Labels, now.Subjects[0])
		must(t, client.Revoke(t.Context(), host), client.Revoke(t.Context(), host))
		_, err = bindings.Get(t.Context(), "tart-kubelet-"+host, metav1.GetOptions{})
		if !apierrors.IsNotFound(err) || len(identities(t, client)) != 0 {
			t.Errorf("revoked: %v, %+v", err, identities(t, client))
		}
	})
}

// TestBindingNames keeps names apart that would be the same, and takes the longest.
func TestBindingNames(t *testing.T) {
	t.Parallel()
	eachCluster(t, func(t *testing.T, c *cluster) {
		client := c.prepared(t)
		long := strings.ToLower(c.name) + strings.Repeat("h", 63-len(c.name))
		identified(t, client, long)
		if i := identities(t, client); len(i) != 1 || i[0].Host != long || !i[0].Complete() {
			t.Errorf("63 characters: %+v", i)
		}
		// Macfleet's own binding in a namespace of such a name is called as that of a host.
		o := c.options(t)
		host := c.name + "-01"
		o.Namespace, o.Owner = "tart-kubelet-"+host, "other"
		prepare(t, c.client(t, o))
		if _, err := client.Identify(t.Context(), host); !errors.Is(err, kubernetes.ErrForeign) {
			t.Errorf("the host takes macfleet's own binding: %v", err)
		}
		other := c.name + "-02"
		identified(t, client, other)
		o.Namespace = "tart-kubelet-" + other
		if _, err := c.client(t, o).Prepare(t.Context(), kubernetes.PrepareOptions{}); !errors.Is(err, kubernetes.ErrForeign) {
			t.Errorf("macfleet's own account takes a host's binding: %v", err)
		}
		if i := identities(t, client); len(i) == 0 || !slices.ContainsFunc(i, func(i inventory.Identity) bool { return i.Host == other && i.Complete() }) {
			t.Errorf("the host's is not as it was: %+v", i)
		}
	})
}

// changes notes what is made of and done to ClusterRoleBindings.
func changes(seen *[]string) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if at, bindings := strings.CutPrefix(r.URL.Path, "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"); bindings && r.Method != http.MethodGet {
				*seen = append(*seen, strings.TrimRight(r.Method+" "+strings.TrimPrefix(at, "/"), " "))
			}
			return next.RoundTrip(r)
		})
	}
}
