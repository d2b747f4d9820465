package kubernetes_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/providers/kubernetes"
)

// addNamespace makes this test's namespace.
func (c *cluster) addNamespace(t *testing.T) {
	t.Helper()
	_, err := c.admin.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns(t)}}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
}

// addPod binds a Pod to a Node.
func (c *cluster) addPod(t *testing.T, node, pod string, change func(*corev1.Pod)) *corev1.Pod {
	t.Helper()
	grace := int64(30)
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: pod, Namespace: ns(t)},
		Spec: corev1.PodSpec{NodeName: node, TerminationGracePeriodSeconds: &grace, Containers: []corev1.Container{{Name: "vm", Image: "acme/vm:1"}}}}
	if change != nil {
		change(p)
	}
	made, err := c.admin.CoreV1().Pods(ns(t)).Create(t.Context(), p, metav1.CreateOptions{})
	must(t, err)
	return made
}

func (c *cluster) phase(t *testing.T, pod string, phase corev1.PodPhase, why string) {
	t.Helper()
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"phase": phase, "reason": why}})
	must(t, err)
	must(t, errOf(c.admin.CoreV1().Pods(ns(t)).Patch(t.Context(), pod, types.MergePatchType, patch, metav1.PatchOptions{}, "status")))
}

func (c *cluster) deletePod(t *testing.T, pod string, grace int64) {
	t.Helper()
	must(t, c.admin.CoreV1().Pods(ns(t)).Delete(t.Context(), pod, metav1.DeleteOptions{GracePeriodSeconds: &grace}))
}

// podsOf are the Pods of this test, as a plan sees them.
func podsOf(t *testing.T, client *kubernetes.Client) []inventory.Pod {
	t.Helper()
	return slices.DeleteFunc(read(t, observe(t, client).Pods), func(p inventory.Pod) bool { return p.Namespace != ns(t) })
}

func held(p *corev1.Pod) { p.Finalizers = []string{"acme.test/other", inventory.VMFinalizer} }

// TestPodsSeen sees the Pods on Mac minis and no other.
func TestPodsSeen(t *testing.T) {
	t.Parallel()
	eachCluster(t, func(t *testing.T, c *cluster) {
		c.addNamespace(t)
		client, mac, linux := c.client(t, c.options(t)), name(t, "mac"), name(t, "linux")
		c.addNode(t, mac, "scw-applesilicon://fr-par-1/id-1")
		must(t, errOf(c.admin.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: linux}}, metav1.CreateOptions{})))
		yes := true
		pending := c.addPod(t, mac, "a", func(p *corev1.Pod) {
			held(p)
			p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "csi", UID: "u-1", Controller: &yes}}
		})
		c.phase(t, "a", corev1.PodPending, "TartCreateFailed")
		c.addPod(t, linux, "b", nil)
		c.addPod(t, "", "c", nil)
		mirror := c.addPod(t, mac, "d", func(p *corev1.Pod) { p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"} })
		want := []inventory.Pod{
			{Namespace: ns(t), Name: "a", UID: string(pending.UID), Node: mac, Phase: "Pending", Reason: "TartCreateFailed", Controller: "DaemonSet",
				Finalizers: pending.Finalizers},
			{Namespace: ns(t), Name: "d", UID: string(mirror.UID), Node: mac, Phase: "Pending", Mirror: true},
		}
		is(t, podsOf(t, client), want)
	})
}

// TestPodDue knows that the cluster's deletion time has the grace in it.
func TestPodDue(t *testing.T) {
	t.Parallel()
	eachCluster(t, func(t *testing.T, c *cluster) {
		c.addNamespace(t)
		client, mac := c.client(t, c.options(t)), name(t, "mac")
		c.addNode(t, mac, "")
		c.addPod(t, mac, "a", held)
		c.phase(t, "a", corev1.PodRunning, "")
		before := time.Now()
		c.deletePod(t, "a", 600)
		p := podsOf(t, client)[0]
		if due := p.Due.Sub(before); due < 598*time.Second || due > 602*time.Second || p.Overdue {
			t.Errorf("due in %s, overdue %t", due, p.Overdue)
		}
		if err := client.ReleasePod(t.Context(), p); !errors.Is(err, kubernetes.ErrNotStuck) {
			t.Errorf("released before its time: %v", err)
		}
		// One that has ended has its time too: its kubelet may be cleaning up.
		c.addPod(t, mac, "b", held)
		c.phase(t, "b", corev1.PodRunning, "")
		c.deletePod(t, "b", 600)
		c.phase(t, "b", corev1.PodFailed, "TartRunExited")
		ended := podsOf(t, client)[1]
		if err := client.ReleasePod(t.Context(), ended); !errors.Is(err, kubernetes.ErrNotStuck) || !strings.Contains(err.Error(), "its grace period ends at ") {
			t.Errorf("released before its time, although it has ended: %v", err)
		}
		c.addPod(t, mac, "c", held)
		if err := client.ReleasePod(t.Context(), podsOf(t, client)[2]); !errors.Is(err, kubernetes.ErrNotStuck) || !strings.HasSuffix(err.Error(), "it is not being deleted") {
			t.Errorf("released though no one deleted it: %v", err)
		}
		c.deletePod(t, "a", 1)
		eventually(t, "the time is up", func() error {
			if p = podsOf(t, client)[0]; !p.Overdue {
				return fmt.Errorf("due %s", p.Due)
			}
			return nil
		})
		if err := client.ReleasePod(t.Context(), p); !errors.Is(err, kubernetes.ErrNotStuck) {
			t.Errorf("released while it runs: %v", err)
		}
		// Its Node is gone: nothing will ever remove the finalizer.
		must(t, client.DeleteNode(t.Context(), inventory.Node{Name: mac}))
		must(t, client.ReleasePod(t.Context(), p))
		got, err := c.admin.CoreV1().Pods(ns(t)).Get(t.Context(), "a", metav1.GetOptions{})
		if err != nil || !slices.Equal(got.Finalizers, []string{"acme.test/other"}) || *got.DeletionGracePeriodSeconds != 1 {
			t.Errorf("left %+v, %v", got.ObjectMeta, err)
		}
		if err := client.ReleasePod(t.Context(), p); !errors.Is(err, kubernetes.ErrNotStuck) {
			t.Errorf("held by someone else: %v", err)
		}
	})
}

