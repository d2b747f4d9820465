package kubernetes_test

import (
	"net/http"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/providers/kubernetes"
)

// TestCordon: a run cordons Nodes and takes over what another run left. Neither a run nor a person opens what someone else
// cordoned. A Node that is gone is already open.
func TestCordon(t *testing.T) {
	t.Parallel()
	eachCluster(t, func(t *testing.T, c *cluster) {
		c.addNamespace(t)
		client, node := c.client(t, c.options(t)), c.addNode(t, name(t, "mac"), "")
		c.addPod(t, node.Name, "runner", owned("ReplicaSet", "runner"))
		c.phase(t, "runner", corev1.PodRunning, "")
		is := func(what string, cordoned bool, by, run string) {
			t.Helper()
			if n := nodesOf(t, client)[0]; n.Cordoned != cordoned || n.CordonedBy != by || n.CordonRun != run {
				t.Errorf("%s: %+v", what, n)
			}
		}
		closes := func(run string, want bool) {
			t.Helper()
			if ours, err := client.CordonNode(t.Context(), node, plan.Run{ID: run, Who: "ci"}); err != nil || ours != want {
				t.Errorf("%s closes: %t, %v", run, ours, err)
			}
		}
		opens := func() { t.Helper(); must(t, client.UncordonNode(t.Context(), node)) }
		mona := func() { t.Helper(); must(t, cordon(t, client, node, "mona")) }
		uncordon := func(want bool) {
			t.Helper()
			if done, err := client.Uncordon(t.Context(), node); err != nil || done != want {
				t.Errorf("uncordon: %t, %v; want %t", done, err, want)
			}
		}
		opens()
		uncordon(true)
		closes("r1", true)
		is("closed", true, "ci", "r1")
		closes("r1", true)
		closes("r2", true)
		is("taken over", true, "ci", "r2")
		opens()
		is("open", false, "", "")
		mona()
		mona()
		closes("r3", false)
		opens()
		is("a person's", true, "mona", "")
		uncordon(true)
		is("open again", false, "", "")
		closes("r4", true)
		mona()
		opens()
		is("a person takes it over", true, "mona", "")
		uncordon(true)
		c.patchNode(t, node.Name, `{"spec":{"unschedulable":true}}`)
		mona()
		uncordon(false)
		is("without a name", true, "", "")
		pods, err := client.PodsOn(t.Context(), node)
		if err != nil || len(pods) != 1 || pods[0].Name != "runner" || pods[0].Controller != "ReplicaSet" {
			t.Errorf("%+v, %v", pods, err)
		}
		must(t, client.DeleteNode(t.Context(), node))
		opens()
	})
}

// TestCordonMetAnother: a person cordons the Node between macfleet's read and its write. The cordon stays the person's, or the run
// would take it back at its end.
func TestCordonMetAnother(t *testing.T) {
	t.Parallel()
	var person sync.Once
	c, client, node := oneRunner(t, func(c *cluster, o *kubernetes.Options) {
		o.Wrap = func(next http.RoundTripper) http.RoundTripper {
			return roundTripper(func(r *http.Request) (*http.Response, error) {
				if r.Method == http.MethodPatch {
					person.Do(func() { c.patchNode(t, name(t, "mac"), `{"spec":{"unschedulable":true}}`) })
				}
				return next.RoundTrip(r)
			})
		}
	})
	ours, err := client.CordonNode(t.Context(), node, plan.Run{ID: "r1", Who: "ci"})
	if n := nodesOf(t, c.client(t, c.options(t)))[0]; err != nil || ours || !n.Cordoned || n.CordonRun != "" {
		t.Errorf("the run's: %t, %v; %+v", ours, err, n)
	}
}
