package kubernetes

import (
	"context"
	"sync"

	"golang.org/x/sync/errgroup"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/macfleet/macfleet/fleet/inventory"
)

// listing is what the cluster holds of macfleet's roles and bindings, by kind: one list of
// a kind costs less than a look at each object.
type listing map[string][]*unstructured.Unstructured

// listedKinds are asked for as lists. Their objects bear the label by which macfleet knows
// what it made; one that does not is found when it is looked for by its name.
var listedKinds = map[string]schema.GroupVersionResource{
	"ClusterRole":        rbacv1.SchemeGroupVersion.WithResource("clusterroles"),
	"ClusterRoleBinding": rbacv1.SchemeGroupVersion.WithResource("clusterrolebindings"),
	"Role":               rbacv1.SchemeGroupVersion.WithResource("roles"),
	"RoleBinding":        rbacv1.SchemeGroupVersion.WithResource("rolebindings"),
}

// listing lists them. A kind that may not be listed is left out, and its objects are asked
// for one by one: an account of an older version has that right.
func (c *Client) listing(ctx context.Context) (listing, error) {
	out := make(listing)
	var mu sync.Mutex
	g, ctx := errgroup.WithContext(ctx)
	for kind, of := range listedKinds {
		g.Go(func() error {
			o := metav1.ListOptions{LabelSelector: labelManagedBy + "=" + manager}
			if kind == "ClusterRoleBinding" { // those of hosts are as many as these, and listed with the identities
				o.LabelSelector += "," + labelComponent + "!=" + component
			}
			all, err := listed[*unstructured.Unstructured](ctx, of.Resource, c.dynamic.Resource(of).List, o)
			if apierrors.IsForbidden(err) {
				return nil
			}
			mu.Lock()
			defer mu.Unlock()
			out[kind] = all
			return err
		})
	}
	return out, g.Wait()
}

// find returns an object of the lists; nil: they do not have it.
func (l listing) find(o inventory.Object) metav1.Object {
	for _, have := range l[o.Kind] {
		if have.GetNamespace() == o.Namespace && have.GetName() == o.Name {
			return have
		}
	}
	return nil
}
