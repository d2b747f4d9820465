package tartkubelet

import (
	"cmp"
	"slices"
	"strings"

	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/steps/kit"
)

// The step's codes about its files and its job.
var (
	codeKilledByCodesigning = plan.NewCode("killed-by-codesigning", plan.Critical, "the kernel kills the kubelet because of its code signature")
	codeNodeMissing         = plan.NewCode("node-missing", plan.Critical, "the kubelet runs, but the cluster has no Node of this name")
	codeKubeletEdited       = plan.NewCode("kubelet-edited", plan.Warning, "the kubelet's program was modified after it was installed")
	codeKubeletMissing      = plan.NewCode("kubelet-missing", plan.Critical, "the kubelet is not installed")
	codeKubeletUnknown      = plan.NewCode("kubelet-unknown", plan.Warning, "macfleet did not install the kubelet: version unknown")
	codeKubeletOutdated     = plan.NewCode("kubelet-outdated", plan.Warning, "the kubelet's version is not the configured one")
	codeSecondKubelet       = plan.NewCode("second-kubelet", plan.Critical, "another kubelet is on the host: two kubelets delete each other's virtual machines",
		"stop it on the host, or let macfleet take it over: add its label to legacy in the tart_kubelet block")
	codePlistChangedUnderJob = plan.NewCode("plist-changed-under-job", plan.Warning, "the kubelet's job, in launchd or in its property list, differs from the configured one")
	codeStaleBinaryRunning   = plan.NewCode("stale-binary-running", plan.Warning, "the kubelet's process is older than its installed program")
	codeNodeOutside          = plan.NewCode("node-ip-not-tailnet", plan.Critical, "the Node of a host in the tailnet has another address, so its metrics are looked for there")
	codeKubeletFolders       = plan.NewCode("kubelet-folders", plan.Warning, "a folder of the kubelet is missing or has the wrong owner")
)

// kubeletSpace is the space the installation needs, in sizes of the program: the artifact
// and its installed copy.
const kubeletSpace = 2

// changes returns the changes that remove the difference: the program, the kubeconfig and,
// in any case, a restart. Virtual machines survive it; if they may end with the job, the host is drained first.
func (d *kubeletDiff) changes() []plan.Change {
	out := make([]plan.Change, 0, 3) // all there can be
	killed := d.condition.Code == codeKilledByCodesigning
	if d.version.Differs() || d.access.Differs() || killed {
		out = append(out, d.program(killed))
	}
	// The cluster may have rejected the token: when the Node does not report, a new
	// kubeconfig is cheap.
	if unheard := d.cluster.Code == codeNodeMissing || d.cluster.Code == plan.CodeNodeNotReady; d.config.Differs() || unheard {
		c := plan.Change{Reason: cmp.Or(d.configReason, d.cluster), Fields: kit.Fields(d.config), Input: plan.Kubeconfig,
			Command: scripts.Command("tart_kubelet-kubeconfig", plan.Root, d.view.Host.User)}
		if len(c.Fields) == 0 {
			c.Fields = []plan.Field{{Name: d.config.Name, Before: "possibly rejected by the cluster", After: "rewritten"}}
		}
		out = append(out, c)
	}
	out = append(out, d.run())
	out[len(out)-1].Reason = d.reason(out[:len(out)-1])
	return out
}

// program installs the program. again writes identical bytes to a new inode.
func (d *kubeletDiff) program(again bool) plan.Change {
	c := plan.Change{Fields: kit.Fields(d.version, d.access), Reason: d.programReason(),
		Delivery: d.goal.Delivery(kubeletSpace, d.seen.free),
		Command:  scripts.Command("tart_kubelet-binary", plan.Root, d.goal.Path(), d.goal.SHA, d.goal.Name, d.goal.Way(), kit.Choose(again, "again", ""))}
	if again {
		c.Reason = d.condition
		c.Fields = append(c.Fields, plan.Field{Name: "program inode", Before: "cached by the kernel with another signature", After: "new"})
	}
	return c
}

