package kubernetes_test

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
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

// crd is a kind of the Cluster API with whatever fields.
func crd(plural, kind string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: object{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": object{"name": plural + ".cluster.x-k8s.io"},
		"spec": object{"group": "cluster.x-k8s.io", "scope": "Namespaced", "names": object{"plural": plural, "kind": kind},
			"versions": []any{object{"name": "v1beta2", "served": true, "storage": true,
				"schema": object{"openAPIV3Schema": object{"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}}}}}
}

// capiObject is an object of the Cluster API.
func capiObject(version, kind, ns, name string, labels object, rest object) *unstructured.Unstructured {
	o := object{"apiVersion": "cluster.x-k8s.io/" + version, "kind": kind, "metadata": object{"name": name, "namespace": ns, "labels": labels}}
	maps.Copy(o, rest)
	return &unstructured.Unstructured{Object: o}
}

// bringCAPI adds the kinds of the Cluster API and returns their version and their
// clients in this test's namespace.
func (c *cluster) bringCAPI(t *testing.T) (string, func(resource string) dynamic.ResourceInterface) {
	t.Helper()
	version := "v1beta2"
	if c.name == "sandbox" {
		version = "v1beta1"
	}
	api, err := dynamic.NewForConfig(&rest.Config{Host: c.url, BearerToken: adminToken, TLSClientConfig: rest.TLSClientConfig{CAData: c.ca}})
	if err != nil {
		t.Fatal(err)
	}
	crds := api.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	of := func(resource string) dynamic.ResourceInterface {
		return api.Resource(schema.GroupVersionResource{Group: "cluster.x-k8s.io", Version: version, Resource: resource}).Namespace(ns(t))
	}
	for plural, kind := range map[string]string{"machines": "Machine", "machinedeployments": "MachineDeployment", "clusters": "Cluster"} {
		if c.name == "sandbox" {
			err = os.Mkdir(filepath.Join(c.dir, plural), 0o700)
		} else {
			_, err = crds.Create(t.Context(), crd(plural, kind), metav1.CreateOptions{})
		}
		if err != nil {
			t.Fatal(err)
		}
		eventually(t, "the kind is served", func() error {
			_, err := of(plural).List(t.Context(), metav1.ListOptions{})
			return err
		})
	}
	return version, of
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
		version, of := c.bringCAPI(t)
		for resource, made := range map[string][]*unstructured.Unstructured{
			"clusters": {capiObject(version, "Cluster", ns(t), "acme", nil, object{"spec": object{"paused": true}})},
			"machinedeployments": {capiObject(version, "MachineDeployment", ns(t), "runners", nil,
				object{"status": object{"conditions": []any{object{"type": "Available", "status": "True"}}}})},
			"machines": {
				capiObject(version, "Machine", ns(t), "m-1", object{"cluster.x-k8s.io/deployment-name": "runners"},
					object{"spec": object{"clusterName": "other", "providerID": "scw-applesilicon://fr-par-1/id-1"}, "status": object{"nodeRef": object{"name": "acme-01"}}}),
				capiObject(version, "Machine", ns(t), "m-2", nil, object{"spec": object{"clusterName": "acme"}}),
			},
		} {
			for _, m := range made {
				c.makeWithStatus(t, of(resource), m)
			}
		}
		want := []inventory.Machine{
			{Namespace: ns(t), Name: "m-1", ProviderID: "scw-applesilicon://fr-par-1/id-1", NodeRef: "acme-01", Deployment: "runners", Available: true},
			{Namespace: ns(t), Name: "m-2", Paused: true},
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
	if err != nil {
		t.Fatal(err)
	}
	if status, ok := o.Object["status"]; ok && c.name == "sandbox" {
		made.Object["status"] = status
		if _, err := api.UpdateStatus(t.Context(), made, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}
