package kubernetes_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kube "k8s.io/client-go/kubernetes"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/providers/kubernetes"
)

// right is a question to the cluster, "VERB RESOURCE[.GROUP][/SUBRESOURCE]
// [NAMESPACE[/NAME]]" or "VERB /PATH".
type right string

func (r right) review(own string) *authorizationv1.SelfSubjectAccessReview {
	words := strings.Fields(strings.NewReplacer("OWN", own, "AGENTS", own+"-agents", "#", "/").Replace(string(r)))
	spec := authorizationv1.SelfSubjectAccessReviewSpec{}
	if strings.HasPrefix(words[1], "/") {
		spec.NonResourceAttributes = &authorizationv1.NonResourceAttributes{Verb: words[0], Path: words[1]}
		return &authorizationv1.SelfSubjectAccessReview{Spec: spec}
	}
	a := &authorizationv1.ResourceAttributes{Verb: words[0], Version: "*"}
	rest, sub, _ := strings.Cut(words[1], "/")
	a.Subresource = sub
	a.Resource, a.Group, _ = strings.Cut(rest, ".")
	if len(words) > 2 {
		a.Namespace, a.Name, _ = strings.Cut(words[2], "/")
	}
	spec.ResourceAttributes = a
	return &authorizationv1.SelfSubjectAccessReview{Spec: spec}
}

func ask(t *testing.T, api kube.Interface, r right, want bool) error {
	answer, err := api.AuthorizationV1().SelfSubjectAccessReviews().Create(t.Context(), r.review(ns(t)), metav1.CreateOptions{})
	if err == nil && answer.Status.Allowed != want {
		err = fmt.Errorf("%s: allowed is %t", r, answer.Status.Allowed)
	}
	return err
}

