package kube_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/watch"
)

// pod creates a Pod; a phase other than Pending is written to its status.
func (f *fleet) pod(t *testing.T, name, node string, phase corev1.PodPhase, change func(*corev1.Pod)) *corev1.Pod {
	t.Helper()
	wanted := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": "acme"}},
		Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "vm", Image: "acme/macos"}}}}
	wanted.Status.Phase = "Running" // which a create does not set
	if change != nil {
		change(wanted)
	}
	pods := f.admin.CoreV1().Pods("default")
	made, err := pods.Create(t.Context(), wanted, metav1.CreateOptions{})
	if err != nil || made.Status.Phase != corev1.PodPending {
		t.Fatalf("%v %v", made, err)
	}
	if phase == corev1.PodPending {
		return made
	}
	patch := fmt.Appendf(nil, `{"metadata":{"labels":{"seen":"yes"}},"spec":{"nodeName":"ignored"},"status":{"phase":%q,"conditions":[{"type":"Ready","status":"True"}]}}`, phase)
	made, err = pods.Patch(t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	if err != nil || made.Status.Phase != phase || made.Spec.NodeName != node {
		t.Fatalf("%v %v", made, err)
	}
	return made
}

// TestPodDeletion deletes Pods on a Node with a silent kubelet.
func TestPodDeletion(t *testing.T) {
	t.Parallel()
	const finalizer = "tart-kubelet.tuist.dev/vm-cleanup"
	zero, five := int64(0), int64(5)
	for _, test := range []struct {
		name, node string
		phase      corev1.PodPhase
		finalizer  bool
		grace      *int64
		stays      bool
		left       int64 // grace of one that stays
	}{
		{"unbound", "", corev1.PodPending, false, nil, false, 0},
		{"bound", "gone", corev1.PodRunning, false, nil, true, 30},
		{"bound, short", "gone", corev1.PodRunning, false, &five, true, 5},
		{"bound, forced", "gone", corev1.PodRunning, false, &zero, false, 0},
		{"ended", "gone", corev1.PodSucceeded, false, nil, false, 0},
		{"ended, held", "gone", corev1.PodSucceeded, true, nil, true, 0},
		{"bound, held", "gone", corev1.PodRunning, true, nil, true, 30},
		{"bound, held, forced", "gone", corev1.PodRunning, true, &zero, true, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t)
			pods := f.admin.CoreV1().Pods("default")
			f.pod(t, "job", test.node, test.phase, func(p *corev1.Pod) {
				if test.finalizer {
					p.Finalizers = []string{finalizer}
				}
			})
			must(t, pods.Delete(t.Context(), "job", metav1.DeleteOptions{GracePeriodSeconds: test.grace}))
			pod, err := pods.Get(t.Context(), "job", metav1.GetOptions{})
			if (err == nil) != test.stays {
				t.Fatalf("afterwards: %v", err)
			}
			if !test.stays {
				return
			}
			if due := f.clock.Now().Add(time.Duration(test.left) * time.Second); *pod.DeletionGracePeriodSeconds != test.left || !pod.DeletionTimestamp.Time.Equal(due) {
				t.Errorf("grace %d, due %v", *pod.DeletionGracePeriodSeconds, pod.DeletionTimestamp)
			}
			if !test.finalizer {
				return
			}
			patch := []byte(`[{"op":"test","path":"/metadata/finalizers/0","value":"` + finalizer + `"},{"op":"remove","path":"/metadata/finalizers/0"}]`)
			if _, err := pods.Patch(t.Context(), "job", types.JSONPatchType, patch, metav1.PatchOptions{}); err != nil {
				t.Fatal(err)
			}
			_, err = pods.Get(t.Context(), "job", metav1.GetOptions{})
			equal(t, apierrors.IsNotFound(err), test.left == 0, "without the finalizer, with", test.left, "s of grace", err)
		})
	}
}

