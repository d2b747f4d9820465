package kubernetes

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/secret"
)

// wanted is what the cluster itself must hold, in the order in which it is made.
func (c *Client) wanted() []desired { return slices.Concat(c.admission(), c.own(), c.capi()) }

// marks are the labels of what belongs to no host.
func (c *Client) marks(owned bool) map[string]string {
	out := map[string]string{labelManagedBy: manager}
	if owned {
		out[c.label(labelOwner)] = c.options.Owner
	}
	return out
}

func (c *Client) agentMarks() map[string]string {
	marks := c.marks(true)
	marks[labelComponent] = component
	return marks
}

// namespace only has to exist: who made it does not matter.
func (c *Client) namespace(name string) desired {
	return c.desired(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
}

// role is a role in a namespace or, without one, in the whole cluster. All configurations
// of a cluster share it: it depends only on macfleet, so it has no owner.
func (c *Client) role(ns, name string, rules []rbacv1.PolicyRule) desired {
	meta := metav1.ObjectMeta{Namespace: ns, Name: name, Labels: c.marks(false)}
	if ns == "" {
		return c.desired(&rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules})
	}
	return c.desired(&rbacv1.Role{ObjectMeta: meta, Rules: rules})
}

// binding gives one subject a role in the namespace of the binding or, without one, in the
// whole cluster.
func (c *Client) binding(meta metav1.ObjectMeta, kind, role string, subject rbacv1.Subject) desired {
	of, subjects := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: role}, []rbacv1.Subject{subject}
	if meta.Namespace == "" {
		return c.desired(&rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: of, Subjects: subjects})
	}
	return c.desired(&rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: of, Subjects: subjects})
}

func account(ns, name string) rbacv1.Subject {
	return rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: ns, Name: name}
}

// standing is the state of the desired objects that this server can hold.
type standing struct {
	objects []inventory.Object // those that are configured, what the server does not serve any more, and surplus
	surplus []inventory.Object // what the cluster must not hold any more
	noted   inventory.Seen[inventory.ClusterID]
	left    *left // what connected the Cluster API
}

// standing compares desired objects with the cluster. What macfleet's namespace says of its cluster is known
// also where the rest cannot be read.
func (c *Client) standing(ctx context.Context, all []desired) (out standing, err error) {
	there, err := c.listing(ctx)
	if err != nil {
		return out, err
	}
	out.noted = c.clusterNotedIn(there)
	noted := c.notesIn(there)
	lost := there.lost(all, noted)
	all = there.served(all)
	objects := make([]inventory.Object, len(all))
	digests := make([]string, len(all)) // of what exists
	g, gctx := errgroup.WithContext(ctx)
	for i, w := range all {
		g.Go(func() error {
			have, err := w.get(gctx, there)
			if err != nil {
				return err
			}
			if have != nil {
				digests[i] = digestOf(w.want, have)
			}
			objects[i], err = w.compared(gctx, have)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return out, err
	}
	for i, w := range all {
		objects[i].Made = noted.made(w, objects[i], digests[i])
	}
	if out.left, err = c.capiLeft(ctx, there); err != nil {
		return out, err
	}
	out.surplus = slices.Concat(c.surplus(there), out.left.out)
	out.objects = slices.Concat(objects, lost, out.surplus)
	return out, nil
}

// Keep brings an object of the cluster itself to its desired state. An object that
// is not configured, or that belongs to someone else, is an error.
func (c *Client) Keep(ctx context.Context, o inventory.Object) error {
	for _, w := range append(c.wanted(), c.desiredPins()) {
		if w.object().String() == o.String() {
			_, err := w.ensure(ctx)
			return err
		}
	}
	return fmt.Errorf("write %s: the configuration does not include this object", o)
}

// PrepareOptions say how a cluster is prepared.
type PrepareOptions struct {
	Dry bool // look, and change nothing
	SSH SSHKey
	In  inventory.ClusterID // noted on macfleet's namespace; zero: nothing is
}

// SSHKey is the hosts' private key in a Secret of macfleet's namespace.
type SSHKey struct {
	Secret, Key string       // the Secret's name, and its key
	Value       secret.Value // zero: none is kept
	// Replaces is the text that Value replaces. Any other text is kept, because hosts trust
	// it. Empty: only a key that is missing is filled in.
	Replaces string
	Why      string // what differs, for people; empty: nothing does
}

// Prepare makes what macfleet needs in a cluster before its first plan: the
// namespace, the hosts' SSH key where there is none, the agents' role, macfleet's own
// account with its rights, and what connects the Cluster API where the configuration
// asks for it. It returns the state of each before. Repeated, it changes nothing that is
// right.
func (c *Client) Prepare(ctx context.Context, o PrepareOptions) ([]inventory.Object, error) {
	all := c.preparation(o)
	now, err := c.standing(ctx, all)
	if err != nil {
		return nil, err
	}
	before := now.objects
	if now.left.unseen != nil { // what is not seen here would be forgotten
		return before, now.left.unseen
	}
	now.outdated(all[0].object())
	if o.Dry {
		return before, nil
	}
	all = slices.DeleteFunc(all, func(w desired) bool { // what this server does not serve
		return !slices.ContainsFunc(before, func(o inventory.Object) bool {
			return o.State != inventory.ObjectUnserved && o.String() == w.object().String()
		})
	})
	for _, w := range all {
		if _, err := w.ensure(ctx); err != nil {
			return before, err
		}
	}
	for _, s := range now.surplus {
		if s.State == inventory.ObjectForeign {
			continue
		}
		if err := c.Remove(ctx, s); err != nil {
			return before, err
		}
	}
	for _, s := range now.left.stale {
		if err := c.forgetPlace(ctx, s); err != nil {
			return before, err
		}
	}
	return before, c.noteMade(ctx, all)
}

// outdated lets macfleet's namespace differ where a note of a kubeconfig has to go and macfleet's own account
// cannot look: nothing else may be left to do, as after a run that was killed.
func (s standing) outdated(namespace inventory.Object) {
	for _, gone := range s.left.stale {
		for i, o := range s.objects {
			if gone.Prepared && o.State == inventory.ObjectKept && o.String() == namespace.String() {
				s.objects[i].State = inventory.ObjectDiffers
				s.objects[i].Why = fmt.Sprintf("an annotation lists %s, which was deleted or belongs to someone else", gone)
			}
		}
	}
}

// desiredPins is the place of the pinned host keys, without any.
func (c *Client) desiredPins() desired {
	return c.desired(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: c.options.Namespace, Name: pinsName, Labels: c.marks(false)}})
}

