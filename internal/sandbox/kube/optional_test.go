package kube_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestClusterAPI serves the kinds of the Cluster API if their folder exists.
func TestClusterAPI(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	const group, machines = "/apis/cluster.x-k8s.io/v1beta1", "/apis/cluster.x-k8s.io/v1beta1/namespaces/default/machines"
	const machine = `{"apiVersion":"cluster.x-k8s.io/v1beta1","kind":"Machine","metadata":{"name":"m1"},"spec":{"providerID":"scw-applesilicon://fr-par-1/x","own":{"any":1}}}`
	if code, body := c.ask(t, "GET", "/apis", "", ""); code != 200 || strings.Contains(body, "cluster.x-k8s.io") {
		t.Errorf("groups: %d %s", code, body)
	}
	must(t, os.Mkdir(filepath.Join(c.dir, "machines"), 0o700))
	if code, body := c.ask(t, "GET", group, "", ""); code != 200 || !strings.Contains(body, `"machines/status"`) || strings.Contains(body, "machinedeployments") {
		t.Errorf("resources: %d %s", code, body)
	}
	if code, body := c.ask(t, "POST", machines, "application/json", machine); code != 201 || !strings.Contains(body, `"own":{"any":1}`) || !strings.Contains(body, `"generation":1`) {
		t.Errorf("create: %d %s", code, body)
	}
	const merge = "application/merge-patch+json"
	if code, body := c.ask(t, "PATCH", machines+"/m1/status", merge, `{"status":{"nodeRef":{"name":"n"}},"spec":null}`); code != 200 || !strings.Contains(body, `"nodeRef":{"name":"n"}`) || !strings.Contains(body, "providerID") {
		t.Errorf("status: %d %s", code, body)
	}
	if code, body := c.ask(t, "PATCH", machines+"/m1", merge, `{"spec":{"own":null}}`); code != 200 || !strings.Contains(body, `"generation":2`) || !strings.Contains(body, "nodeRef") {
		t.Errorf("patch: %d %s", code, body)
	}
	if code, _ := c.ask(t, "PATCH", machines+"/m1", "application/strategic-merge-patch+json", `{}`); code != 415 {
		t.Errorf("a strategic patch of a kind from a definition: %d", code)
	}
}

// TestForms requests metadata only, and tables.
func TestForms(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	for _, test := range []struct{ path, accept, want, not string }{
		{"/api/v1/namespaces/macfleet/secrets", "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1", `"kind":"PartialObjectMetadata"`, `"data"`},
		{"/api/v1/namespaces/macfleet/secrets", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1", `"kind":"PartialObjectMetadataList"`, `"data"`},
		{"/api/v1/namespaces/macfleet/secrets/fleet-ssh", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1", `"kind":"PartialObjectMetadata"`, `"data"`},
		{"/api/v1/namespaces/macfleet/secrets", "application/json;as=Table;v=v1;g=meta.k8s.io,application/json", `"cells":["fleet-ssh","Opaque","1",`, `"data"`},
		{"/api/v1/namespaces/macfleet/secrets/none", "application/json;as=Table;v=v1;g=meta.k8s.io", `"kind":"Status"`, "cells"},
		{"/api/v1/namespaces/macfleet/secrets", "application/json", `"data"`, "cells"},
	} {
		body := c.accept(t, test.path, test.accept)
		if !strings.Contains(body, test.want) || strings.Contains(body, test.not) {
			t.Errorf("%s as %s: %s", test.path, test.accept, body)
		}
	}
}
