package plan

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
)

var (
	codeMoved = NewCode("moved", NotDrift, "a moved block assigns the host to a different fleet or group")
	// A Node cannot be renamed: the kubelet registers a new one, and the Pods of the old one would be lost.
	codeMoveNeedsDrain = NewCode("move-needs-drain", NotDrift, "the host must be drained before it is renamed, and macfleet cannot drain it",
		"kubectl drain NODE --ignore-daemonsets; then macfleet apply")
)

// move gives an orphan the place that moved blocks name for it, if the server types match.
func (c *census) move(p *placed) {
	if p.role != orphan || p.why.By != c.cfg.Owner.String() {
		return
	}
	to, ok := c.cfg.MovedTo(p.place)
	if !ok {
		return
	}
	if _, g, _ := c.cfg.Group(to.Fleet, to.Group); !g.Accepts(p.server.Type) {
		p.placeless.Text += fmt.Sprintf("; a moved block assigns it to %s.%s, which needs type %s, and this server has type %s",
			to.Fleet, to.Group, g.TypeText(), p.server.Type)
		return
	}
	p.role, p.place, p.moved, p.placeless = member, to, true, nil
	p.name = c.cfg.HostName(to.Fleet, to.Group, p.server.ID)
}

// formerNames returns the names that a server of a group had before moved blocks led it there.
func (c *census) formerNames(at fleet.Place, serverID string) []string {
	var out []string
	for _, from := range c.movedFrom[groupOf(at)] {
		out = append(out, c.cfg.HostName(from.Fleet, from.Group, serverID))
	}
	return out
}

// renamedNode gives a moved host its Node: the one with its own name once it exists. Until then it is the
// former one, which its kubelet still uses.
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

// before returns what the cluster still has of a host under its former names.
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

// Former is what the cluster has of a host under a former name.
type Former struct {
	Name     string
	Node     inventory.Seen[inventory.Node]
	Identity inventory.Seen[inventory.Identity]
	Pods     inventory.Seen[[]inventory.Pod]
}

// MovesFrom returns the Node that the host uses under a former name; ok is false if its Node has the present
// name, or it has none. The host as it was is compared under its former name, which is its present one then.
func (h Host) MovesFrom() (n inventory.Node, ok bool) {
	n, there := h.Node.Get()
	return n, there && n.Name != h.Name && slices.ContainsFunc(h.Former, func(f Former) bool { return f.Name == n.Name })
}

// Moves reports whether the host's Node is about to get a new name: its kubelet uses a former one.
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

// NodeName is the name of the host's Node: its own, or the former one while its kubelet uses that.
func (h Host) NodeName() string {
	if n, moves := h.MovesFrom(); moves {
		return n.Name
	}
	return h.Name
}

// renames makes an action that renames the host's kubelet wait for an idle host: the kubelet would delete the
// virtual machines of its present Pods.
func (a *Action) renames(h *Host, step Step) {
	if m, is := step.(NodeMaker); is && m.MakesNode() && h.toBeRenamed() {
		a.Disruption = max(a.Disruption, Drain)
	}
}

// toBeRenamed reports whether the host's kubelet uses a former name, as far as known: its virtual machines
// may run even if the cluster has no Node of it.
func (h *Host) toBeRenamed() bool {
	m, _ := h.Seen.Marker.Get()
	_, moves := h.MovesFrom()
	return moves || h.Node.IsAbsent() && slices.ContainsFunc(h.Former, func(f Former) bool { return f.Name == m.Name })
}

// drainFormer returns the drain of the former Node that comes before a rename. A host that cannot be drained is
// not changed.
func (h *Host) drainFormer(node StepID, actions []Action) []Action {
	n, moves := h.MovesFrom()
	if moves && node == "" && !h.Spec.Spec.JoinsCluster() {
		refuse(actions, h.undrained(n, actions))
		return actions
	}
	i := slices.IndexFunc(actions, func(a Action) bool { return node != "" && a.Step == node })
	if i < 0 {
		unread := h.NeedsRoot || slices.ContainsFunc(h.Unread, func(u StepUnread) bool { return u.Step == node })
		if h.leftNode = moves && node != "" && !unread; h.leftNode { // the former Node is never uncordoned
			actions = slices.DeleteFunc(actions, func(a Action) bool { return a.Kind == UncordonNode })
		}
		return actions
	}
	kubelet := &actions[i]
	if why := h.unmovable(); why != nil && !kubelet.Forced {
		refuse(actions, why)
	} else if kubelet.Refusal != nil && h.toBeRenamed() {
		refuse(actions, kubelet.Refusal) // a half-moved host would be confusing
	}
	if !moves {
		return actions
	}
	first := h.action(DrainNode, pending, codeMoved, "Kubernetes cannot rename a Node: the host registers as "+h.Name, Field{"Node", n.Name, h.Name})
	first.Was, first.Disruption, first.Refusal = n.Name, Drain, kubelet.Refusal
	first.Busy, first.Drains, first.Evicts, first.Forced = kubelet.Busy, kubelet.Drains, kubelet.Evicts, kubelet.Forced
	kubelet.Drains, kubelet.Evicts = false, 0
	return slices.Insert(actions, 0, first)
}

