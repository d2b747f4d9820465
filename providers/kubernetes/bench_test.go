package kubernetes_test

import (
	"fmt"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/macfleet/macfleet/providers/kubernetes"
)

// BenchmarkLook is what a plan asks of a cluster with 500 Mac minis, 1,500 Pods
// on them and as many elsewhere.
func BenchmarkLook(b *testing.B) {
	for name, with := range map[string]func(testing.TB) *cluster{"real": realCluster, "sandbox": sandboxCluster} {
		b.Run(name, func(b *testing.B) {
			c := with(b)
			c.fleet(b, 500)
			client, err := kubernetes.New(kubernetes.Options{URL: c.url, Token: adminToken, CA: c.ca, Owner: "acme"})
			if err != nil {
				b.Fatal(err)
			}
			defer client.Close()
			b.Run("nodes", func(b *testing.B) {
				for b.Loop() {
					if nodes, err := client.Nodes(b.Context()); err != nil || len(nodes) != 500 {
						b.Fatal(len(nodes), err)
					}
				}
			})
			b.Run("rest", func(b *testing.B) {
				for b.Loop() {
					seen := observe(b, client).Pods
					if pods, _ := seen.Get(); len(pods) != 1500 {
						b.Fatal(len(pods), seen.Why())
					}
				}
			})
		})
	}
}

// fleet fills a cluster.
func (c *cluster) fleet(b *testing.B, nodes int) {
	b.Helper()
	lasts, now := int32(40), metav1.NewMicroTime(time.Now().Add(time.Hour))
	atOnce(nodes, func(i int) {
		node := fmt.Sprintf("bench-%03d", i)
		_, err := c.admin.CoreV1().Nodes().Create(b.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node},
			Spec: corev1.NodeSpec{ProviderID: "scw-applesilicon://fr-par-1/" + node}}, metav1.CreateOptions{})
		if err != nil {
			b.Error(err)
		}
		_, err = c.admin.CoordinationV1().Leases("kube-node-lease").Create(b.Context(), &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: node},
			Spec: coordinationv1.LeaseSpec{HolderIdentity: &node, LeaseDurationSeconds: &lasts, RenewTime: &now}}, metav1.CreateOptions{})
		if err != nil {
			b.Error(err)
		}
		for j := range 6 {
			at := node
			if j >= 3 {
				at = "linux"
			}
			_, err := c.admin.CoreV1().Pods("default").Create(b.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", node, j)},
				Spec: corev1.PodSpec{NodeName: at, Containers: []corev1.Container{{Name: "vm", Image: "acme/vm:1"}}}}, metav1.CreateOptions{})
			if err != nil {
				b.Error(err)
			}
		}
	})
}
