package tartkubelet

import (
	"cmp"
	"slices"
	"strings"

	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/steps/kit"
)

// The codes that are raised here.
var (
	codeKilledByCodesigning = plan.NewCode("killed-by-codesigning", plan.Critical, "the kernel kills the kubelet because of its code signature")
	codeNodeMissing         = plan.NewCode("node-missing", plan.Critical, "the cluster has no Node of this name, though the kubelet runs well")
	codeKubeletEdited       = plan.NewCode("kubelet-edited", plan.Warning, "the kubelet's program is not what was installed")
	codeKubeletMissing      = plan.NewCode("kubelet-missing", plan.Critical, "the kubelet is not there")
	codeKubeletUnknown      = plan.NewCode("kubelet-unknown", plan.Warning, "the kubelet was not installed by macfleet, so nobody knows its version")
	codeKubeletOutdated     = plan.NewCode("kubelet-outdated", plan.Warning, "the kubelet has another version than is wanted")
	codeSecondKubelet       = plan.NewCode("second-kubelet", plan.Critical, "another job runs the same kubelet: the two delete each other's virtual machines",
		"end it on the host, or let macfleet take it over with legacy of the tart_kubelet block")
	codePlistChangedUnderJob = plan.NewCode("plist-changed-under-job", plan.Warning, "the kubelet's property list is not as launchd loaded it")
	codeStaleBinaryRunning   = plan.NewCode("stale-binary-running", plan.Warning, "the kubelet's process was started before the program that lies there now")
	codeKubeletFolders       = plan.NewCode("kubelet-folders", plan.Warning, "the folders of the kubelet are not as macfleet makes them")
)

// kubeletSpace is how many times its size the program needs: the artifact, and
// the copy that is installed.
const kubeletSpace = 2

// changes remove the difference: the program, the kubeconfig, and whatever it
// was, a new process. Virtual machines have sessions of their own and live on; where the job may take them along, the
// host is drained first.
func (d *kubeletDiff) changes() []plan.Change {
	var out []plan.Change
	killed := d.condition.Code == codeKilledByCodesigning
	if d.version.Differs() || d.access.Differs() || killed {
		out = append(out, d.program(killed))
	}
	// Whether the cluster takes a token, only the cluster knows: where the Node is
	// not heard of, a new kubeconfig is cheap.
	if unheard := d.cluster.Code == codeNodeMissing || d.cluster.Code == plan.CodeNodeNotReady; d.config.Differs() || unheard {
		c := plan.Change{Reason: cmp.Or(d.configReason, d.cluster), Fields: kit.Fields(d.config), Input: plan.Kubeconfig,
			Command: scripts.Command("tart_kubelet-kubeconfig", plan.Root, d.view.Host.User)}
		if len(c.Fields) == 0 {
			c.Fields = []plan.Field{{Name: d.config.Name, Before: "perhaps not taken by the cluster", After: "written anew"}}
		}
		out = append(out, c)
	}
	out = append(out, d.run())
	out[len(out)-1].Reason = d.reason(out[:len(out)-1])
	return out
}

// program installs the program; anew says that the right bytes get another inode.
func (d *kubeletDiff) program(anew bool) plan.Change {
	c := plan.Change{Fields: kit.Fields(d.version, d.access), Reason: d.programReason(),
		Delivery: d.goal.Delivery(kubeletSpace, d.seen.free),
		Command:  scripts.Command("tart_kubelet-binary", plan.Root, d.goal.Path(), d.goal.SHA, d.goal.Name, d.goal.Way(), kit.Choose(anew, "anew", ""))}
	if anew {
		c.Reason = d.condition
		c.Fields = append(c.Fields, plan.Field{Name: "inode of the program", Before: "known to the kernel with another signature", After: "a new one"})
	}
	return c
}

func (d *kubeletDiff) programReason() plan.Reason {
	switch seen := d.version.Seen; {
	case !d.version.Differs():
		return plan.Reason{Code: codeKubeletEdited, Text: kubeletProgram + " has owner and mode " + d.access.Seen}
	case !d.seen.program.There:
		return plan.Reason{Code: codeKubeletMissing, Text: kubeletProgram + " is not there"}
	case !d.seen.receipt.There():
		return plan.Reason{Code: codeKubeletUnknown, Text: kubeletProgram + " was not installed by macfleet, so nobody knows its version"}
	case seen != d.seen.receipt.Current.String():
		return plan.Reason{Code: codeKubeletEdited, Text: kubeletProgram + " is not what was installed"}
	default:
		return plan.Reason{Code: codeKubeletOutdated, Text: "the kubelet is " + seen}
	}
}