func TestFinalizersOfADeletedObject(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	maps := f.admin.CoreV1().ConfigMaps("default")
	held := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "held", Finalizers: []string{"acme.dev/a"}}}
	if _, err := maps.Create(t.Context(), held, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	must(t, maps.Delete(t.Context(), "held", metav1.DeleteOptions{}))
	patch := func(kind types.PatchType, text string) error {
		_, err := maps.Patch(t.Context(), "held", kind, []byte(text), metav1.PatchOptions{})
		return err
	}
	if err := patch(types.MergePatchType, `{"metadata":{"finalizers":["acme.dev/a","acme.dev/b"]}}`); !apierrors.IsInvalid(err) {
		t.Errorf("another finalizer: %v", err)
	}
	if err := patch(types.JSONPatchType, `[{"op":"test","path":"/metadata/finalizers/0","value":"acme.dev/x"}]`); !apierrors.IsInvalid(err) {
		t.Errorf("a failed test: %v", err)
	}
	if err := patch(types.JSONPatchType, `{}`); !apierrors.IsBadRequest(err) {
		t.Errorf("not a JSON patch: %v", err)
	}
	if err := patch(types.StrategicMergePatchType, `{"metadata":{"$deleteFromPrimitiveList/finalizers":["acme.dev/a"]}}`); err != nil {
		t.Error(err)
	}
	if _, err := maps.Get(t.Context(), "held", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("after the last finalizer was removed: %v", err)
	}
}

func TestEviction(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.pod(t, "one", "gone", corev1.PodRunning, nil)
	f.pod(t, "two", "gone", corev1.PodRunning, nil)
	f.pod(t, "waiting", "gone", corev1.PodPending, nil)
	budget := func(name string, allowed int) {
		t.Helper()
		limit := intstr.FromInt32(int32(allowed))
		wanted := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &limit, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"seen": "yes"}}}}
		if _, err := f.admin.PolicyV1().PodDisruptionBudgets("default").Create(t.Context(), wanted, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	evict := func(name string) error {
		zero := int64(0)
		return f.admin.PolicyV1().Evictions("default").Evict(t.Context(), &policyv1.Eviction{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}, DeleteOptions: &metav1.DeleteOptions{GracePeriodSeconds: &zero},
		})
	}
	budget("strict", 0)
	err := evict("one")
	var status apierrors.APIStatus
	if !apierrors.IsTooManyRequests(err) || !errors.As(err, &status) || len(status.Status().Details.Causes) != 1 ||
		!strings.Contains(status.Status().Details.Causes[0].Message, "strict needs 2 healthy pods and has 2 currently") {
		t.Errorf("beyond the budget: %v", err)
	}
	if err := evict("waiting"); err != nil {
		t.Errorf("one that has not started: %v", err)
	}
	budget("second", 2)
	if err := evict("one"); err == nil || !strings.Contains(err.Error(), "more than one PodDisruptionBudget") {
		t.Errorf("two budgets: %v", err)
	}
	must(t, f.admin.PolicyV1().PodDisruptionBudgets("default").Delete(t.Context(), "strict", metav1.DeleteOptions{}))
	if err := evict("one"); err != nil {
		t.Errorf("within the budget: %v", err)
	}
	if err := evict("one"); !apierrors.IsNotFound(err) {
		t.Errorf("once more: %v", err)
	}
}

func TestLeaseUpdates(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	leases := f.admin.CoordinationV1().Leases("macfleet")
	now, seconds := metav1.NewMicroTime(f.clock.Now()), int32(30)
	made, err := leases.Create(t.Context(), &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "lock"},
		Spec: coordinationv1.LeaseSpec{RenewTime: &now, LeaseDurationSeconds: &seconds}}, metav1.CreateOptions{})
	must(t, err)
	first := made.DeepCopy()
	*made.Spec.LeaseDurationSeconds = 31
	if _, err := leases.Update(t.Context(), made, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := leases.Update(t.Context(), first, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("an update of an old version: %v", err)
	}
	first.ResourceVersion = ""
	if _, err := leases.Update(t.Context(), first, metav1.UpdateOptions{}); !apierrors.IsInvalid(err) {
		t.Errorf("an update of no version: %v", err)
	}
}

func TestNamespaceDeletion(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	core := f.admin.CoreV1()
	if _, err := core.Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "team-"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	list, err := core.Namespaces().List(t.Context(), metav1.ListOptions{LabelSelector: "kubernetes.io/metadata.name notin (default, macfleet, kube-system, kube-public, kube-node-lease)"})
	if err != nil || len(list.Items) != 1 || len(list.Items[0].Name) != len("team-")+5 {
		t.Fatalf("%v %v", list, err)
	}
	name := list.Items[0].Name
	held := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "held", Finalizers: []string{"acme.dev/a"}}}
	if _, err := core.ConfigMaps(name).Create(t.Context(), held, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	must(t, core.Namespaces().Delete(t.Context(), name, metav1.DeleteOptions{}))
	held.Name = "late"
	if _, err := core.ConfigMaps(name).Create(t.Context(), held, metav1.CreateOptions{}); !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		t.Errorf("a new object in it: %v", err)
	}
	if got, err := core.Namespaces().Get(t.Context(), name, metav1.GetOptions{}); err != nil || got.Status.Phase != corev1.NamespaceTerminating {
		t.Errorf("while a finalizer holds an object: %v %v", got, err)
	}
	if _, err := core.ConfigMaps(name).Patch(t.Context(), "held", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := core.Namespaces().Get(t.Context(), name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("afterwards: %v", err)
	}
}

