package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/macfleet/macfleet/fleet/inventory"
)

// The codes that are raised here.
var (
	codeNodeCordoned = NewCode("node-cordoned", Warning, "the Node is cordoned, so it gets no new Pods",
		"if the cordon is no longer needed: kubectl uncordon NAME; to keep it without alerts: macfleet hold NAME --until 3d --reason TEXT")
	codeForeignTaint = NewCode("foreign-taint", Warning, "a taint that macfleet did not set keeps Pods off the Node",
		"if the taint is no longer needed: kubectl taint node NAME KEY-; to keep it without alerts: macfleet hold NAME --until 3d --reason TEXT")
	codeNodeCondition = NewCode("node-condition", Warning, "a Node condition reports a problem, such as DiskPressure", "kubectl describe node NAME")
	codeTaintMissing  = NewCode("taint-missing", Warning, "the Node lacks its kubelet's taint, so Pods for Linux may be scheduled there")
)

// taint restores the taint of the host's kubelet. Other builds have another one, or none: it is restored only
// if the label names the known build.
func (h *Host) taint(n inventory.Node) []Action {
	taints, read := n.Taints.Get()
	_, ours := n.Labels[inventory.AgentLabel]
	if want := inventory.AgentTaint(); read && ours && h.Member && (n.ProviderID == "" || n.ProviderID == h.Server.ProviderID()) {
		have := ""
		for _, t := range taints {
			switch {
			case t.Key != want.Key:
			case t.Value == want.Value && t.Effect == want.Effect:
				return nil
			default:
				have = t.String()
			}
		}
		return []Action{h.action(TaintNode, drifted, codeTaintMissing, "someone removed or changed the taint of its kubelet", Field{"taint", have, want.String()})}
	}
	return nil
}

// watchNode warns of what keeps Pods off the host's Node, and of bad conditions. macfleet does not change
// these: a person set them, or has to look into them.
func (c *computation) watchNode(h *Host, actions []Action) {
	n, ok := h.Node.Get()
	if !ok || !h.Member || !h.Spec.Spec.JoinsCluster() || len(c.sel.Steps) > 0 || n.ProviderID != "" && n.ProviderID != h.Server.ProviderID() {
		return
	}
	opens := slices.ContainsFunc(actions, func(a Action) bool { return a.Kind == UncordonNode })
	if n.Cordoned && !opens && !c.applies(n.CordonRun) && !h.FailedRepairs.Quarantined() {
		by, remedy := cordonedBy(n)
		h.watch(codeNodeCordoned.Trouble("the Node has been cordoned"+since(n.CordonSince)+" "+by, remedy), Field{"scheduling", "disabled", "enabled"})
	}
	h.foreignTaints(n, c.snap.Taken)
	h.badConditions(n)
}

// watch warns of drift on the host's Node, unless a person holds the host: then it is known to be out of
// service.
func (h *Host) watch(t *Trouble, fields ...Field) {
	t.Remedy = strings.ReplaceAll(t.Remedy, "NAME", h.NodeName())
	h.Warnings = append(h.Warnings, StepWarning{Trouble: *t, Drift: h.ActiveHold() == nil, Fields: fields})
}

func since(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return " since " + clockTime(t)
}

// cordonedBy says who cordoned a Node, and how to undo it where the declared remedy does not apply.
func cordonedBy(n inventory.Node) (by string, remedy string) {
	switch {
	case n.CordonRun != "":
		return fmt.Sprintf("by run %s (%s), which did not uncordon it", n.CordonRun, n.CordonedBy), "macfleet apply (uncordons it once the host is repaired)"
	case n.CordonedBy != "":
		return "by " + n.CordonedBy + " with macfleet cordon",
			"if the cordon is no longer needed: macfleet cordon --undo NAME; to keep it without alerts: macfleet hold NAME --until 3d --reason TEXT"
	case n.CordonClient != "":
		return "by someone with " + n.CordonClient + " (not by macfleet)", codeNodeCordoned.Remedy()
	}
	return "by someone (not by macfleet)", codeNodeCordoned.Remedy()
}

// applies reports whether a run is in progress.
func (c *computation) applies(run string) bool {
	if run == "" {
		return false
	}
	if l := c.snap.Lock; l != nil && l.Alive && l.Run.ID == run {
		return true
	}
	for _, h := range c.snap.Hosts {
		if e := h.Entered; e != nil && e.Alone && e.Held && e.ID == run { // of other runs, the lock in the cluster shows it
			return true
		}
	}
	return false
}

