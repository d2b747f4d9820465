package tartkubelet

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/steps/kit"
	"github.com/macfleet/macfleet/steps/launchd"
)

// The codes that are raised here.
var (
	codeKubeletDisabled     = plan.NewCode("kubelet-disabled", plan.Critical, "launchd must not start the kubelet: its job was disabled")
	codeKubeletNotLoaded    = plan.NewCode("kubelet-not-loaded", plan.Critical, "launchd does not have the kubelet's job")
	codeKubeletStopped      = plan.NewCode("kubelet-stopped", plan.Critical, "the kubelet has no process, and launchd is to start one")
	codeKubeletRespawnStuck = plan.NewCode("kubelet-respawn-stuck", plan.Critical, "launchd has the kubelet's job and does not start it again")
	codeKubeletPinOutdated  = plan.NewCode("kubelet-pin-outdated", plan.Critical, "launchd does not start the kubelet: its program is not the one that the job was loaded with")
	codeNodeLabelsDiffer    = plan.NewCode("node-labels-differ", plan.Warning, "the Node's labels are not those of the kubelet's job")
)

const (
	// settledAfter is how many seconds a process must live before it counts: in a
	// crash loop every start shows one for a moment.
	settledAfter = 5
	// heardAfter is how many seconds a process must live before the cluster must
	// have heard of it: it writes a heartbeat every 30 s. What the cluster says of a
	// younger one is about the one before.
	heardAfter = 60
	// clockSlack is by how many seconds the start of a process, which is worked out
	// from its age, may be off.
	clockSlack = 2
)

// settled reports whether the job has a process that has lived long enough to count,
// or is its first.
func (s kubeletState) settled() bool {
	p, alive := s.own()
	return alive && (p.age >= settledAfter || s.service.Runs <= 1)
}

// lastEnd is how the process before ended, as launchd tells it.
func (s kubeletState) lastEnd() string {
	return cmp.Or(s.service.LastReason, s.service.LastExit, "nothing known")
}

// condition says why the job does not run as it should, from what shows at one
// moment, and what its process does, in short. The zero reason says that nothing speaks
// against it: a process that is young, after one that somebody stopped, is a restart by
// hand and no crash loop.
func (s kubeletState) condition() (why plan.Reason, process string) {
	settled, gone, waits := s.settled(), s.service.PID == 0, s.service.State == launchd.Scheduled
	for _, c := range [...]struct {
		is            bool
		code          plan.Code
		text, process string
		ended         bool // the text goes on with how the process before ended
	}{
		{!s.program.There && !s.isPlist && !s.loaded, codeKubeletMissing, "nothing of it is there", "none", false},
		{!s.loaded && s.disabled, codeKubeletDisabled, "launchd must not start " + kubeletLabel + ": it was disabled", "none, disabled", false},
		{!s.loaded, codeKubeletNotLoaded, "launchd does not have " + kubeletLabel, "none, not loaded", false},
		{!settled && s.service.KilledBySignature(), codeKilledByCodesigning, "the kernel kills the program because of its code signature", "killed by codesigning", true},
		{!settled && s.service.PinOutdated(), codeKubeletPinOutdated, "launchd does not start the program, which is not the one that the job was loaded with",
			"refused by launchd", true},
		{!settled && s.service.Crashed() && (!gone || waits), plan.CodeKubeletCrashLoop, "it ends as soon as it was started", "crash-looping", true},
		{gone && waits, codeKubeletStopped, "there is no process, and launchd is to start one", "none, launchd is to start it", true},
		{gone, codeKubeletRespawnStuck, "launchd has the job (" + s.service.State + ") and does not start it again", "none, and launchd does not start it", true},
	} {
		if !c.is {
			continue
		}
		if c.ended {
			c.text += ": it was started " + kit.Count(s.service.Runs, "time") + ", the last one ended with " + s.lastEnd()
		}
		if c.code == plan.CodeKubeletCrashLoop {
			c.process += ", " + roughly(s.service.Runs) + ", last exit " + s.lastEnd()
		}
		return plan.Reason{Code: c.code, Text: c.text}, c.process
	}
	return plan.Reason{}, kit.Choose(s.stale(), "older than the program", "runs")
}

