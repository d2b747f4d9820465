package kubernetes

import (
	"context"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/macfleet/macfleet/fleet/inventory"
)

// listing is what the cluster holds of macfleet's roles, bindings and policies: one list of
// a kind costs less than a read of each object.
type listing struct {
	all      map[string][]*unstructured.Unstructured // by kind
	unserved map[string]bool                         // kinds that this server does not know
	missing  bool                                    // macfleet's namespace is
}

// listedKinds are read as lists. Their objects have the label by which macfleet knows
// what it made; one that does not is found when it is looked for by its name.
var listedKinds = map[string]schema.GroupVersionResource{
	"ClusterRole":        rbacv1.SchemeGroupVersion.WithResource("clusterroles"),
	"ClusterRoleBinding": rbacv1.SchemeGroupVersion.WithResource("clusterrolebindings"),
	"Role":               rbacv1.SchemeGroupVersion.WithResource("roles"),
	"RoleBinding":        rbacv1.SchemeGroupVersion.WithResource("rolebindings"),

	"ValidatingAdmissionPolicy":        admissionv1.SchemeGroupVersion.WithResource("validatingadmissionpolicies"),
	"ValidatingAdmissionPolicyBinding": admissionv1.SchemeGroupVersion.WithResource("validatingadmissionpolicybindings"),
}

// listing lists them. A kind that may not be listed is left out, and its objects are read
// one by one: an account of an older version has that right.
func (c *Client) listing(ctx context.Context) (listing, error) {
	out := listing{all: make(map[string][]*unstructured.Unstructured), unserved: make(map[string]bool)}
	var mu sync.Mutex
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		own := c.namespace(c.options.Namespace)
		have, err := own.api.Get(ctx, own.want.GetName(), metav1.GetOptions{})
		mu.Lock()
		defer mu.Unlock()
		switch {
		case apierrors.IsNotFound(err):
			out.missing = true
		case err == nil:
			out.all[own.want.GetKind()] = []*unstructured.Unstructured{have}
		}
		return nil // who needs it asks again, and learns why
	})
	for kind, of := range listedKinds {
		g.Go(func() error {
			o := metav1.ListOptions{LabelSelector: labelManagedBy + "=" + manager}
			if kind == "ClusterRoleBinding" { // those of hosts are as many as these, and listed with the identities
				o.LabelSelector += "," + labelComponent + "!=" + component
			}
			all, err := listed[*unstructured.Unstructured](ctx, of.Resource, c.dynamic.Resource(of).List, o)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case apierrors.IsForbidden(err):
				return nil
			case apierrors.IsNotFound(err): // of a list that is the kind
				out.unserved[kind] = true
				return nil
			}
			out.all[kind] = all
			return err
		})
	}
	return out, g.Wait()
}

// find returns an object of the lists; nil: they do not have it.
func (l listing) find(o inventory.Object) metav1.Object {
	for _, have := range l.all[o.Kind] {
		if have.GetNamespace() == o.Namespace && have.GetName() == o.Name {
			return have
		}
	}
	return nil
}

// lost returns the desired objects that existed once, of kinds that this server does not serve any more:
// it was replaced by an older one, or someone switched them off.
func (l listing) lost(all []desired, noted *notes) (out []inventory.Object) {
	for _, w := range all {
		o := w.object()
		if !l.unserved[o.Kind] || noted == nil {
			continue
		}
		if o.Made = noted.made(w, o, ""); o.Made != inventory.MadeNever {
			o.State, o.Why = inventory.ObjectUnserved, "the API server no longer serves this kind"
			out = append(out, o)
		}
	}
	return out
}

// served returns the desired objects that this server can hold: an older one knows no policies, and
// works without them.
func (l listing) served(all []desired) []desired {
	return slices.DeleteFunc(slices.Clone(all), func(w desired) bool { return l.unserved[w.want.GetKind()] })
}
