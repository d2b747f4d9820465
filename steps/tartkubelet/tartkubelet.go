// Package tartkubelet is the step tart_kubelet: the Node's agent, its identity and its job.
package tartkubelet

import (
	"cmp"
	"embed"
	"slices"
	"strconv"
	"strings"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/steps/kit"
	"github.com/macfleet/macfleet/steps/launchd"
)

//go:embed scripts
var files embed.FS

var scripts = kit.ScriptsOf(files)

// The codes that are raised here.
var (
	codeBTMDisallowed = plan.NewCode("btm-disallowed", plan.Critical, "macOS does not let the kubelet's job run in the background",
		"over VNC, allow it in System Settings, General, Login Items & Extensions; or on the host: sudo sfltool resetbtm, and restart it when it is idle (sudo sfltool dumpbtm shows the list)")
	codeOrphanVM = plan.NewCode("orphan-vm", plan.Notice, "a virtual machine is there that no Pod is behind",
		"look at it before (as the login user: tart list); a host that makes machines of its own needs a github_runner block, which turns that off")
	codeKubeletNotWanted = plan.NewCode("kubelet-not-wanted", plan.Notice, "the configuration has no tart_kubelet block, and macfleet made what is there")
)

// tartKubelet makes a host a Node of the cluster, last of all that a Pod needs: its
// program, the kubeconfig of its identity, and a launchd job that keeps it
// running. What counts is the process: equal files beside an old process, or one
// that dies at every start, are no Node.
type tartKubelet struct {
	wish *fleet.TartKubelet
	host fleet.Host
}

// newTartKubelet returns the step of a host.
func New(h fleet.Host) plan.Step { return tartKubelet{wish: h.Spec.TartKubelet, host: h} }

func (tartKubelet) ID() plan.StepID { return "tart_kubelet" }

// MakesNode reports whether the host is to be a Node.
func (k tartKubelet) MakesNode() bool { return k.wish != nil }

// Wanted is the job without what only the host and the inventory know, and what the
// job rests on.
func (k tartKubelet) Wanted() string {
	if k.wish == nil {
		return ""
	}
	job := kubeletJob(k.wish, plan.View{Host: k.host}, capacity{})
	return kit.Wanted([]kit.Setting{
		{Name: "version", Wanted: kit.GoalOf(k.wish.Artifact).String()},
		{Name: "arguments", Wanted: strings.Join(job.Arguments, " ")},
		{Name: "reserve", Wanted: strconv.Itoa(*k.wish.Reserve.CPU) + " cores, " + *k.wish.Reserve.Memory},
		{Name: "process", Wanted: "runs"},
		{Name: "taken over", Wanted: kit.ListOr(k.wish.Legacy, "none")},
		{Name: "Node", Wanted: "registered"},
	})
}

// Probes asks one question about all that is of the host, as it is judged from one
// moment, and one about macOS's list of background items, which is slow on some
// releases and must not hold up the rest. Where no kubelet is wanted, what another
// wish left there is all that matters.
func (k tartKubelet) Probes() []plan.Probe {
	state := scripts.Probe(k.ID(), "state", plan.Root, k.host.User)
	state.ID = k.stateID()
	if k.wish == nil {
		return kit.Asked(false, state)
	}
	return []plan.Probe{state, scripts.Probe(k.ID(), "background", plan.Root)}
}

// backgroundID is the probe that asks for macOS's list of background items.
const backgroundID = "tart_kubelet.background"

func (k tartKubelet) stateID() string { return string(k.ID()) + ".state/" + k.host.User }

func (k tartKubelet) Diff(v plan.View) plan.Finding {
	r := kit.Reader{Facts: v.Facts}
	d := kubeletDiff{step: k, view: v, seen: readKubelet(&r, kit.Answered(v.Facts, k.stateID()))}
	if k.wish == nil {
		return k.leave(v, d.seen, &r)
	}
	if d.compare(&r); len(r.Unread) > 0 {
		return plan.Finding{Unread: r.Unread}
	}
	return d.finding()
}

// Restart starts the job anew, as it is wanted.
func (k tartKubelet) Restart(v plan.View) plan.Change {
	r := kit.Reader{Facts: v.Facts}
	d := kubeletDiff{step: k, view: v, seen: readKubelet(&r, k.stateID())}
	d.compare(&r)
	return d.run()
}

// kubeletDiff compares one host with what is wanted of it.
type kubeletDiff struct {
	step    tartKubelet
	view    plan.View
	seen    kubeletState
	goal    kit.Goal
	noWay   *plan.Trouble // there is nothing to roll back to
	noRoom  *plan.Trouble // the reserve leaves nothing
	job     launchd.Job
	plist   string // of the job
	taken   []rival
	foreign *plan.Trouble

	version, access, config kit.Setting
	jobSettings             []kit.Setting // its arguments, the job in launchd, its file
	rest                    []kit.Setting
	configReason            plan.Reason
	condition, cluster      plan.Reason
	kubelet                 plan.Kubelet
	stale                   bool
	older                   bool // the job's file is as an older macfleet rendered it
	early                   bool // the cluster cannot have heard of the process yet
}

