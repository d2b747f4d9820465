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
	codeStrandedPods = NewCode("stranded-pods", Warning, "Pods of a host that is gone, with its Node, are held by its kubelet's finalizer alone")
	codeHeldPods     = NewCode("pods-left-over", Notice, "Pods of a Node that is gone are held by a kubelet's finalizer, and it is not certain that their host is gone",
		"once it is certain that their host is gone, remove the finalizer")
)

// stranded lets Pods go that the finalizer of a kubelet holds whose host and Node are gone:
// nobody else would, and they stay for ever. Where it is not certain, a person is told how.
func (c *computation) stranded() {
	if c.plan.Narrowed || !c.cluster.there || c.cfg.Kubernetes == nil {
		return
	}
	spoken := c.spoken()
	nodes, _ := c.snap.Nodes.Get()
	for _, node := range slices.Sorted(maps.Keys(c.cluster.pods)) {
		if _, there := c.cluster.nodes[node]; there || spoken[node] {
			continue // its own host lets them go
		}
		held := slices.DeleteFunc(slices.Clone(c.cluster.pods[node]), func(p inventory.Pod) bool { return !p.Held() })
		if len(held) == 0 {
			continue
		}
		why := MayBeThere(c.cfg.Owner, node, c.snap.Servers, nodes)
		if why == "" && slices.ContainsFunc(c.snap.Pins, func(p Pin) bool { return p.Name == node }) {
			why = "its host key is still pinned"
		}
		what := fmt.Sprintf("%s (%s)", count(len(held), "Pod"), podSample(held))
		if why != "" {
			c.plan.Warnings = append(c.plan.Warnings, *codeHeldPods.Trouble(
				fmt.Sprintf("%s of the Node %s, which is gone, should be gone too, and a kubelet's finalizer keeps them; they stay, because %s", what, node, why),
				"once it is certain that this host is gone: "+release(held[0])))
			continue
		}
		h := Host{Name: node}
		a := h.action(ReleasePods, drifted, codeStrandedPods, what+" should be gone, and only the finalizer of a kubelet keeps them whose host and Node are gone")
		a.Pods = held
		c.plan.Actions = append(c.plan.Actions, a)
	}
}

// MayBeThere says why a host, or a Node, of a name may still be there, or "". An empty list
// says nothing: a key that lost its rights gets one.
func MayBeThere(o fleet.Owner, name string, servers []inventory.Server, nodes []inventory.Node) string {
	at, ours := o.Parse(name)
	var bearer string // the first by name, as the order of servers says nothing
	for _, s := range servers {
		if (s.Name == name || ours && strings.HasPrefix(s.ID, at.Suffix)) && (bearer == "" || s.Name < bearer) {
			bearer = cmp.Or(s.Name, s.ID)
		}
	}
	switch {
	case bearer != "":
		return "the inventory has the server " + bearer
	case slices.ContainsFunc(nodes, func(n inventory.Node) bool { return n.Name == name }):
		return "the cluster has that Node"
	case !ours:
		return "its name is not one of this configuration's"
	case len(servers) == 0:
		return "the inventory is empty"
	case len(nodes) == 0:
		return "the cluster has no Nodes at all"
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

// release is the command that takes the finalizers off a Pod, all of which are a kubelet's.
func release(p inventory.Pod) string {
	return fmt.Sprintf(`kubectl -n %s patch pod %s --type=merge -p '{"metadata":{"finalizers":null}}'`, p.Namespace, p.Name)
}
