// Package tartkubelet is the step tart_kubelet: the kubelet's program, kubeconfig and launchd job.
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
	"github.com/macfleet/macfleet/steps/boundary"
	"github.com/macfleet/macfleet/steps/kit"
	"github.com/macfleet/macfleet/steps/launchd"
)

//go:embed scripts
var files embed.FS

var scripts = kit.ScriptsOf(files)

// The step's codes.
var (
	codeBTMDisallowed = plan.NewCode("btm-disallowed", plan.Critical, "macOS blocks the kubelet's job: it is disallowed as a background item",
		"allow it over VNC in System Settings, General, Login Items & Extensions; or on the host: sudo sfltool resetbtm, then restart the Mac when it is idle")
	codeOrphanVM = plan.NewCode("orphan-vm", plan.Notice, "a local virtual machine belongs to no Pod, and the kubelet deletes it",
		"check it on the host, as the login user: tart list; on a builder, a github_runner block disables this garbage collection")
	codeGCOnBuilder      = plan.NewCode("gc-on-builder", plan.Critical, "a builder's kubelet deletes virtual machines without a Pod: an image that is pushed for more than five minutes loses its nvram.bin")
	codeKubeletNotWanted = plan.NewCode("kubelet-not-wanted", plan.Notice, "the configuration no longer has a tart_kubelet block for the host")
)

// tartKubelet makes a host a Node of the cluster: the kubelet's program, the kubeconfig of
// its identity, and a launchd job that keeps it running. It judges the process, not only the
// files: an outdated or crashing process does not count as a Node.
type tartKubelet struct {
	desired *fleet.TartKubelet
	host    fleet.Host
}

// New returns the step of a host.
func New(h fleet.Host) plan.Step { return tartKubelet{desired: h.Spec.TartKubelet, host: h} }

func (tartKubelet) ID() plan.StepID { return "tart_kubelet" }

// MakesNode reports whether the host should be a Node.
func (k tartKubelet) MakesNode() bool { return k.desired != nil }

// Wanted is the job and what it needs, without values that only the host or the inventory know.
func (k tartKubelet) Wanted() string {
	if k.desired == nil {
		return ""
	}
	job := kubeletJob(k.desired, plan.View{Host: k.host}, capacity{})
	return kit.Wanted([]kit.Setting{
		{Name: "version", Wanted: kit.GoalOf(k.desired.Artifact).String()},
		{Name: "arguments", Wanted: strings.Join(job.Arguments, " ")},
		{Name: "reserve", Wanted: strconv.Itoa(*k.desired.Reserve.CPU) + " cores, " + *k.desired.Reserve.Memory},
		{Name: "process", Wanted: "runs"},
		{Name: "taken over", Wanted: kit.ListOr(k.desired.Legacy, "none")},
		{Name: "Node", Wanted: "registered"},
	})
}

// Probes returns one probe for the whole state, so that it is judged from one moment, and
// one for macOS's list of background items, which is slow on some releases. Without a
// tart_kubelet block it only looks for what an earlier one left.
func (k tartKubelet) Probes() []plan.Probe {
	state := scripts.Probe(k.ID(), "state", plan.Root, k.host.User)
	state.ID = k.stateID()
	if k.desired == nil {
		return kit.ProbeOrTraces(false, state)
	}
	all := []plan.Probe{state, scripts.Probe(k.ID(), "background", plan.Root)}
	if k.host.Spec.JoinsTailnet() {
		all = append(all, boundary.Probe())
	}
	return all
}

// backgroundID is the probe for macOS's list of background items.
const backgroundID = "tart_kubelet.background"

func (k tartKubelet) stateID() string { return string(k.ID()) + ".state/" + k.host.User }

func (k tartKubelet) Diff(v plan.View) plan.Finding {
	r := kit.Reader{Facts: v.Facts}
	d := kubeletDiff{step: k, view: v, seen: readKubelet(&r, kit.AnsweredProbe(v.Facts, k.stateID()))}
	if k.desired == nil {
		return k.leave(v, d.seen, &r)
	}
	if d.compare(&r); len(r.Unread) > 0 {
		return plan.Finding{Unread: r.Unread}
	}
	return d.finding()
}

// Restart returns the change that restarts the job.
func (k tartKubelet) Restart(v plan.View) plan.Change {
	r := kit.Reader{Facts: v.Facts}
	d := kubeletDiff{step: k, view: v, seen: readKubelet(&r, k.stateID())}
	d.compare(&r)
	return d.run()
}