func (d *kubeletDiff) programReason() plan.Reason {
	switch seen := d.version.Seen; {
	case !d.version.Differs():
		return plan.Reason{Code: codeKubeletEdited, Text: kubeletProgram + " has owner and mode " + d.access.Seen}
	case !d.seen.program.Exists:
		return plan.Reason{Code: codeKubeletMissing, Text: kubeletProgram + " is missing"}
	case !d.seen.receipt.Exists():
		return plan.Reason{Code: codeKubeletUnknown, Text: kubeletProgram + " was not installed by macfleet: version unknown"}
	case seen != d.seen.receipt.Current.String():
		return plan.Reason{Code: codeKubeletEdited, Text: kubeletProgram + " was modified after it was installed"}
	default:
		return plan.Reason{Code: codeKubeletOutdated, Text: "the kubelet is " + seen}
	}
}

// run updates the job and restarts it.
func (d *kubeletDiff) run() plan.Change {
	s := d.seen
	args := []string{d.view.Host.User, d.plist, d.way()}
	for _, r := range d.taken {
		args = append(args, r.target, r.path)
	}
	command := scripts.Command("tart_kubelet-run", plan.Root, args...)
	if d.view.Host.Spec.JoinsTailnet() {
		command.Script = scripts.Command("tart_kubelet-tailnet", plan.Root).Script + command.Script
	}
	c := plan.Change{Disruption: plan.Restart, Command: command, Remedy: d.remedy(),
		Fields: slices.Concat(d.jobFields(), kit.Fields(d.rest...))}
	if !slices.ContainsFunc(c.Fields, func(f plan.Field) bool { return f.Name == "process" }) {
		// Without the pid, which differs on every host and may change before the apply.
		alive := s.service.PID != 0
		c.Fields = append(c.Fields, plan.Field{Name: "process", Before: kit.Choose(alive, "running", "none"), After: kit.Choose(alive, "restarted", "started")})
	}
	if d.deletesMachines() || d.stopsMachines() {
		c.Disruption = plan.Drain
	}
	if d.collectsAgain() {
		left, _ := d.unbacked()
		for _, name := range left {
			c.Fields = append(c.Fields, plan.Field{Name: "virtual machine " + name, Before: "kept", After: "deleted by the garbage collection"})
		}
	}
	return c
}

// way says how to restart the job: "load" it again, "kick" it (kickstart), or "ask" the host, which kickstarts only if
// the job was loaded with the installed program. launchd pins the program when it loads a job.
func (d *kubeletDiff) way() string {
	s := d.seen
	_, alive := s.own()
	switch {
	case !s.loaded, len(s.service.Differs(d.job)) > 0, !s.settled() && s.service.Refused():
		return "load"
	case !alive, d.stale, d.older, d.view.Pending, d.version.Differs(), d.access.Differs(), d.jobSettings[2].Differs():
		return "ask"
	}
	return "kick"
}

// remedy is the fix if the new process does not stay up: a rollback, if the host has kept
// the previous version.
func (d *kubeletDiff) remedy() string {
	before := d.seen.receipt.Previous
	if d.version.Differs() {
		before = d.seen.receipt.Current
	}
	const log = "read " + kubeletLog + " on the host"
	if d.view.Rollback || before.SHA == "" || before.SHA == d.goal.SHA || !slices.Contains(d.seen.kept, before.SHA) {
		return log + ", fix what it reports, then macfleet apply (the host has no previous version to roll back to)"
	}
	return log + "; to roll back to " + before.Name + ": macfleet apply --rollback --on name=" + d.view.Host.Name + " --step " + string(d.step.ID())
}

// jobFields returns the differences of the job: each argument by its name, then the loaded
// job and the property list.
func (d *kubeletDiff) jobFields() []plan.Field {
	out := append(d.argumentFields(), kit.Fields(d.jobSettings[1])...)
	if args, ok := d.seen.onDisk(d.job); ok && d.seen.loaded && d.jobSettings[2].Differs() {
		return append(out, moved(args, d.job.Arguments, " in the job file")...)
	}
	if d.older {
		out = append(out, plan.Field{Name: "child processes", Before: "may end with the job", After: "survive the job"})
	}
	return append(out, kit.Fields(d.jobSettings[2])...)
}

