package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/macfleet/macfleet/fleet/inventory"
)

var (
	codeWaitsForIdle = NewCode("waits-for-idle", Notice, "the change waits until the host is idle",
		"run macfleet apply again when they have finished")
	codeLeftCordoned = NewCode("left-cordoned", Warning, "an unfinished apply left the Node cordoned")
)

// Task is work on a host that a change would interrupt.
type Task struct {
	VM   string `json:"vm,omitempty"` // the running virtual machine; empty: something else, which a drain does not end
	Text string `json:"text"`         // in words, for example "tart push image (pid 77)"
}

// TaskTexts are tasks in words.
func TaskTexts(all []Task) string {
	texts := make([]string, len(all))
	for i, t := range all {
		texts[i] = t.Text
	}
	return strings.Join(texts, ", ")
}

// Drainable reports whether the host can be made idle: its Node is Ready and has its provider id, so that the
// kubelet stops the virtual machines of evicted Pods.
func (h Host) Drainable() bool { return h.Member && readyAs(h.Server, h.Node) }

// idle records which work an action would interrupt, and refuses the action if macfleet cannot end that work.
func (a *Action) idle(h *Host, f Finding) {
	if a.Disruption < Drain || a.Refusal != nil {
		return
	}
	a.Busy = f.Busy
	if h.ForceBusy {
		a.Forced = true
		return
	}
	if a.Refusal = h.waits(a.Step, f.Busy); a.Refusal == nil && h.Drainable() {
		a.Drains, a.Evicts = true, len(h.evicted())
	}
}

// evicted are the Pods that a drain takes from the host's Node.
func (h *Host) evicted() []inventory.Pod {
	pods, _ := h.Pods.Get()
	return slices.DeleteFunc(slices.Clone(pods), func(p inventory.Pod) bool { return !p.Works() })
}

// waits returns why an action has to wait for work that macfleet cannot end, or nil.
func (h *Host) waits(step StepID, busy []Task) *Trouble {
	force := "to stop that work: macfleet apply --force-busy " + h.Name
	no := func(with, remedy string) *Trouble {
		return codeWaitsForIdle.Trouble(string(step)+" waits until the host is idle; running now: "+with, remedy+"; "+force)
	}
	pods := h.evicted()
	alone := slices.IndexFunc(pods, func(p inventory.Pod) bool { return p.Controller == "" })
	switch {
	case h.Drainable() && alone >= 0 && !h.Spec.Spec.BuildsImages():
		pod := pods[alone].Namespace + "/" + pods[alone].Name
		return no("the Pod "+pod+", which no controller recreates elsewhere", fmt.Sprintf("run macfleet apply again when it has finished, or delete it: kubectl -n %s delete pod %s", pods[alone].Namespace, pods[alone].Name))
	case len(busy) == 0, h.Fenceable(): // the run keeps new jobs away, and waits
		return nil
	case !h.Drainable() && h.Spec.Spec.JoinsCluster() && !h.Node.IsAbsent():
		return no(TaskTexts(busy), "run macfleet apply again when they have finished (the Node is not Ready, so a drain cannot stop them)")
	case h.Spec.Spec.BuildsImages() || !h.Drainable():
		return no(TaskTexts(busy), "run macfleet apply again when it has finished; a builder is idle when "+h.Spec.Spec.JobsFrom()+" reports it")
	}
	left := slices.DeleteFunc(slices.Clone(busy), func(t Task) bool {
		return t.VM != "" && slices.ContainsFunc(pods, func(p inventory.Pod) bool { return p.VM() == t.VM })
	})
	if len(left) > 0 {
		return no(TaskTexts(left), "run macfleet apply again when it has finished (no Pod of the Node owns it, so a drain cannot stop it)")
	}
	return nil
}