// kubeletDiff compares one host with its wanted state.
type kubeletDiff struct {
	step       tartKubelet
	view       plan.View
	seen       kubeletState
	goal       kit.Goal
	noRollback *plan.Trouble // no version to roll back to
	noRoom     *plan.Trouble // the reserve leaves nothing for Pods
	job        launchd.Job
	plist      string // of the job
	taken      []rival
	foreign    *plan.Trouble

	version, access, config kit.Setting
	jobSettings             []kit.Setting // its arguments, the job in launchd, its file
	rest                    []kit.Setting
	configReason            plan.Reason
	condition, cluster      plan.Reason
	kubelet                 plan.Kubelet
	stale                   bool
	older                   bool        // an older macfleet rendered the job's file
	public, outside         plan.Reason // of metrics and of the Node's address outside the tailnet
	early                   bool        // the process is too young to have reported to the cluster
}

// compare fills in everything the finding needs. What the cluster did not answer is recorded
// as unread.
func (d *kubeletDiff) compare(r *kit.Reader) {
	s, v, want := d.seen, d.view, d.step.desired
	d.goal, d.noRollback = s.receipt.Goal(want.Artifact, s.kept, v.Rollback)
	var c capacity
	c, d.noRoom = capacityOf(want.Reserve, s.cpus, s.memory)
	d.job = kubeletJob(want, v, c)
	d.version = kit.Compare("version", s.receipt.Version(s.program), d.goal.String())
	d.access = kit.Compare("program", kit.ProgramMode, kit.ProgramMode)
	if s.program.Exists {
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
		kit.Compare("taken over", kit.ListOr(want.Legacy, "none"), kit.ListOr(want.Legacy, "none")),
		kit.Compare("other kubelets", kit.ListOr(names(d.taken), "none"), "none"),
		kit.Compare("Node", cmp.Or(words(d.cluster), "registered"), "registered"),
		kit.Compare("earlier run", kit.Choose(v.Pending, "unfinished", "finished"), "finished"),
	}
	if d.view.Host.Spec.JoinsTailnet() {
		d.rest = append(d.rest, d.tailnet(boundary.Read(r).Judged(d.view))...)
	}
}

// tailnet compares where the kubelet serves metrics, and the address that it reports. A kubelet that does not run serves none.
func (d *kubeletDiff) tailnet(s boundary.Seen) []kit.Setting {
	where := boundary.Inside
	if !slices.Contains(d.seen.service.Arguments, inTailnet) {
		return nil // its arguments are the difference
	}
	for _, port := range []string{"8080", "9091"} {
		if at := s.Where(port); boundary.Public(at) {
			where = "port " + port + " " + at
			d.public = plan.Reason{Code: boundary.CodeMetricsOnPublic, Text: "the kubelet serves " + where}
			break
		}
	}
	address := tailnetAddress
	if at := s.Where("8080"); strings.HasPrefix(at, "at ") {
		address = strings.TrimPrefix(at, "at ")
		d.outside = plan.Reason{Code: codeNodeOutside, Text: "the kubelet uses " + address + ", which is no longer the host's in the tailnet"}
	} else if node, there := d.view.Node.Get(); there && !d.early && s.Address != "" && node.InternalIP != "" && node.InternalIP != s.Address {
		address = node.InternalIP
		d.outside = plan.Reason{Code: codeNodeOutside, Text: "the Node has the address " + node.InternalIP + ", and the host's in the tailnet is " + s.Address}
	}
	all := []kit.Setting{kit.Compare("metrics", where, boundary.Inside), kit.Compare("address of the Node", address, tailnetAddress)}
	// Without a difference nothing is added to the facts: hosts that join later are then compared with what was verified before.
	return slices.DeleteFunc(all, func(s kit.Setting) bool { return !s.Differs() })
}

// tailnetAddress is what a Node of a host in the tailnet reports, without the address, which is different on each host.
const tailnetAddress = "the host's in the tailnet"

func (d *kubeletDiff) compareConfig(r *kit.Reader) {
	unread := func(why string) { r.Unread = append(r.Unread, plan.Unread{Probe: d.step.stateID(), Why: why}) }
	join, ok := d.view.Join.Get()
	if !ok {
		unread("the cluster's address for hosts is unknown: " + cmp.Or(d.view.Join.Why(), "not reported"))
		return
	}
	if d.view.Identity.IsUnread() {
		unread("the host's identity in the cluster is unknown: " + cmp.Or(d.view.Identity.Why(), "not reported"))
		return
	}
	var err error
	if d.config, d.configReason, err = configSetting(d.view, d.seen.config, join); err != nil {
		unread(err.Error())
	}
}

// words shortens a reason to its code, which is the same on every host.
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

// foldersOf reports folders that the kubelet cannot write to: one that cannot open its log
// exits with code 78 and no message.
func (s kubeletState) foldersOf(user string) string {
	var wrong []string
	for _, path := range kubeletFolders {
		switch owner := s.owners[path]; owner {
		case user + ":staff":
		case "":
			wrong = append(wrong, path+" is missing")
		default:
			wrong = append(wrong, path+" is owned by "+owner)
		}
	}
	return kit.ListOr(wrong, "the login user's")
}

