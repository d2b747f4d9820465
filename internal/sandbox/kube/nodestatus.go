package kube

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"
)

// writeStatus sets the status that a kubelet reports with each heartbeat.
func writeStatus(node *object, m *member, now time.Time) {
	resources := capacity(m)
	set(node, resources, "status", "capacity")
	set(node, maps.Clone(resources), "status", "allocatable")
	set(node, addresses(m), "status", "addresses")
	set(node, map[string]any{
		"operatingSystem": "darwin", "architecture": "arm64", "kubeletVersion": nodeVersion, "containerRuntimeVersion": "tart",
		"osImage": "macOS", "machineID": m.ServerID, "systemUUID": m.ServerID, "bootID": "", "kernelVersion": "", "kubeProxyVersion": "",
	}, "status", "nodeInfo")
	setCondition(node, map[string]any{
		"type": "Ready", "status": "True", "reason": readyReason, "message": "tart-kubelet is posting ready status",
		"lastHeartbeatTime": stampText(now.Truncate(statusEvery)),
	}, now)
}

const readyReason = "TartKubeletReady"

// nodeVersion is the version that every build of tart-kubelet reports.
const nodeVersion = "tart-kubelet-v0"

func capacity(m *member) map[string]any {
	return map[string]any{"cpu": strconv.Itoa(m.CPU), "memory": fmt.Sprintf("%dMi", m.MemoryMB), "pods": strconv.Itoa(m.MaxPods)}
}

func addresses(m *member) []any {
	return []any{
		map[string]any{"type": "InternalIP", "address": m.Address},
		map[string]any{"type": "Hostname", "address": m.Node},
	}
}

// upToDate reports whether a Node has the status that its kubelet would report.
func upToDate(node *object, m *member) bool {
	ready := condition(node, "Ready")
	resources, _ := at(node, "status", "capacity").(map[string]any)
	return ready["status"] == "True" && ready["reason"] == readyReason &&
		textAt(node, "status", "nodeInfo", "kubeletVersion") == nodeVersion &&
		textAt(node, "status", "nodeInfo", "machineID") == m.ServerID &&
		nodeAddress(node, "InternalIP") == m.Address &&
		maps.Equal(resources, capacity(m))
}

// The taints of the Node controller, with their causes.
const (
	unreachableTaint   = "node.kubernetes.io/unreachable"
	unschedulableTaint = "node.kubernetes.io/unschedulable"
)

type taint struct{ key, effect string }

func wantedTaints(node *object, silent bool) []taint {
	var wanted []taint
	if at(node, "spec", "unschedulable") == true {
		wanted = append(wanted, taint{unschedulableTaint, "NoSchedule"})
	}
	if silent {
		wanted = append(wanted, taint{unreachableTaint, "NoSchedule"}, taint{unreachableTaint, "NoExecute"})
	}
	return wanted
}

// staleTaints reports whether a Node's controller taints are not what they should be.
func staleTaints(node *object, silent bool) bool {
	var present []taint
	for _, one := range itemsAt(node, "spec", "taints") {
		key, effect := fmt.Sprint(one["key"]), fmt.Sprint(one["effect"])
		if key == unreachableTaint || key == unschedulableTaint {
			present = append(present, taint{key, effect})
		}
	}
	wanted := wantedTaints(node, silent)
	if len(present) != len(wanted) {
		return true
	}
	return slices.ContainsFunc(wanted, func(t taint) bool { return !slices.Contains(present, t) })
}

// keepTaints updates them as the controller does, with the time.
func keepTaints(node *object, silent bool, now time.Time) {
	var kept []any
	there := make(map[taint]any)
	for _, one := range itemsAt(node, "spec", "taints") {
		if one["key"] != unreachableTaint && one["key"] != unschedulableTaint {
			kept = append(kept, one)
			continue
		}
		there[taint{fmt.Sprint(one["key"]), fmt.Sprint(one["effect"])}] = one
	}
	for _, t := range wantedTaints(node, silent) {
		one, is := there[t]
		if !is {
			one = map[string]any{"key": t.key, "effect": t.effect, "timeAdded": stampText(now)}
		}
		kept = append(kept, one)
	}
	if kept == nil {
		if spec, ok := node.Object["spec"].(map[string]any); ok {
			delete(spec, "taints")
		}
		return
	}
	set(node, kept, "spec", "taints")
}

// shownNode returns a Node with its kubelet's newest heartbeat, which is not written: 500 Nodes would
// be 500 files at each read.
func shownNode(node *object, b *beat, now time.Time) *object {
	if b == nil || b.live == nil && now.Sub(b.last) >= gracePeriod {
		return node
	}
	return with(node, "status", func(status map[string]any) {
		list, _ := status["conditions"].([]any)
		list = slices.Clone(list)
		for i, c := range mapsOf(list) {
			if c["type"] == "Ready" {
				c = maps.Clone(c)
				c["lastHeartbeatTime"] = stampText(b.sent(statusEvery))
				list[i] = c
			}
		}
		status["conditions"] = list
	})
}

// shownLease returns a Lease with its last renewal.
func shownLease(lease *object, b *beat) *object {
	if b == nil || b.live == nil || !b.lease {
		return lease
	}
	return with(lease, "spec", func(spec map[string]any) { spec["renewTime"] = microText(b.renewed()) })
}

// with returns a copy of an object with one part changed; the rest is shared.
func with(o *object, part string, change func(map[string]any)) *object {
	content := maps.Clone(o.Object)
	fields, _ := content[part].(map[string]any)
	fields = maps.Clone(fields)
	if fields == nil {
		fields = map[string]any{}
	}
	change(fields)
	content[part] = fields
	return &object{Object: content}
}
