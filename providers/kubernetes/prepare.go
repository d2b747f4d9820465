package kubernetes

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/macfleet/macfleet/fleet/inventory"
)

// pinMap is the place of the pinned host keys. It is made empty: that it is there
// says that the cluster keeps them. What it holds is never touched here.
func (c *Client) pinMap() kept {
	ns := c.options.Namespace
	return wish[*corev1.ConfigMap]{kind: "ConfigMap", api: c.api.CoreV1().ConfigMaps(ns),
		want: &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: pinsName, Labels: c.marks(false)}}}
}

// Purpose says what an object of those that Prepare makes is for; "" = nothing
// that it knows.
func (c *Client) Purpose(o inventory.Object) string {
	if capi := c.options.CAPI; capi != nil && slices.Contains([]string{capiAccount, capiAccount + "-token", capiRole, capi.secret()}, o.Name) {
		return "binds the Machines of the Cluster API's cluster " + path(capi.Namespace, capi.Cluster) + " to their Nodes"
	}
	switch {
	case o.State == inventory.ObjectSurplus:
		return "what tart-kubelets may do where no Pods of theirs are to run any more"
	case o.Kind == "Namespace" && o.Name == c.options.AgentNamespace:
		return "holds the accounts of the hosts' tart-kubelets, and nothing else"
	case o.Kind == "Namespace" && o.Name != c.options.Namespace:
		return "holds Pods that run on the hosts"
	case strings.HasPrefix(o.Name, agentRole):
		return "what a host's tart-kubelet may do, and no more"
	}
	switch o.Kind {
	case "Namespace":
		return "holds all that is macfleet's"
	case "ConfigMap":
		return "pins the host keys, for everybody who runs macfleet"
	case "Secret":
		return "the private key with which macfleet logs in to the hosts"
	case "ServiceAccount":
		return "who macfleet is where nobody sits, such as in CI"
	}
	return "what macfleet's own account may do, and no more"
}
