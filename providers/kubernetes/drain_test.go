package kubernetes_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/providers/kubernetes"
)

// owned makes a Pod one that its controller makes again.
func owned(kind, name string) func(*corev1.Pod) {
	yes := true
	return func(p *corev1.Pod) {
		p.Labels = map[string]string{"app": name}
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kind, Name: name, UID: "u-1", Controller: &yes}}
	}
}

// kubelet ends the Pods of this test that are being deleted, as a kubelet does
// that has stopped them.
func (c *cluster) kubelet(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	t.Cleanup(func() { cancel(); <-done })
	pods, now := c.as(t, adminToken).CoreV1().Pods(ns(t)), int64(0)
	go func() {
		defer close(done)
		pause := time.NewTicker(20 * time.Millisecond)
		defer pause.Stop()
		for {
			list, err := pods.List(ctx, metav1.ListOptions{})
			for i := 0; err == nil && i < len(list.Items); i++ {
				if p := &list.Items[i]; p.DeletionTimestamp != nil && len(p.Finalizers) == 0 {
					// One that is gone already is what it wants.
					_ = pods.Delete(ctx, p.Name, metav1.DeleteOptions{GracePeriodSeconds: &now})
				}
			}
			select {
			case <-ctx.Done():
				return
			case <-pause.C:
			}
		}
	}()
}

// budget refuses every eviction of an app.
func (c *cluster) budget(t *testing.T, app string) {
	t.Helper()
	all := intstr.FromString("100%")
	budgets := c.admin.PolicyV1().PodDisruptionBudgets(ns(t))
	made, err := budgets.Create(t.Context(), &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: app + "-budget"},
		Spec: policyv1.PodDisruptionBudgetSpec{MinAvailable: &all, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}}}, metav1.CreateOptions{})
	must(t, err)
	if c.name == "real" { // its controller is missing
		made.Status = policyv1.PodDisruptionBudgetStatus{ObservedGeneration: made.Generation, DesiredHealthy: 1, CurrentHealthy: 1, ExpectedPods: 1}
		must(t, errOf(budgets.UpdateStatus(t.Context(), made, metav1.UpdateOptions{})))
	}
}

// healthy makes a Pod one that its budget counts: others may always go.
func (c *cluster) healthy(t *testing.T, pod string) {
	t.Helper()
	patch := []byte(`{"status":{"conditions":[{"type":"Ready","status":"True"}]}}`)
	must(t, errOf(c.admin.CoreV1().Pods(ns(t)).Patch(t.Context(), pod, types.MergePatchType, patch, metav1.PatchOptions{}, "status")))
}

// reported collects what a drain says.
type podReports struct {
	mu     sync.Mutex
	events []string
	first  func(pod string)
}

func (o *podReports) add(pod, what, why string) {
	o.mu.Lock()
	o.events = append(o.events, strings.TrimSpace(pod+" "+what+" "+why))
	o.mu.Unlock()
	if o.first != nil {
		o.first(pod)
	}
}

func unreported(_, _, _ string) {}

// TestDrain empties a Node of all that is not its own.
func TestDrain(t *testing.T) {
	t.Parallel()
	eachCluster(t, func(t *testing.T, c *cluster) {
		c.addNamespace(t)
		client, node := c.client(t, c.options(t)), c.addNode(t, name(t, "mac"), "")
		labels := map[string]string{"app": "csi"}
		_, err := c.admin.AppsV1().DaemonSets(ns(t)).Create(t.Context(), &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: "csi"},
			Spec: appsv1.DaemonSetSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "csi", Image: "acme/csi:1"}}}}}},
			metav1.CreateOptions{})
		must(t, err)
		for pod, change := range map[string]func(*corev1.Pod){"runner": owned("ReplicaSet", "runner"), "daemon": owned("DaemonSet", "csi"),
			"mirror": func(p *corev1.Pod) { p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"} },
			"ended":  owned("ReplicaSet", "runner"),
			"over":   func(p *corev1.Pod) { owned("ReplicaSet", "runner")(p); held(p) }} {
			c.addPod(t, node.Name, pod, change)
			if pod != "mirror" {
				c.phase(t, pod, corev1.PodRunning, "")
			}
		}
		c.phase(t, "over", corev1.PodSucceeded, "TartRunExited")
		c.deletePod(t, "over", 0)
		c.phase(t, "ended", corev1.PodSucceeded, "")
		c.kubelet(t)
		var said podReports
		must(t, client.EvictPods(t.Context(), node, time.Minute, false, said.add))
		slices.Sort(said.events)
		want := []string{ns(t) + "/ended evicted", ns(t) + "/ended gone", ns(t) + "/runner evicted", ns(t) + "/runner gone"}
		if !slices.Equal(said.events, want) {
			t.Errorf("said %+v", said.events)
		}
		var left []string
		for _, p := range podsOf(t, client) {
			left = append(left, p.Name)
		}
		if !slices.Equal(left, []string{"daemon", "mirror", "over"}) {
			t.Errorf("left %v", left)
		}
		// What nothing makes again goes only on demand.
		c.addPod(t, node.Name, "alone", nil)
		err = client.EvictPods(t.Context(), node, time.Minute, false, unreported)
		if err == nil || !strings.Contains(err.Error(), "no controller") || !strings.Contains(err.Error(), "alone") {
			t.Errorf("a pod without a controller: %v", err)
		}
		must(t, client.EvictPods(t.Context(), node, time.Minute, true, unreported))
		other := node
		other.UID = "another"
		if err := client.EvictPods(t.Context(), other, time.Minute, false, unreported); !errors.Is(err, kubernetes.ErrReplaced) {
			t.Errorf("another node: %v", err)
		}
	})
}

// TestDrainHeld names the budget that holds a Pod when the time is up, and the Pod that does not end.
func TestDrainHeld(t *testing.T) {
	t.Parallel()
	eachCluster(t, func(t *testing.T, c *cluster) {
		c.addNamespace(t)
		client, node := c.client(t, c.options(t)), c.addNode(t, name(t, "mac"), inventory.Server{Zone: "fr-par-1", ID: "id-1"}.ProviderID())
		c.addPod(t, node.Name, "web", owned("ReplicaSet", "web"))
		c.addPod(t, node.Name, "slow", func(p *corev1.Pod) { owned("ReplicaSet", "slow")(p); held(p) })
		c.phase(t, "web", corev1.PodRunning, "")
		c.healthy(t, "web")
		c.phase(t, "slow", corev1.PodUnknown, "") // it may still run
		c.budget(t, "web")
		// The first word of both ends the wait: a cancelled context returns at once, whatever pause the drain is in.
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var seen sync.Map
		said := podReports{first: func(pod string) {
			seen.Store(pod, true)
			_, web := seen.Load(ns(t) + "/web")
			if _, slow := seen.Load(ns(t) + "/slow"); web && slow {
				cancel()
			}
		}}
		err := client.EvictPods(ctx, node, time.Hour, false, said.add)
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("it was not cancelled: %v", err)
		}
		for _, part := range []string{"interrupted while a disruption budget blocked it: ", "web-budget", "pod " + ns(t) + "/web", "pod " + ns(t) + "/slow", "kubectl describe pod"} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%q is not in: %v", part, err)
			}
		}
		for _, p := range podsOf(t, client) {
			if (p.Name == "web") != p.Due.IsZero() {
				t.Errorf("being deleted, or not: %+v", p)
			}
		}
	})
}
