package plan

import (
	"cmp"
	"slices"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
)

// clusterIndex finds what the cluster holds about a host.
type clusterIndex struct {
	seen       inventory.Cluster
	all        inventory.Seen[[]inventory.Node]
	read       bool                           // the Nodes were read
	nodes      map[string]inventory.Node      // by name
	named      map[string][]string            // names of Nodes by provider id, sorted
	identities map[string]inventory.Identity  // by host
	pods       map[string][]inventory.Pod     // by name of their Node
	machines   map[string][]inventory.Machine // by provider id
}

func indexCluster(snap Snapshot) *clusterIndex {
	x := &clusterIndex{seen: clusterOf(snap), all: snap.Nodes,
		nodes: make(map[string]inventory.Node), named: make(map[string][]string), identities: make(map[string]inventory.Identity)}
	var nodes []inventory.Node
	nodes, x.read = snap.Nodes.Get()
	for _, n := range nodes {
		x.nodes[n.Name] = n
		if n.ProviderID != "" {
			x.named[n.ProviderID] = append(x.named[n.ProviderID], n.Name)
		}
	}
	for id := range x.named {
		slices.Sort(x.named[id])
	}
	identities, _ := x.seen.Identities.Get()
	for _, i := range identities {
		x.identities[i.Host] = i
	}
	x.machines = groupedBy(x.seen.Machines, func(m inventory.Machine) string { return m.ProviderID })
	x.pods = groupedBy(x.seen.Pods, func(p inventory.Pod) string { return p.Node })
	for name := range x.pods {
		slices.SortFunc(x.pods[name], func(a, b inventory.Pod) int {
			return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
		})
	}
	return x
}

// groupedBy groups the entries of a list that was read.
func groupedBy[T any](list inventory.Seen[[]T], key func(T) string) map[string][]T {
	out := make(map[string][]T)
	all, _ := list.Get()
	for _, v := range all {
		out[key(v)] = append(out[key(v)], v)
	}
	return out
}

// node returns a server's Node: the one with its provider id (the last by name if there are several), else
// the one with its name and no provider id.
func (x *clusterIndex) node(name string, s inventory.Server) inventory.Seen[inventory.Node] {
	n, found := x.nodes[name]
	found = found && n.ProviderID == ""
	if named := x.named[s.ProviderID()]; len(named) > 0 {
		n, found = x.nodes[named[len(named)-1]], true
	}
	return within(x.all, n, found)
}

// clusterOf returns what was seen of the cluster. If it was not read, each of its parts is absent or unread.
func clusterOf(snap Snapshot) inventory.Cluster {
	if c, ok := snap.Cluster.Get(); ok {
		return c
	}
	whole := inventory.Unread[inventory.Cluster](cmp.Or(snap.Cluster.Why(), "the cluster was not read"))
	if snap.Nodes.IsAbsent() {
		whole = inventory.Absent[inventory.Cluster]()
	}
	return inventory.Cluster{Pods: within[[]inventory.Pod](whole, nil, false), Identities: within[[]inventory.Identity](whole, nil, false),
		Join: within(whole, inventory.Join{}, false), Objects: within[[]inventory.Object](whole, nil, false),
		Machines: within[[]inventory.Machine](whole, nil, false)}
}

// enter records what the cluster holds about a host. A Node with the host's name is its Node whatever server
// it names: the host's kubelet registers under that name.
func (x *clusterIndex) enter(h *Host) {
	if own, named := x.nodes[h.Name]; named && h.Node.IsAbsent() && h.Spec.Spec.JoinsCluster() {
		h.Node = inventory.Present(own)
	}
	h.Join = x.seen.Join
	if id, known := x.seen.ID.Get(); known {
		h.Cluster = &id
	}
	i, known := x.identities[h.Name]
	h.Identity = within(x.seen.Identities, i, known)
	node := h.Name
	if n, ok := h.Node.Get(); ok {
		node = n.Name
	}
	h.Pods = within(x.seen.Pods, x.pods[node], true)
}

// within returns a value of a whole that may be absent or unread.
func within[Value, Whole any](whole inventory.Seen[Whole], v Value, found bool) inventory.Seen[Value] {
	switch _, seen := whole.Get(); {
	case whole.IsUnread():
		return inventory.Unread[Value](whole.Why())
	case seen && found:
		return inventory.Present(v)
	}
	return inventory.Absent[Value]()
}

// specified is the desired state of a server in a group.
func (c *census) specified(g fleet.Group, p *placed) fleet.Host {
	out := fleet.Host{Name: p.name, Fleet: p.place.Fleet, Group: p.place.Group, User: c.cfg.SSH.User, Spec: c.spec(p.name, p.server.ID, g), Tailnet: c.cfg.Tailnet}
	if k := c.cfg.Kubernetes; k != nil {
		out.LabelPrefix = k.LabelPrefix
	}
	return out
}

// host returns what is known about a server under the name it should have.
func (c *census) host(g fleet.Group, p *placed) Host {
	h := Host{Name: p.name, Fleet: p.place.Fleet, Group: p.place.Group, Server: p.server, Member: p.role == member, Node: p.node}
	h.Spec = c.specified(g, p)
	h.Former = c.before(p)
	c.cluster.enter(&h)
	seen, asked := c.snap.Hosts[p.server.ID]
	if !asked {
		seen.Trouble = notContacted()
	}
	h.Seen = seen
	h.FailedRepairs = repairsOf(seen.Marker, h.Node)
	h.Held = heldOf(seen.Marker, h.Node, c.snap.Taken)
	for _, f := range h.Former { // a hold may be on the former Node only
		if was := heldOf(seen.Marker, f.Node, c.snap.Taken); h.Held == nil || h.Held.Expired {
			h.Held = cmp.Or(was, h.Held)
		}
	}
	return h
}
