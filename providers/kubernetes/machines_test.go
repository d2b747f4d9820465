package kubernetes_test

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/macfleet/macfleet/fleet/inventory"
)

type object = map[string]any

// The groups of the Cluster API and of its providers.
const capiGroup, partGroup = "cluster.x-k8s.io", "infrastructure.cluster.x-k8s.io"

// crd is a kind of the Cluster API with whatever fields.
func crd(group, version, plural, kind string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: object{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": object{"name": plural + "." + group},
		"spec": object{"group": group, "scope": "Namespaced", "names": object{"plural": plural, "kind": kind},
			"versions": []any{object{"name": version, "served": true, "storage": true,
				"schema": object{"openAPIV3Schema": object{"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}}}}}
}

// capiObject is an object of the Cluster API.
func capiObject(version, kind, ns, name string, labels object, rest object) *unstructured.Unstructured {
	o := object{"apiVersion": version, "kind": kind, "metadata": object{"name": name, "namespace": ns, "labels": labels}}
	maps.Copy(o, rest)
	return &unstructured.Unstructured{Object: o}
}

// bringCAPI adds the kinds of the Cluster API and returns their version and their
// clients in this test's namespace.
func (c *cluster) bringCAPI(t *testing.T) (versions map[string]string, of func(resource string) dynamic.ResourceInterface) {
	t.Helper()
	versions = map[string]string{capiGroup: "v1beta2", partGroup: "v1alpha1"}
	if c.name == "sandbox" {
		versions[capiGroup] = "v1beta1"
	}
	groups := map[string]string{"scalewayapplesiliconmachines": partGroup, "machines": capiGroup, "machinedeployments": capiGroup, "clusters": capiGroup}
	api, err := dynamic.NewForConfig(&rest.Config{Host: c.url, BearerToken: adminToken, TLSClientConfig: rest.TLSClientConfig{CAData: c.ca}})
	must(t, err)
	crds := api.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	of = func(resource string) dynamic.ResourceInterface {
		group := groups[resource]
		return api.Resource(schema.GroupVersionResource{Group: group, Version: versions[group], Resource: resource}).Namespace(ns(t))
	}
	for plural, kind := range map[string]string{"machines": "Machine", "machinedeployments": "MachineDeployment", "clusters": "Cluster",
		"scalewayapplesiliconmachines": "ScalewayAppleSiliconMachine"} {
		if c.name == "sandbox" {
			err = os.Mkdir(filepath.Join(c.dir, plural), 0o700)
		} else {
			_, err = crds.Create(t.Context(), crd(groups[plural], versions[groups[plural]], plural, kind), metav1.CreateOptions{})
		}
		must(t, err)
		eventually(t, "the kind is served", func() error {
			_, err := of(plural).List(t.Context(), metav1.ListOptions{})
			return err
		})
	}
	return versions, of
}

// TestMachines is the one test that brings the Cluster API into the real server:
// before, its Machines are absent, not none.
func TestMachines(t *testing.T) {
	t.Parallel()
	eachCluster(t, func(t *testing.T, c *cluster) {
		c.addNamespace(t)
		client := c.client(t, c.options(t))
		if seen := observe(t, client).Machines; !seen.IsAbsent() {
			t.Errorf("without the kind: %+v", seen)
		}
		versions, of := c.bringCAPI(t)
		capi, infrastructure := capiGroup+"/"+versions[capiGroup], partGroup+"/"+versions[partGroup]
		const kind = "ScalewayAppleSiliconMachine"
		machine := func(name, in string, annotations object, status object) *unstructured.Unstructured {
			ref := object{"apiGroup": partGroup, "kind": kind, "name": name}
			if c.name == "sandbox" {
				ref = object{"apiVersion": infrastructure, "kind": kind, "name": name}
			}
			m := capiObject(capi, "Machine", ns(t), name, object{"cluster.x-k8s.io/deployment-name": "runners"},
				object{"spec": object{"clusterName": in, "providerID": "scw-applesilicon://fr-par-1/" + name, "infrastructureRef": ref}, "status": status})
			m.Object["metadata"].(object)["annotations"] = annotations
			return m
		}
		part := func(name string, annotations object, finalizers ...any) *unstructured.Unstructured {
			p := capiObject(infrastructure, kind, ns(t), name, nil, nil)
			p.Object["metadata"].(object)["annotations"], p.Object["metadata"].(object)["finalizers"] = annotations, finalizers
			return p
		}
		paused := object{"cluster.x-k8s.io/paused": ""}
		for resource, made := range map[string][]*unstructured.Unstructured{
			"clusters": {capiObject(capi, "Cluster", ns(t), "still", nil, object{"spec": object{"paused": true}})},
			"machinedeployments": {capiObject(capi, "MachineDeployment", ns(t), "runners", nil,
				object{"status": object{"conditions": []any{object{"type": "Available", "status": "True"}}}})},
			"machines": {
				machine("m-1", "other", nil, object{"nodeRef": object{"name": "acme-01"}}),
				capiObject(capi, "Machine", ns(t), "m-2", nil, object{"spec": object{"clusterName": "still"}}),
				machine("m-3", "other", paused, nil), machine("m-4", "other", nil, nil), machine("m-5", "still", nil, nil),
				machine("m-6", "still", nil, nil), machine("m-7", "other", paused, nil),
			},
			"scalewayapplesiliconmachines": {part("m-1", nil), part("m-3", nil), part("m-4", paused), part("m-5", nil), part("m-6", paused, "acme.test/keep")},
		} {
			for _, m := range made {
				c.makeWithStatus(t, of(resource), m)
			}
		}
		must(t, of("scalewayapplesiliconmachines").Delete(t.Context(), "m-6", metav1.DeleteOptions{}))
		want := []inventory.Machine{
			{Name: "m-1", NodeRef: "acme-01"},
			{Name: "m-2", Paused: true, InfrastructurePaused: true}, // of its Cluster
			{Name: "m-3", Paused: true},                             // which its provider does not ask about
			{Name: "m-4", InfrastructurePaused: true},
			{Name: "m-5", Paused: true, InfrastructurePaused: true},
			{Name: "m-6", Paused: true},                             // what is being deleted is released, paused or not
			{Name: "m-7", Paused: true, InfrastructurePaused: true}, // no infrastructure exists
		}
		for i := range want {
			m := &want[i]
			if m.Namespace = ns(t); m.Name != "m-2" {
				m.Deployment, m.Available = "runners", true
				m.ProviderID, m.Infrastructure = "scw-applesilicon://fr-par-1/"+m.Name, strings.ToLower(kind)+"/"+m.Name
			}
		}
		eventually(t, "the group is announced", func() error {
			seen := observe(t, client).Machines
			got, ok := seen.Get()
			if !ok {
				return errors.New("machines: " + seen.Why())
			}
			if diff := cmp.Diff(want, got); diff != "" {
				return errors.New(diff)
			}
			return nil
		})
	})
}

// makeWithStatus makes an object; where the status is a subresource, it is left
// out of that and follows.
func (c *cluster) makeWithStatus(t *testing.T, api dynamic.ResourceInterface, o *unstructured.Unstructured) {
	t.Helper()
	made, err := api.Create(t.Context(), o, metav1.CreateOptions{})
	must(t, err)
	if status, ok := o.Object["status"]; ok && c.name == "sandbox" {
		made.Object["status"] = status
		must(t, errOf(api.UpdateStatus(t.Context(), made, metav1.UpdateOptions{})))
	}
}
