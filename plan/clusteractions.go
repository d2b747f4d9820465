package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/macfleet/macfleet/fleet/inventory"
)

// The codes that are raised here.
var (
	codeNodeTwice = NewCode("node-twice", Critical, "two Nodes say that they are this server",
		"find out which of them its kubelet keeps, and delete the other")
	codeNodeNameDiffers     = NewCode("node-name-differs", Critical, "the server's Node has another name", "drain it and delete it, then apply")
	codeIdentityMissing     = NewCode("identity-missing", Warning, "the cluster does not know the host's kubelet yet")
	CodeTokenRevoked        = NewCode("token-revoked", Critical, "the cluster no longer knows the host's kubelet")
	CodeDifferentProviderID = NewCode("different-provider-id", Critical, "the Node says that it is another server")
	codeBindingRenamed      = NewCode("binding-renamed", Notice, "the binding of the host's kubelet has the name that earlier versions gave it, which others give too")
	codeBindingForeign      = NewCode("binding-foreign", Notice, "somebody else has a binding for a kubelet of that host's name",
		"if no other controller uses it any more, delete it with kubectl")
	codePodsUnread = NewCode("pods-unread", Warning, "nobody knows what runs on the Node",
		"give macfleet the right to list Pods: macfleet init cluster")
	codePodsOnNode = NewCode("pods-on-node", Warning, "Pods are at work on a Node that must be deleted",
		"drain it first: kubectl drain NAME --ignore-daemonsets")
	codeEmptyProviderID      = NewCode("empty-provider-id", Warning, "the Node does not say which server it is")
	codeStuckTerminatingPods = NewCode("stuck-terminating-pods", Warning, "Pods that have ended are kept by the kubelet's finalizer alone")
	codeTartCreateFailed     = NewCode("tart-create-failed", Critical, "no virtual machine starts on the host",
		"see why: kubectl get events -A --field-selector reason=TartCreateFailed; and on the host /var/log/tart-kubelet.log")
)

// unread enters what of the cluster could not be read and a host needs.
func (c *computation) unread() {
	seen := c.cluster.seen
	note := func(probe string, part interface {
		IsUnread() bool
		Why() string
	}) {
		if part.IsUnread() {
			c.plan.Unread = append(c.plan.Unread, Unread{Probe: probe, Why: part.Why()})
		}
	}
	switch joins := slices.ContainsFunc(c.plan.Hosts, func(h Host) bool { return h.Spec.Spec.JoinsCluster() }); {
	case joins && c.cfg.Kubernetes != nil && c.snap.Nodes.IsUnread():
		note("cluster", c.snap.Nodes)
	case !joins || !c.plan.Cluster:
	case c.snap.Cluster.IsUnread():
		note("cluster", seen.Pods)
	default:
		note("cluster.pods", seen.Pods)
		note("cluster.identities", seen.Identities)
		note("cluster.join", seen.Join)
		note("cluster.objects", seen.Objects)
		note("cluster.machines", seen.Machines)
	}
}

// misjoined returns why a host that joins the cluster must not be touched: its machine
// has Nodes that are not its own.
func (x *clusterIndex) misjoined(h *Host) *Trouble {
	if !x.there || !h.Spec.Spec.JoinsCluster() {
		return nil
	}
	former := func(name string) bool {
		return slices.ContainsFunc(h.Former, func(f Former) bool { return f.Name == name })
	}
	named := slices.DeleteFunc(slices.Clone(x.named[h.Server.ProviderID()]), former)
	others := slices.DeleteFunc(slices.Clone(named), func(name string) bool { return name == h.Name })
	switch {
	case len(named) > 1:
		return codeNodeTwice.Trouble(fmt.Sprintf("the Nodes %s all say that they are its server", strings.Join(named, ", ")),
			"find out which of them its kubelet keeps, then delete what is not "+h.Name+": kubectl delete node "+strings.Join(others, " "))
	case len(others) > 0:
		return codeNodeNameDiffers.Trouble(fmt.Sprintf("its Node is called %s; a Node cannot be renamed, and no machine may be two", others[0]),
			fmt.Sprintf("drain it and delete it, then apply: kubectl drain %s --ignore-daemonsets; kubectl delete node %[1]s", others[0]))
	}
	return nil
}

