package plan

import "github.com/macfleet/macfleet/fleet/inventory"

// cluster returns what was seen of a cluster with every text scrubbed.
func (s Scrub) cluster(c inventory.Cluster) inventory.Cluster {
	return inventory.Cluster{Pods: scrubbed(s, c.Pods, s.pod), Identities: scrubbed(s, c.Identities, s.identity),
		Join: mapped(s, c.Join, s.join), Objects: scrubbed(s, c.Objects, s.object), Machines: scrubbed(s, c.Machines, s.machine)}
}

// scrubbed changes each member of a list, or the reason why it was not seen.
func scrubbed[T any](s Scrub, seen inventory.Seen[[]T], change func(T) T) inventory.Seen[[]T] {
	return mapped(s, seen, func(all []T) []T { return each(all, change) })
}

func (s Scrub) pod(p inventory.Pod) inventory.Pod {
	p.Namespace, p.Name, p.UID, p.Node = s(p.Namespace), s(p.Name), s(p.UID), s(p.Node)
	p.Phase, p.Reason, p.Controller = s(p.Phase), s(p.Reason), s(p.Controller)
	p.Finalizers = each(p.Finalizers, s)
	return p
}

func (s Scrub) identity(i inventory.Identity) inventory.Identity {
	i.Host, i.ServiceAccount, i.Secret = s(i.Host), s(i.ServiceAccount), s(i.Secret)
	return i
}

func (s Scrub) join(j inventory.Join) inventory.Join {
	return inventory.Join{Server: s(j.Server), CA: s(j.CA)}
}

func (s Scrub) object(o inventory.Object) inventory.Object {
	o.Kind, o.Namespace, o.Name, o.Why = s(o.Kind), s(o.Namespace), s(o.Name), s(o.Why)
	o.State = inventory.ObjectState(s(string(o.State)))
	return o
}

func (s Scrub) machine(m inventory.Machine) inventory.Machine {
	m.Namespace, m.Name, m.ProviderID, m.NodeRef, m.Deployment = s(m.Namespace), s(m.Name), s(m.ProviderID), s(m.NodeRef), s(m.Deployment)
	m.Infrastructure, m.InfrastructureUnread = s(m.Infrastructure), s(m.InfrastructureUnread)
	return m
}

// Nodes returns Nodes with every text scrubbed.
func (s Scrub) Nodes(in []inventory.Node) []inventory.Node {
	out := make([]inventory.Node, 0, len(in))
	for _, n := range in {
		n.Name, n.UID, n.ProviderID, n.Why, n.CordonedBy, n.CordonRun = s(n.Name), s(n.UID), s(n.ProviderID), s(n.Why), s(n.CordonedBy), s(n.CordonRun)
		n.Ready = inventory.Readiness(s(string(n.Ready)))
		n.Labels = s.labels(n.Labels)
		n.Hold, n.HoldUnread = s.hold(n.Hold), s(n.HoldUnread)
		out = append(out, n)
	}
	return out
}

func (s Scrub) labels(in map[string]string) map[string]string {
	if in == nil {
		return nil
	}
	out := make(map[string]string, len(in))
	for k, v := range in {
		out[s(k)] = s(v)
	}
	return out
}