// run brings the job to what is wanted and starts it anew.
func (d *kubeletDiff) run() plan.Change {
	s := d.seen
	args := []string{d.view.Host.User, d.plist, d.way()}
	for _, r := range d.taken {
		args = append(args, r.target, r.path)
	}
	c := plan.Change{Disruption: plan.Restart, Command: scripts.Command("tart_kubelet-run", plan.Root, args...), Remedy: d.remedy(),
		Fields: slices.Concat(d.jobFields(), kit.Fields(d.rest...))}
	if !slices.ContainsFunc(c.Fields, func(f plan.Field) bool { return f.Name == "process" }) {
		// Not its pid: that differs on every host, and is another by the time of the apply.
		alive := s.service.PID != 0
		c.Fields = append(c.Fields, plan.Field{Name: "process", Before: kit.Choose(alive, "runs", "none"), After: kit.Choose(alive, "restarted", "started")})
	}
	if d.hurtsWork() || d.endsWork() {
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

// way is how the job is started anew. launchd pins the program when it loads the job, so it is kicked only where it
// runs the program that lies there, or where the note of its last start says that it was loaded with that one: the host
// asks that itself, once it has the new program.
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

// remedy is what helps where the new process does not stay up: the version before, if
// there was one and the host has kept it.
func (d *kubeletDiff) remedy() string {
	before := d.seen.receipt.Previous
	if d.version.Differs() {
		before = d.seen.receipt.Current
	}
	const log = "read " + kubeletLog + " on the host; "
	if d.view.Rollback || before.SHA == "" || before.SHA == d.goal.SHA || !slices.Contains(d.seen.kept, before.SHA) {
		return log + "the host has no other version to go back to: correct what the log names, and apply again"
	}
	return log + "macfleet apply --rollback --on name=" + d.view.Host.Name + " --step " + string(d.step.ID()) + " brings back " + before.Name + ", which the host has kept"
}

// jobFields are what moves of the job: its arguments, each by its name, and what else
// launchd or the file has. A file that says what launchd has says nothing more.
func (d *kubeletDiff) jobFields() []plan.Field {
	out := append(d.argumentFields(), kit.Fields(d.jobSettings[1])...)
	if args, ok := d.seen.onDisk(d.job); ok && d.seen.loaded && d.jobSettings[2].Differs() {
		return append(out, moved(args, d.job.Arguments, " in the job file")...)
	}
	if d.older {
		out = append(out, plan.Field{Name: "what the job has started", Before: "may end with the job", After: "outlives the job"})
	}
	return append(out, kit.Fields(d.jobSettings[2])...)
}

// argumentFields are the arguments that move. Of a job that is not there all are
// shown, unless its file says which.
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
	if len(out) == 0 && d.seen.loaded && d.jobSettings[0].Differs() { // in another order, or twice
		return kit.Fields(d.jobSettings[0])
	}
	return out
}

// moved are the arguments behind the program that differ, each by its name.
func moved(seen, want []string, where string) []plan.Field {
	var out []plan.Field
	before, after := flags(seen), flags(want)
	for _, arg := range slices.Concat(seen[1:], want[1:]) {
		name, _, _ := strings.Cut(arg, "=")
		f := plan.Field{Name: name + where, Before: cmp.Or(before[name], "none"), After: cmp.Or(after[name], "none")}
		if f.Before != f.After && !slices.Contains(out, f) {
			out = append(out, f)
		}
	}
	return out
}

// flags are the arguments behind the program by their names; a flag alone is "set".
func flags(args []string) map[string]string {
	out := make(map[string]string)
	for _, arg := range args[1:] {
		name, value, given := strings.Cut(arg, "=")
		out[name] = kit.Choose(given, value, "set")
	}
	return out
}

// jobText says what of a job that launchd has differs from what is wanted.
func (d *kubeletDiff) jobText() string {
	var parts []string
	for _, f := range d.jobFields() {
		parts = append(parts, f.Name+" is "+f.Before)
	}
	return "the job is not as it is wanted: " + strings.Join(parts, ", ")
}

// reason names why the process is started anew: what is wrong with the job, or
// else that something was changed which it reads at its start.
func (d *kubeletDiff) reason(earlier []plan.Change) plan.Reason {
	differs := func(all []kit.Setting) bool { return slices.ContainsFunc(all, kit.Setting.Differs) }
	for _, r := range []struct {
		is     bool
		reason plan.Reason
	}{
		{len(d.taken) > 0, plan.Reason{Code: codeSecondKubelet, Text: "the same program runs as " + kit.ListOr(names(d.taken), "") + ", which makes way"}},
		{d.condition.Code == codeKubeletMissing, d.condition},
		// A process that fails is worth more words than arguments that the configuration moves.
		{d.condition.Code != (plan.Code{}) && d.seen.loaded && !differs(d.jobSettings[1:]), d.condition},
		{d.seen.loaded && differs(d.jobSettings), plan.Reason{Code: codePlistChangedUnderJob, Text: d.jobText()}},
		{d.condition.Code != (plan.Code{}), d.condition},
		{d.older, plan.Reason{Code: codePlistChangedUnderJob, Text: kubeletPlist + " was written by an older macfleet: virtual machines may end with the job" +
			kit.Choose(d.endsWork(), ", so the host is drained first", "")}},
		{d.jobSettings[2].Differs(), plan.Reason{Code: codePlistChangedUnderJob, Text: kubeletPlist + " is " + d.jobSettings[2].Seen}},
		{d.stale, plan.Reason{Code: codeStaleBinaryRunning, Text: "the process was started before the program that lies there now"}},
		{d.rest[1].Differs(), plan.Reason{Code: codeKubeletFolders, Text: d.rest[1].Seen}},
		{d.cluster.Code != (plan.Code{}), d.cluster},
	} {
		if r.is {
			return r.reason
		}
	}
	if len(earlier) > 0 {
		return earlier[0].Reason
	}
	return plan.Reason{Code: plan.CodeUnfinished, Text: "an earlier run began and was never proven"}
}