// joining returns what is done in the cluster for a host before its steps: who its
// kubelet is, and that its name is free.
func (c *computation) joining(h *Host, w stepWork) []Action {
	if !c.cluster.there || !h.Spec.Spec.JoinsCluster() {
		return nil
	}
	limited := len(c.sel.Steps) > 0
	var out []Action
	if !h.Identity.IsUnread() && (w.tokens || !limited) {
		switch i, _ := h.Identity.Get(); {
		case !i.Complete():
			out = append(out, identify(h, i, w.proven))
		case i.Former:
			out = append(out, h.action(IdentifyHost, pending, codeBindingRenamed, "its binding has the name that earlier versions gave it",
				Field{"ClusterRoleBinding", inventory.FormerBindingOf(h.Name), inventory.BindingOf(h.Name)}))
		}
	}
	if n, ok := h.Node.Get(); ok && n.ProviderID != "" && n.ProviderID != h.Server.ProviderID() && !limited {
		out = append(out, replaceNode(h, n))
	}
	return out
}

func identify(h *Host, i inventory.Identity, proven bool) Action {
	missing := identityFields(i, false, Field{After: "present"})
	if proven && len(h.Former) == 0 {
		return h.action(IdentifyHost, drifted, CodeTokenRevoked, "the cluster no longer knows its kubelet", missing...)
	}
	return h.action(IdentifyHost, pending, codeIdentityMissing, "the cluster does not know its kubelet yet", missing...)
}

// identityFields are the parts of an identity that are there, or those that are not, and
// what becomes of each.
func identityFields(i inventory.Identity, there bool, f Field) []Field {
	var out []Field
	is := []bool{i.ServiceAccount != "", i.Secret != "" && i.Issued, i.Bound}
	for n, part := range []string{"ServiceAccount", "token", "binding"} {
		if is[n] == there {
			out = append(out, Field{part, f.Before, f.After})
		}
	}
	return out
}

func replaceNode(h *Host, n inventory.Node) Action {
	a := h.action(ReplaceNode, drifted, CodeDifferentProviderID,
		"the Node says that it is another server, and that cannot be changed: it is deleted, and its kubelet registers a new one",
		Field{"provider id", n.ProviderID, h.Server.ProviderID()})
	a.Disruption, a.Refusal = Restart, h.busy(n)
	return a
}

// busy returns why a Node must not be deleted now, or nil.
func (h *Host) busy(n inventory.Node) *Trouble {
	_, read := h.Pods.Get()
	working := len(h.evicted())
	at := "are"
	if working == 1 {
		at = "is"
	}
	switch {
	case !read:
		return codePodsUnread.Trouble("nobody knows what runs on the Node: " + h.Pods.Why())
	case working > 0:
		return codePodsOnNode.Trouble(fmt.Sprintf("on the Node %s %s at work, which would be lost with it", at, count(working, "Pod")),
			"drain it first: kubectl drain "+n.Name+" --ignore-daemonsets")
	}
	return nil
}

// joined returns what is done to a host's Node after its steps: it gets its provider id, or
// is opened to new Pods again where a run that did not come to its end closed it.
func (c *computation) joined(h *Host) []Action {
	n, ok := h.Node.Get()
	if !ok || !h.Spec.Spec.JoinsCluster() || len(c.sel.Steps) > 0 {
		return nil
	}
	_, moves := h.MovesFrom()
	var out []Action
	if !moves {
		out = h.taint(n)
	}
	switch {
	case n.ProviderID == "" && !moves:
		out = append(out, h.action(SetProviderID, drifted, codeEmptyProviderID, "the Node does not say which server it is",
			Field{"provider id", "", h.Server.ProviderID()}))
	case h.Member && n.CordonRun != "" && n.ProviderID == h.Server.ProviderID() && !c.applies(n.CordonRun):
		out = append(out, h.action(UncordonNode, drifted, codeLeftCordoned,
			fmt.Sprintf("the run %s of %s closed it to new Pods and did not come to its end", n.CordonRun, n.CordonedBy),
			Field{"new Pods", "kept away", "let in"}))
	}
	return out
}

