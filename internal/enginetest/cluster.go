package enginetest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/secret"
	"github.com/macfleet/macfleet/plan"
)

// node is a Node, with its last heartbeat.
type node struct{ inventory.Node }

// How kubelets behave: when the first heartbeat comes after the start, how often heartbeats come, and
// after how long a silence the Node is not Ready.
const (
	firstHeartbeat = 2 * time.Second
	heartbeat      = 10 * time.Second
	notReadyAfter  = 40 * time.Second
)

// Node returns a host's Node.
func (w *World) Node(host string) (inventory.Node, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, n := range w.list() {
		if n.Name == host {
			return n, true
		}
	}
	return inventory.Node{}, false
}

// AddNode adds a Node, or replaces the one of its name.
func (w *World) AddNode(n inventory.Node) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.nodes[n.Name] = &node{n}
}

// DeleteNode deletes a host's Node, as a person does. Its kubelet creates another.
func (w *World) DeleteNode(host string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.deleteNode(host)
}

// RemakeNode replaces a host's Node at once.
func (w *World) RemakeNode(host string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.deleteNode(host)
	if m := w.machineOf(host); m != nil {
		m.nodeGone = time.Time{}
		w.beat(m)
	}
}

// TakesPods reports whether the scheduler would bind a new Pod to a host, and the host would run it.
func (w *World) TakesPods(host string) bool {
	n, isNode := w.Node(host)
	return isNode && !n.Cordoned && w.RunsPods(host)
}

// RunsPods reports whether a host would run a Pod that is bound to its Node: without an identity its kubelet starts nothing.
func (w *World) RunsPods(host string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	m := w.machineOf(host)
	return m != nil && w.identities[host] > 0 && m.token == w.tokenOf(host)
}

// Cordon cordons a host's Node in the name of a person or of a run.
func (w *World) Cordon(host, who, run string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := w.nodes[host]
	n.Cordoned, n.CordonedBy, n.CordonRun = true, who, run
}

// Uncordon uncordons a host's Node, as a person does.
func (w *World) Uncordon(host string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := w.nodes[host]
	n.Cordoned, n.CordonedBy, n.CordonRun = false, "", ""
}

// RevokeToken revokes the token of a host's kubelet.
func (w *World) RevokeToken(host string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.identities, host)
}

// StopKubelet stops a host's kubelet for good.
func (w *World) StopKubelet(host string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.machineOf(host).process = ""
}

func (w *World) deleteNode(host string) {
	delete(w.nodes, host)
	if m := w.machineOf(host); m != nil {
		m.nodeGone = time.Now()
	}
}

// machineOf returns the machine whose kubelet reports, or would report, as a Node; or nil.
func (w *World) machineOf(name string) *Machine {
	if i := slices.IndexFunc(w.Machines, func(m *Machine) bool { return m.NodeName() == name }); i >= 0 {
		return w.Machines[i]
	}
	return nil
}

func (w *World) tokenOf(host string) string {
	return fmt.Sprintf("token %d of %s", w.identities[host], host)
}

// beat makes a machine's kubelet report.
func (w *World) beat(m *Machine) {
	if m == nil {
		return
	}
	name, since := m.NodeName(), time.Since(m.started)
	first := firstHeartbeat + m.Late
	if m.process == "" || m.process == m.Refuses || m.process == m.Silent || time.Now().Before(m.up) || since < first || w.identities[name] == 0 || m.token != w.tokenOf(name) {
		return
	}
	n := w.nodes[name]
	if n == nil {
		if !m.nodeGone.IsZero() && time.Since(m.nodeGone) < 3*time.Second {
			return
		}
		n = &node{inventory.Node{Name: name, UID: fmt.Sprint("node-", time.Now().UnixNano()), ProviderID: m.Server.ProviderID()}}
		w.nodes[name] = n
	}
	n.LastHeartbeat = m.started.Add(first + (since - first).Truncate(heartbeat))
	if n.LastHeartbeat.Before(m.nodeGone) {
		n.LastHeartbeat = time.Now()
	}
}

