package kubernetes

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/macfleet/macfleet/fleet/inventory"
)

// machines lists the Machines of the Cluster API, in the version that the server
// prefers. Absent: the cluster knows no such kind.
func (c *Client) machines(ctx context.Context) inventory.Seen[[]inventory.Machine] {
	version, err := c.versionOf(ctx, capiGroup)
	if apierrors.IsNotFound(err) {
		return inventory.Absent[[]inventory.Machine]()
	}
	if err != nil {
		return inventory.Unread[[]inventory.Machine](fmt.Sprintf("look up the Cluster API: %v", explain(err)))
	}
	return seen(c.listMachines(ctx, schema.GroupVersion{Group: capiGroup, Version: version}))
}

// versionOf asks which version of a group the server prefers: to ask for all groups
// would be some hundred kilobytes.
func (c *Client) versionOf(ctx context.Context, group string) (string, error) {
	text, err := c.api.Discovery().RESTClient().Get().AbsPath("/apis/"+group).SetHeader("Accept", "application/json").DoRaw(ctx)
	if err != nil {
		return "", err
	}
	var known metav1.APIGroup
	if err := json.Unmarshal(text, &known); err != nil {
		return "", fmt.Errorf("read the group: %w", err)
	}
	return known.PreferredVersion.Version, nil
}

func (c *Client) listMachines(ctx context.Context, version schema.GroupVersion) ([]inventory.Machine, error) {
	var lists [3][]*unstructured.Unstructured
	g, gctx := errgroup.WithContext(ctx)
	for i, kind := range [...]string{"machines", "machinedeployments", "clusters"} {
		g.Go(func() (err error) {
			list := c.dynamic.Resource(version.WithResource(kind)).List
			lists[i], err = listed[*unstructured.Unstructured](gctx, kind+" of the Cluster API", list, metav1.ListOptions{})
			if apierrors.IsNotFound(err) { // the group may lack the kind
				return nil
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	available, paused := make(map[string]bool), make(map[string]bool)
	for _, d := range lists[1] {
		available[d.GetNamespace()+"/"+d.GetName()] = isAvailable(d.Object)
	}
	for _, k := range lists[2] {
		paused[k.GetNamespace()+"/"+k.GetName()], _, _ = unstructured.NestedBool(k.Object, "spec", "paused")
	}
	out, known := []inventory.Machine{}, make(map[schema.GroupVersionKind]parts)
	for _, m := range lists[0] {
		kind, name := partOf(m)
		if _, asked := known[kind]; !asked {
			known[kind] = c.parts(ctx, kind)
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		cluster, _, _ := unstructured.NestedString(m.Object, "spec", "clusterName")
		all := paused[m.GetNamespace()+"/"+cluster]
		next := inventory.Machine{Namespace: m.GetNamespace(), Name: m.GetName(), Deployment: m.GetLabels()[capiGroup+"/deployment-name"], Paused: all || annotated(m)}
		next.ProviderID, _, _ = unstructured.NestedString(m.Object, "spec", "providerID")
		next.NodeRef, _, _ = unstructured.NestedString(m.Object, "status", "nodeRef", "name")
		next.Available = next.Deployment != "" && available[m.GetNamespace()+"/"+next.Deployment]
		if kind.Kind != "" && name != "" {
			next.Infrastructure = strings.ToLower(kind.Kind) + "/" + name
		}
		known[kind].enter(&next, name, all)
		out = append(out, next)
	}
	slices.SortFunc(out, func(a, b inventory.Machine) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return out, nil
}

// isAvailable reads the condition Available, which has this name and meaning in
// all versions.
func isAvailable(deployment map[string]any) bool {
	conditions, _, _ := unstructured.NestedSlice(deployment, "status", "conditions")
	return slices.ContainsFunc(conditions, func(c any) bool {
		m, ok := c.(map[string]any)
		return ok && m["type"] == "Available" && m["status"] == "True"
	})
}

// partOf names the provider's part of a Machine: what its controller works on, which
// claims servers and sets them up. Newer Machines do not say its version.
func partOf(m *unstructured.Unstructured) (kind schema.GroupVersionKind, name string) {
	ref, _, _ := unstructured.NestedStringMap(m.Object, "spec", "infrastructureRef")
	group, version, _ := strings.Cut(ref["apiVersion"], "/")
	if version == "" {
		group = ref["apiGroup"]
	}
	return schema.GroupVersionKind{Group: group, Version: version, Kind: ref["kind"]}, ref["name"]
}

// parts are all parts of a kind.
type parts struct {
	seen   map[string]*metav1.PartialObjectMetadata // by NAMESPACE/NAME
	unread string                                   // why they could not be listed: then it is unknown whether their controller works
}

// parts lists the parts of a kind. Its plural is as the Cluster API asks of its providers.
func (c *Client) parts(ctx context.Context, kind schema.GroupVersionKind) parts {
	out := parts{seen: make(map[string]*metav1.PartialObjectMetadata)}
	if kind.Group == "" || kind.Kind == "" {
		return out
	}
	at := schema.GroupVersionResource{Group: kind.Group, Version: kind.Version, Resource: strings.ToLower(kind.Kind) + "s"}
	var err error
	if at.Version == "" {
		if at.Version, err = c.versionOf(ctx, kind.Group); err != nil {
			err = fmt.Errorf("list the %s: %w", at.Resource, explain(err))
		}
	}
	if err == nil {
		err = each(ctx, at.Resource, c.meta.Resource(at).List, metav1.ListOptions{}, func() func(*metav1.PartialObjectMetadata) error {
			clear(out.seen)
			return func(o *metav1.PartialObjectMetadata) error {
				out.seen[o.Namespace+"/"+o.Name] = o
				return nil
			}
		})
	}
	if err != nil && !apierrors.IsNotFound(err) { // the cluster may lack the kind
		out.unread = err.Error()
	}
	return out
}

// enter adds to a Machine the state of its part. The provider's controller goes by the
// annotation of what it works on, not of the Machine, and by the pause of the whole
// Cluster; what is being deleted it releases to the pool and reinstalls, paused or
// not. Where there is nothing that it could work on, the Machine's pause counts.
func (p parts) enter(m *inventory.Machine, name string, all bool) {
	have := p.seen[m.Namespace+"/"+name]
	switch m.InfrastructureUnread = p.unread; {
	case have != nil:
		m.InfrastructurePaused = have.DeletionTimestamp == nil && (all || annotated(have))
	case p.unread != "":
		m.InfrastructurePaused = all
	default:
		m.InfrastructurePaused = m.Paused
	}
}

// annotated reports whether an object of the Cluster API is paused by itself.
func annotated(o metav1.Object) bool {
	_, ok := o.GetAnnotations()[capiGroup+"/paused"]
	return ok
}
