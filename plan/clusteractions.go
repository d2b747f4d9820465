package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/macfleet/macfleet/fleet/inventory"
)

// The codes that are raised here.
var (
	codeNodeTwice = NewCode("node-twice", Critical, "several Nodes have the provider id of this server",
		"find out which of them the kubelet uses, and delete the others: kubectl delete node NODE")
	codeNodeNameDiffers = NewCode("node-name-differs", Critical, "the server's Node has a different name than the server",
		"kubectl drain NODE --ignore-daemonsets; kubectl delete node NODE; then macfleet apply")
	codeIdentityMissing     = NewCode("identity-missing", Warning, "the host's kubelet has no identity in the cluster yet")
	CodeTokenRevoked        = NewCode("token-revoked", Critical, "the kubelet's token is not valid: its identity in the cluster is missing or was replaced")
	CodeDifferentProviderID = NewCode("different-provider-id", Critical, "the Node has another server's provider id")
	codeBindingRenamed      = NewCode("binding-renamed", Notice, "the kubelet's role binding has the ambiguous name that earlier versions used")
	codeBindingForeign      = NewCode("binding-foreign", Notice, "a foreign ClusterRoleBinding has the name that earlier versions used for this host's kubelet",
		"if no other controller uses it: kubectl delete clusterrolebinding NAME")
	codePodsUnread = NewCode("pods-unread", Warning, "it is unknown which Pods run on the Node",
		"macfleet init cluster (grants permission to list Pods)")
	codePodsOnNode = NewCode("pods-on-node", Warning, "the Node must be deleted, and Pods are running on it",
		"kubectl drain NAME --ignore-daemonsets")
	codeEmptyProviderID      = NewCode("empty-provider-id", Warning, "the Node has no provider id")
	codeStuckTerminatingPods = NewCode("stuck-terminating-pods", Warning, "Pods are stuck: only the kubelet's finalizer keeps them")
	codeTartCreateFailed     = NewCode("tart-create-failed", Critical, "virtual machines of Pods could not be created on the host",
		"kubectl get events -A --field-selector reason=TartCreateFailed; on the host: tail /var/log/tart-kubelet.log")
)

// unread records which parts of the cluster a host needs that could not be read.
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

// misjoined returns why a host that joins the cluster must not be changed, or nil: it has more than one Node,
// or one of a different name.
func (x *clusterIndex) misjoined(h *Host) *Trouble {
	if !x.read || !h.Spec.Spec.JoinsCluster() {
		return nil
	}
	former := func(name string) bool {
		return slices.ContainsFunc(h.Former, func(f Former) bool { return f.Name == name })
	}
	named := slices.DeleteFunc(slices.Clone(x.named[h.Server.ProviderID()]), former)
	others := slices.DeleteFunc(slices.Clone(named), func(name string) bool { return name == h.Name })
	switch {
	case len(named) > 1:
		return codeNodeTwice.Trouble(fmt.Sprintf("%s have the provider id of this server", strings.Join(named, ", ")),
			"if the kubelet uses the name "+h.Name+": kubectl delete node "+strings.Join(others, " "))
	case len(others) > 0:
		return codeNodeNameDiffers.Trouble(fmt.Sprintf("its Node is called %s, and Kubernetes cannot rename a Node", others[0]),
			fmt.Sprintf("kubectl drain %s --ignore-daemonsets; kubectl delete node %[1]s; then macfleet apply", others[0]))
	}
	return nil
}

