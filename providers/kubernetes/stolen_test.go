package kubernetes_test

import (
	"fmt"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kube "k8s.io/client-go/kubernetes"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/secret"
	"github.com/macfleet/macfleet/providers/kubernetes"
)

// withKey are a cluster whose namespace holds the fleet's key, and where Pods run in
// two namespaces of this test's own.
func (c *cluster) withKey(t *testing.T) (*kubernetes.Client, kubernetes.Options) {
	t.Helper()
	o := c.options(t)
	o.PodNamespaces = []string{ns(t) + "-ci", ns(t) + "-web"}
	client := c.client(t, o)
	key, err := secret.New("the fleet's key")
	must(t, err)
	must(t, errOf(client.Prepare(t.Context(), kubernetes.PrepareOptions{SSH: kubernetes.SSHKey{Secret: "fleet-ssh", Key: "id", Value: key}})))
	for _, ns := range o.PodNamespaces {
		must(t, errOf(c.admin.CoreV1().Secrets(ns).Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "env"}}, metav1.CreateOptions{})))
	}
	c.control(t)
	return client, o
}

func getSecret(t *testing.T, api kube.Interface, namespace, name string) error {
	_, err := api.CoreV1().Secrets(namespace).Get(t.Context(), name, metav1.GetOptions{})
	return err
}

// TestStolenMac does with a host's token what a thief would: it opens the Pods' own
// namespaces, and neither the fleet's key, nor another host, nor macfleet itself.
func TestStolenMac(t *testing.T) {
	t.Parallel()
	eachCluster(t, func(t *testing.T, c *cluster) {
		client, o := c.withKey(t)
		thief := c.as(t, identified(t, client, name(t, "01")))
		identified(t, client, name(t, "02"))
		eventually(t, "it reads the environment of Pods", func() error { return getSecret(t, thief, o.PodNamespaces[0], "env") })
		eventually(t, "it beats", func() error {
			_, err := thief.CoordinationV1().Leases("kube-node-lease").Create(t.Context(), &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name(t, "01")}}, metav1.CreateOptions{})
			return err
		})
		token := func(namespace, account string) error {
			_, err := thief.CoreV1().ServiceAccounts(namespace).CreateToken(t.Context(), account, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
			return err
		}
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name(t, "lock")}}
		_, lock := thief.CoordinationV1().Leases(ns(t)).Create(t.Context(), lease, metav1.CreateOptions{})
		_, bound := thief.RbacV1().ClusterRoleBindings().Create(t.Context(), binding(t, "thief", "macfleet-tart-kubelet"), metav1.CreateOptions{})
		local := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "thief"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "macfleet-tart-kubelet-pods"}}
		_, boundHere := thief.RbacV1().RoleBindings(ns(t)).Create(t.Context(), local, metav1.CreateOptions{})
		for what, err := range map[string]error{
			"the fleet's key":          getSecret(t, thief, ns(t), "fleet-ssh"),
			"another host's token":     getSecret(t, thief, agents(t), "tart-kubelet-"+name(t, "02")+"-token"),
			"a Secret of the cluster":  getSecret(t, thief, "kube-system", "any"),
			"a token of macfleet":      token(ns(t), "macfleet"),
			"a token of another host":  token(agents(t), "tart-kubelet-"+name(t, "02")),
			"a token of a controller":  token("kube-system", "any"),
			"macfleet's lock":          lock,
			"a binding":                bound,
			"a binding in a namespace": boundHere,
		} {
			if !apierrors.IsForbidden(err) {
				t.Errorf("%s: %v", what, err)
			}
		}
	})
}

// TestPodNamespaceGoes takes the right away with the desired.
func TestPodNamespaceGoes(t *testing.T) {
	t.Parallel()
	eachCluster(t, func(t *testing.T, c *cluster) {
		client, o := c.withKey(t)
		agent := c.as(t, identified(t, client, name(t, "01")))
		for _, ns := range o.PodNamespaces {
			eventually(t, "it reads Secrets of Pods", func() error { return getSecret(t, agent, ns, "env") })
		}
		gone := o.PodNamespaces[1]
		o.PodNamespaces = o.PodNamespaces[:1]
		client = c.client(t, o)
		binding, own, why := "RoleBinding macfleet-tart-kubelet-"+ns(t), "RoleBinding macfleet-pods-"+ns(t), "surplus pod_namespaces does not name "+gone
		is(t, wrong(objects(t, client)), map[string]string{binding: why, own: why})
		for _, dry := range []bool{true, false} {
			before, err := client.Prepare(t.Context(), kubernetes.PrepareOptions{Dry: dry})
			if last := before[len(before)-1]; err != nil || last.State != inventory.ObjectSurplus || last.Namespace != gone {
				t.Errorf("before: %+v, %v", last, err)
			}
		}
		kept(t, client)
		eventually(t, "the right is gone", func() error { return refused(getSecret(t, agent, gone, "env")) })
		if err := getSecret(t, agent, o.PodNamespaces[0], "env"); err != nil {
			t.Errorf("the other went along: %v", err)
		}
	})
}

func refused(err error) error {
	if apierrors.IsForbidden(err) {
		return nil
	}
	return fmt.Errorf("it is answered with %v", err)
}
