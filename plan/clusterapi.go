package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/macfleet/macfleet/fleet/inventory"
)

var (
	codeOwnedByClusterAPI = NewCode("owned-by-cluster-api", Critical, "the Cluster API sets the host up, too",
		"let one of the two go: pause it there, or take the host out of this configuration")
	codeMachineNotBound = NewCode("machine-not-bound", Warning, "the host's Machine of the Cluster API is bound to no Node",
		"see what keeps the Cluster API from binding it")
	codePodNamespaceNotListed = NewCode("pod-namespace-not-listed", Warning, "Pods of a namespace that is not listed are on the Macs",
		"keep such Pods off the Macs, or list their namespace in pod_namespaces where that is allowed")
)

// ownedByClusterAPI returns why a host must not be touched on which the Cluster API works,
// or nil. Two owners of one Mac run two kubelets, which delete each other's virtual
// machines; with a capi block the Machines are there to be bound, and macfleet does the work.
func (c *computation) ownedByClusterAPI(h *Host) *Trouble {
	if c.cfg.Kubernetes == nil || c.cfg.Kubernetes.CAPI != nil {
		return nil
	}
	for _, m := range c.cluster.machines[h.Server.ProviderID()] {
		if m.InfrastructurePaused {
			continue
		}
		of := strings.TrimSpace("machine/" + m.Name + " " + m.Infrastructure)
		t := codeOwnedByClusterAPI.Trouble(fmt.Sprintf("it is the Machine %s/%s of the Cluster API, whose controller sets it up too", m.Namespace, m.Name),
			fmt.Sprintf("let one of the two go: pause it there with kubectl annotate -n %s %s cluster.x-k8s.io/paused=true, or take the host out of this configuration",
				m.Namespace, of))
		switch {
		case m.InfrastructureUnread != "":
			t.Text += "; whether " + m.Infrastructure + " is paused cannot be read: " + m.InfrastructureUnread
			t.Remedy = "macfleet init cluster gives the right to look; then " + t.Remedy
		case m.Paused:
			t.Text += "; the pause of the Machine does not reach that of " + m.Infrastructure
		}
		return t
	}
	return nil
}

// unbound warns where the Cluster API has not bound the host's Machine to its Node, or its
// MachineDeployment is not available: a roll-out that waits for it would be rolled back.
func (c *computation) unbound(h *Host) {
	if !h.Member || c.cfg.Kubernetes == nil || c.cfg.Kubernetes.CAPI == nil {
		return
	}
	for _, m := range c.cluster.machines[h.Server.ProviderID()] {
		why := ""
		switch {
		case m.NodeRef == "":
			why = "is bound to no Node"
		case m.NodeRef != h.Name:
			why = "is bound to the Node " + m.NodeRef
		case m.Deployment != "" && !m.Available:
			why = "is bound, and its MachineDeployment " + m.Deployment + " is not available"
		default:
			continue
		}
		h.warn("", codeMachineNotBound.Trouble(fmt.Sprintf("the Machine %s/%s of the Cluster API %s", m.Namespace, m.Name, why), c.bindRemedy(h, m)))
	}
}

// bindRemedy names the first thing that keeps a Machine from being bound.
func (c *computation) bindRemedy(h *Host, m inventory.Machine) string {
	n, ok := h.Node.Get()
	objects, _ := c.cluster.seen.Objects.Get()
	wrong := slices.ContainsFunc(objects, func(o inventory.Object) bool {
		return !o.Prepared && (o.State == inventory.ObjectMissing || o.State == inventory.ObjectDiffers)
	})
	look := fmt.Sprintf("kubectl describe -n %s machine %s", m.Namespace, m.Name)
	switch {
	case wrong:
		return "what connects the Cluster API is not as wanted: macfleet apply"
	case !ok || n.ProviderID != m.ProviderID || n.Ready != inventory.Ready:
		return "its Node has to be Ready with the provider id " + m.ProviderID + " first: macfleet apply --on name=" + h.Name
	case m.Paused:
		return fmt.Sprintf("it or its whole Cluster is paused; let the Cluster API go on: kubectl annotate -n %s machine %s cluster.x-k8s.io/paused-, and spec.paused of the Cluster",
			m.Namespace, m.Name)
	case m.NodeRef == h.Name:
		return "see which of its Machines is missing: kubectl describe -n " + m.Namespace + " machinedeployment " + m.Deployment
	}
	return "its Node is as it should be; if the Cluster API has not bound it within ten minutes, see why: " + look
}

// misplaced warns of Pods at work on the host in namespaces where its kubelet may
// write nothing: they would wait for ever.
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
	h.warn("", codePodNamespaceNotListed.Trouble("Pods of the namespaces "+strings.Join(where, ", ")+" are on its Node, where its kubelet may not run any",
		c.listRemedy(where)))
}

// offTheMacs is how Pods are kept off the hosts.
const offTheMacs = "keep its Pods off the Macs, for example by a nodeAffinity to kubernetes.io/os=linux"

// listRemedy says which namespaces to list, and what to do about those that cannot be: their Secrets are
// for no host.
func (c *computation) listRemedy(namespaces []string) string {
	var may, mayNot []string
	for _, ns := range namespaces {
		if why := c.cfg.PodNamespaceFault(ns); why == "" {
			may = append(may, fmt.Sprintf("%q", ns))
		} else {
			why, _, _ = strings.Cut(why, ". ")
			mayNot = append(mayNot, fmt.Sprintf("%s cannot be listed, as %s: %s", ns, why, offTheMacs))
		}
	}
	var out []string
	if len(may) > 0 {
		out = append(out, "add "+strings.Join(may, ", ")+" to pod_namespaces in the kubernetes block and run macfleet init cluster, or keep such Pods off the Macs")
	}
	return strings.Join(append(out, mayNot...), "; ")
}
