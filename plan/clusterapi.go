package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/macfleet/macfleet/fleet/inventory"
)

var (
	codeOwnedByClusterAPI = NewCode("owned-by-cluster-api", Critical, "the Cluster API manages the host too",
		"pause the infrastructure object of the host's Machine, or remove the host from this configuration")
	codeOtherController = NewCode("other-controller", Critical, "a controller in another cluster manages the host too",
		"pause that controller for the host, or remove the host from this configuration")
	codeMachineNotBound = NewCode("machine-not-bound", Warning, "the host's Machine in the Cluster API is not bound to a Node",
		"kubectl -n NAMESPACE describe machine NAME")
	codePodNamespaceNotListed = NewCode("pod-namespace-not-listed", Warning, "Pods of a namespace that pod_namespaces does not list are on the Macs",
		"add their namespace to pod_namespaces and run macfleet init cluster, or keep these Pods off the Macs")
)

// controlled returns why a host that another system controls must not be changed, or nil.
func (c *computation) controlled(h *Host) *Trouble {
	own := ""
	if jobs, _ := h.Seen.Jobs.Get(); len(jobs) > 0 { // to find its own among them takes parsing
		if k, ok := keeper(c.stepsOf(h)); ok {
			own = k.Job(h.Seen.Facts)
		}
	}
	return cmp.Or(c.ownedByClusterAPI(h), c.otherController(h), c.foreignWriter(h), ForeignJob(c.cfg, h.Seen.Jobs, h.Spec.Spec, own))
}

// ownedByClusterAPI returns why a host that the Cluster API manages must not be changed, or nil. Two
// controllers of one Mac run two kubelets, which delete each other's virtual machines. With a capi block, the
// Machines exist to be bound and macfleet manages the hosts.
func (c *computation) ownedByClusterAPI(h *Host) *Trouble {
	if c.cfg.Kubernetes == nil || c.cfg.Kubernetes.CAPI != nil {
		return nil
	}
	for _, m := range c.cluster.machines[h.Server.ProviderID()] {
		if m.InfrastructurePaused {
			continue
		}
		of := strings.TrimSpace("machine/" + m.Name + " " + m.Infrastructure)
		t := codeOwnedByClusterAPI.Trouble(fmt.Sprintf("the Cluster API manages it too, as Machine %s/%s", m.Namespace, m.Name),
			fmt.Sprintf("pause it in the Cluster API: kubectl annotate -n %s %s cluster.x-k8s.io/paused=true; or remove the host from this configuration",
				m.Namespace, of))
		switch {
		case m.InfrastructureUnread != "":
			t.Text += "; it is unknown whether " + m.Infrastructure + " is paused: " + m.InfrastructureUnread
			t.Remedy = "macfleet init cluster (grants permission to read it); then " + t.Remedy
		case m.Paused:
			t.Text += "; pausing the Machine does not pause " + m.Infrastructure
		}
		return t
	}
	return nil
}

// otherController returns why a host must not be changed whose Node names a Machine that this cluster does not have,
// or nil. Its controllers run in another cluster, where macfleet cannot see whether they are paused.
func (c *computation) otherController(h *Host) *Trouble {
	n, there := h.Node.Get()
	if c.cfg.Kubernetes == nil || c.cfg.Kubernetes.CAPI != nil || !there || n.Machine == "" {
		return nil
	}
	for _, m := range c.cluster.machines[h.Server.ProviderID()] {
		if m.Namespace+"/"+m.Name == n.Machine {
			return nil // ownedByClusterAPI decides
		}
	}
	namespace, name, _ := strings.Cut(n.Machine, "/")
	text := "its Node belongs to the Machine " + n.Machine + " of the Cluster API, which is not in this cluster"
	if why := c.cluster.seen.Machines.Why(); why != "" {
		text = "its Node belongs to the Machine " + n.Machine + " of the Cluster API, and the Machines of this cluster cannot be read: " + why
	}
	return codeOtherController.Trouble(text, fmt.Sprintf("in the cluster that has it, pause its infrastructure object (kubectl -n %s get machine %s -o jsonpath='{.spec.infrastructureRef}' names it) "+
		"with the annotation cluster.x-k8s.io/paused=true; then, in this cluster: kubectl annotate node %s cluster.x-k8s.io/machine-", namespace, name, n.Name))
}