func (d *kubeletDiff) finding() plan.Finding {
	all := slices.Concat([]kit.Setting{d.version, d.access, d.config}, d.jobSettings, d.rest)
	f := plan.Finding{Facts: kit.Facts(all), VMs: inventory.Present(d.seen.virtualMachines()), Kubelet: inventory.Present(d.kubelet),
		Watched: d.labels(), Warnings: slices.Concat(d.seen.receipt.RolledBack(d.goal, d.view.Rollback), d.orphans(), d.notJudged())}
	if !slices.ContainsFunc(all, kit.Setting.Differs) && !d.older {
		f.Refused = cmp.Or(d.foreign, d.noRollback, d.background(), d.diskFull(leastFree))
		return f
	}
	f.Changes = d.changes()
	if d.deletesMachines() || d.stopsMachines() {
		f.Busy = kit.Tasks(d.seen.work)
	}
	f.Refused = d.refusal(f.Changes)
	return f
}

// refusal returns why the changes must not be made now, or nil.
func (d *kubeletDiff) refusal(changes []plan.Change) *plan.Trouble {
	if d.goal.SHA == "" {
		return kit.ArtifactMissing(d.step.ID())
	}
	t := cmp.Or(d.foreign, d.noRoom, d.noRollback, d.background())
	for _, c := range changes {
		if c.Delivery != nil {
			t = cmp.Or(t, d.diskFull(c.Delivery.Space))
		}
	}
	return t
}

// leastFree is the free space in bytes that a host needs to start virtual machines and write
// logs.
const leastFree = 1 << 30

func (d *kubeletDiff) diskFull(needed int64) *plan.Trouble {
	if d.seen.free == kit.UnknownSpace || d.seen.free >= needed {
		return nil
	}
	return kit.DiskFull(d.seen.free, needed)
}

// background returns the trouble that macOS disallows the job as a background item. Only a
// person can allow it again.
func (d *kubeletDiff) background() *plan.Trouble {
	a, ok := d.view.Facts.Get(backgroundID).Get()
	if !ok || !strings.Contains(a.Stdout, "disallowed") {
		return nil
	}
	return codeBTMDisallowed.Trouble(kubeletLabel + " is disallowed as a background item, so it does not start after a reboot or a crash")
}

// collectsAgain reports whether the changes turn the garbage collection of virtual machines on.
func (d *kubeletDiff) collectsAgain() bool {
	return !d.view.Host.Spec.BuildsImages() && !d.seen.collects()
}

// deletesMachines reports whether the garbage collection would delete virtual machines in use.
func (d *kubeletDiff) deletesMachines() bool { return d.collectsAgain() && len(d.seen.work) > 0 }

// stopsMachines reports whether the changes may boot out a job whose virtual machines end with it: the kubelet's own, or
// one that it takes over. launchctl does not show
// AbandonProcessGroup, so the job's file decides. Whether a machine runs now does not matter: a Pod may start before the
// apply.
func (d *kubeletDiff) stopsMachines() bool {
	s := d.seen
	runs := s.loaded && s.service.PID != 0 && d.condition == (plan.Reason{})
	return runs && d.way() != "kick" && !s.abandons(!d.jobSettings[2].Differs()) ||
		slices.ContainsFunc(d.taken, func(r rival) bool { return r.stops })
}

// unbacked returns the local virtual machines without a Pod, except the kubelet's base
// images. ok is false if the Pods are unknown.
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

// orphans warns of machines that the garbage collection will delete.
func (d *kubeletDiff) orphans() []plan.Trouble {
	left, known := d.unbacked()
	if len(left) == 0 || !known || d.view.Host.Spec.BuildsImages() || d.collectsAgain() {
		return nil
	}
	return []plan.Trouble{*codeOrphanVM.Trouble("no Pod owns the local " + kit.Choose(len(left) == 1, "virtual machine ", "virtual machines ") +
		strings.Join(left, ", ") + ": the kubelet deletes " + kit.Choose(len(left) == 1, "it", "them") + " within 5 minutes")}
}

// leave removes what macfleet set up on a host that should not be a Node.
func (k tartKubelet) leave(v plan.View, seen kubeletState, r *kit.Reader) plan.Finding {
	if f, blind := r.Unreadable(v); blind {
		return f
	}
	ours := seen.receipt.Exists() || seen.isPlist || seen.loaded
	if !ours && !v.Pending {
		return plan.Finding{}
	}
	program := kit.Choose(seen.receipt.Exists() && seen.program.Exists, "program", "")
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
		Reason:     plan.Reason{Code: codeKubeletNotWanted, Text: "the configuration no longer has a tart_kubelet block for this host"},
		Fields:     kit.Fields(all...),
		Disruption: plan.Drain,
		Removes:    true,
		Command:    scripts.Command("tart_kubelet-remove", plan.Root, program, kit.Forced(v)),
	}}}
}