func (c *Client) preparation(o PrepareOptions) []desired {
	wanted := c.wanted()
	// The place of the pinned host keys is made empty: its existence says that the
	// cluster keeps them.
	out := []desired{c.noting(wanted[0], o.In), c.desiredPins()}
	if !o.SSH.Value.IsZero() {
		out = append(out, c.sshKey(o.SSH))
	}
	for _, ns := range c.options.PodNamespaces {
		if ns != metav1.NamespaceDefault { // which is always there
			out = append(out, c.namespace(ns))
		}
	}
	return append(out, wanted[1:]...)
}

// sshKey is the Secret of the hosts' key. What else is in it stays.
func (c *Client) sshKey(k SSHKey) desired {
	text := k.Value.Reveal()
	w := c.desired(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: c.options.Namespace, Name: k.Secret},
		Data: map[string][]byte{k.Key: []byte(text)}})
	w.judge = func(metav1.Object) string { return k.Why }
	w.asFound = true
	w.put = func(have *unstructured.Unstructured) (string, error) {
		encoded, there, err := unstructured.NestedString(have.Object, "data", k.Key)
		if err != nil {
			return "", fmt.Errorf("read %s: %w", w.object(), err)
		}
		kept, err := base64.StdEncoding.DecodeString(encoded)
		switch {
		case err != nil:
			return "", fmt.Errorf("read key %s of %s: %w", k.Key, w.object(), err)
		case string(kept) == text, there && len(kept) > 0 && k.Replaces == "":
			return "", nil
		case string(kept) != k.Replaces:
			return "", fmt.Errorf("%s was changed in the meantime and was not updated; fix: run the command again", w.object())
		}
		if owner := metav1.GetControllerOf(have); owner != nil {
			return "", fmt.Errorf("%s is managed by %s %s, which would revert the change; fix: change the key at its source", w.object(), owner.Kind, owner.Name)
		}
		return "data", unstructured.SetNestedField(have.Object, base64.StdEncoding.EncodeToString([]byte(text)), "data", k.Key)
	}
	return w
}

// own is macfleet's account with its rights.
func (c *Client) own() []desired {
	ns := c.options.Namespace
	// Another namespace of the cluster may hold another configuration's.
	i := c.identityOf(ns, ownName, ownName+"-"+ns, ownName, c.marks(false))
	out := []desired{i.account, c.role("", ownName, rules().Cluster), i.binding}
	in := func(ns string, rules []rbacv1.PolicyRule) {
		out = append(out, c.role(ns, ownName, rules), c.ownBinding(ns))
	}
	in(ns, rules().Namespace)
	in(c.options.AgentNamespace, rules().Identities)
	if capi := c.options.CAPI; capi != nil && capi.Namespace != ns {
		in(capi.Namespace, kubeconfigRules(capi.secret()))
	}
	pods := []desired{c.role("", ownPodsRole, rules().Release)}
	for _, ns := range c.options.PodNamespaces {
		pods = append(pods, c.ownPods(ns))
	}
	return byAdministrator(append(out, recent(pods)...))
}

// ownBinding gives macfleet's account its role in a namespace.
func (c *Client) ownBinding(ns string) desired {
	meta := metav1.ObjectMeta{Namespace: ns, Name: ownName, Labels: c.marks(false)}
	return c.binding(meta, "Role", ownName, account(c.options.Namespace, ownName))
}

