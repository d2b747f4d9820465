package kube_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/macfleet/macfleet/internal/sandbox/kube"
)

func TestTokenIsNeeded(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	if _, err := c.client(t, "wrong").CoreV1().Nodes().List(t.Context(), metav1.ListOptions{}); !apierrors.IsUnauthorized(err) {
		t.Errorf("a wrong token: %v, want Unauthorized", err)
	}
	_, err := c.client(t, "").CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	want := `nodes is forbidden: User "system:anonymous" cannot list resource "nodes" in API group "" at the cluster scope`
	if !apierrors.IsForbidden(err) || err.Error() != want {
		t.Errorf("no token: %v, want %s", err, want)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	const jsonType, merge = "application/json", "application/merge-patch+json"
	for _, test := range []struct {
		method, path, kind, body string
		code                     int
		contains                 string
	}{
		{"GET", "/api/v1/endpoints", jsonType, "", 404, "NOT MODELLED"},
		{"GET", "/apis/cluster.x-k8s.io/v1beta1/machines", jsonType, "", 404, "NOT MODELLED"},
		{"POST", "/api/v1/namespaces/default/pods/x/binding", jsonType, "{}", 404, "NOT MODELLED"},
		{"POST", "/api/v1/namespaces/default/configmaps", jsonType, "{}", 422, "metadata.name"},
		{"POST", "/api/v1/configmaps", jsonType, `{"metadata":{"name":"a"}}`, 405, "MethodNotAllowed"},
		{"POST", "/api/v1/namespaces/none/configmaps", jsonType, `{"metadata":{"name":"a"}}`, 404, `namespaces \"none\" not found`},
		{"PUT", "/api/v1/nodes", jsonType, "{}", 404, "NotFound"},
		{"GET", "/api/v1/nodes?watch=true&resourceVersion=x", jsonType, "", 400, "resourceVersion"},
		{"GET", "/api/v1/nodes?fieldSelector=spec.podCIDR%3Dx", jsonType, "", 400, "field label not supported"},
		{"GET", "/api/v1/nodes?labelSelector=%3D%3D", jsonType, "", 400, "labelSelector"},
		{"GET", "/api/v1/nodes?limit=many", jsonType, "", 400, "limit"},
		{"GET", "/api/v1/nodes?continue=!", jsonType, "", 400, "continue"},
		{"GET", "/api/v1/nodes/..%2Fnamespaces%2Fdefault", jsonType, "", 404, "NotFound"},
		{"GET", "/api/v1/namespaces/..%2Fnodes/secrets/x", jsonType, "", 404, "NotFound"},
		{"GET", "/api/v1/namespaces/..%2Fnodes/secrets", jsonType, "", 200, `"items":[]`},
		{"POST", "/api/v1/nodes", jsonType, `{"metadata":{"name":"A"}}`, 422, "metadata.name"},
		{"POST", "/api/v1/nodes", jsonType, `{"metadata":{"name":"../../x"}}`, 422, "metadata.name"},
		{"POST", "/api/v1/nodes", jsonType, `{"kind":"Pod","metadata":{"name":"a"}}`, 400, "cannot be handled"},
		{"POST", "/api/v1/nodes", jsonType, `{"metadata":{"name":"a"},"spec":{"unschedulable":"yes"}}`, 400, "cannot be handled"},
		{"POST", "/api/v1/nodes", jsonType, `[]`, 400, "not a JSON object"},
		{"POST", "/api/v1/nodes", "application/vnd.kubernetes.protobuf", `x`, 400, "protobuf"},
		{"POST", "/api/v1/nodes", "application/yaml", `x`, 415, "NOT MODELLED"},
		{"PATCH", "/api/v1/nodes/x", merge, `{}`, 404, "NotFound"},
	} {
		code, body := c.ask(t, test.method, test.path, test.kind, test.body)
		if code != test.code || !strings.Contains(body, test.contains) {
			t.Errorf("%s %s: got %d %s, want %d with %s", test.method, test.path, code, body, test.code, test.contains)
		}
		var status metav1.Status
		if err := json.Unmarshal([]byte(body), &status); err != nil || code >= 400 && (status.Kind != "Status" || int(status.Code) != code) {
			t.Errorf("%s %s: not a Status: %s", test.method, test.path, body)
		}
	}
	if code, body := c.ask(t, "POST", "/api/v1/nodes", jsonType, `{"metadata":{"name":"a"}}`); code != 201 || !strings.Contains(body, `"kind":"Node"`) {
		t.Errorf("a small node: %d %s", code, body)
	}
	if code, body := c.ask(t, "PATCH", "/api/v1/nodes/a", "application/apply-patch+yaml", `{}`); code != 415 || !strings.Contains(body, merge) {
		t.Errorf("another kind of patch: %d %s", code, body)
	}
	if code, body := c.ask(t, "PATCH", "/api/v1/nodes/a", merge, `{"metadata":{"name":"b"}}`); code != 400 {
		t.Errorf("a patch of the name: %d %s", code, body)
	}
}

func TestEditedByHand(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	client := c.client(t, token)
	write := func(path, text string) string {
		full := filepath.Join(c.dir, filepath.FromSlash(path))
		must(t, os.MkdirAll(filepath.Dir(full), 0o700))
		must(t, os.WriteFile(full, []byte(text), 0o600))
		return full
	}
	write("nodes/acme-01.json", `{"metadata": {"name": "acme-01"}}`)
	node, err := client.CoreV1().Nodes().Get(t.Context(), "acme-01", metav1.GetOptions{})
	if err != nil || node.UID == "" || node.ResourceVersion == "" {
		t.Fatalf("a node from a file: %+v %v", node, err)
	}
	again, err := client.CoreV1().Nodes().Patch(t.Context(), "acme-01", types.MergePatchType, []byte(`{"spec":{"unschedulable":true}}`), metav1.PatchOptions{})
	if err != nil || again.UID != node.UID {
		t.Errorf("its uid changes: %+v %v", again, err)
	}
	write("secrets/acme/token.json", `{"metadata": {"name": "token"}, "stringData": {"value": "plain"}}`)
	secret, err := client.CoreV1().Secrets("acme").Get(t.Context(), "token", metav1.GetOptions{})
	if err != nil || string(secret.Data["value"]) != "plain" || secret.Namespace != "acme" {
		t.Errorf("a secret from a file: %+v %v", secret, err)
	}
	for name, text := range map[string]string{"cut off": `{"metadata": {`, "no object": `7`, "other name": `{"metadata": {"name": "x"}}`, "empty": ``} {
		path := write("nodes/acme-02.json", text)
		for _, route := range []string{"/api/v1/nodes/acme-02", "/api/v1/nodes"} {
			code, body := c.ask(t, "GET", route, "", "")
			if code != 500 || !strings.Contains(body, path) || !strings.Contains(body, `"kind":"Status"`) {
				t.Errorf("%s: %d %s, want 500 that names %s", name, code, body, path)
			}
		}
	}
}

func TestSecretInProcess(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	value, found, err := c.api.Secret("macfleet", "fleet-ssh", "id_ed25519")
	if err != nil || !found || value != "the key\n" {
		t.Errorf("got %q %v %v", value, found, err)
	}
	for _, path := range [][3]string{{"macfleet", "fleet-ssh", "other"}, {"macfleet", "other", "x"}, {"..", "..", "x"}} {
		if _, found, err := c.api.Secret(path[0], path[1], path[2]); found || err != nil {
			t.Errorf("%v: %v %v", path, found, err)
		}
	}
}

// TestTwoProcesses writes through two APIs on one folder: each write gets a new version.
func TestTwoProcesses(t *testing.T) {
	t.Parallel()
	first := newCluster(t)
	second := serve(t, first.dir)
	createNodes(t, first.client(t, token), 1)
	versions := make(chan string, 60)
	var group errgroup.Group
	for i, c := range []*cluster{first, second} {
		nodes := c.client(t, token).CoreV1().Nodes()
		group.Go(func() error {
			for j := range 30 {
				patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"acme.dev/%d":"%d"}}}`, i, j)
				node, err := nodes.Patch(t.Context(), "acme-00", types.MergePatchType, patch, metav1.PatchOptions{})
				if err != nil {
					return err
				}
				versions <- node.ResourceVersion
			}
			return nil
		})
	}
	must(t, group.Wait())
	close(versions)
	seen := map[string]bool{}
	for version := range versions {
		seen[version] = true
	}
	equal(t, len(seen), 60, "60 writes got versions")
}

func TestFolderBelowAFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, nil, 0o600))
	if _, err := kube.New(filepath.Join(file, "x"), kube.Options{}); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("got %v, want an error that names %s", err, file)
	}
}