// TestReleaseUnread: a Node that cannot be read may exist, and its kubelet may still run the Pod.
func TestReleaseUnread(t *testing.T) {
	t.Parallel()
	wrap, asked := answering("/nodes/"+name(t, "mac"), metav1.Status{Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden})
	c, client, _ := oneRunner(t, func(_ *cluster, o *kubernetes.Options) { o.Wrap = wrap })
	c.addPod(t, name(t, "mac"), "stuck", held)
	c.phase(t, "stuck", corev1.PodRunning, "")
	c.deletePod(t, "stuck", 1)
	var p inventory.Pod
	eventually(t, "the time is up", func() error {
		if p = podsOf(t, client)[1]; !p.Overdue {
			return fmt.Errorf("due %s", p.Due)
		}
		return nil
	})
	err := client.ReleasePod(t.Context(), p)
	if left := podsOf(t, client)[1]; !apierrors.IsForbidden(err) || asked.Load() != 1 || len(left.Finalizers) != 2 {
		t.Errorf("released after %d reads of its Node: %v; %+v", asked.Load(), err, left)
	}
}

// TestReleaseAll repairs what an agent left in Terminating, and leaves those that are
// on their way.
func TestReleaseAll(t *testing.T) {
	t.Parallel()
	eachCluster(t, func(t *testing.T, c *cluster) {
		const stuckPods, onTheirWay = 60, 40
		c.addNamespace(t)
		client, mac := c.client(t, c.options(t)), name(t, "mac")
		c.addNode(t, mac, "scw-applesilicon://fr-par-1/id-1")
		// With those of other machines they are more than a page of the real server. The sandbox keeps Pods in files.
		atOnce(map[string]int{"real": 450}[c.name], func(i int) { c.addPod(t, "linux", fmt.Sprint("elsewhere-", i), nil) })
		ours := func(p *corev1.Pod) { p.Finalizers = []string{inventory.VMFinalizer} }
		atOnce(stuckPods+onTheirWay, func(i int) {
			pod := fmt.Sprintf("p-%04d", i)
			c.addPod(t, mac, pod, ours)
			if i < stuckPods {
				c.phase(t, pod, corev1.PodSucceeded, "TartRunExited")
				c.deletePod(t, pod, 0)
			} else {
				c.phase(t, pod, corev1.PodRunning, "")
				c.deletePod(t, pod, 3600)
			}
		})
		var all []inventory.Pod
		eventually(t, "their time is up", func() error {
			all = podsOf(t, client)
			if n := len(slices.DeleteFunc(slices.Clone(all), func(p inventory.Pod) bool { return !p.Overdue })); n != stuckPods {
				return fmt.Errorf("%d of %d", n, len(all))
			}
			return nil
		})
		atOnce(len(all), func(i int) {
			err := client.ReleasePod(t.Context(), all[i])
			if stuck := all[i].Finished(); stuck && err != nil || !stuck && !errors.Is(err, kubernetes.ErrNotStuck) {
				t.Errorf("%s: %v", all[i].Name, err)
			}
		})
		rest := podsOf(t, client)
		if len(rest) != onTheirWay {
			t.Errorf("%d are left", len(rest))
		}
		for _, p := range rest {
			if p.Finished() || len(p.Finalizers) != 1 {
				t.Errorf("touched: %+v", p)
			}
		}
	})
}

// atOnce calls do for each number, several at once.
func atOnce(n int, do func(i int)) {
	next := make(chan int)
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for i := range next {
				do(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	wg.Wait()
}
