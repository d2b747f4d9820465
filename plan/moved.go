package plan

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
)

var (
	codeMoved = NewCode("moved", NotDrift, "a moved block gives the host another place")
	// A Node cannot be renamed: the kubelet registers another one, and what runs on the old
	// one would be lost.
	codeMoveNeedsDrain = NewCode("move-needs-drain", NotDrift, "a host gets another name only once its Node is drained, and macfleet cannot drain this one",
		"drain it: kubectl drain NAME --ignore-daemonsets; then apply")
)

// move gives an orphan the place that moved blocks name for its own, where that is of the
// server's type.
func (c *census) move(p *placed) {
	if p.role != orphan || p.owner != c.cfg.Owner.String() {
		return
	}
	to, ok := c.cfg.MovedTo(p.place)
	if !ok {
		return
	}
	if _, g, _ := c.cfg.Group(to.Fleet, to.Group); g.Type != p.server.Type {
		p.placeless.Text += fmt.Sprintf("; a moved block leads to %s.%s, which has servers of type %s, and this one is of type %s",
			to.Fleet, to.Group, g.Type, p.server.Type)
		return
	}
	p.role, p.place, p.moved, p.placeless = member, to, true, nil
	p.name = c.cfg.HostName(to.Fleet, to.Group, p.server.ID)
}

// formerNames returns the names that a server of a group had where moved blocks led it there.
func (c *census) formerNames(at fleet.Place, serverID string) []string {
	var out []string
	for _, from := range c.movedFrom[groupOf(at)] {
		out = append(out, c.cfg.HostName(from.Fleet, from.Group, serverID))
	}
	return out
}

// renamedNode gives a host that moves its Node: the one of its own name once that is there.
// Until then it is the one of a name before, as which its kubelet works.
func (c *census) renamedNode(p *placed) {
	if len(p.former) == 0 {
		return
	}
	if own, there := c.cluster.nodes[p.name]; there && own.ProviderID == p.server.ProviderID() {
		p.node = inventory.Present(own)
		return
	}
	for _, name := range p.former {
		if n, there := c.cluster.nodes[name]; there && n.ProviderID == "" && p.node.IsAbsent() {
			p.node = inventory.Present(n)
		}
	}
}

// before returns what the cluster still knows of a host under names that it had before.
func (c *census) before(p *placed) []Former {
	var out []Former
	for _, name := range p.former {
		f := Former{Name: name}
		n, isNode := c.cluster.nodes[name]
		f.Node = within(c.cluster.all, n, isNode && (n.ProviderID == "" || n.ProviderID == p.server.ProviderID()))
		i, known := c.cluster.identities[name]
		f.Identity = within(c.cluster.seen.Identities, i, known)
		f.Pods = within(c.cluster.seen.Pods, c.cluster.pods[name], true)
		out = append(out, f)
	}
	return out
}

// Former is what the cluster knows of a host under a name that it had before.
type Former struct {
	Name     string
	Node     inventory.Seen[inventory.Node]
	Identity inventory.Seen[inventory.Identity]
	Pods     inventory.Seen[[]inventory.Pod]
}

// MovesFrom returns the Node as which the host works under a name that it had before; ok is
// false where it has its present name there, or no Node.
func (h Host) MovesFrom() (n inventory.Node, ok bool) {
	n, there := h.Node.Get()
	return n, there && n.Name != h.Name && slices.ContainsFunc(h.Former, func(f Former) bool { return f.Name == n.Name })
}

// Moves reports whether the host is about to get another name as a Node: its kubelet goes by one
// of before.
func (h Host) Moves() bool {
	_, moves := h.MovesFrom()
	return moves && !h.leftNode
}

func (h *Host) formerNames() (out []string) {
	for _, f := range h.Former {
		out = append(out, f.Name)
	}
	return out
}

// NodeName is the name of the host's Node: its own, or the one that it had before as long as
// its kubelet goes by that.
func (h Host) NodeName() string {
	if n, moves := h.MovesFrom(); moves {
		return n.Name
	}
	return h.Name
}

// renames lets an action that gives the host's kubelet another name wait for an idle host: the
// kubelet would delete the machines of the Pods that it had before.
func (a *Action) renames(h *Host, step Step) {
	if m, is := step.(NodeMaker); is && m.MakesNode() && h.toBeRenamed() {
		a.Disruption = max(a.Disruption, Drain)
	}
}

