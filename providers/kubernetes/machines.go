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
	version, err := c.capiVersion(ctx)
	if apierrors.IsNotFound(err) {
		return inventory.Absent[[]inventory.Machine]()
	}
	if err != nil {
		return inventory.Unread[[]inventory.Machine](fmt.Sprintf("ask for the Cluster API: %v", explain(err)))
	}
	return seen(c.listMachines(ctx, schema.GroupVersion{Group: capiGroup, Version: version}))
}

// capiVersion asks for one group: all of them would be some hundred kilobytes.
func (c *Client) capiVersion(ctx context.Context) (string, error) {
	text, err := c.api.Discovery().RESTClient().Get().AbsPath("/apis/"+capiGroup).SetHeader("Accept", "application/json").DoRaw(ctx)
	if err != nil {
		return "", err
	}
	var group metav1.APIGroup
	if err := json.Unmarshal(text, &group); err != nil {
		return "", fmt.Errorf("read the group: %w", err)
	}
	return group.PreferredVersion.Version, nil
}

func (c *Client) listMachines(ctx context.Context, version schema.GroupVersion) ([]inventory.Machine, error) {
	found := make(map[string][]unstructured.Unstructured)
	resources := []string{"machines", "machinedeployments", "clusters"}
	lists := make([][]unstructured.Unstructured, len(resources))
	g, gctx := errgroup.WithContext(ctx)
	for i, resource := range resources {
		g.Go(func() (err error) { lists[i], err = c.listAll(gctx, version.WithResource(resource)); return })
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	for i, resource := range resources {
		found[resource] = lists[i]
	}
	available, paused := make(map[string]bool), make(map[string]bool)
	for _, d := range found["machinedeployments"] {
		available[d.GetNamespace()+"/"+d.GetName()] = isAvailable(d.Object)
	}
	for _, k := range found["clusters"] {
		stopped, _, _ := unstructured.NestedBool(k.Object, "spec", "paused")
		paused[k.GetNamespace()+"/"+k.GetName()] = stopped
	}
	out := []inventory.Machine{}
	for _, m := range found["machines"] {
		out = append(out, toMachine(m, available, paused))
	}
	slices.SortFunc(out, func(a, b inventory.Machine) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return out, nil
}

func (c *Client) listAll(ctx context.Context, resource schema.GroupVersionResource) (out []unstructured.Unstructured, err error) {
	err = pages(func(o metav1.ListOptions) (string, error) {
		list, err := c.dynamic.Resource(resource).List(ctx, o)
		if err != nil {
			return "", err
		}
		out = append(out, list.Items...)
		return list.GetContinue(), nil
	})
	if err != nil && !apierrors.IsNotFound(err) { // the group may lack the kind
		return nil, fmt.Errorf("list the %s of the Cluster API: %w", resource.Resource, explain(err))
	}
	return out, nil
}

func toMachine(m unstructured.Unstructured, available, paused map[string]bool) inventory.Machine {
	out := inventory.Machine{Namespace: m.GetNamespace(), Name: m.GetName(), Deployment: m.GetLabels()[capiGroup+"/deployment-name"]}
	out.ProviderID, _, _ = unstructured.NestedString(m.Object, "spec", "providerID")
	out.NodeRef, _, _ = unstructured.NestedString(m.Object, "status", "nodeRef", "name")
	kind, _, _ := unstructured.NestedString(m.Object, "spec", "infrastructureRef", "kind")
	if name, _, _ := unstructured.NestedString(m.Object, "spec", "infrastructureRef", "name"); kind != "" && name != "" {
		out.Infrastructure = strings.ToLower(kind) + "/" + name
	}
	cluster, _, _ := unstructured.NestedString(m.Object, "spec", "clusterName")
	_, annotated := m.GetAnnotations()[capiGroup+"/paused"]
	out.Paused = annotated || paused[m.GetNamespace()+"/"+cluster]
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