// unbound warns if the Cluster API has not bound the host's Machine to its Node, or its MachineDeployment is
// not available: a rollout that waits for it would be rolled back.
func (c *computation) unbound(h *Host) {
	if !h.Member || c.cfg.Kubernetes == nil || c.cfg.Kubernetes.CAPI == nil {
		return
	}
	for _, m := range c.cluster.machines[h.Server.ProviderID()] {
		why := ""
		switch {
		case m.NodeRef == "":
			why = "is not bound to a Node"
		case m.NodeRef != h.Name:
			why = "is bound to Node " + m.NodeRef
		case m.Deployment != "" && !m.Available:
			why = "is bound, but its MachineDeployment " + m.Deployment + " is not available"
		default:
			continue
		}
		h.warn("", codeMachineNotBound.Trouble(fmt.Sprintf("the Machine %s/%s of the Cluster API %s", m.Namespace, m.Name, why), c.bindRemedy(h, m)))
	}
}

// bindRemedy names the first obstacle to binding a Machine.
func (c *computation) bindRemedy(h *Host, m inventory.Machine) string {
	n, ok := h.Node.Get()
	objects, _ := c.cluster.seen.Objects.Get()
	wrong := slices.ContainsFunc(objects, func(o inventory.Object) bool {
		return !o.Prepared && (o.State == inventory.ObjectMissing || o.State == inventory.ObjectDiffers)
	})
	look := fmt.Sprintf("kubectl describe -n %s machine %s", m.Namespace, m.Name)
	switch {
	case wrong:
		return "macfleet apply (restores the objects that connect the Cluster API)"
	case !ok || n.ProviderID != m.ProviderID || n.Ready != inventory.Ready:
		return "macfleet apply --on name=" + h.Name + " (its Node must be Ready with provider id " + m.ProviderID + ")"
	case m.Paused:
		return fmt.Sprintf("set spec.paused of its Cluster to false, then: kubectl annotate -n %s machine %s cluster.x-k8s.io/paused-",
			m.Namespace, m.Name)
	case m.NodeRef == h.Name:
		return "kubectl describe -n " + m.Namespace + " machinedeployment " + m.Deployment + " (shows which Machine is missing)"
	}
	return "wait 10 minutes for the Cluster API to bind it (the Node is correct); then: " + look
}

// misplaced warns of Pods on the host in namespaces where its kubelet may not write: they would wait forever.
func (c *computation) misplaced(h *Host) {
	if c.cfg.Kubernetes == nil || len(c.cfg.Kubernetes.PodNamespaces) == 0 || !h.Spec.Spec.JoinsCluster() {
		return
	}
	var where []string
	for _, p := range h.evicted() {
		if !slices.Contains(c.cfg.Kubernetes.PodNamespaces, p.Namespace) {
			where = append(where, p.Namespace)
		}
	}
	if len(where) == 0 {
		return
	}
	slices.Sort(where)
	where = slices.Compact(where)
	h.warn("", codePodNamespaceNotListed.Trouble("its Node has Pods in namespaces that pod_namespaces does not list ("+strings.Join(where, ", ")+"), and its kubelet may not run them",
		c.listRemedy(where)))
}

// offTheMacs says how to keep Pods off the hosts.
const offTheMacs = "keep these Pods off the Macs, e.g. with a nodeAffinity to kubernetes.io/os=linux"

// listRemedy says which namespaces to add to pod_namespaces, and what to do about those whose Secrets no host
// may read.
func (c *computation) listRemedy(namespaces []string) string {
	var may, mayNot []string
	for _, ns := range namespaces {
		if why := c.cfg.PodNamespaceFault(ns); why == "" {
			may = append(may, fmt.Sprintf("%q", ns))
		} else {
			why, _, _ = strings.Cut(why, ". ")
			mayNot = append(mayNot, fmt.Sprintf("%s cannot be listed (%s): %s", ns, why, offTheMacs))
		}
	}
	var out []string
	if len(may) > 0 {
		out = append(out, "add "+strings.Join(may, ", ")+" to pod_namespaces in the kubernetes block and run macfleet init cluster, or keep these Pods off the Macs")
	}
	return strings.Join(append(out, mayNot...), "; ")
}
