package kube

import (
	"maps"
	"slices"
	"time"
)

// ownTaint is the key of a kubelet's own taint, which no flag changes.
const ownTaint = ownPrefix + "macos"

// addOwnTaint adds its kubelet's taint to a Node without that key. One with another value or effect
// stays.
func addOwnTaint(node *object) {
	if hasOwnTaint(node) {
		return
	}
	taints, _ := at(node, "spec", "taints").([]any)
	set(node, append(slices.Clone(taints), map[string]any{"key": ownTaint, "value": "true", "effect": "NoSchedule"}), "spec", "taints")
}

func hasOwnTaint(node *object) bool {
	return slices.ContainsFunc(itemsAt(node, "spec", "taints"), func(one map[string]any) bool { return one["key"] == ownTaint })
}

// restores reports whether a heartbeat has arrived since someone else changed a Node's labels, or
// removed its kubelet's taint: the kubelet rewrites them at each one.
func (b *beat) restores(node *object) bool {
	m := b.live
	if m.bare || hasOwnTaint(node) && maps.Equal(node.GetLabels(), wantedLabels(node.GetLabels(), m)) {
		m.run.Strange = time.Time{}
		return false
	}
	if m.run.Strange.IsZero() {
		m.run.Strange = b.last
	}
	if !b.sent(statusEvery).After(m.run.Strange) {
		return false
	}
	m.run.Strange = time.Time{}
	return true
}