// movesWhole refuses the rest of a move if a part of it is refused, as a half-moved host would be confusing.
// It is called last, because more may be refused until then.
func (h *Host) movesWhole(actions []Action, node StepID) {
	if len(h.Former) == 0 {
		return
	}
	why, whole := h.unmoved(actions, node), h.toBeRenamed()
	for i := range actions {
		// The move may be waiting for Pods that only a finalizer keeps. After the rename, the kubelet may
		// still use the former name.
		if a := &actions[i]; whole && a.Kind != ReleasePods || a.Was != "" {
			a.Refusal = cmp.Or(a.Refusal, why)
		}
	}
}

// unmoved returns why these actions do not make the host's kubelet use its new name, or nil. Other refusals
// do not matter.
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

// undrained returns why a host that does not join under its new name must not leave its present Node, or nil:
// removing its kubelet drains it, or a person has drained it.
func (h *Host) undrained(n inventory.Node, actions []Action) *Trouble {
	drain := fmt.Sprintf("kubectl drain %s --ignore-daemonsets; then macfleet apply", n.Name)
	busy := h.busy(n)
	switch {
	case slices.ContainsFunc(actions, func(a Action) bool { return a.Refusal == nil && (a.Drains || a.Forced) }):
		return nil
	case busy != nil:
		return codeMoveNeedsDrain.Trouble("it must be renamed, and "+busy.Text, drain)
	case !n.Cordoned:
		return codeMoveNeedsDrain.Trouble("it must be renamed, and its Node "+n.Name+" is not drained", drain)
	}
	return nil
}

// unmovable returns why a host must not be renamed yet, or nil: its former Node cannot be drained, or that is
// unknown. The host is compared but not changed until then.
func (h *Host) unmovable() *Trouble {
	for _, f := range h.Former {
		if f.Node.IsUnread() {
			return codeMoveNeedsDrain.Trouble("it is unknown whether it still runs as Node "+f.Name+": "+f.Node.Why(), "run macfleet apply again when the cluster answers")
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
	why := "and its Node " + n.Name + " is not Ready, so a drain cannot stop its virtual machines"
	if n.ProviderID == "" {
		why = "and the Node " + n.Name + " has no provider id"
	}
	return codeMoveNeedsDrain.Trouble("it must be renamed, "+why+"; "+busy.Text, busy.Remedy+"; then macfleet apply (it joins as "+h.Name+")"+
		"; to stop that work: macfleet apply --force-busy "+h.Name)
}

// leavesBehind returns what is deleted in the cluster after a moved host's steps: its kubelet uses the new
// name then. node is the step that makes it a Node. Other refusals do not matter, as the host moves anyway.
func (c *computation) leavesBehind(h *Host, actions []Action, node StepID) []Action {
	unread := h.NeedsRoot || slices.ContainsFunc(h.Unread, func(u StepUnread) bool { return node == "" || u.Step == node })
	if !c.cluster.read || h.unmoved(actions, node) != nil || unread || len(c.sel.Steps) > 0 {
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
			a := add(DeleteNode, "the host was Node "+f.Name+" and is now Node "+h.Name)
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
			add(RevokeHost, "its kubelet was called "+f.Name, identityFields(i, true, Field{Before: "present"})...)
		}
	}
	return out
}

// stillUsed returns why a former Node must not be deleted although its kubelet stops no virtual machines any
// more, or nil. Pods that are already deleted go with it.
func (h *Host) stillUsed(pods inventory.Seen[[]inventory.Pod], n inventory.Node) *Trouble {
	was := *h
	was.Pods = pods
	if all, read := pods.Get(); read {
		was.Pods = inventory.Present(slices.DeleteFunc(slices.Clone(all), func(p inventory.Pod) bool { return !p.Stays() }))
	}
	return was.busy(n)
}

// differsOnlyByName reports whether a step differs only by the host's name: under a former name it equals what was
// last verified.
func (c *computation) differsOnlyByName(h *Host, id StepID, marker Marker) bool {
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

// formerly is the host under a former name.
func (h *Host) formerly(cfg *fleet.Config, f Former) *Host {
	was := *h
	was.Node, was.Identity, was.Pods = f.Node, f.Identity, f.Pods
	was.Name, was.Spec.Name = f.Name, f.Name
	if at, ok := cfg.Parse(f.Name); ok {
		was.Fleet, was.Group, was.Spec.Fleet, was.Spec.Group = at.Fleet, at.Group, at.Fleet, at.Group
	}
	return &was
}

// hadName reports whether a host had a name before moved blocks renamed it.
func hadName(cfg *fleet.Config, h *Host, name string) bool {
	for _, from := range cfg.MovedFrom(fleet.Place{Fleet: h.Fleet, Group: h.Group}) {
		if name == cfg.HostName(from.Fleet, from.Group, h.Server.ID) {
			return true
		}
	}
	return false
}