// rights are what each identity may and may not do. "OWN" is macfleet's
// namespace; "#" precedes the name of a cluster-wide object.
var rights = map[string]struct{ may, mayNot []right }{
	"agent": {
		may: []right{"get nodes", "list nodes", "watch nodes", "create nodes", "patch nodes", "update nodes", "patch nodes/status", "update nodes/status",
			"get leases.coordination.k8s.io kube-node-lease", "create leases.coordination.k8s.io kube-node-lease", "update leases.coordination.k8s.io kube-node-lease",
			"list pods", "watch pods", "patch pods default", "delete pods default", "patch pods/status default", "update pods/status default",
			"get secrets default", "get configmaps default", "create serviceaccounts/token default", "create events default", "patch events default"},
		mayNot: []right{"get secrets OWN/fleet-ssh", "get secrets AGENTS", "get secrets kube-system", "get secrets OWN-capi", "get configmaps OWN",
			"create serviceaccounts/token OWN/macfleet", "create serviceaccounts/token AGENTS", "create serviceaccounts/token kube-system",
			"patch pods kube-system", "delete pods kube-system", "patch pods/status OWN", "create leases.coordination.k8s.io kube-system",
			"update leases.coordination.k8s.io OWN", "get leases.coordination.k8s.io default", "create rolebindings.rbac.authorization.k8s.io default",
			"bind clusterroles.rbac.authorization.k8s.io #macfleet-tart-kubelet-pods", "create serviceaccounts AGENTS", "create secrets AGENTS",
			"delete nodes", "create pods default", "create pods/eviction default", "create pods/exec default", "list secrets default",
			"watch secrets default", "create secrets default", "update secrets default", "delete secrets default", "list configmaps default",
			"update configmaps default", "create serviceaccounts default", "delete leases.coordination.k8s.io kube-node-lease", "list namespaces",
			"create clusterrolebindings.rbac.authorization.k8s.io", "get clusterroles.rbac.authorization.k8s.io", "bind clusterroles.rbac.authorization.k8s.io",
			"impersonate users", "list machines.cluster.x-k8s.io", "get /metrics"},
	},
	"macfleet": {
		may: []right{"list nodes", "get nodes", "patch nodes", "delete nodes", "list leases.coordination.k8s.io kube-node-lease", "list pods",
			"get pods default", "patch pods default", "delete pods default", "create pods/eviction default", "get daemonsets.apps default",
			"create events default", "get namespaces", "get configmaps kube-public/cluster-info", "get configmaps kube-public/kube-root-ca.crt",
			"list clusterrolebindings.rbac.authorization.k8s.io", "create clusterrolebindings.rbac.authorization.k8s.io",
			"delete clusterrolebindings.rbac.authorization.k8s.io", "bind clusterroles.rbac.authorization.k8s.io #macfleet-tart-kubelet",
			"get clusterroles.rbac.authorization.k8s.io #macfleet-tart-kubelet", "list machines.cluster.x-k8s.io", "list clusters.cluster.x-k8s.io",
			"list scalewayapplesiliconmachines.infrastructure.cluster.x-k8s.io",
			"get secrets OWN", "create secrets OWN", "delete secrets OWN", "create serviceaccounts OWN", "delete serviceaccounts OWN",
			"get secrets AGENTS", "list secrets AGENTS", "create secrets AGENTS", "delete secrets AGENTS", "list serviceaccounts AGENTS",
			"create serviceaccounts AGENTS", "delete serviceaccounts AGENTS", "list rolebindings.rbac.authorization.k8s.io",
			"get clusterroles.rbac.authorization.k8s.io #macfleet-tart-kubelet-pods", "list clusterroles.rbac.authorization.k8s.io",
			"list roles.rbac.authorization.k8s.io", "create pods/eviction kube-system",
			"list validatingadmissionpolicies.admissionregistration.k8s.io", "list validatingadmissionpolicybindings.admissionregistration.k8s.io", "get roles.rbac.authorization.k8s.io AGENTS", "get configmaps OWN", "update configmaps OWN", "get leases.coordination.k8s.io OWN", "update leases.coordination.k8s.io OWN", "create leases.coordination.k8s.io OWN"},
		mayNot: []right{"delete leases.coordination.k8s.io OWN", "create leases.coordination.k8s.io default",
			"create nodes", "update nodes", "patch nodes/status", "create pods default", "create pods/exec default", "update pods default",
			"list events default", "patch events default", "delete events default", "get secrets default", "list secrets", "create secrets default", "get configmaps default", "get configmaps kube-system/kubeadm-config",
			"update configmaps kube-public/cluster-info", "patch pods kube-system", "delete pods kube-system", "patch pods OWN",
			"update validatingadmissionpolicies.admissionregistration.k8s.io", "delete validatingadmissionpolicybindings.admissionregistration.k8s.io",
			"create validatingadmissionpolicies.admissionregistration.k8s.io", "create serviceaccounts/token OWN", "create serviceaccounts/token kube-system",
			"create serviceaccounts default", "create namespaces", "delete namespaces", "create clusterroles.rbac.authorization.k8s.io",
			"update clusterroles.rbac.authorization.k8s.io #macfleet-tart-kubelet", "escalate clusterroles.rbac.authorization.k8s.io #macfleet-tart-kubelet",
			"list secrets OWN", "create rolebindings.rbac.authorization.k8s.io default", "create rolebindings.rbac.authorization.k8s.io AGENTS",
			"bind clusterroles.rbac.authorization.k8s.io #macfleet-tart-kubelet-pods", "bind clusterroles.rbac.authorization.k8s.io #cluster-admin", "bind clusterroles.rbac.authorization.k8s.io #macfleet",
			"create rolebindings.rbac.authorization.k8s.io OWN", "update leases.coordination.k8s.io kube-node-lease", "delete daemonsets.apps default",
			"patch machines.cluster.x-k8s.io", "get scalewayapplesiliconmachines.infrastructure.cluster.x-k8s.io",
			"list scalewayapplesiliconclusters.infrastructure.cluster.x-k8s.io", "impersonate users", "get /metrics"},
	},
	"capi": {
		// capiUses has what it may.
		mayNot: []right{"create nodes", "update nodes", "patch nodes/status", "delete pods default", "patch pods default", "create pods default", "watch pods",
			"get secrets default", "get secrets OWN", "get configmaps OWN", "patch namespaces", "list leases.coordination.k8s.io kube-node-lease",
			"delete volumeattachments.storage.k8s.io", "patch persistentvolumes", "delete persistentvolumeclaims default", "delete daemonsets.apps default",
			"list replicasets.apps default", "create clusterrolebindings.rbac.authorization.k8s.io", "impersonate users", "get /metrics"},
	},
}