// TestWatch watches what happens before and after its start.
func TestWatch(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	maps := f.admin.CoreV1().ConfigMaps("default")
	create := func(name string) {
		t.Helper()
		if _, err := maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"a": "b"}}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	remove := func(name string) {
		t.Helper()
		must(t, maps.Delete(t.Context(), name, metav1.DeleteOptions{}))
	}
	create("before")
	create("doomed")
	list, err := maps.List(t.Context(), metav1.ListOptions{LabelSelector: "a=b"})
	if err != nil || len(list.Items) != 2 {
		t.Fatal(list, err)
	}
	remove("doomed")
	ctx, leave := context.WithTimeout(t.Context(), 20*time.Second)
	defer leave()
	watching, err := maps.Watch(ctx, metav1.ListOptions{LabelSelector: "a=b", ResourceVersion: list.ResourceVersion})
	must(t, err)
	defer watching.Stop()
	expect := func(kind watch.EventType, name string) {
		t.Helper()
		got, ok := <-watching.ResultChan()
		if o, _ := got.Object.(metav1.Object); !ok || got.Type != kind || o.GetName() != name {
			t.Fatalf("got %v, want %s %s", got, kind, name)
		}
	}
	expect(watch.Deleted, "doomed")
	create("after")
	expect(watch.Added, "after")
	if _, err := maps.Patch(t.Context(), "before", types.MergePatchType, []byte(`{"data":{"x":"y"}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	expect(watch.Modified, "before")
	remove("after")
	expect(watch.Deleted, "after")
}

func TestWhatIsNotStored(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	const rbac = "/apis/rbac.authorization.k8s.io/v1/"
	long := strings.Repeat("x", 64)
	for _, test := range []struct{ path, body, field string }{
		{"/api/v1/nodes", `{"metadata":{"name":"a","labels":{"acme.dev/x":"` + long + `"}}}`, "metadata.labels"},
		{"/api/v1/nodes", `{"metadata":{"name":"a","labels":{"acme.dev/":"x"}}}`, "metadata.labels"},
		{"/api/v1/nodes", `{"metadata":{"name":"a","finalizers":["b c"]}}`, "metadata.finalizers"},
		{"/api/v1/nodes", `{"metadata":{"name":"a"},"spec":{"taints":[{"key":"x","effect":"Never"}]}}`, "metadata.taints[0].effect"},
		{"/api/v1/namespaces", `{"metadata":{"name":"a.b"}}`, "metadata.name"},
		{"/api/v1/namespaces/default/secrets", `{"metadata":{"name":"a"},"data":{"a b":"eA=="}}`, "data[a b]"},
		{"/api/v1/namespaces/default/pods", `{"metadata":{"name":"a"},"spec":{}}`, "spec.containers"},
		{rbac + "clusterroles", `{"metadata":{"name":"a"},"rules":[{"apiGroups":[""],"resources":["nodes"]}]}`, "rules[0].verbs"},
		{rbac + "namespaces/default/roles", `{"metadata":{"name":"a"},"rules":[{"nonResourceURLs":["/"],"verbs":["get"]}]}`, "rules[0].nonResourceURLs"},
		{rbac + "clusterrolebindings", `{"metadata":{"name":"a"},"roleRef":{"kind":"Role","name":"x"}}`, "roleRef.kind"},
		{rbac + "clusterrolebindings", `{"metadata":{"name":"a"},"roleRef":{"kind":"ClusterRole","name":"x"},"subjects":[{"kind":"ServiceAccount","name":"x"}]}`, "subjects[0].namespace"},
		{"/apis/coordination.k8s.io/v1/namespaces/default/leases", `{"metadata":{"name":"a"},"spec":{"leaseDurationSeconds":0}}`, "spec.leaseDurationSeconds"},
	} {
		code, body := c.ask(t, "POST", test.path, "application/json", test.body)
		if code != 422 || !strings.Contains(body, `"field":"`+test.field+`"`) {
			t.Errorf("%s: %d %s, want %s", test.body, code, body, test.field)
		}
	}
}
