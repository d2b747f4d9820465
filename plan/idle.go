package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/macfleet/macfleet/fleet/inventory"
)

var (
	codeWaitsForIdle = NewCode("waits-for-idle", Notice, "the change waits until nothing on the host uses the virtual machines",
		"apply again once they have ended")
	codeLeftCordoned = NewCode("left-cordoned", Warning, "an earlier run closed the Node to new Pods and did not come to its end")
)

// Task is work that goes on on a host, and that a change would hurt.
type Task struct {
	VM   string `json:"vm,omitempty"` // the virtual machine that runs, by name; empty: it is no machine that runs, and no drain ends it
	Text string `json:"text"`         // as a person sees it, for example "tart push image (pid 77)"
}

// TaskTexts are tasks in words.
func TaskTexts(all []Task) string {
	texts := make([]string, len(all))
	for i, t := range all {
		texts[i] = t.Text
	}
	return strings.Join(texts, ", ")
}

// Drainable reports whether the host can be made idle: it is a Node that is Ready and its
// own, so that its kubelet ends the machines of Pods that are evicted.
func (h Host) Drainable() bool { return h.Member && readyAs(h.Server, h.Node) }

// idle enters into an action that needs an idle host what is at work there, and
// refuses it where macfleet cannot end that work.
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
	force := "macfleet apply --force-busy " + h.Name + " does not wait, and that work is lost"
	no := func(with, remedy string) *Trouble {
		return codeWaitsForIdle.Trouble(string(step)+" waits until nothing on the host uses the virtual machines; now there is "+with, remedy+"; "+force)
	}
	pods := h.evicted()
	alone := slices.IndexFunc(pods, func(p inventory.Pod) bool { return p.Controller == "" })
	switch {
	case h.Drainable() && alone >= 0 && !h.Spec.Spec.BuildsImages():
		pod := pods[alone].Namespace + "/" + pods[alone].Name
		return no("the Pod "+pod+", which nothing makes again elsewhere", fmt.Sprintf("apply again when it has ended, or delete it: kubectl -n %s delete pod %s", pods[alone].Namespace, pods[alone].Name))
	case len(busy) == 0:
		return nil
	case !h.Drainable() && h.Spec.Spec.JoinsCluster() && !h.Node.IsAbsent():
		return no(TaskTexts(busy), "its Node is not Ready, so that no drain ends a virtual machine: apply again when they have ended")
	case h.Spec.Spec.BuildsImages() || !h.Drainable():
		return no(TaskTexts(busy), "apply again when that has ended; a builder is idle once "+h.Spec.Spec.JobsFrom()+" says so")
	}
	left := slices.DeleteFunc(slices.Clone(busy), func(t Task) bool {
		return t.VM != "" && slices.ContainsFunc(pods, func(p inventory.Pod) bool { return p.VM() == t.VM })
	})
	if len(left) > 0 {
		return no(TaskTexts(left), "no Pod of the Node is behind that, so that no drain ends it: apply again when it has ended")
	}
	return nil
}
