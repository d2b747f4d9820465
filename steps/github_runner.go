package steps

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/steps/kit"
)

var codePodOnBuilder = plan.NewCode("pod-on-builder", plan.Critical, "a Pod runs on the Node of a builder",
	"give the workload a nodeSelector for another fleet, then delete the Pod")

// githubRunner makes a host a builder: its kubelet does not garbage-collect virtual machines
// (tart_kubelet renders that flag), and no Pod may run on its Node, because it would take CPU
// and one of the two virtual machines from an image build. It has no probes.
type githubRunner struct {
	desired *fleet.GithubRunner
	joins   bool // the host becomes a Node
}

func (githubRunner) ID() plan.StepID { return "github_runner" }

func (githubRunner) Probes() []plan.Probe { return nil }

func (g githubRunner) Wanted() string {
	if g.desired == nil || !g.joins {
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
		return plan.Finding{Unread: []plan.Unread{{Probe: "the Pods of the Node", Why: cmp.Or(v.Pods.Why(), "the cluster was not read")}}}
	}
	f := plan.Finding{Facts: kit.Facts([]kit.Setting{{Name: "Pods", Seen: kit.ListOr(names, "none")}})}
	if len(names) > 0 {
		f.Refused = &plan.Trouble{Code: codePodOnBuilder,
			Text: fmt.Sprintf("%s on a builder's Node, which macfleet does not evict: %s", kit.Count(len(names), "Pod"), strings.Join(names, ", ")),
			Remedy: "give the workload a nodeSelector for another fleet" + kit.Choose(v.Host.LabelPrefix != "", " ("+v.Host.LabelPrefix+"/fleet)", "") +
				", then: " + strings.Join(commands, "; ")}
	}
	return f
}