// ownPodsName has the owner in it, as agentBindingName has.
func (c *Client) ownPodsName() string { return ownPodsRole + "-" + c.options.Owner }

// ownPods gives macfleet's account what it needs to release Pods of a namespace. In the
// whole cluster that would be a way to every right: who may patch any Pod may let it run
// what they like.
func (c *Client) ownPods(ns string) desired {
	return c.binding(metav1.ObjectMeta{Namespace: ns, Name: c.ownPodsName(), Labels: c.marks(true)}, "ClusterRole", ownPodsRole,
		account(c.options.Namespace, ownName))
}

// recent marks objects that versions without notes did not make: missing ones were not
// deleted by anyone.
func recent(all []desired) []desired {
	for i := range all {
		all[i].recent = true
	}
	return all
}

// byAdministrator marks objects that init cluster makes.
func byAdministrator(all []desired) []desired {
	for i := range all {
		all[i].prepared = true
	}
	return all
}

// admission is what hosts need to join: the namespaces of macfleet and of their accounts,
// and what these may do, in the whole cluster and in some namespaces. An administrator makes
// it, once for all hosts.
func (c *Client) admission() []desired {
	nodes, pods := inventory.GateNodes, inventory.GatePods
	out := []desired{c.namespace(c.options.Namespace), c.namespace(c.options.AgentNamespace).gating(nodes), c.role("", agentRole, rules().Agents).gating(nodes),
		c.role("", podRole, rules().Pods).gating(pods), c.role("", leaseRole, rules().Leases).gating(nodes),
		c.agentBinding(corev1.NamespaceNodeLease, leaseRole).gating(nodes)}
	for _, ns := range c.options.PodNamespaces {
		out = append(out, c.agentBinding(ns, podRole).gating(pods))
	}
	return byAdministrator(append(out, recent(c.policy())...))
}

// agentBinding gives all agents a role in one namespace. Its subject is the group
// that the cluster itself puts the accounts of a namespace into, so that it does not
// change with the hosts.
func (c *Client) agentBinding(ns, role string) desired {
	return c.binding(metav1.ObjectMeta{Namespace: ns, Name: c.agentBindingName(), Labels: c.agentMarks()}, "ClusterRole", role,
		rbacv1.Subject{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: "system:serviceaccounts:" + c.options.AgentNamespace})
}

// agentBindingName has the owner in it: several configurations may run Pods in one
// namespace.
func (c *Client) agentBindingName() string { return agentRole + "-" + c.options.Owner }

// surplus lists the bindings of this configuration's agents, and of its account, in namespaces where it
// wants no Pods any more: what was once needed would stay a right for ever.
func (c *Client) surplus(there listing) (out []inventory.Object) {
	for _, b := range there.all["RoleBinding"] {
		ns := b.GetNamespace()
		ours := b.GetName() == c.agentBindingName() && ns != corev1.NamespaceNodeLease || b.GetName() == c.ownPodsName()
		if ours && b.GetLabels()[c.label(labelOwner)] == c.options.Owner && !slices.Contains(c.options.PodNamespaces, ns) {
			out = append(out, inventory.Object{Kind: "RoleBinding", Namespace: ns, Name: b.GetName(), Prepared: true,
				State: inventory.ObjectSurplus, Why: "pod_namespaces does not name " + ns})
		}
	}
	return out
}

// Purpose says what an object of those that Prepare makes is for; "" = nothing
// that it knows.
func (c *Client) Purpose(o inventory.Object) string {
	capi := c.options.CAPI
	ofCAPI := slices.Contains([]string{capiAccount, capiAccount + "-token", capiRole}, o.Name) || o.Kind == "ClusterRoleBinding" && strings.HasPrefix(o.Name, capiRole)
	switch surplus := o.State == inventory.ObjectSurplus; {
	case surplus && (ofCAPI || o.Kind == "Secret" || o.Name == ownName):
		return "connected the Cluster API (no longer used)"
	case capi != nil && (ofCAPI || o.Name == capi.secret()):
		return "links the Machines of Cluster API cluster " + capi.Namespace + "/" + capi.Cluster + " to their Nodes"
	case surplus:
		return "permissions in a namespace that is no longer in pod_namespaces"
	case o.Kind == "Namespace" && o.Name == c.options.AgentNamespace:
		return "namespace of the tart-kubelets' service accounts"
	case o.Kind == "Namespace" && o.Name != c.options.Namespace:
		return "namespace of Pods that run on the hosts"
	case strings.HasPrefix(o.Kind, "ValidatingAdmissionPolicy"):
		return "limits each tart-kubelet to its own Node, Lease and Pods"
	case strings.HasPrefix(o.Name, agentRole):
		return "permissions of a host's tart-kubelet"
	}
	switch o.Kind {
	case "Namespace":
		return "macfleet's namespace"
	case "ConfigMap":
		return "pinned SSH host keys"
	case "Secret":
		return "private SSH key for logging in to the hosts"
	case "ServiceAccount":
		return "the identity macfleet uses unattended, e.g. in CI"
	}
	return "permissions of macfleet's own account"
}
