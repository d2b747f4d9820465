package kube_test

import (
	"fmt"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

func node(name string) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"acme.dev/fleet": "runners"}},
		Spec:       corev1.NodeSpec{Taints: []corev1.Taint{{Key: "acme.dev/mac", Effect: corev1.TaintEffectNoSchedule}}},
		Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
			{Type: corev1.NodeReady, Status: corev1.ConditionTrue},
		}},
	}
}

func version(t *testing.T, object metav1.Object) int {
	t.Helper()
	number, err := strconv.Atoi(object.GetResourceVersion())
	must(t, err)
	return number
}

func TestNewCluster(t *testing.T) {
	t.Parallel()
	client := newCluster(t).client(t, token)
	system, err := client.CoreV1().Namespaces().Get(t.Context(), "kube-system", metav1.GetOptions{})
	if err != nil || system.UID != clusterUID || system.Status.Phase != corev1.NamespaceActive {
		t.Errorf("kube-system is %+v, %v", system, err)
	}
	namespaces, err := client.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{})
	if err != nil || len(namespaces.Items) != 5 {
		t.Errorf("namespaces: %v %v", namespaces, err)
	}
	nodes, err := client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil || len(nodes.Items) != 0 || nodes.ResourceVersion == "" {
		t.Errorf("nodes: %v %v", nodes, err)
	}
	secret, err := client.CoreV1().Secrets("macfleet").Get(t.Context(), "fleet-ssh", metav1.GetOptions{})
	if err != nil || string(secret.Data["id_ed25519"]) != "the key\n" || secret.Type != corev1.SecretTypeOpaque {
		t.Errorf("secret: %+v %v", secret, err)
	}
	for namespace, want := range map[string]int{"": 1, "macfleet": 1, "default": 0} {
		list, err := client.CoreV1().Secrets(namespace).List(t.Context(), metav1.ListOptions{})
		if err != nil || len(list.Items) != want {
			t.Errorf("secrets in %q: %v %v, want %d", namespace, list, err, want)
		}
	}
	info, err := client.Discovery().ServerVersion()
	if err != nil || info.Major != "1" {
		t.Errorf("version: %v %v", info, err)
	}
	groups, err := client.Discovery().ServerGroups()
	if err != nil || len(groups.Groups) != 8 {
		t.Errorf("groups: %v %v", groups, err)
	}
	if resources, err := client.Discovery().ServerResourcesForGroupVersion("v1"); err != nil || len(resources.APIResources) != 14 {
		t.Errorf("resources: %v %v", resources, err)
	}
}

func TestNodeLife(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	nodes := c.client(t, token).CoreV1().Nodes()
	made, err := nodes.Create(t.Context(), node("acme-01"), metav1.CreateOptions{})
	must(t, err)
	if made.UID == "" || made.CreationTimestamp.IsZero() || len(made.Status.Conditions) != 1 {
		t.Errorf("created %+v", made)
	}
	if _, err := nodes.Create(t.Context(), node("acme-01"), metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
		t.Errorf("a second one with that name: %v", err)
	}
	patch := func(text string) (*corev1.Node, error) {
		return nodes.Patch(t.Context(), "acme-01", types.MergePatchType, []byte(text), metav1.PatchOptions{})
	}
	patched, err := patch(`{"metadata":{"labels":{"acme.dev/fleet":null,"acme.dev/group":"m2"}},"spec":{"unschedulable":true},"status":{"conditions":null}}`)
	must(t, err)
	if fmt.Sprint(patched.Labels) != "map[acme.dev/group:m2]" || !patched.Spec.Unschedulable || len(patched.Spec.Taints) != 1 {
		t.Errorf("patched %+v", patched)
	}
	equal(t, len(patched.Status.Conditions), 1, "a patch of the object changed its status")
	if version(t, patched) <= version(t, made) || patched.UID != made.UID {
		t.Errorf("version %s after %s, uid %s after %s", patched.ResourceVersion, made.ResourceVersion, patched.UID, made.UID)
	}
	same, err := patch(`{"spec":{"unschedulable":true}}`)
	if err != nil || same.ResourceVersion != patched.ResourceVersion {
		t.Errorf("a patch without effect: %v %v", same, err)
	}
	if _, err := patch(`{"metadata":{"resourceVersion":"` + made.ResourceVersion + `"},"spec":{"unschedulable":false}}`); !apierrors.IsConflict(err) {
		t.Errorf("a patch of an old version: %v", err)
	}
	other := types.UID("other")
	if err := nodes.Delete(t.Context(), "acme-01", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &other}}); !apierrors.IsConflict(err) {
		t.Errorf("deletion with another uid: %v", err)
	}
	must(t, nodes.Delete(t.Context(), "acme-01", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &made.UID}}))
	_, err = nodes.Get(t.Context(), "acme-01", metav1.GetOptions{})
	if status, ok := err.(apierrors.APIStatus); !apierrors.IsNotFound(err) || !ok ||
		status.Status().Message != `nodes "acme-01" not found` || status.Status().Details.Kind != "nodes" {
		t.Errorf("after the deletion: %#v", err)
	}
	if err := nodes.Delete(t.Context(), "acme-01", metav1.DeleteOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("a second deletion: %v", err)
	}
}