// compare makes all that the finding says. What the cluster did not answer is
// noted as unread.
func (d *kubeletDiff) compare(r *kit.Reader) {
	s, v, wish := d.seen, d.view, d.step.wish
	d.goal, d.noWay = s.receipt.Goal(wish.Artifact, s.kept, v.Rollback)
	var c capacity
	c, d.noRoom = capacityOf(wish.Reserve, s.cpus, s.memory)
	d.job = kubeletJob(wish, v, c)
	d.version = kit.Compare("version", s.receipt.Version(s.program), d.goal.String())
	d.access = kit.Compare("program", kit.ProgramMode, kit.ProgramMode)
	if s.program.There {
		d.access.Seen = s.program.Access
	}
	d.compareConfig(r)
	d.plist = launchd.Plist(d.job)
	d.jobSettings = s.jobSettings(d.job, d.plist)
	d.taken, d.foreign = d.step.rivals(s)
	var process string
	d.condition, process = s.condition()
	d.stale, d.older = s.stale(), s.isPlist && s.withheld == "" && s.beforeAbandon()
	if d.condition == (plan.Reason{}) && !d.stale && !slices.ContainsFunc(d.jobSettings, kit.Setting.Differs) {
		d.cluster, d.early = s.inCluster(v)
	}
	d.kubelet = s.kubelet(d.condition, v.At)
	d.kubelet.Unfinished = v.Pending
	d.rest = []kit.Setting{
		kit.Compare("process", process, "runs"),
		kit.Compare("folders", s.foldersOf(d.step.host.User), "the login user's"),
		kit.Compare("taken over", kit.ListOr(wish.Legacy, "none"), kit.ListOr(wish.Legacy, "none")),
		kit.Compare("other kubelets", kit.ListOr(names(d.taken), "none"), "none"),
		kit.Compare("Node", cmp.Or(words(d.cluster), "registered"), "registered"),
		kit.Compare("earlier run", kit.Choose(v.Pending, "unfinished", "finished"), "finished"),
	}
}

func (d *kubeletDiff) compareConfig(r *kit.Reader) {
	unread := func(why string) { r.Unread = append(r.Unread, plan.Unread{Probe: d.step.stateID(), Why: why}) }
	join, ok := d.view.Join.Get()
	if !ok {
		unread("how hosts reach the cluster is not known: " + cmp.Or(d.view.Join.Why(), "nothing says it"))
		return
	}
	if d.view.Identity.IsUnread() {
		unread("the host's identity in the cluster is not known: " + cmp.Or(d.view.Identity.Why(), "nothing says it"))
		return
	}
	var err error
	if d.config, d.configReason, err = configSetting(d.view, d.seen.config, join); err != nil {
		unread(err.Error())
	}
}

// words are a reason in short, the same on every host.
func words(r plan.Reason) string {
	code := strings.TrimPrefix(strings.TrimPrefix(r.Code.String(), "kubelet-"), "node-")
	return strings.ReplaceAll(code, "-", " ")
}

func names(all []rival) []string {
	var out []string
	for _, r := range all {
		out = append(out, r.label())
	}
	return out
}

// foldersOf says whether the agent can write where it has to: one that cannot open
// its log ends with 78 and says nothing.
func (s kubeletState) foldersOf(user string) string {
	var wrong []string
	for _, path := range kubeletFolders {
		switch owner := s.owners[path]; owner {
		case user + ":staff":
		case "":
			wrong = append(wrong, path+" is missing")
		default:
			wrong = append(wrong, path+" is "+owner+"'s")
		}
	}
	return kit.ListOr(wrong, "the login user's")
}

func (d *kubeletDiff) finding() plan.Finding {
	all := slices.Concat([]kit.Setting{d.version, d.access, d.config}, d.jobSettings, d.rest) // both sides in normal form
	f := plan.Finding{Facts: kit.Facts(all), VMs: inventory.Present(d.seen.virtualMachines()), Kubelet: inventory.Present(d.kubelet),
		Watched: d.labels(), Warnings: slices.Concat(d.seen.receipt.RolledBack(d.goal, d.view.Rollback), d.orphans(), d.notJudged())}
	if !slices.ContainsFunc(all, kit.Setting.Differs) && !d.older {
		f.Refused = cmp.Or(d.foreign, d.noWay, d.background(), d.diskFull(leastFree))
		return f
	}
	f.Changes = d.changes()
	if d.hurtsWork() || d.endsWork() {
		f.Busy = kit.Tasks(d.seen.work)
	}
	f.Refused = d.refusal(f.Changes)
	return f
}

