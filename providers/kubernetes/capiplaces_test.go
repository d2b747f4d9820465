package kubernetes_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/providers/kubernetes"
)

// lostKubeconfigs are ways in which a kubeconfig stops being macfleet's without a run of macfleet.
var lostKubeconfigs = map[string]func(t *testing.T, c *cluster, namespace string) error{
	"gone": func(t *testing.T, c *cluster, namespace string) error {
		return c.admin.CoreV1().Secrets(namespace).Delete(t.Context(), "acme-kubeconfig", metav1.DeleteOptions{})
	},
	"foreign": func(t *testing.T, c *cluster, namespace string) error {
		s, err := c.admin.CoreV1().Secrets(namespace).Get(t.Context(), "acme-kubeconfig", metav1.GetOptions{})
		if err != nil {
			return err
		}
		delete(s.Labels, "acme.dev/owner")
		_, err = c.admin.CoreV1().Secrets(namespace).Update(t.Context(), s, metav1.UpdateOptions{})
		return err
	},
}

// places are where the binding notes kubeconfigs.
func (c *cluster) places(t *testing.T) []string {
	t.Helper()
	return slices.Sorted(maps.Values(c.remote(t).Annotations))
}

// itself is the client of macfleet's own account, whose rights count.
func (c *cluster) itself(t *testing.T, boss *kubernetes.Client, o kubernetes.Options) *kubernetes.Client {
	t.Helper()
	token, _, err := boss.IssueToken(t.Context(), time.Hour)
	must(t, err)
	o.Token = token.Reveal()
	client := c.client(t, o)
	eventually(t, "its rights count", func() error { _, err := client.Nodes(t.Context()); return err })
	return client
}

// TestCAPIMoves lets the block name a Cluster elsewhere after the kubeconfig was lost. An administrator
// takes macfleet's rights in the old namespace away, and its own account reads the rest anyway.
func TestCAPIMoves(t *testing.T) {
	t.Parallel()
	for how, lose := range lostKubeconfigs {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			eachCluster(t, func(t *testing.T, c *cluster) {
				with, _ := c.connected(t)
				must(t, lose(t, c, with.CAPI.Namespace))
				boss, moved := c.moves(t, with)
				if got, want := c.places(t), []string{moved.CAPI.Namespace + "/acme-kubeconfig"}; !slices.Equal(got, want) {
					t.Errorf("noted %v, want %v", got, want)
				}
				kept(t, c.itself(t, boss, moved))
			})
		})
	}
}

// moves lets the block name another namespace, and an administrator prepare for it.
func (c *cluster) moves(t *testing.T, from kubernetes.Options) (boss *kubernetes.Client, moved kubernetes.Options) {
	t.Helper()
	moved = from
	moved.CAPI = &kubernetes.CAPI{Cluster: "acme", Namespace: ns(t) + "-moved"}
	n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: moved.CAPI.Namespace}}
	must(t, errOf(c.admin.CoreV1().Namespaces().Create(t.Context(), n, metav1.CreateOptions{})))
	boss = c.client(t, moved)
	prepare(t, boss)
	return boss, moved
}

// TestCAPIBeyondRights has a note left, as an earlier version or a killed run leaves it, of a place that
// macfleet's own account may not look into: that is one object unread, and init cluster ends it.
func TestCAPIBeyondRights(t *testing.T) {
	t.Parallel()
	eachCluster(t, func(t *testing.T, c *cluster) {
		with, _ := c.connected(t)
		bindings := c.admin.RbacV1().ClusterRoleBindings()
		before := c.remote(t)
		boss, moved := c.moves(t, with)
		b, err := bindings.Get(t.Context(), before.Name, metav1.GetOptions{})
		must(t, err)
		maps.Copy(b.Annotations, before.Annotations)
		must(t, errOf(bindings.Update(t.Context(), b, metav1.UpdateOptions{})))
		client := c.itself(t, boss, moved)
		list := objects(t, client)
		at := slices.IndexFunc(list, func(o inventory.Object) bool { return o.State == inventory.ObjectUnread })
		if at < 0 || list[at].String() != "Secret "+with.CAPI.Namespace+"/acme-kubeconfig" || len(wrong(list)) != 1 {
			t.Fatalf("wrong: %v", wrong(list))
		}
		// Who cannot look there forgets nothing, and gets an error before a change.
		for _, dry := range []bool{true, false} {
			if _, err := client.Prepare(t.Context(), kubernetes.PrepareOptions{Dry: dry}); !apierrors.IsForbidden(err) {
				t.Errorf("prepared without the right to look, dry %t: %v", dry, err)
			}
		}
		if len(c.places(t)) != 2 {
			t.Errorf("noted %v", c.places(t))
		}
		now, err := boss.Prepare(t.Context(), kubernetes.PrepareOptions{Dry: true})
		if why := wrong(now)["Namespace "+ns(t)]; err != nil || !strings.Contains(why, with.CAPI.Namespace+"/acme-kubeconfig") {
			t.Errorf("init cluster has work left: %v, %v", wrong(now), err)
		}
		for range 2 {
			if now, err = boss.Prepare(t.Context(), kubernetes.PrepareOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		if len(wrong(now)) != 0 || len(c.places(t)) != 1 {
			t.Errorf("left: %v, noted %v", wrong(now), c.places(t))
		}
		kept(t, client)
	})
}
