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

// The step's codes about the process and its Node.
var (
	codeKubeletDisabled     = plan.NewCode("kubelet-disabled", plan.Critical, "the kubelet's job is disabled in launchd")
	codeKubeletNotLoaded    = plan.NewCode("kubelet-not-loaded", plan.Critical, "the kubelet's job is not loaded")
	codeKubeletStopped      = plan.NewCode("kubelet-stopped", plan.Critical, "the kubelet is not running; launchd is about to start it")
	codeKubeletRespawnStuck = plan.NewCode("kubelet-respawn-stuck", plan.Critical, "the kubelet is not running, and launchd does not restart it")
	codeKubeletPinOutdated  = plan.NewCode("kubelet-pin-outdated", plan.Critical, "launchd refuses to start the kubelet: its program was replaced after the job was loaded")
	codeNodeLabelsDiffer    = plan.NewCode("node-labels-differ", plan.Warning, "the Node's labels differ from the kubelet's --node-labels",
		"run macfleet plan in a minute; if they still differ, find out who writes them: kubectl get node NAME --show-managed-fields -o yaml")
)

const (
	// settledAfter is how many seconds a process must live to count as running: a crash loop
	// shows a process after every start, too.
	settledAfter = 5
	// heardAfter is how many seconds a process has to report to the cluster: it sends a
	// heartbeat every 30 s. Until then, the Node's status belongs to the previous process.
	heardAfter = 60
	// clockSlack is the error in seconds of a start time that is derived from a process's age.
	clockSlack = 2
)

// settled reports whether the process has lived long enough, or is the job's first one.
func (s kubeletState) settled() bool {
	p, alive := s.own()
	return alive && (p.age >= settledAfter || s.service.Runs <= 1)
}

// lastEnd says how the last process ended, as launchd reports it: "last exit code 2".
func (s kubeletState) lastEnd() string {
	end := cmp.Or(s.service.LastReason, s.service.LastExit, "unknown")
	return kit.Choose(end[0] >= '0' && end[0] <= '9', "last exit code ", "last exit ") + end
}

// condition judges the job: why it does not run as it should, and a short state of its
// process. The zero reason means that it is fine; a young process after one that someone
// stopped is a manual restart and not a crash loop.
func (s kubeletState) condition() (why plan.Reason, process string) {
	settled, gone, waits := s.settled(), s.service.PID == 0, s.service.State == launchd.Scheduled
	for _, c := range [...]struct {
		is            bool
		code          plan.Code
		text, process string
		ended         bool // append the number of starts and the last exit code
	}{
		{!s.program.Exists && !s.isPlist && !s.loaded, codeKubeletMissing, "the kubelet is not installed", "none", false},
		{!s.loaded && s.disabled, codeKubeletDisabled, kubeletLabel + " is disabled in launchd", "none, disabled", false},
		{!s.loaded, codeKubeletNotLoaded, kubeletLabel + " is not loaded in launchd", "none, not loaded", false},
		{!settled && s.service.KilledBySignature(), codeKilledByCodesigning, "the kernel kills the kubelet because of its code signature", "killed by codesigning", true},
		{!settled && s.service.PinOutdated(), codeKubeletPinOutdated, "launchd refuses to start the kubelet: its program was replaced after the job was loaded",
			"refused by launchd", true},
		{!settled && s.service.Crashed() && (!gone || waits), plan.CodeKubeletCrashLoop, "crash-looping", "crash-looping", true},
		{gone && waits, codeKubeletStopped, "not running; launchd is about to start it", "none, waiting for launchd", true},
		{gone, codeKubeletRespawnStuck, "not running (" + s.service.State + "), and launchd does not restart it", "none, not restarted by launchd", true},
	} {
		if !c.is {
			continue
		}
		if c.ended {
			c.text += ": " + kit.Count(s.service.Runs, "start") + ", " + s.lastEnd()
		}
		if c.code == plan.CodeKubeletCrashLoop {
			c.process += ", " + roughly(s.service.Runs) + ", " + s.lastEnd()
		}
		return plan.Reason{Code: c.code, Text: c.text}, c.process
	}
	return plan.Reason{}, kit.Choose(s.stale(), "older than the program", "runs")
}

