package kubernetes_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/google/go-cmp/cmp"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/providers/kubernetes"
)

// addNode registers a Ready Node as a kubelet does. It is gone after the test, as
// other tests count Nodes.
func (c *cluster) addNode(t *testing.T, node, providerID string) inventory.Node {
	t.Helper()
	n, err := c.admin.CoreV1().Nodes().Create(t.Context(), &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: node, Labels: map[string]string{"kubernetes.io/os": "darwin", "acme.dev/fleet": "runners"}},
		Spec:       corev1.NodeSpec{ProviderID: providerID},
	}, metav1.CreateOptions{})
	must(t, err)
	c.setReady(t, node, corev1.ConditionTrue)
	return inventory.Node{Name: n.Name, UID: string(n.UID), ProviderID: providerID}
}

func (c *cluster) setReady(t *testing.T, node string, ready corev1.ConditionStatus) {
	t.Helper()
	patch, err := json.Marshal(corev1.Node{Status: corev1.NodeStatus{
		Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready, Reason: "TartKubeletReady"}},
		Capacity: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("8"), corev1.ResourceMemory: resource.MustParse("14Gi"),
			corev1.ResourcePods: resource.MustParse("3")}}})
	must(t, err)
	c.patchNode(t, node, string(patch), "status")
}

func (c *cluster) patchNode(t *testing.T, node, patch string, sub ...string) {
	t.Helper()
	must(t, errOf(c.admin.CoreV1().Nodes().Patch(t.Context(), node, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, sub...)))
}

func (c *cluster) annotate(t *testing.T, node string, notes map[string]any) {
	t.Helper()
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": notes}})
	must(t, err)
	c.patchNode(t, node, string(patch))
}

// beat writes a Node's Lease as if it had been renewed so long ago.
func (c *cluster) beat(t *testing.T, node string, ago time.Duration) time.Time {
	t.Helper()
	lasts, renewed := int32(40), metav1.NewMicroTime(time.Now().Add(-ago))
	_, err := c.admin.CoordinationV1().Leases("kube-node-lease").Create(t.Context(), &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: node},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: &node, LeaseDurationSeconds: &lasts, RenewTime: &renewed}}, metav1.CreateOptions{})
	must(t, err)
	return renewed.Time
}

// nodesOf are the Nodes of this test.
func nodesOf(t *testing.T, client *kubernetes.Client) []inventory.Node {
	t.Helper()
	all, err := client.Nodes(t.Context())
	must(t, err)
	return slices.DeleteFunc(all, func(n inventory.Node) bool { return !strings.HasPrefix(n.Name, ns(t)+"-") })
}

// TestNodeSeen judges Nodes by their conditions and heartbeats.
func TestNodeSeen(t *testing.T) {
	t.Parallel()
	eachCluster(t, func(t *testing.T, c *cluster) {
		client := c.client(t, c.options(t))
		for i, ago := range []time.Duration{0, 50 * time.Second, 70 * time.Second} {
			node := name(t, fmt.Sprint(i))
			c.addNode(t, node, "scw-applesilicon://fr-par-1/id-"+fmt.Sprint(i))
			renewed := c.beat(t, node, ago)
			seen := nodesOf(t, client)[i]
			want, why := inventory.Ready, ""
			if i == 2 {
				want, why = inventory.ReadyUnknown, "no heartbeat since "+renewed.UTC().Format("2006-01-02 15:04:05 UTC")
			}
			if seen.Ready != want || seen.Why != why {
				t.Errorf("%s ago: %s %q, want %s %q", ago, seen.Ready, seen.Why, want, why)
			}
		}
		node := c.addNode(t, name(t, "3"), "") // it has no Lease: an agent of before
		c.addNode(t, name(t, "4"), "")
		c.setReady(t, name(t, "4"), corev1.ConditionFalse)
		seen := nodesOf(t, client)
		want := inventory.Node{Name: node.Name, UID: node.UID, Ready: inventory.Ready, Labels: seen[3].Labels,
			Capacity: inventory.Capacity{CPU: 8, Memory: 14 << 30, Pods: 3}, Taints: seen[3].Taints, Conditions: seen[3].Conditions, Writers: seen[3].Writers}
		if diff := cmp.Diff(want, seen[3], cmp.AllowUnexported(want.Taints)); diff != "" || seen[3].Labels["acme.dev/fleet"] != "runners" {
			t.Errorf("%s, labels %v", diff, seen[3].Labels)
		}
		if seen[4].Ready != inventory.NotReady || seen[4].Why != "TartKubeletReady" {
			t.Errorf("not ready: %+v", seen[4])
		}
	})
}

