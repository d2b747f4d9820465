package kubernetes

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	klabels "k8s.io/apimachinery/pkg/labels"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/secret"
)

// kept is an object of the cluster itself, of whatever kind.
type kept interface {
	object() inventory.Object
	look(context.Context) (inventory.Object, error)
	keep(context.Context) error
}

func (w wish[T]) keep(ctx context.Context) error {
	_, err := w.ensure(ctx)
	return err
}

// wanted is what the cluster itself must hold, in the order in which it is made.
func (c *Client) wanted() []kept {
	out := append([]kept{c.namespace(c.options.Namespace)}, c.admission()...)
	if c.options.CAPI != nil {
		out = append(out, c.capi()...)
	}
	return out
}

// marks are the labels of what belongs to no host.
func (c *Client) marks(owned bool) map[string]string {
	out := map[string]string{labelManagedBy: manager}
	if owned {
		out[c.label(labelOwner)] = c.options.Owner
	}
	return out
}

// namespace need only be there: who made it is all the same.
func (c *Client) namespace(name string) kept {
	return wish[*corev1.Namespace]{kind: "Namespace", api: c.api.CoreV1().Namespaces(),
		want: &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}}
}

// clusterRole is a role that all configurations of a cluster share: it depends on
// macfleet alone, so it has no owner.
func (c *Client) clusterRole(name string, rules []rbacv1.PolicyRule) kept {
	return wish[*rbacv1.ClusterRole]{kind: "ClusterRole", api: c.api.RbacV1().ClusterRoles(),
		want: &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: c.marks(false)}, Rules: rules},
		mend: func(have *rbacv1.ClusterRole) string { return replace(&have.Rules, rules, "rules") }}
}

// replace puts a value in the place of another one and says what changed; "" = nothing.
func replace[T any](have *T, want T, what string) (changed string) {
	if equality.Semantic.DeepEqual(*have, want) {
		return ""
	}
	*have = want
	return what
}

// objects says how what the cluster itself must hold stands, and what it must not
// hold any more.
func (c *Client) objects(ctx context.Context) ([]inventory.Object, error) {
	var out, surplus []inventory.Object
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() (err error) { out, err = look(gctx, c.wanted()); return })
	g.Go(func() (err error) { surplus, err = c.surplus(gctx); return })
	if err := g.Wait(); err != nil {
		return nil, err
	}
	// What no host can join without, and what macfleet's own rights do not reach to
	// make.
	for i := range 1 + len(c.admission()) {
		out[i].Prepared = true
	}
	return append(out, surplus...), nil
}

func look(ctx context.Context, all []kept) ([]inventory.Object, error) {
	out := make([]inventory.Object, len(all))
	g, ctx := errgroup.WithContext(ctx)
	for i, k := range all {
		g.Go(func() (err error) { out[i], err = k.look(ctx); return })
	}
	return out, g.Wait()
}

// Keep brings an object of the cluster itself to what is wanted. An object that
// macfleet does not want, or that is somebody else's, is an error.
func (c *Client) Keep(ctx context.Context, o inventory.Object) error {
	for _, k := range c.wanted() {
		if have := k.object(); have.Kind == o.Kind && have.Namespace == o.Namespace && have.Name == o.Name {
			return k.keep(ctx)
		}
	}
	return fmt.Errorf("keep %s %s: it is none of what the configuration wants of the cluster", o.Kind, path(o.Namespace, o.Name))
}

// PrepareOptions say how a cluster is prepared.
type PrepareOptions struct {
	Dry bool // look, and change nothing
	// SSHKey is the fleet's private key, kept in a Secret of macfleet's namespace
	// under this name and key; zero: none is kept.
	SSHSecret, SSHSecretKey string
	SSHKey                  secret.Value
}

// Prepare makes what macfleet needs in a cluster before its first plan: the
// namespace, the fleet's SSH key where there is none (one that is there is never
// replaced: every host trusts it), the agents' role, macfleet's own account with
// its rights, and what connects the Cluster API where the configuration asks for
// it. It returns how each stood before. Repeated, it changes nothing that is
// right.
func (c *Client) Prepare(ctx context.Context, o PrepareOptions) ([]inventory.Object, error) {
	all := c.preparation(o)
	before, err := look(ctx, all)
	if err != nil {
		return nil, err
	}
	surplus, err := c.surplus(ctx)
	before = append(before, surplus...)
	if err != nil || o.Dry {
		return before, err
	}
	for _, k := range all {
		if err := k.keep(ctx); err != nil {
			return before, err
		}
	}
	for _, s := range surplus {
		if err := c.agentBinding(s.Namespace, podRole).revoke(ctx); err != nil {
			return before, err
		}
	}
	return before, nil
}