// toBeRenamed reports whether the host's kubelet goes by a name of before, as far as anybody
// knows: where the cluster has no Node of it, its machines may run even so.
func (h *Host) toBeRenamed() bool {
	m, _ := h.Seen.Marker.Get()
	_, moves := h.MovesFrom()
	return moves || h.Node.IsAbsent() && slices.ContainsFunc(h.Former, func(f Former) bool { return f.Name == m.Name })
}

// vacates returns what is done first with a host that gets another name: its Node of before
// is drained. What cannot be drained keeps the host as it is.
func (h *Host) vacates(node StepID, actions []Action) []Action {
	n, moves := h.MovesFrom()
	if moves && node == "" && !h.Spec.Spec.JoinsCluster() {
		refuse(actions, h.undrained(n, actions))
		return actions
	}
	i := slices.IndexFunc(actions, func(a Action) bool { return node != "" && a.Step == node })
	if i < 0 {
		unread := h.Blind || slices.ContainsFunc(h.Unread, func(u StepUnread) bool { return u.Step == node })
		if h.leftNode = moves && node != "" && !unread; h.leftNode { // nobody opens the Node that it left
			actions = slices.DeleteFunc(actions, func(a Action) bool { return a.Kind == UncordonNode })
		}
		return actions
	}
	kubelet := &actions[i]
	if why := h.unmovable(); why != nil && !kubelet.Forced {
		refuse(actions, why)
	} else if kubelet.Refusal != nil && h.toBeRenamed() {
		refuse(actions, kubelet.Refusal) // half moved it would be hard to understand
	}
	if !moves {
		return actions
	}
	first := h.action(DrainNode, pending, codeMoved, "a Node cannot be renamed: it becomes the Node "+h.Name, Field{"Node", n.Name, h.Name})
	first.Was, first.Disruption, first.Refusal = n.Name, Drain, kubelet.Refusal
	first.Busy, first.Drains, first.Evicts, first.Forced = kubelet.Busy, kubelet.Drains, kubelet.Evicts, kubelet.Forced
	kubelet.Drains, kubelet.Evicts = false, 0
	return slices.Insert(actions, 0, first)
}

// movesWhole refuses what is left of a move where a part of it is refused: a host that is half
// moved is hard to understand. It is asked last, as until then more may be refused.
func (h *Host) movesWhole(actions []Action, node StepID) {
	if len(h.Former) == 0 {
		return
	}
	why, whole := h.unmoved(actions, node), h.toBeRenamed()
	for i := range actions {
		// What only a finalizer holds may be what the move waits for. Where the host has its name, its
		// kubelet may still work by what it had before.
		if a := &actions[i]; whole && a.Kind != ReleasePods || a.Was != "" {
			a.Refusal = cmp.Or(a.Refusal, why)
		}
	}
}

// unmoved returns why the host's kubelet does not come to go by its new name with these actions, or
// nil. What else is refused has nothing to do with that.
func (h *Host) unmoved(actions []Action, node StepID) *Trouble {
	for _, a := range actions {
		part := a.Kind == DrainNode || a.Kind == IdentifyHost || a.Kind == RenameServer || node != "" && a.Step == node
		removed := !h.Spec.Spec.JoinsCluster() && a.Disruption >= Drain && slices.ContainsFunc(a.Changes, func(c Change) bool { return c.Removes })
		if a.Refusal != nil && (part || removed) {
			return a.Refusal
		}
	}
	return nil
}

// undrained returns why a host that is to be no Node under its new name must not leave the one
// that it has, or nil: the removal of its kubelet drains it, or a person has.
func (h *Host) undrained(n inventory.Node, actions []Action) *Trouble {
	drain := fmt.Sprintf("drain it: kubectl drain %s --ignore-daemonsets; then apply", n.Name)
	busy := h.busy(n)
	switch {
	case slices.ContainsFunc(actions, func(a Action) bool { return a.Refusal == nil && (a.Drains || a.Forced) }):
		return nil
	case busy != nil:
		return codeMoveNeedsDrain.Trouble("it is to be renamed, and "+busy.Text, drain)
	case !n.Cordoned:
		return codeMoveNeedsDrain.Trouble("it is to be renamed, and its Node "+n.Name+" takes Pods, which would be lost with it", drain)
	}
	return nil
}

