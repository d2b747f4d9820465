package steps

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/steps/kit"
)

var codePodOnBuilder = plan.NewCode("pod-on-builder", plan.Critical, "a Pod is on the Node of a host that builds images",
	"give what makes it a nodeSelector for another fleet, or the Node a taint that it does not tolerate")

// githubRunner makes a host a builder. So far it says two things: its kubelet
// deletes no virtual machine by itself, which tart_kubelet renders; and no Pod may
// be on its Node, where it would take the processors from a bake, and its machine
// one of the two that a Mac may run. It asks the host nothing.
type githubRunner struct {
	wish  *fleet.GithubRunner
	joins bool // the host is to be a Node
}

func (githubRunner) ID() plan.StepID { return "github_runner" }

func (githubRunner) Probes() []plan.Probe { return nil }

func (g githubRunner) Wanted() string {
	if g.wish == nil || !g.joins {
		return ""
	}
	return kit.Wanted([]kit.Setting{{Name: "Pods", Wanted: "none"}})
}

func (g githubRunner) Diff(v plan.View) plan.Finding {
	if g.Wanted() == "" {
		return plan.Finding{}
	}
	pods, known := v.Pods.Get()
	var names, commands []string
	for _, p := range pods {
		if p.Works() {
			names = append(names, p.Namespace+"/"+p.Name)
			commands = append(commands, "kubectl -n "+p.Namespace+" delete pod "+p.Name)
		}
	}
	if !known && v.Pods.IsUnread() {
		return plan.Finding{Unread: []plan.Unread{{Probe: "the Pods of the Node", Why: cmp.Or(v.Pods.Why(), "the cluster was not asked")}}}
	}
	f := plan.Finding{Facts: kit.Facts([]kit.Setting{{Name: "Pods", Seen: kit.ListOr(names, "none")}})}
	if len(names) > 0 {
		f.Refused = &plan.Trouble{Code: codePodOnBuilder,
			Text: fmt.Sprintf("%s on the Node of a builder: %s", kit.Count(len(names), "Pod"), strings.Join(names, ", ")),
			Remedy: "give what makes them a nodeSelector for another fleet, or the Node a taint that they do not tolerate (kubectl taint node " + v.Host.Name +
				" builder=true:NoSchedule), then " + commands[0] + kit.Choose(len(commands) > 1, " and so on", "") + "; macfleet evicts nobody by itself"}
	}
	return f
}
