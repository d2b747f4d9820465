package kubernetes_test

import (
	"context"
	"errors"
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

// machine is an object of the Cluster API.
func capiObject(kind, ns, name string, labels object, rest object) *unstructured.Unstructured {
	o := object{"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": kind, "metadata": object{"name": name, "namespace": ns, "labels": labels}}
	for k, v := range rest {
		o[k] = v
	}
	return &unstructured.Unstructured{Object: o}
}

// TestMachines is the one test that brings the Cluster API into the real server:
// before, its Machines are absent, not none.
func TestMachines(t *testing.T) {
	t.Parallel()
	t.Run("real", func(t *testing.T) {
		t.Parallel()
		c := realCluster(t)
		c.addNamespace(t)
		client := c.client(t, c.options(t))
		if seen := client.Observe(t.Context()).Machines; !seen.IsAbsent() {
			t.Errorf("without the kind: %+v", seen)
		}
		api, err := dynamic.NewForConfig(&rest.Config{Host: c.url, BearerToken: adminToken, TLSClientConfig: rest.TLSClientConfig{CAData: c.ca}})
		if err != nil {
			t.Fatal(err)
		}
		crds := api.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
		of := func(resource string) dynamic.ResourceInterface {
			return api.Resource(schema.GroupVersionResource{Group: "cluster.x-k8s.io", Version: "v1beta2", Resource: resource}).Namespace(ns(t))
		}
		for plural, kind := range map[string]string{"machines": "Machine", "machinedeployments": "MachineDeployment", "clusters": "Cluster"} {
			if _, err := crds.Create(t.Context(), crd(plural, kind), metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the kind is served", func() error {
				_, err := of(plural).List(t.Context(), metav1.ListOptions{})
				return err
			})
		}
		for resource, made := range map[string][]*unstructured.Unstructured{
			"clusters": {capiObject("Cluster", ns(t), "acme", nil, object{"spec": object{"paused": true}})},
			"machinedeployments": {capiObject("MachineDeployment", ns(t), "runners", nil,
				object{"status": object{"conditions": []any{object{"type": "Available", "status": "True"}}}})},
			"machines": {
				capiObject("Machine", ns(t), "m-1", object{"cluster.x-k8s.io/deployment-name": "runners"},
					object{"spec": object{"clusterName": "other", "providerID": "scw-applesilicon://fr-par-1/id-1"}, "status": object{"nodeRef": object{"name": "acme-01"}}}),
				capiObject("Machine", ns(t), "m-2", nil, object{"spec": object{"clusterName": "acme"}}),
			},
		} {
			for _, m := range made {
				if _, err := of(resource).Create(t.Context(), m, metav1.CreateOptions{}); err != nil {
					t.Fatal(err)
				}
			}
		}
		want := []inventory.Machine{
			{Namespace: ns(t), Name: "m-1", ProviderID: "scw-applesilicon://fr-par-1/id-1", NodeRef: "acme-01", Deployment: "runners", Available: true},
			{Namespace: ns(t), Name: "m-2", Paused: true},
		}
		eventually(t, "the group is announced", func() error {
			seen := client.Observe(t.Context()).Machines
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
	t.Run("sandbox", func(t *testing.T) {
		t.Parallel()
		c := sandboxCluster(t)
		if seen := c.client(t, c.options(t)).Observe(context.Background()).Machines; !seen.IsAbsent() {
			t.Errorf("without the kind: %+v", seen)
		}
	})
}
