package steps

import (
	"cmp"
	"slices"
	"strings"

	"github.com/macfleet/macfleet/plan"
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
// was, a new process. Virtual machines have sessions of their own and live on.
func (d *kubeletDiff) changes() []plan.Change {
	var out []plan.Change
	killed := d.condition.Code == codeKilledByCodesigning
	if d.version.differs() || d.access.differs() || killed {
		out = append(out, d.program(killed))
	}
	// Whether the cluster takes a token, only the cluster knows: where the Node is
	// not heard of, a new kubeconfig is cheap.
	if unheard := d.cluster.Code == codeNodeMissing || d.cluster.Code == plan.CodeNodeNotReady; d.config.differs() || unheard {
		c := plan.Change{Reason: cmp.Or(d.configReason, d.cluster), Fields: fields(d.config), Input: plan.Kubeconfig,
			Command: script("tart_kubelet-kubeconfig", plan.Root, d.view.Host.User)}
		if len(c.Fields) == 0 {
			c.Fields = []plan.Field{{Name: d.config.name, Before: "perhaps not taken by the cluster", After: "written anew"}}
		}
		out = append(out, c)
	}
	out = append(out, d.run())
	out[len(out)-1].Reason = d.reason(out[:len(out)-1])
	return out
}

// program installs the program; anew says that the right bytes get another inode.
func (d *kubeletDiff) program(anew bool) plan.Change {
	c := plan.Change{Fields: fields(d.version, d.access), Reason: d.programReason(),
		Delivery: d.goal.delivery(kubeletSpace, d.seen.free),
		Command:  script("tart_kubelet-binary", plan.Root, d.goal.path(), d.goal.sha, d.goal.name, d.goal.way(), choose(anew, "anew", ""))}
	if anew {
		c.Reason = d.condition
		c.Fields = append(c.Fields, plan.Field{Name: "inode of the program", Before: "known to the kernel with another signature", After: "a new one"})
	}
	return c
}

func (d *kubeletDiff) programReason() plan.Reason {
	switch seen := d.version.seen; {
	case !d.version.differs():
		return plan.Reason{Code: codeKubeletEdited, Text: kubeletProgram + " has owner and mode " + d.access.seen}
	case !d.seen.program.there:
		return plan.Reason{Code: codeKubeletMissing, Text: kubeletProgram + " is not there"}
	case !d.seen.receipt.there():
		return plan.Reason{Code: codeKubeletUnknown, Text: kubeletProgram + " was not installed by macfleet, so nobody knows its version"}
	case seen != d.seen.receipt.current.String():
		return plan.Reason{Code: codeKubeletEdited, Text: kubeletProgram + " is not what was installed"}
	default:
		return plan.Reason{Code: codeKubeletOutdated, Text: "the kubelet is " + seen}
	}
}

// run brings the job to what is wanted and starts it anew.
func (d *kubeletDiff) run() plan.Change {
	s := d.seen
	way := choose(s.loaded && len(s.service.Differs(d.job)) == 0, "kick", "load")
	args := []string{d.view.Host.User, d.plist, way}
	for _, r := range d.taken {
		args = append(args, r.target, r.path)
	}
	c := plan.Change{Disruption: plan.Restart, Command: script("tart_kubelet-run", plan.Root, args...), Remedy: d.remedy(),
		Fields: slices.Concat(d.jobFields(), fields(d.rest...))}
	if !slices.ContainsFunc(c.Fields, func(f plan.Field) bool { return f.Name == "process" }) {
		// Not its pid: that differs on every host, and is another by the time of the apply.
		alive := s.service.PID != 0
		c.Fields = append(c.Fields, plan.Field{Name: "process", Before: choose(alive, "runs", "none"), After: choose(alive, "restarted", "started")})
	}
	if d.hurtsWork() {
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

// remedy is what helps where the new process does not stay up: the version before, if
// there was one and the host has kept it.
func (d *kubeletDiff) remedy() string {
	before := d.seen.receipt.previous
	if d.version.differs() {
		before = d.seen.receipt.current
	}
	const log = "read " + kubeletLog + " on the host; "
	if d.view.Rollback || before.sha == "" || before.sha == d.goal.sha || !slices.Contains(d.seen.kept, before.sha) {
		return log + "the host has no other version to go back to: correct what the log names, and apply again"
	}
	return log + "macfleet apply --rollback --on name=" + d.view.Host.Name + " --step " + string(d.step.ID()) + " brings back " + before.name + ", which the host has kept"
}

// jobFields are what moves of the job: its arguments, each by its name, and what else
// launchd or the file has. A file that says what launchd has says nothing more.
func (d *kubeletDiff) jobFields() []plan.Field {
	inLaunchd, file := d.jobSettings[1], d.jobSettings[2]
	out := d.argumentFields()
	if inLaunchd.differs() && (len(out) == 0 || inLaunchd.seen != otherArguments) {
		out = append(out, fields(inLaunchd)...)
	}
	switch {
	case !file.differs(), d.seen.loaded && len(out) > 0 && !d.jobFacts[2].differs():
		return out
	case d.seen.loaded:
		if args, ok := d.seen.onDisk(d.job); ok {
			return append(out, moved(args, d.job.Arguments, " in the job file")...)
		}
	}
	return append(out, fields(file)...)
}

// argumentFields are the arguments that move. Of a job that is not there all are
// shown, unless its file says which.
func (d *kubeletDiff) argumentFields() []plan.Field {
	want, seen := d.job.Arguments, d.seen.service.Arguments
	switch args, ok := d.seen.onDisk(d.job); {
	case d.seen.loaded:
	case !d.jobSettings[2].differs():
		return nil
	case ok:
		seen = args
	default:
		seen = want[:1]
	}
	if len(seen) == 0 || seen[0] != want[0] {
		return fields(d.jobSettings[0])
	}
	out := moved(seen, want, "")
	if len(out) == 0 && d.seen.loaded && d.jobSettings[0].differs() { // in another order, or twice
		return fields(d.jobSettings[0])
	}
	return out
}

// moved are the arguments behind the program that differ, each by its name.
func moved(seen, want []string, where string) []plan.Field {
	var out []plan.Field
	for _, arg := range seen[1:] {
		flag, value := flagOf(arg)
		if now, there := argument(want, flag); !there || now != value {
			out = append(out, plan.Field{Name: flag + where, Before: value, After: choose(there, now, "none")})
		}
	}
	for _, arg := range want[1:] {
		flag, value := flagOf(arg)
		if _, there := argument(seen, flag); !there {
			out = append(out, plan.Field{Name: flag + where, Before: "none", After: value})
		}
	}
	return out
}

// flagOf takes an argument apart; a flag alone is "set".
func flagOf(arg string) (flag, value string) {
	flag, value, given := strings.Cut(arg, "=")
	return flag, choose(given, value, "set")
}

func argument(args []string, flag string) (value string, there bool) {
	for _, arg := range args[1:] {
		if name, value := flagOf(arg); name == flag {
			return value, true
		}
	}
	return "", false
}

// edited reports whether the job differs by more than the arguments of one description
// that launchd and the file have in common.
func (d *kubeletDiff) edited() bool {
	return slices.ContainsFunc(d.jobFacts[1:], setting.differs)
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
	launchdJob, file := d.jobSettings[1], d.jobSettings[2]
	for _, r := range []struct {
		is     bool
		reason plan.Reason
	}{
		{len(d.taken) > 0, plan.Reason{Code: codeSecondKubelet, Text: "the same program runs as " + listOr(names(d.taken), "") + ", which makes way"}},
		{d.condition.Code == codeKubeletMissing, d.condition},
		// A process that fails is worth more words than arguments that the configuration moves.
		{d.condition.Code != (plan.Code{}) && d.seen.loaded && !d.edited(), d.condition},
		{d.seen.loaded && (launchdJob.differs() || file.differs()), plan.Reason{Code: codePlistChangedUnderJob, Text: d.jobText()}},
		{d.condition.Code != (plan.Code{}), d.condition},
		{file.differs(), plan.Reason{Code: codePlistChangedUnderJob, Text: kubeletPlist + " is " + file.seen}},
		{d.stale, plan.Reason{Code: codeStaleBinaryRunning, Text: "the process was started before the program that lies there now"}},
		{d.rest[1].differs(), plan.Reason{Code: codeKubeletFolders, Text: d.rest[1].seen}},
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