// TestJSONClient creates a Node with a client that sends JSON; the default is protobuf.
func TestJSONClient(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	client, err := kubernetes.NewForConfig(&rest.Config{
		Host: c.server.URL, BearerToken: token, ContentConfig: rest.ContentConfig{ContentType: "application/json"},
	})
	must(t, err)
	nodes := client.CoreV1().Nodes()
	made, err := nodes.Create(t.Context(), node("acme-01"), metav1.CreateOptions{})
	if err != nil || made.UID == "" || made.Labels["acme.dev/fleet"] != "runners" {
		t.Errorf("created %+v, %v", made, err)
	}
	if err := nodes.Delete(t.Context(), "acme-01", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: &made.ResourceVersion}}); err != nil {
		t.Error(err)
	}
}

func TestProviderIDIsFixed(t *testing.T) {
	t.Parallel()
	nodes := newCluster(t).client(t, token).CoreV1().Nodes()
	if _, err := nodes.Create(t.Context(), node("acme-01"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	patch := func(id string) error {
		_, err := nodes.Patch(t.Context(), "acme-01", types.MergePatchType, []byte(`{"spec":{"providerID":`+id+`}}`), metav1.PatchOptions{})
		return err
	}
	for _, id := range []string{`"scw-applesilicon://fr-par-1/a"`, `"scw-applesilicon://fr-par-1/a"`} {
		if err := patch(id); err != nil {
			t.Errorf("set %s: %v", id, err)
		}
	}
	for _, id := range []string{`"scw-applesilicon://fr-par-1/b"`, `""`, `null`} {
		err := patch(id)
		if !apierrors.IsInvalid(err) {
			t.Fatalf("change to %s: %v, want Invalid", id, err)
		}
		status := err.(apierrors.APIStatus).Status()
		if status.Code != 422 || len(status.Details.Causes) != 1 || status.Details.Causes[0].Field != "spec.providerID" {
			t.Errorf("change to %s: %+v", id, status)
		}
	}
}

func createNodes(t *testing.T, client kubernetes.Interface, count int) {
	t.Helper()
	for i := range count {
		wanted := node(fmt.Sprintf("acme-%02d", i))
		wanted.Labels["acme.dev/odd"] = strconv.FormatBool(i%2 == 1)
		if _, err := client.CoreV1().Nodes().Create(t.Context(), wanted, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestListLimitAndSelector(t *testing.T) {
	t.Parallel()
	client := newCluster(t).client(t, token)
	createNodes(t, client, 23)
	for selector, want := range map[string]int{"": 23, "acme.dev/odd=true": 11, "acme.dev/odd==false,acme.dev/fleet=runners": 12, "acme.dev/odd!=true": 12, "x=y": 0} {
		for _, limit := range []int64{0, 1, 5, 11, 500} {
			seen := map[string]bool{}
			options := metav1.ListOptions{LabelSelector: selector, Limit: limit}
			for {
				list, err := client.CoreV1().Nodes().List(t.Context(), options)
				must(t, err)
				if limit > 0 && int64(len(list.Items)) > limit {
					t.Fatalf("%d items for limit %d", len(list.Items), limit)
				}
				for _, item := range list.Items {
					seen[item.Name] = true
				}
				if options.Continue = list.Continue; options.Continue == "" {
					break
				}
				if rest := int64(want - len(seen)); *list.RemainingItemCount != rest {
					t.Fatalf("%d remain, but the list reports %d", rest, *list.RemainingItemCount)
				}
			}
			equal(t, len(seen), want, "selector", selector, "limit", limit, "nodes")
		}
	}
}