// refusal says why the changes must not be made now.
func (d *kubeletDiff) refusal(changes []plan.Change) *plan.Trouble {
	if d.goal.SHA == "" {
		return kit.ArtifactMissing(d.step.ID())
	}
	t := cmp.Or(d.foreign, d.noRoom, d.noWay, d.background())
	for _, c := range changes {
		if c.Delivery != nil {
			t = cmp.Or(t, d.diskFull(c.Delivery.Space))
		}
	}
	return t
}

// leastFree is how many bytes a host must have free: no virtual machine starts
// with less, and no log is written.
const leastFree = 1 << 30

func (d *kubeletDiff) diskFull(needed int64) *plan.Trouble {
	if d.seen.free == kit.UnknownSpace || d.seen.free >= needed {
		return nil
	}
	return kit.DiskFull(d.seen.free, needed)
}

// background says that macOS does not let the job start by itself. Only a person can
// allow it again.
func (d *kubeletDiff) background() *plan.Trouble {
	a, ok := d.view.Facts.Get(backgroundID).Get()
	if !ok || !strings.Contains(a.Stdout, "disallowed") {
		return nil
	}
	return codeBTMDisallowed.Trouble("macOS's list of background items disallows " + kubeletLabel + ": it does not come back after a boot, nor by itself after it ended")
}

// collectsAgain reports whether machines that were kept would be deleted from now
// on.
func (d *kubeletDiff) collectsAgain() bool {
	return !d.view.Host.Spec.BuildsImages() && !d.seen.collects()
}

// hurtsWork reports whether what goes on on the host would not outlive the changes: its
// machines would be collected from now on.
func (d *kubeletDiff) hurtsWork() bool { return d.collectsAgain() && len(d.seen.work) > 0 }

// endsWork reports whether the changes may boot out a job that its virtual machines end with. launchd does not show of a
// job whether it abandons them, so its file has to say it. What outlived a process that ended by itself outlives the job.
// A Pod may come between the plan and the apply, so it does not matter whether a machine runs now.
func (d *kubeletDiff) endsWork() bool {
	s := d.seen
	runs := s.loaded && s.service.PID != 0 && d.condition == (plan.Reason{})
	return runs && d.way() != "kick" && !s.abandons(!d.jobSettings[2].Differs())
}

// unbacked are the local virtual machines that no Pod of the Node is behind. ok is
// false where nobody knows the Pods. The base images of the agent's own are none.
func (d *kubeletDiff) unbacked() (out []string, ok bool) {
	pods, ok := d.view.Pods.Get()
	for _, name := range d.seen.machines {
		backed := slices.ContainsFunc(pods, func(p inventory.Pod) bool { return p.VM() == name })
		if !backed && !strings.HasPrefix(name, "tuist-golden-") {
			out = append(out, name)
		}
	}
	return out, ok || d.view.Pods.IsAbsent()
}

// orphans warns of machines that the garbage collection takes. On a builder they
// are its work.
func (d *kubeletDiff) orphans() []plan.Trouble {
	left, known := d.unbacked()
	if len(left) == 0 || !known || d.view.Host.Spec.BuildsImages() || d.collectsAgain() {
		return nil
	}
	return []plan.Trouble{*codeOrphanVM.Trouble("no Pod is behind the local " + kit.Choose(len(left) == 1, "virtual machine ", "virtual machines ") +
		strings.Join(left, ", ") + ", so the kubelet deletes it within 5 minutes")}
}

// leave is the finding where the host is to be no Node: what macfleet made goes.
func (k tartKubelet) leave(v plan.View, seen kubeletState, r *kit.Reader) plan.Finding {
	if f, blind := r.Blind(v); blind {
		return f
	}
	ours := seen.receipt.There() || seen.isPlist || seen.loaded
	if !ours && !v.Pending {
		return plan.Finding{}
	}
	program := kit.Choose(seen.receipt.There() && seen.program.There, "program", "")
	all := []kit.Setting{
		kit.Compare("job", kit.Choose(seen.loaded || seen.isPlist, "made by macfleet", ""), ""),
		kit.Compare("program", kit.Choose(program != "", seen.receipt.Version(seen.program), ""), ""),
		kit.Compare("kubeconfig", kit.Choose(seen.config.there, "made by macfleet", ""), ""),
		kit.Compare("earlier run", kit.Choose(v.Pending, "unfinished", "finished"), "finished"),
	}
	if diff := kit.Fields(all...); len(diff) == 0 {
		all = append(all, kit.Compare("receipt", "made by macfleet", ""))
	}
	return plan.Finding{Facts: kit.Facts(all), Busy: kit.Tasks(seen.work), Changes: []plan.Change{{
		Reason:     plan.Reason{Code: codeKubeletNotWanted, Text: "the configuration has no tart_kubelet block for this host, and macfleet made what is here"},
		Fields:     kit.Fields(all...),
		Disruption: plan.Drain,
		Removes:    true,
		Command:    scripts.Command("tart_kubelet-remove", plan.Root, program, kit.Forced(v)),
	}}}
}