// conditionTaints are the taints that Kubernetes sets for a condition. The cause is shown instead: the
// cordon, Ready, or the condition.
var conditionTaints = map[string]string{
	"node.kubernetes.io/not-ready": readyCondition, "node.kubernetes.io/unreachable": readyCondition,
	"node.kubernetes.io/memory-pressure": "MemoryPressure", "node.kubernetes.io/disk-pressure": "DiskPressure",
	"node.kubernetes.io/pid-pressure": "PIDPressure", "node.kubernetes.io/network-unavailable": "NetworkUnavailable",
}

const (
	readyCondition     = "Ready"
	unschedulableTaint = "node.kubernetes.io/unschedulable"
)

// taintLag is how long a taint may outlive its condition: the controller that removes it checks every few
// seconds.
const taintLag = 2 * time.Minute

// foreignTaints warns of taints that keep Pods off the Node without a cause that is already shown.
func (h *Host) foreignTaints(n inventory.Node, now time.Time) {
	taints, _ := n.Taints.Get()
	var texts, keys []string
	var fields []Field
	for _, t := range taints {
		condition, follows := conditionTaints[t.Key]
		switch {
		case t.Effect != "NoSchedule" && t.Effect != "NoExecute", t.Key == inventory.AgentTaint().Key:
			continue
		case t.Key == unschedulableTaint && n.Cordoned, follows && explains(n, condition, now):
			continue
		}
		text := t.String() + since(t.Since)
		switch {
		case t.Key == unschedulableTaint:
			text += ", although the Node is not cordoned"
		case follows:
			text += ", although the condition " + condition + " is good"
		}
		texts, keys = append(texts, text), append(keys, t.Key+":"+t.Effect+"-")
		fields = append(fields, Field{"taint " + t.Key + ":" + t.Effect, "present", "absent"})
	}
	if len(texts) > 0 {
		h.watch(codeForeignTaint.Trouble(count(len(texts), "foreign taint")+" on the Node: "+strings.Join(texts, "; "),
			"if it is no longer needed: kubectl taint node NAME "+strings.Join(keys, " ")+"; to keep it without alerts: macfleet hold NAME --until 3d --reason TEXT"), fields...)
	}
}

// explains reports whether a condition accounts for its taint: it is bad, was bad a moment ago, or is
// unknown.
func explains(n inventory.Node, condition string, now time.Time) bool {
	if condition == readyCondition && n.Ready != inventory.Ready {
		return true
	}
	for _, c := range n.Conditions {
		if c.Type == condition {
			good := "False"
			if condition == readyCondition {
				good = "True"
			}
			return c.Status != good || now.Sub(c.Since) < taintLag
		}
	}
	return false
}

// badConditions warns of bad conditions other than Ready.
func (h *Host) badConditions(n inventory.Node) {
	var texts []string
	var fields []Field
	for _, c := range n.Conditions {
		good := goodStatus(c.Type)
		unknown := c.Status == "Unknown"
		switch {
		case c.Type == readyCondition, c.Status == good, good == "" && !unknown:
			continue
		case unknown && n.Ready != inventory.Ready:
			continue // the conditions of an unreachable Node are unknown
		}
		text := c.Type + " is " + c.Status + since(c.Since)
		if c.Why != "" {
			text += " (" + c.Why + ")"
		}
		texts = append(texts, text)
		fields = append(fields, Field{"condition " + c.Type, c.Status, good})
	}
	if len(texts) > 0 {
		h.watch(codeNodeCondition.Trouble(strings.Join(texts, "; ")), fields...)
	}
}

// faults are conditions that are bad when True: those of Kubernetes and of the node problem detector. Their
// names follow no rule.
var faults = []string{"NetworkUnavailable", "KernelDeadlock", "ReadonlyFilesystem", "FrequentKubeletRestart", "FrequentDockerRestart",
	"FrequentContainerdRestart", "FrequentUnregisterNetDevice", "CorruptDockerOverlay2"}

// goodStatus is the good status of a condition, or "" if its name does not show which it is.
func goodStatus(condition string) string {
	ends := func(suffix string) bool { return strings.HasSuffix(condition, suffix) }
	switch {
	case slices.Contains(faults, condition), ends("Pressure"), ends("Problem"), ends("Unhealthy"):
		return "False"
	case ends("Ready"), ends("Healthy"):
		return "True"
	}
	return ""
}