// roughly rounds a number of starts down, so that hosts in the same crash loop fold in a plan.
func roughly(runs int) string {
	for _, many := range []int{1000, 100, 10} {
		if runs >= many {
			return fmt.Sprintf("%d+ starts", many)
		}
	}
	return kit.Count(runs, "start")
}

// kubelet returns the state of the process, whatever its files are. Started is the latest
// possible start time.
func (s kubeletState) kubelet(condition plan.Reason, at time.Time) plan.Kubelet {
	p, alive := s.own()
	k := plan.Kubelet{Fault: condition}
	_, k.Token = readClaims(s.config.claims)
	if k.Fault == (plan.Reason{}) && !s.settled() {
		k.Fault = plan.Reason{Code: plan.CodeKubeletSettling, Text: "the kubelet restarted a moment ago; it counts as running after " + kit.Count(settledAfter, "second")}
	}
	if alive && !at.IsZero() {
		k.Started = at.Add(time.Duration(clockSlack-p.age) * time.Second)
	}
	return k
}

// stale reports whether the process started before the current program was installed.
func (s kubeletState) stale() bool {
	p, alive := s.own()
	if !alive || !s.program.Exists {
		return false
	}
	there := s.program.Changed
	if s.receipt.Exists() && s.program.Stamp == s.receipt.Stamp {
		there = s.receipt.Installed
	}
	return s.now-p.age+clockSlack < there
}

// inCluster says what is wrong with the Node of a running kubelet. early means that the
// process is too young to have reported: the Node's status is not about it yet.
func (s kubeletState) inCluster(v plan.View) (wrong plan.Reason, early bool) {
	p, alive := s.own()
	node, there := v.Node.Get()
	k := s.kubelet(plan.Reason{}, v.At)
	heard := there && !node.LastHeartbeat.IsZero() && !k.Started.IsZero() && k.SentHeartbeat(node)
	switch {
	case !alive || v.Node.IsUnread():
		return plan.Reason{}, false
	case there && node.ProviderID != "" && v.Server.ID != "" && node.ProviderID != v.Server.ProviderID():
		return plan.Reason{Code: plan.CodeDifferentProviderID, Text: "the Node has the provider id " + node.ProviderID + " of another server; the kubelet must register a new one"}, false
	case p.age < heardAfter && !heard:
		return plan.Reason{}, true
	case !there:
		return plan.Reason{Code: codeNodeMissing, Text: "the kubelet runs, but the cluster has no Node of this name"}, false
	case node.Ready != inventory.Ready:
		return plan.Reason{Code: plan.CodeNodeNotReady, Text: fmt.Sprintf("the kubelet runs, but the Node's Ready condition is %s (%s)", node.Ready, cmp.Or(node.Why, "no reason given"))}, false
	}
	return plan.Reason{}, false
}

// labels warns of labels on the Node that differ from the job's. The running kubelet rewrites its labels with each
// heartbeat, so a restart would not help.
func (d *kubeletDiff) labels() []plan.StepWarning {
	node, there := d.view.Node.Get()
	_, alive := d.seen.own()
	if !there || !alive || d.early || d.cluster != (plan.Reason{}) || node.Ready != inventory.Ready || d.condition != (plan.Reason{}) || d.stale ||
		slices.ContainsFunc(d.jobSettings, kit.Setting.Differs) {
		return nil
	}
	fields := labelsThatDiffer(node.Labels, nodeLabels(d.step.desired, d.view))
	if len(fields) == 0 {
		return nil
	}
	var texts []string
	for _, f := range fields {
		texts = append(texts, strings.TrimPrefix(f.Name, "label ")+" is "+f.Before)
	}
	return []plan.StepWarning{{Fields: fields, Trouble: *codeNodeLabelsDiffer.Trouble(
		"the Node's labels differ from --node-labels: "+strings.Join(texts, ", ")+"; the kubelet rewrites its own every 30 s",
		"run macfleet plan in a minute; if they still differ: macfleet restart "+d.view.Host.Name+" tart_kubelet; if that does not help, find out who writes them: "+
			"kubectl get node "+d.view.Host.Name+" --show-managed-fields -o yaml")}}
}