// argumentFields returns the arguments that differ. If the job is not loaded, they are
// compared with its file, or else all are shown.
func (d *kubeletDiff) argumentFields() []plan.Field {
	want, seen := d.job.Arguments, d.seen.service.Arguments
	switch args, ok := d.seen.onDisk(d.job); {
	case d.seen.loaded:
	case !d.jobSettings[2].Differs():
		return nil
	case ok:
		seen = args
	default:
		seen = want[:1]
	}
	if len(seen) == 0 || seen[0] != want[0] {
		return kit.Fields(d.jobSettings[0])
	}
	out := moved(seen, want, "")
	if len(out) == 0 && d.seen.loaded && d.jobSettings[0].Differs() { // reordered or duplicated
		return kit.Fields(d.jobSettings[0])
	}
	return out
}

// moved returns the arguments after the program that differ, each by its name.
func moved(seen, want []string, where string) []plan.Field {
	var out []plan.Field
	for _, args := range [][]string{seen[1:], want[1:]} {
		for _, arg := range args {
			name, _, _ := strings.Cut(arg, "=")
			f := plan.Field{Name: name + where, Before: flag(seen, name), After: flag(want, name)}
			if f.Before != f.After && !slices.Contains(out, f) {
				out = append(out, f)
			}
		}
	}
	return out
}

// flag returns the value of the last argument after the program with a name: "set" without a value, "none" if there is none.
func flag(args []string, name string) string {
	for _, arg := range slices.Backward(args[1:]) {
		switch has, value, given := strings.Cut(arg, "="); {
		case has != name:
		case given:
			return cmp.Or(value, "none")
		default:
			return "set"
		}
	}
	return "none"
}

// jobText describes how the job differs from the wanted one.
func (d *kubeletDiff) jobText() string {
	var parts []string
	for _, f := range d.jobFields() {
		parts = append(parts, f.Name+" is "+f.Before)
	}
	return "the job differs: " + strings.Join(parts, ", ")
}

// reason says why the process is restarted: what is wrong with the job, or else the earlier
// change of a file that it reads at its start.
func (d *kubeletDiff) reason(earlier []plan.Change) plan.Reason {
	differs := func(all []kit.Setting) bool { return slices.ContainsFunc(all, kit.Setting.Differs) }
	for _, r := range []struct {
		is     bool
		reason plan.Reason
	}{
		{len(d.taken) > 0, plan.Reason{Code: codeSecondKubelet, Text: "another kubelet runs: " + kit.ListOr(names(d.taken), "") + "; macfleet replaces it"}},
		{d.condition.Code == codeKubeletMissing, d.condition},
		// A failing process matters more than changed arguments.
		{d.condition.Code != (plan.Code{}) && d.seen.loaded && !differs(d.jobSettings[1:]), d.condition},
		{d.seen.loaded && d.view.Host.Spec.BuildsImages() && d.seen.collects(), plan.Reason{Code: codeGCOnBuilder, Text: "the kubelet deletes virtual machines without a Pod, also those that are pushed"}},
		{d.seen.loaded && differs(d.jobSettings), plan.Reason{Code: codePlistChangedUnderJob}},
		{d.condition.Code != (plan.Code{}), d.condition},
		{d.older, plan.Reason{Code: codePlistChangedUnderJob, Text: "an older macfleet wrote " + kubeletPlist + ": virtual machines may end with the job" +
			kit.Choose(d.stopsMachines(), ", so the host is drained first", "")}},
		{d.jobSettings[2].Differs(), plan.Reason{Code: codePlistChangedUnderJob, Text: kubeletPlist + " is " + d.jobSettings[2].Seen}},
		{d.stale, plan.Reason{Code: codeStaleBinaryRunning, Text: "the process is older than its installed program"}},
		{d.rest[1].Differs(), plan.Reason{Code: codeKubeletFolders, Text: d.rest[1].Seen}},
		{d.public.Code != (plan.Code{}), d.public},
		{d.outside.Code != (plan.Code{}), d.outside},
		{d.cluster.Code != (plan.Code{}), d.cluster},
	} {
		if r.is && r.reason == (plan.Reason{Code: codePlistChangedUnderJob}) {
			r.reason.Text = d.jobText()
		}
		if r.is {
			return r.reason
		}
	}
	if len(earlier) > 0 {
		return earlier[0].Reason
	}
	return plan.Reason{Code: plan.CodeUnfinished, Text: "an earlier run started this change and did not finish it"}
}