// release returns the action that lets go of Pods that only the finalizer of a kubelet
// keeps which never came back for them. What has ended is let go also where the host is
// silent; the others only where the Node and, as the host showed, their machines are gone.
func (c *computation) release(h *Host) []Action {
	ours := h.Spec.Spec.JoinsCluster() || h.leaves() || h.Node.IsAbsent()
	if !h.Member || h.Refused != nil || !ours || len(c.sel.Steps) > 0 {
		return nil
	}
	stuck := h.stuck(h.Pods, h.Node)
	for _, f := range h.Former {
		if f.Name != h.NodeName() {
			stuck = append(stuck, h.stuck(f.Pods, f.Node)...)
		}
	}
	may, mayNot := c.releasable(stuck)
	var out []Action
	for _, some := range [][]inventory.Pod{may, mayNot} {
		if len(some) == 0 {
			continue
		}
		a := h.action(ReleasePods, drifted, codeStuckTerminatingPods, count(len(some), "Pod")+" should be gone, and only the kubelet's finalizer keeps them")
		a.Pods = some
		out = append(out, a)
	}
	if len(mayNot) > 0 {
		out[len(out)-1].Refusal = c.notReleasable(mayNot)
	}
	return out
}

// stuck returns those of the Pods of one of the host's Nodes that nobody lets go any more.
func (h *Host) stuck(pods inventory.Seen[[]inventory.Pod], node inventory.Seen[inventory.Node]) (out []inventory.Pod) {
	all, _ := pods.Get()
	vms, shown := h.vms.Get()
	gone := shown && node.IsAbsent() && h.Unknown == nil
	for _, p := range all {
		if p.Held() && (p.Finished() || gone && !slices.Contains(vms, p.VM())) {
			out = append(out, p)
		}
	}
	return out
}

// releasable divides Pods into those of the namespaces where macfleet's account may change
// Pods, and others: an agent held them before their namespace was taken off the list.
func (c *computation) releasable(pods []inventory.Pod) (may, mayNot []inventory.Pod) {
	for _, p := range pods {
		if k := c.cfg.Kubernetes; k == nil || len(k.PodNamespaces) == 0 || slices.Contains(k.PodNamespaces, p.Namespace) {
			may = append(may, p)
		} else {
			mayNot = append(mayNot, p)
		}
	}
	return may, mayNot
}

func (c *computation) notReleasable(pods []inventory.Pod) *Trouble {
	var where []string
	for _, p := range pods {
		where = append(where, p.Namespace)
	}
	slices.Sort(where)
	where = slices.Compact(where)
	remedy := c.listRemedy(where)
	if at := slices.IndexFunc(pods, func(p inventory.Pod) bool { return c.cfg.PodNamespaceFault(p.Namespace) != "" }); at >= 0 {
		remedy += "; to let go of what is there: " + release(pods[at])
	}
	return codePodNamespaceNotListed.Trouble(fmt.Sprintf("macfleet may change Pods in the namespaces of pod_namespaces alone, and these are in %s",
		strings.Join(where, ", ")), remedy)
}

// bindings warns of a binding of somebody else that is named as the host's was in earlier versions:
// whoever has the token of its account may still act as the kubelet of that Mac.
func (c *computation) bindings(h *Host) {
	for _, o := range c.cluster.seen.Foreign {
		if o.Name != inventory.FormerBindingOf(h.Name) {
			continue
		}
		t := codeBindingForeign.Trouble(fmt.Sprintf("the %s is left alone: %s. Whoever has the token of its account can still act as a kubelet of this Mac", o, o.Why))
		t.Remedy = "if no other controller uses it any more: kubectl delete clusterrolebinding " + o.Name
		h.warn("", t)
	}
}

// failing warns of Pods whose virtual machines could not be made.
func (h *Host) failing() {
	n := h.PodsFailing()
	if n == 0 {
		return
	}
	t := codeTartCreateFailed.Trouble(fmt.Sprintf("the virtual machines of %s could not be made (%s)", count(n, "Pod"), inventory.CreateFailed))
	if h.noSession {
		t.Text += ", and nobody is logged in at the screen, without which none starts"
		t.Remedy = "macfleet apply --on name=" + h.Name + " brings the session back where the configuration wants one"
	}
	h.warn("", t)
}

// PodsFailing counts the host's Pods whose virtual machines could not be made.
func (h Host) PodsFailing() int {
	pods, _ := h.Pods.Get()
	n := 0
	for _, p := range pods {
		n += ones(p.Reason == inventory.CreateFailed)
	}
	return n
}
