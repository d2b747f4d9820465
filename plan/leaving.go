package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
)

// The codes that are raised here.
var (
	CodeBlockRemoved  = NewCode("block-removed", Notice, "the block was removed from the configuration, and apply removes what macfleet set up for it")
	codeNodeNotProven = NewCode("node-not-proven", Warning, "the Node with the host's name does not have the provider id of its server",
		"check it: kubectl describe node NAME; if it is stale: kubectl delete node NAME")
	codeServerGone       = NewCode("server-gone", Warning, "the host's server and Node no longer exist")
	codeIdentityLeftOver = NewCode("identity-left-over", Notice, "the cluster has a kubelet identity of a host that is not in the configuration",
		"if that Mac will not return, run the kubectl command that the plan prints")
)

// notJoining returns the cluster actions for a host that no longer joins, after its kubelet is gone. The
// identity goes last: only it shows that macfleet made the Node.
func (c *computation) notJoining(h *Host, actions []Action) []Action {
	if !c.cluster.read || !h.leaves() || len(c.sel.Steps) > 0 || h.stays(actions) {
		return nil
	}
	var out []Action
	if n, ok := h.Node.Get(); ok && n.Name == h.Name {
		gone := deleteNode(h, n, slices.ContainsFunc(actions, func(a Action) bool { return a.Drains || a.Forced }))
		if out = append(out, gone); gone.Refusal != nil {
			return out
		}
	}
	i, _ := h.Identity.Get()
	return append(out, h.action(RevokeHost, pending, CodeBlockRemoved, "the host no longer joins the cluster, and its kubelet is gone",
		identityFields(i, true, Field{Before: "present"})...))
}

// leaves reports whether a host does not join the cluster but still has a kubelet identity there: macfleet
// made it a Node once.
func (h *Host) leaves() bool {
	i, known := h.Identity.Get()
	return known && (i.ServiceAccount != "" || i.Secret != "" || i.Bound || i.Former) && !h.Spec.Spec.JoinsCluster()
}

// stays reports whether a kubelet may still run on the host after its actions: its removal is refused, or the
// host could not be read.
func (h *Host) stays(actions []Action) bool {
	refused := func(a Action) bool {
		return a.Refusal != nil && slices.ContainsFunc(a.Changes, func(c Change) bool { return c.Removes })
	}
	return len(h.Unread) > 0 || h.NeedsRoot || slices.ContainsFunc(actions, refused)
}

// deleteNode deletes the Node of a host that leaves. drained says that the plan has evicted its Pods by then.
func deleteNode(h *Host, n inventory.Node, drained bool) Action {
	a := h.action(DeleteNode, pending, CodeBlockRemoved, "the host no longer joins the cluster")
	if !drained {
		a.Refusal = h.busy(n)
	}
	if n.ProviderID != h.Server.ProviderID() {
		a.Refusal = codeNodeNotProven.Trouble(fmt.Sprintf("Node %s does not have the provider id of this server", n.Name),
			fmt.Sprintf("check it: kubectl describe node %s; if it is stale: kubectl delete node %[1]s", n.Name))
	}
	return a
}

// orphans are identities of this configuration without a host in the plan. If the server is certainly gone
// the identity is revoked, as its token never expires. Otherwise a person decides.
func (c *computation) orphans() {
	identities, ok := c.cluster.seen.Identities.Get()
	if !ok || c.plan.Narrowed || !c.cluster.read || c.cfg.Kubernetes == nil {
		return
	}
	spoken := c.mentioned()
	for _, i := range identities {
		switch {
		case spoken[i.Host]:
			continue
		case c.vanishedForGood(i.Host):
			h := Host{Name: i.Host}
			c.plan.Actions = append(c.plan.Actions, h.action(RevokeHost, pending, codeServerGone, "the host's server and Node no longer exist"))
		default:
			c.plan.Warnings = append(c.plan.Warnings, *codeIdentityLeftOver.Trouble(
				fmt.Sprintf("the cluster has a kubelet identity of %s, which is not in the configuration", i.Host),
				"if that Mac will not return: "+revocation(c.cfg.Kubernetes, i)))
		}
		spoken[i.Host] = true
	}
}

// mentioned returns the names of hosts that the plan mentions: the configuration's, those about to be, and lost
// or orphaned ones.
func (c *computation) mentioned() map[string]bool {
	spoken := make(map[string]bool)
	for _, p := range c.hosts(c.needs) {
		spoken[p.name] = true
		for _, name := range p.former {
			spoken[name] = true
		}
	}
	for _, l := range c.cfg.Hosts {
		spoken[l.Name] = true
	}
	for i := range c.servers {
		if p := &c.servers[i]; p.role == orphan { // the moved host keeps its identity
			spoken[p.name] = true
			for _, name := range c.cluster.named[p.server.ProviderID()] {
				spoken[name] = true
			}
		}
	}
	return spoken
}

// revocation is the command that deletes an identity, the binding first.
func revocation(k *fleet.Kubernetes, i inventory.Identity) string {
	binding := inventory.BindingOf(i.Host)
	if i.Former {
		binding += " " + inventory.FormerBindingOf(i.Host)
	}
	return fmt.Sprintf("kubectl delete --ignore-not-found clusterrolebinding %s; kubectl -n %s delete secret/tart-kubelet-%s-token serviceaccount/tart-kubelet-%[3]s",
		binding, fleet.AgentNamespace(k.Namespace), i.Host)
}

// vanishedForGood reports whether nothing is left of the server that a name was made for: no server, no
// pinned key and no Node. It cannot be known for names outside the naming grammar.
func (c *computation) vanishedForGood(name string) bool {
	at, ok := c.cfg.Parse(name)
	if _, isNode := c.cluster.nodes[name]; !ok || isNode {
		return false
	}
	pinned := slices.ContainsFunc(c.snap.Pins, func(p Pin) bool { return p.Name == name })
	there := slices.ContainsFunc(c.snap.Servers, func(s inventory.Server) bool {
		return s.Name == name || strings.HasPrefix(s.ID, at.Suffix)
	})
	return !pinned && !there
}