// TestProviderID sets it once and never again.
func TestProviderID(t *testing.T) {
	t.Parallel()
	eachCluster(t, func(t *testing.T, c *cluster) {
		client, id := c.client(t, c.options(t)), "scw-applesilicon://fr-par-1/id-1"
		node := c.addNode(t, name(t, "01"), "")
		for range 2 {
			must(t, client.SetProviderID(t.Context(), node, id))
		}
		if seen := nodesOf(t, client); len(seen) != 1 || seen[0].ProviderID != id {
			t.Errorf("seen %+v", seen)
		}
		if err := client.SetProviderID(t.Context(), node, id+"2"); !errors.Is(err, kubernetes.ErrProviderID) || !strings.Contains(err.Error(), `has the provider ID "`+id+`", not "`) {
			t.Errorf("another one: %v", err)
		}
		// The cluster itself would refuse it.
		patch := []byte(`{"spec":{"providerID":"` + id + `2"}}`)
		if _, err := c.admin.CoreV1().Nodes().Patch(t.Context(), node.Name, types.MergePatchType, patch, metav1.PatchOptions{}); err == nil {
			t.Error("the cluster changed a provider id")
		}
		old := node
		must(t, client.DeleteNode(t.Context(), node))
		if err := client.DeleteNode(t.Context(), node); err != nil {
			t.Errorf("one that is gone: %v", err)
		}
		c.addNode(t, node.Name, "")
		if err := client.DeleteNode(t.Context(), old); !errors.Is(err, kubernetes.ErrReplaced) {
			t.Errorf("delete another: %v", err)
		}
		if err := client.SetProviderID(t.Context(), old, id); !errors.Is(err, kubernetes.ErrReplaced) {
			t.Errorf("set another's: %v", err)
		}
		if err := cordon(t, client, old, "ann"); !errors.Is(err, kubernetes.ErrReplaced) {
			t.Errorf("cordon another: %v", err)
		}
		if seen := nodesOf(t, client); len(seen) != 1 || seen[0].ProviderID != "" || seen[0].Cordoned {
			t.Errorf("the new one: %+v", seen)
		}
	})
}

// cordon cordons a Node in a person's name.
func cordon(t *testing.T, client *kubernetes.Client, n inventory.Node, by string) error {
	t.Helper()
	_, err := client.CordonNode(t.Context(), n, plan.Run{Who: by})
	return err
}

// TestHold: a person's hold is an annotation that every read finds, no matter who wrote it.
func TestHold(t *testing.T) {
	t.Parallel()
	eachCluster(t, func(t *testing.T, c *cluster) {
		client, node := c.client(t, c.options(t)), c.addNode(t, name(t, "01"), "")
		until := time.Date(2026, 11, 24, 10, 0, 0, 0, time.UTC)
		want := &inventory.Hold{Who: "ann@laptop", Reason: "its fan, \"loud\"", Since: until.Add(-time.Hour), Until: until}
		state := func(hold *inventory.Hold, unread string) {
			t.Helper()
			n := nodesOf(t, client)[0]
			if diff := cmp.Diff(hold, n.Hold); diff != "" || !strings.HasPrefix(n.HoldUnread, unread) || (unread == "") != (n.HoldUnread == "") {
				t.Errorf("unread %q, hold (-want +got):\n%s", n.HoldUnread, diff)
			}
		}
		set := func(hold *inventory.Hold) { t.Helper(); must(t, client.SetHold(t.Context(), node, hold)) }
		state(nil, "")
		set(nil)
		for range 2 {
			set(want)
			state(want, "")
		}
		c.annotate(t, node.Name, map[string]any{"acme.dev/hold": "until friday"})
		state(nil, "invalid JSON")
		c.annotate(t, node.Name, map[string]any{"acme.dev/hold": `{"until":"2026-11-24T10:00:00Z"}`})
		state(&inventory.Hold{Who: "someone", Until: until}, "")
		set(nil)
		state(nil, "")
		another := node
		another.UID = "0b1f4c52-6a0e-4d0b-9a55-000000000000"
		if err := client.SetHold(t.Context(), another, want); !errors.Is(err, kubernetes.ErrReplaced) {
			t.Errorf("a recreated Node: %v", err)
		}
	})
}

// TestMacs asks only for the Nodes of Macs.
func TestMacs(t *testing.T) {
	t.Parallel()
	eachCluster(t, func(t *testing.T, c *cluster) {
		client, mac, linux := c.client(t, c.options(t)), name(t, "mac"), name(t, "linux")
		for node, os := range map[string]string{mac: "darwin", linux: "linux"} {
			_, err := c.admin.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node,
				Labels: map[string]string{"kubernetes.io/os": os}}}, metav1.CreateOptions{})
			must(t, err)
		}
		macs, err := client.Macs(t.Context())
		has := func(name string) bool {
			return slices.ContainsFunc(macs, func(n inventory.Node) bool { return n.Name == name })
		}
		if err != nil || !has(mac) || has(linux) {
			t.Errorf("%+v, %v", macs, err)
		}
	})
}