// roughly counts starts: hosts in the same crash loop, each with its own number, are
// shown as one.
func roughly(runs int) string {
	for _, many := range []int{1000, 100, 10} {
		if runs >= many {
			return fmt.Sprintf("%d+ runs", many)
		}
	}
	return kit.Count(runs, "run")
}

// kubelet is what was seen of the process, whatever the files beside it are. A
// process counts from when it was started at the latest.
func (s kubeletState) kubelet(condition plan.Reason, at time.Time) plan.Kubelet {
	p, alive := s.own()
	k := plan.Kubelet{Fault: condition}
	_, k.Token = readClaims(s.config.claims)
	if k.Fault == (plan.Reason{}) && !s.settled() {
		k.Fault = plan.Reason{Code: plan.CodeKubeletSettling, Text: "its kubelet was started a moment ago, and not for the first time: it counts when it has stayed for " + kit.Count(settledAfter, "second")}
	}
	if alive && !at.IsZero() {
		k.Started = at.Add(time.Duration(clockSlack-p.age) * time.Second)
	}
	return k
}

// stale reports whether the process was started before the program that lies
// there: equal files say nothing about an old process.
func (s kubeletState) stale() bool {
	p, alive := s.own()
	if !alive || !s.program.There {
		return false
	}
	there := s.program.Changed
	if s.receipt.There() && s.program.Stamp == s.receipt.Stamp {
		there = s.receipt.Installed
	}
	return s.now-p.age+clockSlack < there
}

// inCluster says what is wrong with the host's Node though the job runs well. What
// the cluster says is about this process once it has heard of it, or has had the time
// to; early says that it has not.
func (s kubeletState) inCluster(v plan.View) (wrong plan.Reason, early bool) {
	p, alive := s.own()
	node, there := v.Node.Get()
	k := s.kubelet(plan.Reason{}, v.At)
	heard := there && !node.Heard.IsZero() && !k.Started.IsZero() && k.Heard(node)
	switch {
	case !alive || v.Node.IsUnread():
		return plan.Reason{}, false
	case there && node.ProviderID != "" && v.Server.ID != "" && node.ProviderID != v.Server.ProviderID():
		return plan.Reason{Code: plan.CodeDifferentProviderID, Text: "the Node is of " + node.ProviderID + ", and the kubelet must register another"}, false
	case p.age < heardAfter && !heard:
		return plan.Reason{}, true
	case !there:
		return plan.Reason{Code: codeNodeMissing, Text: "the cluster has no Node of this name, though the kubelet runs well"}, false
	case node.Ready != inventory.Ready:
		return plan.Reason{Code: plan.CodeNodeNotReady, Text: fmt.Sprintf("the Node's Ready is %s (%s), though the kubelet runs well", node.Ready, cmp.Or(node.Why, "no reason given"))}, false
	}
	return plan.Reason{}, false
}

// labels warns of labels on the Node that are not the job's, though its kubelet works. They are the kubelet's to
// write: it does so with each heartbeat, so that a restart would mend nothing for longer than that.
func (d *kubeletDiff) labels() []plan.StepWarning {
	node, there := d.view.Node.Get()
	_, alive := d.seen.own()
	if !there || !alive || d.early || d.cluster != (plan.Reason{}) || node.Ready != inventory.Ready || d.condition != (plan.Reason{}) || d.stale ||
		slices.ContainsFunc(d.jobSettings, kit.Setting.Differs) {
		return nil
	}
	fields := labelsThatDiffer(node.Labels, nodeLabels(d.step.wish, d.view))
	if len(fields) == 0 {
		return nil
	}
	var texts []string
	for _, f := range fields {
		texts = append(texts, strings.TrimPrefix(f.Name, "label ")+" is "+f.Before)
	}
	return []plan.StepWarning{{Fields: fields, Trouble: *codeNodeLabelsDiffer.Trouble(
		"the Node's labels are not those of --node-labels: "+strings.Join(texts, ", ")+"; the kubelet writes its own again with each heartbeat, every 30 s",
		"look again in a minute. If it stays: something else writes them (kubectl get node "+d.view.Host.Name+" --show-managed-fields -o yaml), "+
			"or the kubelet is a build that writes them only when it starts (macfleet restart "+d.view.Host.Name+" tart_kubelet)")}}
}

