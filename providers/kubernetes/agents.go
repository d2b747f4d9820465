package kubernetes

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	klabels "k8s.io/apimachinery/pkg/labels"

	"github.com/macfleet/macfleet/fleet/inventory"
)

// admission is what lets hosts in at all: the namespace of their accounts, and what
// these may do, in the whole cluster and in some namespaces. An administrator makes
// it, once for all hosts.
func (c *Client) admission() []kept {
	out := []kept{c.namespace(c.options.AgentNamespace), c.clusterRole(agentRole, agentRules()), c.clusterRole(podRole, podRules()),
		c.clusterRole(leaseRole, leaseRules()), c.agentBinding(corev1.NamespaceNodeLease, leaseRole)}
	for _, ns := range c.options.PodNamespaces {
		out = append(out, c.agentBinding(ns, podRole))
	}
	return out
}

// agentBinding gives all agents a role in one namespace. Its subject is the group
// that the cluster itself puts the accounts of a namespace into, so that it need not
// change with the hosts.
func (c *Client) agentBinding(ns, role string) wish[*rbacv1.RoleBinding] {
	group := []rbacv1.Subject{{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: "system:serviceaccounts:" + c.options.AgentNamespace}}
	return wish[*rbacv1.RoleBinding]{kind: "RoleBinding", api: c.api.RbacV1().RoleBindings(ns), owner: c.label(labelOwner),
		want: &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: c.agentBindingName(), Labels: c.agentMarks()},
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects: group},
		spoilt: func(have *rbacv1.RoleBinding) bool {
			return have.RoleRef.Name != role || have.RoleRef.Kind != "ClusterRole"
		},
		mend: func(have *rbacv1.RoleBinding) string { return replace(&have.Subjects, group, "subjects") }}
}

// agentBindingName has the owner in it: several configurations may run Pods in one
// namespace.
func (c *Client) agentBindingName() string { return agentRole + "-" + c.options.Owner }

func (c *Client) agentMarks() map[string]string {
	marks := c.marks(true)
	marks[labelComponent] = component
	return marks
}

// surplus lists the bindings of this configuration's agents in namespaces where it
// wants no Pods any more: what was once needed would stay a right for ever.
func (c *Client) surplus(ctx context.Context) ([]inventory.Object, error) {
	var out []inventory.Object
	ours := metav1.ListOptions{LabelSelector: klabels.Set(c.agentMarks()).String()}
	err := each(ctx, "agents' role bindings", c.api.RbacV1().RoleBindings(metav1.NamespaceAll).List, ours, func(l *rbacv1.RoleBindingList) error {
		for _, b := range l.Items {
			if b.Name == c.agentBindingName() && b.Namespace != corev1.NamespaceNodeLease && !slices.Contains(c.options.PodNamespaces, b.Namespace) {
				out = append(out, inventory.Object{Kind: "RoleBinding", Namespace: b.Namespace, Name: b.Name, Prepared: true,
					State: inventory.ObjectSurplus, Why: "pod_namespaces does not name " + b.Namespace})
			}
		}
		return nil
	})
	return out, err
}