// joining returns the cluster actions that come before a host's steps: its kubelet's identity, and making
// sure that its name is free.
func (c *computation) joining(h *Host, w stepWork) []Action {
	if !c.cluster.read || !h.Spec.Spec.JoinsCluster() {
		return nil
	}
	limited := len(c.sel.Steps) > 0
	var out []Action
	if !h.Identity.IsUnread() && (w.tokens || !limited) {
		switch i, _ := h.Identity.Get(); {
		case !i.Complete():
			out = append(out, identify(h, i, w.verified))
		case i.Former:
			out = append(out, h.action(IdentifyHost, pending, codeBindingRenamed, "its role binding has the name that earlier versions used",
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
		return h.action(IdentifyHost, drifted, CodeTokenRevoked, "its kubelet's identity in the cluster is missing", missing...)
	}
	return h.action(IdentifyHost, pending, codeIdentityMissing, "its kubelet has no identity in the cluster yet", missing...)
}

// identityFields are the parts of an identity that exist, or those that are missing, and what changes in
// each.
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
		"the Node has another server's provider id, which cannot be changed: macfleet deletes the Node, and the kubelet registers it again",
		Field{"provider id", n.ProviderID, h.Server.ProviderID()})
	a.Disruption, a.Refusal = Restart, h.busy(n)
	return a
}

// busy returns why a Node must not be deleted now, or nil.
func (h *Host) busy(n inventory.Node) *Trouble {
	_, read := h.Pods.Get()
	working := len(h.evicted())
	switch {
	case !read:
		return codePodsUnread.Trouble("it is unknown which Pods run on the Node: " + h.Pods.Why())
	case working > 0:
		return codePodsOnNode.Trouble("deleting the Node would stop "+count(working, "Pod"),
			"kubectl drain "+n.Name+" --ignore-daemonsets")
	}
	return nil
}

// joined returns the actions on a host's Node that come after its steps: setting the provider id, and
// uncordoning it where an unfinished run left it cordoned.
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
		out = append(out, h.action(SetProviderID, drifted, codeEmptyProviderID, "the Node has no provider id",
			Field{"provider id", "", h.Server.ProviderID()}))
	case h.Member && n.CordonRun != "" && n.ProviderID == h.Server.ProviderID() && !c.applies(n.CordonRun):
		out = append(out, h.action(UncordonNode, drifted, codeLeftCordoned,
			fmt.Sprintf("cordoned by run %s (%s), which did not uncordon it", n.CordonRun, n.CordonedBy),
			Field{"scheduling", "disabled", "enabled"}))
	}
	return out
}

// releasePods returns the action that removes the finalizer from Pods which only a kubelet's finalizer keeps.
// Finished Pods are released even if the host is unreachable. Others are released only if their Node is gone
// and the host has shown that their virtual machines are gone.
func (c *computation) releasePods(h *Host) []Action {
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
		a := h.action(ReleasePods, drifted, codeStuckTerminatingPods, count(len(some), "Pod")+" kept only by the kubelet's finalizer")
		a.Pods = some
		out = append(out, a)
	}
	if len(mayNot) > 0 {
		out[len(out)-1].Refusal = c.notReleasable(mayNot)
	}
	return out
}

// stuck returns the Pods of one of the host's Nodes whose finalizer nothing removes any more.
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

// releasable splits Pods by namespace: those where macfleet's account may change Pods, and the rest, whose
// namespace was removed from pod_namespaces.
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
		remedy += "; to release the rest: " + release(pods[at])
	}
	return codePodNamespaceNotListed.Trouble(fmt.Sprintf("macfleet may change Pods only in pod_namespaces, and these Pods are in %s",
		strings.Join(where, ", ")), remedy)
}

// bindings warns of a foreign role binding that has the name the host's had in earlier versions: its
// account's token may still allow acting as that Mac's kubelet.
func (c *computation) bindings(h *Host) {
	for _, o := range c.cluster.seen.Foreign {
		if o.Name != inventory.FormerBindingOf(h.Name) {
			continue
		}
		t := codeBindingForeign.Trouble(fmt.Sprintf("the %s is foreign and was not changed (%s): the token of its account may still act as a kubelet of this Mac", o, o.Why))
		t.Remedy = "if no other controller uses it: kubectl delete clusterrolebinding " + o.Name
		h.warn("", t)
	}
}

// failing warns of Pods whose virtual machines could not be created.
func (h *Host) failing() {
	n := h.PodsFailing()
	if n == 0 {
		return
	}
	t := codeTartCreateFailed.Trouble(fmt.Sprintf("the virtual machines of %s could not be created (%s)", count(n, "Pod"), inventory.CreateFailed))
	if h.noSession {
		t.Text += ": no user is logged in at the screen"
		t.Remedy = "macfleet apply --on name=" + h.Name + " restores the session if auto_login is configured"
	}
	h.warn("", t)
}

// PodsFailing counts the host's Pods whose virtual machines could not be created.
func (h Host) PodsFailing() int {
	pods, _ := h.Pods.Get()
	n := 0
	for _, p := range pods {
		n += ones(p.Reason == inventory.CreateFailed)
	}
	return n
}