// TestRights asks the cluster itself what each identity may do.
func TestRights(t *testing.T) {
	t.Parallel()
	eachCluster(t, func(t *testing.T, c *cluster) {
		o, _ := c.connected(t)
		client := c.client(t, o)
		own, _, err := client.IssueToken(t.Context(), time.Hour)
		must(t, err)
		capi, err := client.Secret(t.Context(), ns(t), "capi-remote-token", "token")
		must(t, err)
		for who, token := range map[string]string{"agent": identified(t, client, name(t, "01")), "macfleet": own.Reveal(), "capi": capi} {
			api := c.as(t, token)
			may := func(why string, all []right) {
				for _, r := range all {
					eventually(t, who+" may"+why, func() error { return ask(t, api, r, true) })
				}
			}
			may("", rights[who].may)
			for _, uses := range capiUses {
				if who == "capi" {
					may(", "+uses.versions+", "+uses.what, uses.rights)
				}
			}
			for _, r := range rights[who].mayNot {
				if err := ask(t, api, r, false); err != nil {
					t.Errorf("%s may: %v", who, err)
				}
			}
		}
	})
}

// TestNoEscalation tries to make more of macfleet's own rights: by requests, as
// who may bind and what a role may hold is in no review.
func TestNoEscalation(t *testing.T) {
	t.Parallel()
	eachCluster(t, func(t *testing.T, c *cluster) {
		client := c.prepared(t)
		token, _, err := client.IssueToken(t.Context(), time.Hour)
		must(t, err)
		api := c.as(t, token.Reveal())
		eventually(t, "macfleet binds hosts", func() error {
			return errOf(api.RbacV1().ClusterRoleBindings().Create(t.Context(), binding(t, "good", "macfleet-tart-kubelet"), metav1.CreateOptions{}))
		})
		// It may bind its own role, which grants no more than it already has.
		more := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name(t, "more")},
			Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods/exec"}, Verbs: []string{"create"}}}}
		must(t, errOf(c.admin.RbacV1().ClusterRoles().Create(t.Context(), more, metav1.CreateOptions{})))
		for _, role := range []string{"cluster-admin", more.Name} {
			_, err := api.RbacV1().ClusterRoleBindings().Create(t.Context(), binding(t, "bad", role), metav1.CreateOptions{})
			if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "attempting to grant RBAC permissions not currently held") {
				t.Errorf("bound to %s: %v", role, err)
			}
		}
		// A binding's role never changes, so a good one cannot be made a bad one.
		have, err := api.RbacV1().ClusterRoleBindings().Get(t.Context(), name(t, "good"), metav1.GetOptions{})
		must(t, err)
		have.RoleRef.Name = "cluster-admin"
		if _, err := api.RbacV1().ClusterRoleBindings().Update(t.Context(), have, metav1.UpdateOptions{}); err == nil {
			t.Error("a binding was turned to another role")
		}
	})
}

func binding(t *testing.T, suffix, role string) *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name(t, suffix)},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: ns(t), Name: "macfleet"}}}
}