// notJudged warns that nothing is known yet of a kubelet that was started a moment
// ago, or of its Node. It is the same on all hosts, which are shown as one.
func (d *kubeletDiff) notJudged() []plan.Trouble {
	const remedy = "look again in a minute, or wait for it: macfleet hosts --wait ready"
	switch k := d.kubelet; {
	case d.foreign != nil || len(d.taken) > 0: // whose Node this is, nobody can say
		return nil
	case k.Fault.Code == plan.CodeKubeletSettling:
		return []plan.Trouble{{Code: plan.CodeKubeletSettling, Text: k.Fault.Text, Remedy: remedy}}
	case d.early:
		return []plan.Trouble{{Code: plan.CodeNodeNotJudged,
			Text:   fmt.Sprintf("the kubelet was started less than %d s ago, and the cluster has not heard of it since: its Node is judged when it has, or %[1]d s after the start", heardAfter),
			Remedy: remedy}}
	}
	return nil
}

// labelsThatDiffer are the labels of the kubelet's job that the Node does not have so.
func labelsThatDiffer(have, want map[string]string) []plan.Field {
	var out []plan.Field
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if got, there := have[key]; !there || got != want[key] {
			out = append(out, plan.Field{Name: "label " + key, Before: kit.Choose(there, got, "missing"), After: want[key]})
		}
	}
	return out
}

// rival is something else on the host that runs a tart-kubelet.
type rival struct {
	target string // in launchd; empty: it is not loaded
	path   string // of its property list; empty: it has none
	what   string // for a person
	end    string // how a person ends it
	pid    int    // of a process that no job has
}

// rivals finds every other kubelet: by the program that a job runs, whatever its
// label, by the process that it has, by property lists that the next boot loads,
// and processes of nobody's.
func (s kubeletState) rivals() []rival {
	var out []rival
	pids := map[int]bool{s.service.PID: true}
	paths := make(map[string]bool)
	for _, j := range s.others {
		runs := strings.HasSuffix(j.program, "/tart-kubelet") ||
			slices.ContainsFunc(s.processes, func(p kubeletProcess) bool { return j.pid != 0 && (p.pid == j.pid || p.parent == j.pid) })
		if !runs {
			continue
		}
		end := "sudo launchctl bootout " + j.target + kit.Choose(j.path == "", "", " && sudo rm "+j.path)
		out = append(out, rival{target: j.target, path: j.path, what: "the job " + j.target, end: end})
		paths[j.path], pids[j.pid] = true, true
	}
	for _, path := range s.plists {
		if !paths[path] {
			out = append(out, rival{path: path, what: path, end: "sudo rm " + path})
		}
	}
	for _, p := range s.processes {
		// A younger one may be the next of a job that was looked at before it.
		if !pids[p.pid] && !pids[p.parent] && p.age >= settledAfter {
			out = append(out, rival{pid: p.pid, what: fmt.Sprintf("the process %d (%s)", p.pid, p.program), end: fmt.Sprintf("sudo kill %d", p.pid)})
		}
	}
	return out
}

// label is the job's label; of one that is not loaded it is the file's name.
func (r rival) label() string {
	return path.Base(cmp.Or(r.target, strings.TrimSuffix(r.path, ".plist")))
}

// predecessor is the label of the agent's job on hosts that were set up before
// macfleet.
const predecessor = "dev.tuist.tart-kubelet"

// rivals parts the other kubelets into those that the configuration takes over and
// the trouble about the rest: two kubelets on one Mac delete each other's virtual
// machines.
func (k tartKubelet) rivals(s kubeletState) (taken []rival, foreign *plan.Trouble) {
	for _, r := range s.rivals() {
		if label := r.label(); r.pid == 0 && (label == predecessor || slices.Contains(k.wish.Legacy, label)) {
			taken = append(taken, r)
			continue
		}
		if foreign == nil {
			foreign = &plan.Trouble{Code: codeSecondKubelet,
				Text:   "another kubelet is on this host: " + r.what + "; two of them delete each other's virtual machines",
				Remedy: "end it on the host: " + r.end + kit.Choose(r.pid == 0, "; or let macfleet take it over: write \""+r.label()+"\" into legacy of the tart_kubelet block", "")}
		}
	}
	return taken, foreign
}
