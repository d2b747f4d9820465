package kubernetes

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

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
	lists := make([][]unstructured.Unstructured, len(resources))
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

func (c *Client) listAll(ctx context.Context, resource schema.GroupVersionResource) (out []unstructured.Unstructured, err error) {
	err = each(ctx, resource.Resource+" of the Cluster API", c.dynamic.Resource(resource).List, metav1.ListOptions{}, func(l *unstructured.UnstructuredList) error {
		out = append(out, l.Items...)
		return nil
	})
	if apierrors.IsNotFound(err) { // the group may lack the kind
		return nil, nil
	}
	return out, err
}

func toMachine(m unstructured.Unstructured, available, paused map[string]bool, parts parts) inventory.Machine {
	out := inventory.Machine{Namespace: m.GetNamespace(), Name: m.GetName(), Deployment: m.GetLabels()[capiGroup+"/deployment-name"]}
	out.ProviderID, _, _ = unstructured.NestedString(m.Object, "spec", "providerID")
	out.NodeRef, _, _ = unstructured.NestedString(m.Object, "status", "nodeRef", "name")
	cluster, _, _ := unstructured.NestedString(m.Object, "spec", "clusterName")
	all := paused[m.GetNamespace()+"/"+cluster]
	out.Paused = all || annotated(&m)
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