// list returns all Nodes.
func (w *World) list() []inventory.Node {
	for _, m := range w.Machines {
		w.beat(m)
	}
	var out []inventory.Node
	for _, n := range w.nodes {
		if n.Ready = inventory.Ready; time.Since(n.LastHeartbeat) > notReadyAfter {
			n.Ready, n.Why = inventory.ReadyUnknown, "no heartbeat"
		}
		out = append(out, n.Node)
	}
	slices.SortFunc(out, func(a, b inventory.Node) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// podsOn returns the Pods that run on a Node.
func (w *World) podsOn(name string) []inventory.Pod {
	var out []inventory.Pod
	for _, p := range w.pods {
		if p.Node == name && p.Works() {
			out = append(out, p)
		}
	}
	return out
}

// cluster implements the engine's cluster.
type cluster struct{ world *World }

func (c cluster) call(ctx context.Context, what, name string, effect func() error) error {
	return c.world.call(ctx, Call{InCluster, what, name}, effect)
}

// ID returns the identity of the cluster.
func (c cluster) ID(ctx context.Context) (inventory.ClusterID, error) {
	return c.world.id(), c.call(ctx, "id", "", func() error { return nil })
}

func (w *World) id() inventory.ClusterID {
	return inventory.ClusterID{UID: w.Config.ClusterUID, Context: "memory", Server: "https://api.acme.dev:6443"}
}

// Nodes lists all Nodes.
func (c cluster) Nodes(ctx context.Context) (out []inventory.Node, err error) {
	return out, c.call(ctx, "nodes", "", func() error { out = c.world.list(); return nil })
}

// Macs returns all Nodes, labelled or not.
func (c cluster) Macs(ctx context.Context) ([]inventory.Node, error) { return c.Nodes(ctx) }

// Observe reads the Nodes and everything else a plan needs.
func (c cluster) Observe(ctx context.Context, _ bool) (inventory.Seen[[]inventory.Node], inventory.Cluster) {
	var nodes []inventory.Node
	seen := inventory.Cluster{Machines: inventory.Absent[[]inventory.Machine]()}
	err := c.call(ctx, "observe", "", func() error {
		nodes = c.world.list()
		all := []inventory.Identity{}
		for host := range c.world.identities {
			all = append(all, identity(host))
		}
		seen.ID = inventory.Present(c.world.id())
		seen.Pods, seen.Identities = inventory.Present(slices.Clone(c.world.pods)), inventory.Present(all)
		seen.Join = inventory.Present(inventory.Join{Server: "https://api.acme.dev:6443", CA: "pem"})
		seen.Objects = inventory.Present(slices.Clone(c.world.Objects))
		return nil
	})
	if err != nil {
		return inventory.Unread[[]inventory.Node](err.Error()), inventory.Cluster{}
	}
	return inventory.Present(nodes), seen
}

func identity(host string) inventory.Identity {
	return inventory.Identity{Host: host, ServiceAccount: "sa", Secret: "s", Issued: true, Bound: true}
}

// Identify completes a host's identity.
func (c cluster) Identify(ctx context.Context, host string) (inventory.Identity, error) {
	return identity(host), c.call(ctx, "identify", host, func() error {
		if c.world.identities[host] == 0 {
			c.world.identities[host] = 1 + int(time.Now().UnixNano()%1000)
		}
		return nil
	})
}

// Token returns the token of a host's identity.
func (c cluster) Token(ctx context.Context, host string) (secret.Value, error) {
	var text string
	if err := c.call(ctx, "token", host, func() error {
		if text = c.world.tokenOf(host); c.world.identities[host] == 0 {
			return fmt.Errorf("%s has no identity", host)
		}
		return nil
	}); err != nil {
		return secret.Value{}, err
	}
	return secret.New(text)
}

// RenewToken issues a new token for a host. The old one stays valid.
func (c cluster) RenewToken(ctx context.Context, host string) (inventory.Identity, error) {
	return identity(host), c.call(ctx, "renew-token", host, func() error { c.world.identities[host]++; return nil })
}

// RetireTokens revokes the older tokens of a host.
func (c cluster) RetireTokens(ctx context.Context, host, _ string) error {
	return c.call(ctx, "retire-tokens", host, func() error { return nil })
}

// Revoke removes a host's identity.
func (c cluster) Revoke(ctx context.Context, host string) error {
	return c.call(ctx, "revoke", host, func() error { delete(c.world.identities, host); return nil })
}

func (c cluster) SetProviderID(ctx context.Context, n inventory.Node, id string) error {
	return c.onNode(ctx, "provider-id", n, func(have *node) error { have.ProviderID = id; return nil })
}

// Taint adds a taint to a Node.
func (c cluster) Taint(ctx context.Context, n inventory.Node, t inventory.Taint) error {
	return c.onNode(ctx, "taint", n, func(have *node) error { have.Taints = inventory.Present([]inventory.Taint{t}); return nil })
}

// NoteHostKey writes a host's key to its Node.
func (c cluster) NoteHostKey(ctx context.Context, n inventory.Node, key string) error {
	return c.onNode(ctx, "host-key", n, func(have *node) error { have.HostKey = key; return nil })
}

// SetRepairs writes a host's failed repairs to its Node.
func (c cluster) SetRepairs(ctx context.Context, n inventory.Node, r *inventory.Repairs) error {
	return c.onNode(ctx, "repairs", n, func(have *node) error { have.Repairs = r; return nil })
}

func (c cluster) DeleteNode(ctx context.Context, n inventory.Node) error {
	return c.onNode(ctx, "delete", n, func(*node) error { c.world.deleteNode(n.Name); return nil })
}

// onNode changes a Node if it is still the one that was observed.
func (c cluster) onNode(ctx context.Context, what string, n inventory.Node, change func(*node) error) error {
	return c.call(ctx, what, n.Name, func() error {
		c.world.list() // kubelets report meanwhile
		have := c.world.nodes[n.Name]
		if have == nil || have.UID != n.UID {
			return fmt.Errorf("the Node %s was replaced", n.Name)
		}
		return change(have)
	})
}

// CordonNode cordons a Node in the name of a run.
func (c cluster) CordonNode(ctx context.Context, n inventory.Node, run plan.Run) (ours bool, err error) {
	return ours, c.onNode(ctx, "close", n, func(have *node) error {
		if ours = !have.Cordoned || have.CordonRun != ""; ours {
			have.Cordoned, have.CordonedBy, have.CordonRun = true, run.Who, run.ID
		}
		return nil
	})
}

// UncordonNode removes the cordon of a run.
func (c cluster) UncordonNode(ctx context.Context, n inventory.Node) error {
	return c.onNode(ctx, "open", n, func(have *node) error {
		if have.CordonRun != "" {
			have.Cordoned, have.CordonedBy, have.CordonRun = false, "", ""
		}
		return nil
	})
}

// EvictPods evicts the Pods of a Node one by one.
func (c cluster) EvictPods(ctx context.Context, n inventory.Node, within time.Duration, _ bool, report func(pod, what, why string)) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	c.world.mu.Lock()
	all := c.world.podsOn(n.Name)
	c.world.mu.Unlock()
	for _, p := range all {
		name := p.Namespace + "/" + p.Name
		for c.held(p.Name) {
			report(name, "held", "a disruption budget")
			if err := pass(ctx, time.Second); err != nil {
				return fmt.Errorf("%s is held by a disruption budget: %w", name, err)
			}
		}
		report(name, "evicted", "")
		if err := c.call(ctx, "evict", p.Name, func() error {
			c.world.pods = slices.DeleteFunc(c.world.pods, func(have inventory.Pod) bool { return have.Name == p.Name })
			return nil
		}); err != nil {
			return err
		}
		report(name, "gone", "")
	}
	return nil
}

func (c cluster) held(pod string) bool {
	c.world.mu.Lock()
	defer c.world.mu.Unlock()
	return c.world.Held[pod]
}

// PodsOn lists the Pods of a Node.
func (c cluster) PodsOn(ctx context.Context, n inventory.Node) (out []inventory.Pod, err error) {
	return out, c.call(ctx, "pods", n.Name, func() error { out = c.world.podsOn(n.Name); return nil })
}

// ReleasePod removes a Pod's finalizer.
func (c cluster) ReleasePod(ctx context.Context, p inventory.Pod) error {
	return c.call(ctx, "release", p.Name, func() error {
		c.world.pods = slices.DeleteFunc(c.world.pods, func(have inventory.Pod) bool { return have.Name == p.Name })
		return nil
	})
}

// Keep creates or updates an object.
func (c cluster) Keep(ctx context.Context, o inventory.Object) error {
	return c.call(ctx, "keep", o.Name, func() error {
		for i := range c.world.Objects {
			if c.world.Objects[i].Name == o.Name {
				c.world.Objects[i].State = inventory.ObjectKept
			}
		}
		return nil
	})
}

// Remove deletes an object.
func (c cluster) Remove(ctx context.Context, o inventory.Object) error {
	return c.call(ctx, "remove", o.Name, func() error {
		c.world.Objects = slices.DeleteFunc(c.world.Objects, func(have inventory.Object) bool { return have.String() == o.String() })
		return nil
	})
}
