package kubernetes_test

import (
	"testing"

	"github.com/macfleet/macfleet/providers/kubernetes"
)

// capiUses is what the core of the Cluster API asks of the cluster whose Nodes its Machines are, by
// version, from its source: to bind a Machine, to watch its Node, and to bring its deletion to an end.
// What it lacks is an error of that deletion, which is tried again for ever.
var capiUses = []struct {
	versions, what string
	rights         []right
}{
	{"v1.0 to v1.13", "the connection works, and which Pod the controller itself is", []right{"get /", "get pods capi-system"}},
	{"v1.0 to v1.13", "Nodes are found by their provider id in a cache, and marked",
		[]right{"get nodes", "list nodes", "watch nodes", "patch nodes"}},
	{"v1.0 to v1.8", "deletion: cordon and drain with kubectl's own code, which asks for the DaemonSet of each Pod that has one",
		[]right{"get nodes", "patch nodes", "list pods", "get pods default", "get daemonsets.apps kube-system",
			"create pods/eviction default"}},
	{"v1.9 to v1.13", "deletion: drain by rules, which may choose by the labels of namespaces; those are kept in a cache",
		[]right{"list pods", "get daemonsets.apps kube-system", "create pods/eviction default", "list namespaces",
			"watch namespaces"}},
	{"v1.9 to v1.13", "deletion: volumes are waited for",
		[]right{"list volumeattachments.storage.k8s.io", "list persistentvolumes", "get persistentvolumes", "get persistentvolumeclaims default"}},
	{"v1.0 to v1.13", "deletion: the Node goes with its Machine", []right{"delete nodes"}},
}

// TestClusterAPIEndsDeletions asks the cluster whether the Cluster API may do all that its versions do.
func TestClusterAPIEndsDeletions(t *testing.T) {
	t.Parallel()
	eachCluster(t, func(t *testing.T, c *cluster) {
		client := c.client(t, c.withCAPI(t))
		c.control(t)
		if _, err := client.Prepare(t.Context(), kubernetes.PrepareOptions{}); err != nil {
			t.Fatal(err)
		}
		token, err := client.Secret(t.Context(), ns(t), "capi-remote-token", "token")
		if err != nil {
			t.Fatal(err)
		}
		api := c.as(t, token)
		eventually(t, "its binding counts", func() error { return ask(t, api, "get /", true) })
		for _, uses := range capiUses {
			for _, r := range uses.rights {
				if err := ask(t, api, r, true); err != nil {
					t.Errorf("%s, %s: %v", uses.versions, uses.what, err)
				}
			}
		}
	})
}
