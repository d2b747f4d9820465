package kube

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/macfleet/macfleet/internal/sandbox/agent"
)

const (
	leaseNamespace = "kube-node-lease"
	leaseEvery     = 10 * time.Second
	statusEvery    = 30 * time.Second
	leaseSeconds   = 40

	// gracePeriod is how long a Node stays Ready after its last heartbeat.
	gracePeriod = 40 * time.Second
)

// member is one kubelet of a Node, with the cluster's judgement.
type member struct {
	agent.Kubelet
	run      *run
	stopped  time.Time // zero: its heartbeats arrive
	mayLease bool
	mayPods  func(namespace string) (bool, error)
	bare     bool // its heartbeats write only the status
}

// beat is the newest heartbeat of a Node's kubelets.
type beat struct {
	last  time.Time
	since time.Time // when the kubelet that sent it started
	live  *member   // the newest one whose heartbeats arrive, or nil
	lease bool
}

// sent returns when the last heartbeat arrived. A kubelet sends one at its start and then at
// intervals.
func (b *beat) sent(every time.Duration) time.Time { return b.before(b.last, every) }

// renewed returns when the Lease was last renewed.
func (b *beat) renewed() time.Time {
	if b.live != nil && !b.lease {
		return b.before(b.live.run.Unleased, leaseEvery)
	}
	return b.sent(leaseEvery)
}

// before returns the last of the times at intervals since the kubelet's start that is not after end.
func (b *beat) before(end time.Time, every time.Duration) time.Time {
	return end.Add(-end.Sub(b.since) % every)
}