// TestAsItself does all that an apply does with macfleet's own account: its
// rights are enough.
func TestAsItself(t *testing.T) {
	t.Parallel()
	eachCluster(t, func(t *testing.T, c *cluster) {
		o := c.withCAPI(t)
		o.PodNamespaces = []string{"default", ns(t)}
		c.control(t)
		boss := c.client(t, o)
		prepare(t, boss)
		client, node := c.itself(t, boss, o), c.addNode(t, name(t, "mac"), "")
		seen := observe(t, client)
		if why := seen.Pods.Why() + seen.Identities.Why() + seen.Join.Why() + seen.Objects.Why() + seen.Machines.Why(); why != "" {
			t.Errorf("unread: %s", why)
		}
		c.addPod(t, node.Name, "a", owned("ReplicaSet", "a"))
		c.phase(t, "a", corev1.PodSucceeded, "")
		c.kubelet(t)
		stuck := c.addPod(t, node.Name, "b", func(p *corev1.Pod) { p.Finalizers = []string{inventory.VMFinalizer} })
		c.phase(t, "b", corev1.PodSucceeded, "")
		c.deletePod(t, "b", 0)
		eventually(t, "its time is up", func() error {
			return client.ReleasePod(t.Context(), inventory.Pod{Namespace: ns(t), Name: "b", UID: string(stuck.UID)})
		})
		identified(t, client, name(t, "01"))
		_, uncordon := client.Uncordon(t.Context(), node)
		_, uid := client.ID(t.Context())
		must(t, uncordon, uid, client.SetProviderID(t.Context(), node, "scw-applesilicon://fr-par-1/id-1"),
			client.Taint(t.Context(), node, inventory.AgentTaint()), cordon(t, client, node, "ann"), client.EvictPods(t.Context(), node, time.Minute, false, unreported),
			client.Revoke(t.Context(), name(t, "01")), client.DeleteNode(t.Context(), node),
			client.Pins(t.Context(), kubernetes.PinOptions{}).Update(add(pin(1))))
		// What macfleet's own account may make again.
		must(t, c.admin.CoreV1().Secrets(o.CAPI.Namespace).Delete(t.Context(), "acme-kubeconfig", metav1.DeleteOptions{}),
			c.admin.RbacV1().ClusterRoleBindings().Delete(t.Context(), "macfleet-capi-remote-"+ns(t), metav1.DeleteOptions{}))
		for _, k := range objects(t, client) {
			if k.State != inventory.ObjectKept {
				must(t, client.Keep(t.Context(), k))
			}
		}
		kept(t, client)
	})
}

// TestOlderAccount: where init cluster of an older version made macfleet's account, what that may
// not read names the command that gives it the right.
func TestOlderAccount(t *testing.T) {
	t.Parallel()
	eachCluster(t, func(t *testing.T, c *cluster) {
		client := c.itself(t, c.prepared(t), c.options(t))
		// A version that compared no roles had no right to list them. The role itself is every test's.
		rbac := c.admin.RbacV1()
		role, err := rbac.ClusterRoles().Get(t.Context(), "macfleet", metav1.GetOptions{})
		must(t, err)
		older := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name(t, "older")},
			Rules: slices.DeleteFunc(role.Rules, func(r rbacv1.PolicyRule) bool { return slices.Contains(r.Resources, "roles") })}
		to, err := rbac.ClusterRoleBindings().Get(t.Context(), "macfleet-"+ns(t), metav1.GetOptions{})
		must(t, err)
		to.ObjectMeta, to.RoleRef.Name = metav1.ObjectMeta{Name: to.Name}, older.Name
		must(t, errOf(rbac.ClusterRoles().Create(t.Context(), older, metav1.CreateOptions{})), rbac.ClusterRoleBindings().Delete(t.Context(), to.Name, metav1.DeleteOptions{}),
			errOf(rbac.ClusterRoleBindings().Create(t.Context(), to, metav1.CreateOptions{})))
		eventually(t, "it may not read roles, and says who gives the right", func() error {
			nodes, seen := client.Observe(t.Context(), true)
			why := seen.Objects.Why()
			if nodes.IsUnread() || !strings.Contains(why, "macfleet init cluster") || !strings.Contains(why, "roles") {
				return fmt.Errorf("nodes %q, objects %q", nodes.Why(), why)
			}
			return nil
		})
	})
}
