package kubernetes

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/macfleet/macfleet/fleet/inventory"
)

// kubeconfigSuffix ends the name under which the Cluster API looks for a kubeconfig.
const kubeconfigSuffix = "-kubeconfig"

// placeNote is an annotation of the Cluster API's binding that says where a kubeconfig of it is: one
// for each, so that none is forgotten whose Cluster the configuration names no more. It is written
// before the kubeconfig.
func (c *Client) placeNote(namespace, name string) (key, value string) {
	value = namespace + "/" + name
	sum := sha256.Sum256([]byte(value))
	return c.label("kubeconfig-" + hex.EncodeToString(sum[:4])), value
}

// left collects what macfleet made for objects that the configuration no longer has.
type left struct {
	there  listing
	notes  *notes  // of this configuration
	others []notes // of those that share macfleet's namespace, and its account
	out    []inventory.Object
	stale  []inventory.Object // noted kubeconfigs that were deleted or belong to someone else; Prepared: our account cannot look
	unseen error              // why it is unknown whether one is left; that one is still in out
}

// noted reports whether init cluster noted that it made an object.
func (l *left) noted(o inventory.Object) bool { return l.notes != nil && l.notes.has(o) }

// mine reports whether an object without an owner's label was made for this configuration, as far
// as the notes say.
func (l *left) mine(o inventory.Object) bool {
	return (l.notes == nil || l.notes.has(o)) && !slices.ContainsFunc(l.others, func(n notes) bool { return n.has(o) })
}

// capiLeft lists what connected the Cluster API and is no longer configured: all of it without a capi block,
// and kubeconfigs of other Clusters with one. The binding goes last of what an apply removes, as it
// says where the rest is, so a run that was killed is completed by the next.
func (c *Client) capiLeft(ctx context.Context, there listing) (*left, error) {
	l := &left{there: there}
	for _, ns := range there.all["Namespace"] {
		l.notes, l.others = c.notesOf(ns), c.othersNotes(ns)
	}
	i := c.capiIdentity()
	binding := there.find(i.binding.object())
	ours := binding != nil && i.binding.foreignLabel(binding) == ""
	byHand, err := c.kubeconfigsLeft(ctx, l, binding, ours)
	if err != nil {
		return nil, err
	}
	if c.options.CAPI == nil {
		for _, w := range []desired{i.secret, i.account} {
			if !ours && !l.noted(w.object()) {
				continue
			}
			if err := l.look(ctx, w, noBlock); err != nil {
				return nil, err
			}
		}
		if ours || binding == nil && l.noted(i.binding.object()) {
			if err := l.look(ctx, i.binding, noBlock); err != nil {
				return nil, err
			}
			if n := len(l.out); byHand && n > 0 && l.out[n-1].Kind == "ClusterRoleBinding" {
				l.out[n-1].Prepared = true // or nothing would say any more where that kubeconfig is
			}
		}
	}
	c.capiRightsLeft(l)
	return l, nil
}

// look enters an existing object as surplus or, if it belongs to someone else, as foreign.
func (l *left) look(ctx context.Context, w desired, why string) error {
	have, err := w.get(ctx, l.there)
	if err != nil || have == nil || have.GetDeletionTimestamp() != nil {
		return err
	}
	o := w.object()
	o.State, o.Why = inventory.ObjectSurplus, why
	if others := w.others(have); others != "" {
		o.State, o.Why = inventory.ObjectForeign, others
	}
	l.out = append(l.out, o)
	return nil
}