// unmovable returns why a host must not get its name yet, or nil: its Node of before cannot be
// drained, or nobody knows. It is compared, and nothing at all is done to it until then.
func (h *Host) unmovable() *Trouble {
	for _, f := range h.Former {
		if f.Node.IsUnread() {
			return codeMoveNeedsDrain.Trouble("nobody knows whether it is at work as the Node "+f.Name+": "+f.Node.Why(), "apply when the cluster answers")
		}
	}
	n, moves := h.MovesFrom()
	if _, read := h.Pods.Get(); !moves || h.Drainable() && read {
		return nil
	}
	busy := h.stillUsed(h.Pods, n)
	if busy == nil {
		return nil
	}
	why := "and its Node " + n.Name + " is not Ready, so that no drain ends a virtual machine"
	if n.ProviderID == "" {
		why = "and the Node " + n.Name + " does not say which server it is"
	}
	return codeMoveNeedsDrain.Trouble("it is to be renamed, "+why+"; "+busy.Text, busy.Remedy+"; then apply, and it joins as "+h.Name+
		"; macfleet apply --force-busy "+h.Name+" does not wait, and that work is lost")
}

// leavesBehind returns what is taken from the cluster of a host that has moved, after its
// steps: its kubelet goes by the new name then. node is the step that makes it a Node. What else
// is refused or unread keeps nothing back, as the host moves all the same.
func (c *computation) leavesBehind(h *Host, actions []Action, node StepID) []Action {
	unread := h.Blind || slices.ContainsFunc(h.Unread, func(u StepUnread) bool { return node == "" || u.Step == node })
	if !c.cluster.there || h.unmoved(actions, node) != nil || unread || len(c.sel.Steps) > 0 {
		return nil
	}
	drains := slices.ContainsFunc(actions, func(a Action) bool { return a.Drains || a.Forced })
	var out []Action
	for _, f := range h.Former {
		add := func(k Kind, why string, fields ...Field) *Action {
			a := h.action(k, pending, codeMoved, why, fields...)
			a.Was = f.Name
			out = append(out, a)
			return &out[len(out)-1]
		}
		if n, ok := f.Node.Get(); ok {
			a := add(DeleteNode, "it was the Node "+f.Name+" before, and is "+h.Name+" now")
			a.Forced = h.ForceBusy
			if n.Cordoned && n.CordonRun == "" {
				by, _ := cordonedBy(n)
				a.Reason.Text += "; it was cordoned " + by + ", so the new one is cordoned too"
			}
			if !drains {
				a.Refusal = h.stillUsed(f.Pods, n)
			}
			if a.Refusal != nil {
				continue
			}
		}
		if i, ok := f.Identity.Get(); ok {
			add(RevokeHost, "its kubelet was "+f.Name+" before", identityFields(i, true, Field{Before: "present"})...)
		}
	}
	return out
}

// stillUsed returns why a Node must not be deleted that the host was before, and whose kubelet
// ends no machine any more, or nil. Pods that are deleted already go with it.
func (h *Host) stillUsed(pods inventory.Seen[[]inventory.Pod], n inventory.Node) *Trouble {
	was := *h
	was.Pods = pods
	if all, read := pods.Get(); read {
		was.Pods = inventory.Present(slices.DeleteFunc(slices.Clone(all), func(p inventory.Pod) bool { return !p.Stays() }))
	}
	return was.busy(n)
}

// movesAlone reports whether a step differs only because the host has another name: under one
// of before it is what was proven last.
func (c *computation) movesAlone(h *Host, id StepID, marker Marker) bool {
	last, proven := marker.Steps[id]
	for _, f := range h.Former {
		was := h.formerly(c.cfg, f)
		for _, step := range c.stepsFor(was.Spec) {
			if step.ID() != id || !proven {
				continue
			}
			if found := step.Diff(was.View(id)); len(found.Unread) == 0 && !last.Moved(step.Wanted(), found.Facts).Drift {
				return true
			}
		}
	}
	return false
}

// formerly is the host as it was under a name of before.
func (h *Host) formerly(cfg *fleet.Config, f Former) *Host {
	was := *h
	was.Node, was.Identity, was.Pods = f.Node, f.Identity, f.Pods
	was.Name, was.Spec.Name = f.Name, f.Name
	if at, ok := cfg.Parse(f.Name); ok {
		was.Fleet, was.Group, was.Spec.Fleet, was.Spec.Group = at.Fleet, at.Group, at.Fleet, at.Group
	}
	return &was
}

// wasCalled reports whether a host had a name before moved blocks gave it its present one.
func wasCalled(cfg *fleet.Config, h *Host, name string) bool {
	for _, from := range cfg.MovedFrom(fleet.Place{Fleet: h.Fleet, Group: h.Group}) {
		if name == cfg.HostName(from.Fleet, from.Group, h.Server.ID) {
			return true
		}
	}
	return false
}
