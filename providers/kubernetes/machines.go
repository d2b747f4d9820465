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
		return inventory.Unread[[]inventory.Machine](fmt.Sprintf("ask for the Cluster API: %v", explain(err)))
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
	resources := []string{"machines", "machinedeployments", "clusters"}
	lists := make([][]*unstructured.Unstructured, len(resources))
	g, gctx := errgroup.WithContext(ctx)
	for i, resource := range resources {
		g.Go(func() (err error) { lists[i], err = c.listAll(gctx, version.WithResource(resource)); return })
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	available, paused := make(map[string]bool), make(map[string]bool)
	for _, d := range lists[1] {
		available[d.GetNamespace()+"/"+d.GetName()] = isAvailable(d.Object)
	}
	for _, k := range lists[2] {
		stopped, _, _ := unstructured.NestedBool(k.Object, "spec", "paused")
		paused[k.GetNamespace()+"/"+k.GetName()] = stopped
	}
	parts, err := c.parts(ctx, lists[0])
	if err != nil {
		return nil, err
	}
	out := []inventory.Machine{}
	for _, m := range lists[0] {
		out = append(out, toMachine(m, available, paused, parts))
	}
	slices.SortFunc(out, func(a, b inventory.Machine) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return out, nil
}

func (c *Client) listAll(ctx context.Context, resource schema.GroupVersionResource) ([]*unstructured.Unstructured, error) {
	out, err := listed[*unstructured.Unstructured](ctx, resource.Resource+" of the Cluster API", c.dynamic.Resource(resource).List, metav1.ListOptions{})
	if apierrors.IsNotFound(err) { // the group may lack the kind
		return nil, nil
	}
	return out, err
}

func toMachine(m *unstructured.Unstructured, available, paused map[string]bool, parts parts) inventory.Machine {
	out := inventory.Machine{Namespace: m.GetNamespace(), Name: m.GetName(), Deployment: m.GetLabels()[capiGroup+"/deployment-name"]}
	out.ProviderID, _, _ = unstructured.NestedString(m.Object, "spec", "providerID")
	out.NodeRef, _, _ = unstructured.NestedString(m.Object, "status", "nodeRef", "name")
	cluster, _, _ := unstructured.NestedString(m.Object, "spec", "clusterName")
	all := paused[m.GetNamespace()+"/"+cluster]
	out.Paused = all || annotated(m)
	parts.enter(&out, partOf(m), all)
	out.Available = out.Deployment != "" && available[m.GetNamespace()+"/"+out.Deployment]
	return out
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

// part is the provider's part of a Machine: what its controller works on, which
// claims servers and sets them up.
type part struct {
	kind      schema.GroupVersionKind // the version is "" in newer Machines
	namespace string
	name      string
}

func partOf(m *unstructured.Unstructured) part {
	ref, _, _ := unstructured.NestedStringMap(m.Object, "spec", "infrastructureRef")
	group, version, _ := strings.Cut(ref["apiVersion"], "/")
	if version == "" {
		group = ref["apiGroup"]
	}
	return part{schema.GroupVersionKind{Group: group, Version: version, Kind: ref["kind"]}, m.GetNamespace(), ref["name"]}
}

// parts are all of them that were looked for.
type parts struct {
	seen   map[part]*metav1.PartialObjectMetadata
	unread map[schema.GroupVersionKind]string // why a kind could not be listed
}

// parts lists the provider's parts of Machines, each kind once. Of what may not be
// read the reason is kept: nobody knows then whether its controller works.
func (c *Client) parts(ctx context.Context, machines []*unstructured.Unstructured) (parts, error) {
	out := parts{make(map[part]*metav1.PartialObjectMetadata), make(map[schema.GroupVersionKind]string)}
	done := make(map[schema.GroupVersionKind]bool)
	for _, m := range machines {
		kind := partOf(m).kind
		if kind.Group == "" || kind.Kind == "" || done[kind] {
			continue
		}
		done[kind] = true
		err := c.listParts(ctx, kind, out.seen)
		switch {
		case ctx.Err() != nil:
			return parts{}, context.Cause(ctx)
		case err != nil && !apierrors.IsNotFound(err): // the cluster may lack the kind
			out.unread[kind] = err.Error()
		}
	}
	return out, nil
}

// listParts reads the metadata of a kind. Its plural is as the Cluster API asks of
// its providers.
func (c *Client) listParts(ctx context.Context, kind schema.GroupVersionKind, into map[part]*metav1.PartialObjectMetadata) (err error) {
	at := schema.GroupVersionResource{Group: kind.Group, Version: kind.Version, Resource: strings.ToLower(kind.Kind) + "s"}
	if at.Version == "" {
		if at.Version, err = c.versionOf(ctx, kind.Group); err != nil {
			return fmt.Errorf("list the %s: %w", at.Resource, explain(err))
		}
	}
	return each(ctx, at.Resource, c.meta.Resource(at).List, metav1.ListOptions{}, func(o *metav1.PartialObjectMetadata) error {
		into[part{kind, o.Namespace, o.Name}] = o
		return nil
	})
}

// enter tells a Machine of its part. The provider's controller goes by the
// annotation of what it works on, not of the Machine, and by the pause of the whole
// Cluster; what is being deleted it gives back to the pool and reinstalls, paused or
// not. Where there is nothing that it could work on, the Machine's pause counts.
func (p parts) enter(m *inventory.Machine, of part, all bool) {
	if of.kind.Kind != "" && of.name != "" {
		m.Infrastructure = strings.ToLower(of.kind.Kind) + "/" + of.name
	}
	have := p.seen[of]
	switch m.InfrastructureUnread = p.unread[of.kind]; {
	case have != nil:
		m.InfrastructurePaused = have.DeletionTimestamp == nil && (all || annotated(have))
	case m.InfrastructureUnread != "":
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