// kubeconfigsLeft looks for kubeconfigs at each place that a witness names: the binding, the notes of
// init cluster, a role of macfleet's account. byHand reports whether one is beyond its rights. One that it
// may not even read is unread by itself: an administrator took those rights away together with the rest.
func (c *Client) kubeconfigsLeft(ctx context.Context, l *left, binding metav1.Object, ours bool) (byHand bool, err error) {
	places := make(map[string]bool)
	if ours {
		for key, place := range binding.GetAnnotations() {
			ns, name, _ := strings.Cut(place, "/")
			if want, _ := c.placeNote(ns, name); key == want {
				places[place] = true
			}
		}
	}
	if l.notes != nil {
		for o := range *l.notes {
			if place, ok := strings.CutPrefix(o, "Secret "); ok && strings.HasSuffix(place, kubeconfigSuffix) {
				places[place] = true
			}
		}
	}
	for _, ns := range c.rightsLeftIn(l) {
		for _, r := range rulesIn(l.there, ns) {
			for _, name := range r.ResourceNames {
				places[ns+"/"+name] = true
			}
		}
	}
	why := noBlock
	if capi := c.options.CAPI; capi != nil {
		delete(places, capi.Namespace+"/"+capi.secret())
		why = "the capi block names " + capi.Namespace + "/" + capi.Cluster
	}
	for _, place := range sortedKeys(places) {
		ns, name, _ := strings.Cut(place, "/")
		w := c.formerKubeconfig(ns, name)
		w.prepared = !c.mayDelete(l.there, ns, name)
		before := len(l.out)
		switch err := l.look(ctx, w, why); {
		case apierrors.IsForbidden(err):
			o := w.object()
			o.Prepared, o.State, o.Why = true, inventory.ObjectUnread, "macfleet's account has no permission to read it"
			l.out, l.unseen, byHand = append(l.out, o), err, true
		case err != nil:
			return byHand, err
		case len(l.out) == before || l.out[before].State == inventory.ObjectForeign:
			l.stale = append(l.stale, w.object())
		default:
			byHand = byHand || w.prepared
		}
	}
	return byHand, nil
}

// noBlock is why what connects the Cluster API is surplus.
const noBlock = "the configuration has no capi block"

// formerKubeconfig describes a kubeconfig that is no longer configured. It counts as macfleet's
// only if no one else took it over.
func (c *Client) formerKubeconfig(ns, name string) desired {
	w := c.desired(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name, Labels: c.marks(true)}})
	w.judge = func(have metav1.Object) string {
		if owners := have.GetOwnerReferences(); len(owners) > 0 {
			return fmt.Sprintf("it is owned by %s %s", owners[0].Kind, owners[0].Name)
		}
		if have.GetAnnotations()[c.label(contentOf)] == "" {
			return "macfleet's annotation " + c.label(contentOf) + " is missing"
		}
		return changedByOthers(have)
	}
	return w
}

// mayDelete reports whether macfleet's own account may delete a kubeconfig: in its own namespace it
// may, elsewhere a role of an older version lacks the right.
func (c *Client) mayDelete(there listing, ns, name string) bool {
	bound := there.find(inventory.Object{Kind: "RoleBinding", Namespace: ns, Name: ownName}) != nil
	return ns == c.options.Namespace || bound && slices.ContainsFunc(rulesIn(there, ns), func(r rbacv1.PolicyRule) bool {
		return slices.Contains(r.Resources, "secrets") && slices.Contains(r.Verbs, "delete") && slices.Contains(r.ResourceNames, name)
	})
}

// rulesIn are the rights of macfleet's account in a namespace.
func rulesIn(there listing, ns string) []rbacv1.PolicyRule {
	var of rbacv1.Role
	role, ok := there.find(inventory.Object{Kind: "Role", Namespace: ns, Name: ownName}).(*unstructured.Unstructured)
	if !ok || runtime.DefaultUnstructuredConverter.FromUnstructured(role.Object, &of) != nil {
		return nil
	}
	return of.Rules
}

// rightsLeftIn are the namespaces in which macfleet's account has rights for a Cluster that the
// configuration names no more.
func (c *Client) rightsLeftIn(l *left) (out []string) {
	for _, r := range l.there.all["Role"] {
		ns, o := r.GetNamespace(), inventory.Object{Kind: "Role", Namespace: r.GetNamespace(), Name: ownName}
		if r.GetName() != ownName || c.keepsRightsIn(ns) {
			continue
		}
		bound, _ := l.there.find(inventory.Object{Kind: "RoleBinding", Namespace: ns, Name: ownName}).(*unstructured.Unstructured)
		switch {
		case bound == nil && l.noted(o) && l.mine(o): // a killed run took the binding away
			out = append(out, ns)
		case bound != nil && c.bindsUs(bound) && l.mine(o):
			out = append(out, ns)
		}
	}
	return out
}

// capiRightsLeft enters the rights that an administrator removes: those of macfleet's account in
// the namespace of a Cluster, and the Cluster API's role, which all configurations share.
func (c *Client) capiRightsLeft(l *left) {
	for _, ns := range c.rightsLeftIn(l) {
		for _, kind := range []string{"RoleBinding", "Role"} {
			l.surplus(kind, ns, ownName, "no capi block names "+ns)
		}
	}
	role := inventory.Object{Kind: "ClusterRole", Name: capiRole}
	bound := l.there.find(c.capiIdentity().binding.object())
	made := l.noted(role) || bound != nil && c.capiIdentity().binding.foreignLabel(bound) == ""
	if c.options.CAPI == nil && made && !c.othersBind(l.there, capiRole) {
		l.surplus(role.Kind, "", capiRole, "no configuration connects the Cluster API")
	}
}