// notJudged warns that a kubelet that started a moment ago, or its Node, cannot be judged
// yet. The text is the same on all hosts, so that they fold.
func (d *kubeletDiff) notJudged() []plan.Trouble {
	const remedy = "macfleet hosts --wait ready"
	switch k := d.kubelet; {
	case d.foreign != nil || len(d.taken) > 0: // unknown which kubelet the Node belongs to
		return nil
	case k.Fault.Code == plan.CodeKubeletSettling:
		return []plan.Trouble{{Code: plan.CodeKubeletSettling, Text: k.Fault.Text, Remedy: remedy}}
	case d.early:
		return []plan.Trouble{{Code: plan.CodeNodeNotJudged,
			Text:   fmt.Sprintf("the kubelet started less than %d s ago and has not reported to the cluster yet, so its Node cannot be judged", heardAfter),
			Remedy: remedy}}
	}
	return nil
}

// labelsThatDiffer returns the job's labels that are missing or different on the Node.
func labelsThatDiffer(have, want map[string]string) []plan.Field {
	var out []plan.Field
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if got, there := have[key]; !there || got != want[key] {
			out = append(out, plan.Field{Name: "label " + key, Before: kit.Choose(there, got, "missing"), After: want[key]})
		}
	}
	return out
}

// rival is another job, file or process on the host that runs a tart-kubelet.
type rival struct {
	target string // in launchd; empty: not loaded
	path   string // of its property list; empty: none
	what   string // for display
	end    string // the command that stops it
	pid    int    // of a process without a job
	stops  bool   // its virtual machines may end with it
}

// rivals finds every other kubelet: jobs that run its program under any label, property
// lists that the next boot loads, and processes without a job.
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
		out = append(out, rival{target: j.target, path: j.path, what: "the job " + j.target, end: end, stops: j.pid != 0 && !j.abandons})
		paths[j.path], pids[j.pid] = true, true
	}
	for _, path := range s.plists {
		if !paths[path] {
			out = append(out, rival{path: path, what: path, end: "sudo rm " + path})
		}
	}
	for _, p := range s.processes {
		// A younger process may belong to a job that restarted while it was being read.
		if !pids[p.pid] && !pids[p.parent] && p.age >= settledAfter {
			out = append(out, rival{pid: p.pid, what: fmt.Sprintf("the process %d (%s)", p.pid, p.program), end: fmt.Sprintf("sudo kill %d", p.pid)})
		}
	}
	return out
}

// label returns the job's label, or the file's name if it is not loaded.
func (r rival) label() string {
	return path.Base(cmp.Or(r.target, strings.TrimSuffix(r.path, ".plist")))
}

// predecessor is the label of the kubelet's job on hosts that were set up before macfleet.
const predecessor = "dev.tuist.tart-kubelet"

// rivals splits the other kubelets into those that the configuration takes over and the
// trouble about the first of the rest: two kubelets on one Mac delete each other's virtual machines.
func (k tartKubelet) rivals(s kubeletState) (taken []rival, foreign *plan.Trouble) {
	for _, r := range s.rivals() {
		if label := r.label(); r.pid == 0 && (label == predecessor || slices.Contains(k.desired.Legacy, label)) {
			taken = append(taken, r)
			continue
		}
		if foreign == nil {
			foreign = &plan.Trouble{Code: codeSecondKubelet,
				Text:   "another kubelet is on the host: " + r.what + "; two kubelets delete each other's virtual machines",
				Remedy: "stop it on the host: " + r.end + kit.Choose(r.pid == 0, "; or let macfleet take it over: add \""+r.label()+"\" to legacy in the tart_kubelet block", "")}
		}
	}
	return taken, foreign
}