// settleKubelets does what the Macs' kubelets and the Node controller have done until now: it
// registers Nodes, restores labels, renews Leases, and sets silent Nodes to unknown.
func (a *API) settleKubelets(now time.Time) error {
	a.beats = map[string]*beat{}
	published, err := a.kubelets()
	if err != nil || len(published) == 0 {
		return err
	}
	known, err := a.remembered()
	if err != nil {
		return err
	}
	own, err := a.preferences()
	if err != nil {
		return err
	}
	before := string(encoded(known))
	members, err := a.members(published, known, now)
	if err != nil {
		return err
	}
	for _, m := range members {
		if err := a.settleMember(m, own, now); err != nil {
			return fmt.Errorf("the kubelet of %s: %w", m.Node, err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(a.beats)) {
		if err := a.settleNode(name, a.beats[name], now); err != nil {
			return fmt.Errorf("the Node %s: %w", name, err)
		}
	}
	if err := a.settlePods(known, own, now); err != nil {
		return err
	}
	known.forget(published)
	if string(encoded(known)) == before {
		return nil
	}
	return a.state.keep(memoryFile, known)
}

// members judges each kubelet by its token: a refused one counts as stopped from then on.
func (a *API) members(published []agent.Kubelet, known *memory, now time.Time) ([]*member, error) {
	g, err := a.grants()
	if err != nil {
		return nil, err
	}
	var members []*member
	for _, k := range published {
		m := &member{Kubelet: k, run: known.of(k), bare: known.Bare[k.ServerID]}
		accepted, err := a.judge(m, g, now)
		if err != nil {
			return nil, err
		}
		switch {
		case accepted:
			m.run.Refused = time.Time{}
		case m.run.Refused.IsZero():
			m.run.Refused = now
		}
		switch {
		case m.mayLease:
			m.run.Unleased = time.Time{}
		case m.run.Unleased.IsZero() && m.run.Registered:
			m.run.Unleased = now
		case m.run.Unleased.IsZero():
			m.run.Unleased = k.Started
		}
		for _, end := range []time.Time{k.Ended, m.run.Refused, m.run.Silent} {
			if !end.IsZero() && (m.stopped.IsZero() || end.Before(m.stopped)) {
				m.stopped = end
			}
		}
		members = append(members, m)
	}
	return members, nil
}

// judge reports whether the cluster accepts a kubelet's token with the rights for a Node.
func (a *API) judge(m *member, g *grants, now time.Time) (bool, error) {
	who, ok, err := a.account(m.Token, now)
	if err != nil || !ok {
		return false, err
	}
	rules, err := g.held(who, "")
	if err != nil {
		return false, err
	}
	inLeases, err := g.held(who, leaseNamespace)
	if err != nil {
		return false, err
	}
	may := func(rules []rbacv1.PolicyRule, group, resource string, verbs ...string) bool {
		return slices.ContainsFunc(verbs, func(verb string) bool {
			return slices.ContainsFunc(rules, func(rule rbacv1.PolicyRule) bool {
				return allows(rule, deed{verb: verb, group: group, resource: resource, name: m.Node})
			})
		})
	}
	m.mayLease = may(inLeases, "coordination.k8s.io", leases, "create") && may(inLeases, "coordination.k8s.io", leases, "update", "patch")
	watches := may(rules, "", pods, "list") && may(rules, "", pods, "watch")
	m.mayPods = func(namespace string) (bool, error) {
		local, err := g.held(who, namespace)
		return watches && may(local, "", pods, "update", "patch") && may(local, "", "pods/status", "update", "patch") && may(local, "", pods, "delete"), err
	}
	return may(rules, "", nodes, "create") && may(rules, "", "nodes/status", "update", "patch"), nil
}

// settleMember registers a kubelet once, and records its heartbeat.
func (a *API) settleMember(m *member, own preferences, now time.Time) error {
	node, err := a.state.peek(nodes, "", m.Node)
	if err != nil {
		return err
	}
	again := node == nil && m.run.Registered && m.stopped.IsZero() && own.DeletedNodeReturns == "at-heartbeat"
	if !m.run.Registered && m.run.Refused.IsZero() || again {
		if err := a.register(m, node, now); err != nil {
			return err
		}
		m.run.Registered = true
	}
	if !m.run.Registered {
		return nil
	}
	b := a.beats[m.Node]
	if b == nil {
		b = &beat{}
		a.beats[m.Node] = b
	}
	last := now
	if m.stopped.IsZero() {
		b.live, b.lease = m, b.lease || m.mayLease // later ones started later
	} else if m.stopped.Before(now) {
		last = m.stopped
	}
	if last.After(b.last) {
		b.last, b.since = last, m.Started
	}
	return nil
}

// register creates the Node, or takes over an existing one. The provider ID is set if it is missing,
// and never overwritten.
func (a *API) register(m *member, present *object, now time.Time) error {
	node := newObject(a.kinds.named(nodes), "", m.Node, now)
	if present != nil {
		node = present.DeepCopy()
	} else {
		addOwnTaint(node)
	}
	if textAt(node, "spec", "providerID") == "" && m.ProviderID != "" {
		set(node, m.ProviderID, "spec", "providerID")
	}
	keepLabels(node, m)
	writeStatus(node, m, now)
	if present != nil && reflect.DeepEqual(node.Object, present.Object) {
		return nil
	}
	return a.state.put(nodes, node)
}

// settleNode writes what has changed since the last call: not each heartbeat, which readers compute,
// but the effect of one that arrived or is missing.
func (a *API) settleNode(name string, b *beat, now time.Time) error {
	present, err := a.state.peek(nodes, "", name)
	if err != nil {
		return err
	}
	if present == nil && b.live == nil {
		return a.dropLease(name)
	}
	if present == nil {
		return nil
	}
	silent := b.live == nil && now.Sub(b.last) >= gracePeriod
	restores := b.live != nil && b.restores(present)
	if b.live != nil && !upToDate(present, b.live) || restores || silent && condition(present, "Ready")["status"] != "Unknown" || staleTaints(present, silent) {
		node := present.DeepCopy()
		switch {
		case b.live != nil:
			if restores {
				keepLabels(node, b.live)
				addOwnTaint(node)
			}
			writeStatus(node, b.live, now)
		case silent:
			setCondition(node, map[string]any{
				"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown", "message": "Kubelet stopped posting node status.",
				"lastHeartbeatTime": stampText(b.sent(statusEvery)),
			}, b.last.Add(gracePeriod))
		}
		keepTaints(node, silent, now)
		if err := a.state.put(nodes, node); err != nil {
			return err
		}
	}
	return a.settleLease(name, present, b)
}

// settleLease creates the Lease of a Node whose kubelet renews it, and writes the last renewal of one that
// stopped, for when its Mac is deleted, or that lost the right.
func (a *API) settleLease(name string, node *object, b *beat) error {
	present, err := a.state.peek(leases, leaseNamespace, name)
	if err != nil {
		return err
	}
	last := microText(b.renewed())
	ended := b.live == nil || !b.lease && b.live.run.Unleased.After(b.live.Started)
	switch {
	case present == nil && b.live != nil && b.lease:
		lease := newObject(a.kinds.named(leases), leaseNamespace, name, b.last)
		lease.Object["spec"] = map[string]any{"holderIdentity": name, "leaseDurationSeconds": int64(leaseSeconds), "renewTime": last}
		set(lease, []any{map[string]any{"apiVersion": "v1", "kind": "Node", "name": name, "uid": string(node.GetUID())}}, "metadata", "ownerReferences")
		return a.state.put(leases, lease)
	case present != nil && ended && textAt(present, "spec", "renewTime") < last:
		lease := present.DeepCopy()
		set(lease, last, "spec", "renewTime")
		return a.state.put(leases, lease)
	}
	return nil
}

// dropLease deletes the Lease of a deleted Node, as the garbage collector does.
func (a *API) dropLease(name string) error {
	present, err := a.state.peek(leases, leaseNamespace, name)
	if err != nil || present == nil {
		return err
	}
	return a.state.remove(leases, present)
}

// ownPrefix is the prefix of the kubelet's own labels and taint.
const ownPrefix = "tuist.dev/"

// ownLabels are the labels that a kubelet always sets.
func ownLabels(node string) map[string]string {
	return map[string]string{"kubernetes.io/os": "darwin", "kubernetes.io/arch": "arm64", "kubernetes.io/hostname": node, ownPrefix + "runtime": "tart"}
}

// wantedLabels returns a Node's labels as a kubelet leaves them: it owns its own prefix and, depending
// on the build, the prefixes in its --node-labels, and removes labels that it no longer sets.
func wantedLabels(present map[string]string, m *member) map[string]string {
	owned := map[string]bool{strings.TrimSuffix(ownPrefix, "/"): true}
	for name := range m.Labels {
		if prefix, _, found := strings.Cut(name, "/"); found && !strings.HasSuffix(prefix, "kubernetes.io") {
			owned[prefix] = true
		}
	}
	wanted := map[string]string{}
	for name, value := range present {
		if prefix, _, found := strings.Cut(name, "/"); !found || !owned[prefix] {
			wanted[name] = value
		}
	}
	maps.Copy(wanted, m.Labels)
	maps.Copy(wanted, ownLabels(m.Node))
	return wanted
}

func keepLabels(node *object, m *member) { node.SetLabels(wantedLabels(node.GetLabels(), m)) }