func (c *Client) preparation(o PrepareOptions) []kept {
	out := []kept{c.namespace(c.options.Namespace), c.pinMap()}
	if !o.SSHKey.IsZero() {
		out = append(out, c.sshKey(o))
	}
	for _, ns := range c.options.PodNamespaces {
		if ns != metav1.NamespaceDefault { // which is always there
			out = append(out, c.namespace(ns))
		}
	}
	out = append(out, c.admission()...)
	if c.options.CAPI != nil {
		out = append(out, c.capi()...)
	}
	return append(out, c.own()...)
}

// sshKey is told by its metadata: a key that is there is not even read.
func (c *Client) sshKey(o PrepareOptions) kept {
	ns := c.options.Namespace
	return wish[*corev1.Secret]{kind: "Secret", api: c.api.CoreV1().Secrets(ns), metadata: c.secretMetadata(ns, o.SSHSecret),
		want: &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: o.SSHSecret},
			Data: map[string][]byte{o.SSHSecretKey: []byte(o.SSHKey.Reveal())}}}
}

func (c *Client) secretMetadata(ns, name string) func(context.Context) (*metav1.PartialObjectMetadata, error) {
	return func(ctx context.Context) (*metav1.PartialObjectMetadata, error) {
		return c.meta.Resource(corev1.SchemeGroupVersion.WithResource("secrets")).Namespace(ns).Get(ctx, name, metav1.GetOptions{})
	}
}

// own is macfleet's account with its rights.
func (c *Client) own() []kept {
	ns, marks := c.options.Namespace, c.marks(false)
	account := c.identityOf(ns, ownName, ownName, marks)
	account.binding.want.Name = ownName + "-" + ns // another namespace of the cluster may hold another configuration's
	out := []kept{account.account, c.clusterRole(ownName, clusterRules()), account.binding}
	out = append(out, c.namespacedRole(ns, namespaceRules())...)
	out = append(out, c.namespacedRole(c.options.AgentNamespace, identityRules())...)
	if c.options.CAPI != nil && c.options.CAPI.Namespace != ns {
		out = append(out, c.namespacedRole(c.options.CAPI.Namespace, kubeconfigRules(c.options.CAPI.secret()))...)
	}
	return out
}

// namespacedRole is a role of macfleet's account in one namespace, with its
// binding.
func (c *Client) namespacedRole(ns string, rules []rbacv1.PolicyRule) []kept {
	meta := metav1.ObjectMeta{Namespace: ns, Name: ownName, Labels: c.marks(false)}
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: c.options.Namespace, Name: ownName}}
	return []kept{
		wish[*rbacv1.Role]{kind: "Role", api: c.api.RbacV1().Roles(ns), want: &rbacv1.Role{ObjectMeta: meta, Rules: rules},
			mend: func(have *rbacv1.Role) string { return replace(&have.Rules, rules, "rules") }},
		wish[*rbacv1.RoleBinding]{kind: "RoleBinding", api: c.api.RbacV1().RoleBindings(ns),
			want: &rbacv1.RoleBinding{ObjectMeta: meta, Subjects: subjects, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: ownName}},
			mend: func(have *rbacv1.RoleBinding) string { return replace(&have.Subjects, subjects, "subjects") }},
	}
}

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

// pinMap is the place of the pinned host keys. It is made empty: that it is there
// says that the cluster keeps them. What it holds is never touched here.
func (c *Client) pinMap() kept {
	ns := c.options.Namespace
	return wish[*corev1.ConfigMap]{kind: "ConfigMap", api: c.api.CoreV1().ConfigMaps(ns),
		want: &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: pinsName, Labels: c.marks(false)}}}
}

// Purpose says what an object of those that Prepare makes is for; "" = nothing
// that it knows.
func (c *Client) Purpose(o inventory.Object) string {
	if capi := c.options.CAPI; capi != nil && slices.Contains([]string{capiAccount, capiAccount + "-token", capiRole, capi.secret()}, o.Name) {
		return "binds the Machines of the Cluster API's cluster " + path(capi.Namespace, capi.Cluster) + " to their Nodes"
	}
	switch {
	case o.State == inventory.ObjectSurplus:
		return "what tart-kubelets may do where no Pods of theirs are to run any more"
	case o.Kind == "Namespace" && o.Name == c.options.AgentNamespace:
		return "holds the accounts of the hosts' tart-kubelets, and nothing else"
	case o.Kind == "Namespace" && o.Name != c.options.Namespace:
		return "holds Pods that run on the hosts"
	case strings.HasPrefix(o.Name, agentRole):
		return "what a host's tart-kubelet may do, and no more"
	}
	switch o.Kind {
	case "Namespace":
		return "holds all that is macfleet's"
	case "ConfigMap":
		return "pins the host keys, for everybody who runs macfleet"
	case "Secret":
		return "the private key with which macfleet logs in to the hosts"
	case "ServiceAccount":
		return "who macfleet is where nobody sits, such as in CI"
	}
	return "what macfleet's own account may do, and no more"
}