func (l *left) surplus(kind, ns, name, why string) {
	o := inventory.Object{Kind: kind, Namespace: ns, Name: name, Prepared: true, State: inventory.ObjectSurplus, Why: why}
	if l.there.find(o) != nil {
		l.out = append(l.out, o)
	}
}

// keepsRightsIn reports whether macfleet's account has its own role in a namespace.
func (c *Client) keepsRightsIn(ns string) bool {
	return ns == c.options.Namespace || ns == c.options.AgentNamespace || c.options.CAPI != nil && ns == c.options.CAPI.Namespace
}

// bindsUs reports whether a binding has macfleet's own account as its only subject.
func (c *Client) bindsUs(b *unstructured.Unstructured) bool {
	subjects, _, _ := unstructured.NestedSlice(b.Object, "subjects")
	if len(subjects) != 1 {
		return false
	}
	s, _ := subjects[0].(map[string]any)
	return s["namespace"] == c.options.Namespace && s["name"] == ownName
}

// othersBind reports whether a binding of another configuration refers to a role.
func (c *Client) othersBind(there listing, role string) bool {
	return slices.ContainsFunc(there.all["ClusterRoleBinding"], func(b *unstructured.Unstructured) bool {
		of, _, _ := unstructured.NestedString(b.Object, "roleRef", "name")
		own := c.capiIdentity().binding
		return of == role && (b.GetName() != own.want.GetName() || own.foreignLabel(b) != "")
	})
}

// Remove deletes an object that Observe called surplus, after checking again that it is macfleet's.
// Already deleted: nothing to do.
func (c *Client) Remove(ctx context.Context, o inventory.Object) error {
	if slices.ContainsFunc(c.wanted(), func(w desired) bool { return w.object().String() == o.String() }) {
		return fmt.Errorf("delete %s: the configuration still uses it", o)
	}
	w, known := c.former(o)
	if !known {
		return fmt.Errorf("delete %s: macfleet did not create it", o)
	}
	if err := w.revoke(ctx); err != nil || o.Kind != "Secret" {
		return err
	}
	return c.forgetPlace(ctx, o)
}

// forgetPlace takes the note of a kubeconfig that was deleted, or belongs to someone else, off a binding that stays.
func (c *Client) forgetPlace(ctx context.Context, o inventory.Object) error {
	if c.options.CAPI == nil {
		return nil // the binding goes, too
	}
	w := c.capiIdentity().binding
	key, _ := c.placeNote(o.Namespace, o.Name)
	w.put = func(have *unstructured.Unstructured) (string, error) {
		notes := have.GetAnnotations()
		if _, noted := notes[key]; !noted {
			return "", nil
		}
		delete(notes, key)
		have.SetAnnotations(notes)
		return "annotation " + key, nil
	}
	_, err := w.ensure(ctx)
	return err
}

// former describes how an object that is surplus now was made.
func (c *Client) former(o inventory.Object) (desired, bool) {
	i := c.capiIdentity()
	for _, w := range []desired{i.secret, i.account, i.binding, c.role("", capiRole, nil)} {
		if w.object().String() == o.String() {
			return w, true
		}
	}
	switch {
	case o.Kind == "RoleBinding" && o.Name == c.agentBindingName():
		return c.agentBinding(o.Namespace, podRole), true
	case o.Kind == "RoleBinding" && o.Name == c.ownPodsName():
		return c.ownPods(o.Namespace), true
	case o.Kind == "RoleBinding" && o.Name == ownName:
		w := c.ownBinding(o.Namespace)
		w.judge = func(have metav1.Object) string {
			if whole, ok := have.(*unstructured.Unstructured); !ok || !c.bindsUs(whole) {
				return "it has subjects other than this configuration's account"
			}
			return ""
		}
		return w, true
	case o.Kind == "Role" && o.Name == ownName:
		return c.role(o.Namespace, ownName, nil), true
	case o.Kind == "Secret" && strings.HasSuffix(o.Name, kubeconfigSuffix):
		return c.formerKubeconfig(o.Namespace, o.Name), true
	}
	return desired{}, false
}
