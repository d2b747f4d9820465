package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
)

// The codes that are raised here.
var (
	codeStrandedPods = NewCode("stranded-pods", Warning, "Pods are stuck: their host and Node are gone, and only a kubelet's finalizer keeps them")
	codeHeldPods     = NewCode("pods-left-over", Notice, "Pods are stuck: their Node is gone, but their host may still exist",
		"if the host is gone, remove the finalizer (the plan prints the kubectl command)")
)

// stranded releases Pods that only the finalizer of a kubelet keeps, and whose host and Node are gone: they
// would stay forever. If it is not certain, it says how to release them.
func (c *computation) stranded() {
	if c.plan.Narrowed || !c.cluster.read || c.cfg.Kubernetes == nil {
		return
	}
	spoken := c.mentioned()
	nodes, _ := c.snap.Nodes.Get()
	for _, node := range slices.Sorted(maps.Keys(c.cluster.pods)) {
		if _, there := c.cluster.nodes[node]; there || spoken[node] {
			continue // their own host releases them
		}
		held := slices.DeleteFunc(slices.Clone(c.cluster.pods[node]), func(p inventory.Pod) bool { return !p.Held() })
		if len(held) == 0 {
			continue
		}
		why := MayExist(c.cfg.Owner, node, c.snap.Servers, nodes)
		if why == "" && slices.ContainsFunc(c.snap.Pins, func(p Pin) bool { return p.Name == node }) {
			why = "its host key is still pinned"
		}
		what := fmt.Sprintf("%s (%s)", count(len(held), "Pod"), podSample(held))
		if why != "" {
			c.plan.Warnings = append(c.plan.Warnings, *codeHeldPods.Trouble(
				fmt.Sprintf("%s of the former Node %s kept by a kubelet's finalizer, and %s", what, node, why),
				"if that host is gone: "+release(held[0])))
			continue
		}
		h := Host{Name: node}
		a := h.action(ReleasePods, drifted, codeStrandedPods, what+" kept only by the finalizer of a kubelet whose host and Node are gone")
		a.Pods = held
		c.plan.Actions = append(c.plan.Actions, a)
	}
}

// MayExist says why a host or Node of a name may still exist, or "". An empty list shows nothing: a key
// without rights gets one.
func MayExist(o fleet.Owner, name string, servers []inventory.Server, nodes []inventory.Node) string {
	at, ours := o.Parse(name)
	var bearer string // the first by name, so that the order of servers does not matter
	for _, s := range servers {
		if (s.Name == name || ours && strings.HasPrefix(s.ID, at.Suffix)) && (bearer == "" || s.Name < bearer) {
			bearer = cmp.Or(s.Name, s.ID)
		}
	}
	switch {
	case bearer != "":
		return "the inventory has server " + bearer
	case slices.ContainsFunc(nodes, func(n inventory.Node) bool { return n.Name == name }):
		return "the cluster still has that Node"
	case !ours:
		return "its name is not one of this configuration's"
	case len(servers) == 0:
		return "the inventory is empty"
	case len(nodes) == 0:
		return "the cluster has no Nodes"
	}
	return ""
}

func podSample(pods []inventory.Pod) string {
	var names []string
	for _, p := range pods {
		names = append(names, p.Namespace+"/"+p.Name)
	}
	return sampleOf(names)
}

// release is the command that removes a Pod's finalizers, all of which are a kubelet's.
func release(p inventory.Pod) string {
	return fmt.Sprintf(`kubectl -n %s patch pod %s --type=merge -p '{"metadata":{"finalizers":null}}'`, p.Namespace, p.Name)
}
