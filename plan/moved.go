package plan

import (
	"fmt"
	"slices"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
)

var (
	codeMoved = NewCode("moved", NotDrift, "a moved block gives the host another place")
	// A Node cannot be renamed: the kubelet registers another one, and what runs on the old
	// one would be lost.
	codeMoveNeedsDrain = NewCode("move-needs-drain", NotDrift, "a host at work gets another name only after its Node was drained",
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

// renamedNode gives a host that moved no Node but that of its own name: one of a name
// before is left over, or is about to be.
func (c *census) renamedNode(p *placed) {
	if n, ok := p.node.Get(); ok && slices.Contains(p.former, n.Name) {
		own, there := c.cluster.nodes[p.name]
		p.node = within(c.cluster.all, own, there)
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

// unmovable returns why a host must not get its name yet, or nil: its Node of before is not
// drained, or nobody knows. It is compared, and nothing at all is done to it until then.
func (h *Host) unmovable() *Trouble {
	marker, _ := h.Seen.Marker.Get()
	for _, f := range h.Former {
		n, isNode := f.Node.Get()
		if f.Node.IsUnread() && marker.Name == f.Name {
			return codeMoveNeedsDrain.Trouble("nobody knows whether it is at work as the Node "+f.Name+": "+f.Node.Why(), "apply when the cluster answers")
		}
		if !isNode {
			continue
		}
		drain := fmt.Sprintf("drain it: kubectl drain %s --ignore-daemonsets; then apply, and it joins as %s", f.Name, h.Name)
		was := *h
		was.Pods = f.Pods
		if busy := was.busy(n); busy != nil {
			return codeMoveNeedsDrain.Trouble("it is to be renamed, and "+busy.Text, drain)
		}
		if !n.Cordoned {
			return codeMoveNeedsDrain.Trouble("it is to be renamed, and its Node "+f.Name+" takes Pods, which would be lost with it", drain)
		}
	}
	return nil
}

// leavesBehind returns what is taken from the cluster of a host that has moved, after its
// steps: its kubelet goes by the new name then.
func (c *computation) leavesBehind(h *Host, actions []Action) []Action {
	refused := slices.ContainsFunc(actions, func(a Action) bool { return a.Refusal != nil })
	if !c.cluster.there || refused || h.Blind || len(h.Unread) > 0 || len(c.sel.Steps) > 0 {
		return nil
	}
	var out []Action
	for _, f := range h.Former {
		add := func(k Kind, why string, fields ...Field) {
			a := h.action(k, pending, codeMoved, why, fields...)
			a.Was = f.Name
			out = append(out, a)
		}
		if _, ok := f.Node.Get(); ok {
			add(DeleteNode, "it was the Node "+f.Name+" before, and is "+h.Name+" now")
		}
		if i, ok := f.Identity.Get(); ok {
			add(RevokeHost, "its kubelet was "+f.Name+" before", identityFields(i, true, Field{Before: "present"})...)
		}
	}
	return out
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
