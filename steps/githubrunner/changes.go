package githubrunner

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/steps/kit"
)

// work is what has to be done, and why.
type work struct {
	install  plan.Reason // the programs; zero: not
	register plan.Reason // deregister and register; zero: not
	start    plan.Reason // write the job and start the runner; zero: not
	way      string      // how: load, kick or keep
	restore  plan.Reason // give the entry its labels and group; zero: not
}

func (d *diff) finding() plan.Finding {
	all := d.settings()
	f := plan.Finding{Facts: kit.Facts(all), Warnings: d.warnings()}
	w := d.work(all)
	if w == (work{}) {
		f.Refused = d.refusal(w)
		return f
	}
	f.Changes = d.changes(w, all)
	if slices.ContainsFunc(f.Changes, func(c plan.Change) bool { return c.Disruption == plan.Drain }) {
		f.Busy = kit.Tasks(d.seen.work)
		f.Warnings = append(f.Warnings, d.weak()...)
	}
	f.Refused = d.refusal(w)
	return f
}

// work decides what has to be done.
func (d *diff) work(all []kit.Setting) (w work) {
	differs := func(names ...string) bool {
		return slices.ContainsFunc(all, func(s kit.Setting) bool { return slices.Contains(names, s.Name) && s.Differs() })
	}
	_, w.install = d.program()
	_, w.register = d.registration()
	if a, newer := d.goal(); w.install == (plan.Reason{}) && w.register != (plan.Reason{}) && newer && a.SHA256 != "" {
		w.install = w.register // GitHub registers no old version, and gives the end only of versions that it lists
	}
	_, process := d.process()
	switch {
	case w.install != (plan.Reason{}), w.register != (plan.Reason{}):
		w.start, w.way = cmp.Or(w.register, w.install), "load"
	case differs(nameLoaded, nameFile):
		w.start, w.way = plan.Reason{Code: codeJobEdited, Text: "the runner's job differs: " + shown(all, nameLoaded, nameFile)}, "load"
		if !d.loads {
			w.start = process
		}
	case process != (plan.Reason{}):
		w.start, w.way = process, "kick"
	case differs(namePath):
		w.start, w.way = plan.Reason{Code: codeJobEdited, Text: "the search path of jobs is " + d.at.path}, "kick"
	case d.entry != nil && !d.entry.Online:
		w.start, w.way = plan.Reason{Code: codeOffline, Text: "GitHub shows the runner " + d.entry.Name + " as offline, although it runs on the host"}, "kick"
	case differs(nameService):
		w.start, w.way = plan.Reason{Code: codeJobEdited, Text: d.root + "/runsvc.sh is " + d.script()}, "keep"
	case d.view.Pending:
		w.start, w.way = plan.Reason{Code: plan.CodeUnfinished, Text: "an earlier run started this change and did not finish it"}, "keep"
	}
	switch {
	case w.register != (plan.Reason{}): // a new registration has all of it
	case d.view.Fence != nil:
		w.restore = plan.Reason{Code: codeFenceLeft, Text: "run " + d.view.Fence.Run + " kept new jobs away from the runner at " + d.view.Fence.At.UTC().Format("2006-01-02 15:04 UTC") + " and did not finish"}
	case differs(nameLabels, nameGroup):
		w.restore = plan.Reason{Code: codeLabelsEdited, Text: "at GitHub: " + shown(all, nameLabels, nameGroup)}
	}
	return w
}

// shown lists the settings of these names that differ.
func shown(all []kit.Setting, names ...string) string {
	var out []string
	for _, s := range all {
		if s.Differs() && slices.Contains(names, s.Name) {
			out = append(out, s.Name+": "+s.Seen)
		}
	}
	return strings.Join(out, ", ")
}

// changes renders the work. The runner is stopped before its entry is deleted, so that it takes no job in between.
func (d *diff) changes(w work, all []kit.Setting) (out []plan.Change) {
	g, user, forced := d.step, d.step.host.User, kit.Forced(d.view)
	of := func(name string) (s kit.Setting) {
		if i := slices.IndexFunc(all, func(s kit.Setting) bool { return s.Name == name }); i >= 0 {
			return all[i]
		}
		return s // it is not compared
	}
	fields := func(names ...string) []plan.Field {
		some := make([]kit.Setting, len(names))
		for i, name := range names {
			some[i] = of(name)
		}
		return kit.Fields(some...)
	}
	out = make([]plan.Change, 0, 3) // most findings have no more
	add := func(r plan.Reason, c plan.Change) {
		if len(c.Fields) > 0 {
			c.Reason = r
			out = append(out, c)
		}
	}
	running := plan.Field{Name: nameProcess, Before: kit.Choose(d.runs(), "running", "none"), After: kit.Choose(d.runs(), "stopped", "none")}
	forgets := w.register != (plan.Reason{}) && (d.runs() || d.loads || d.at.settings.AgentID != 0 || d.at.half())
	if forgets || w.way == "load" && d.runs() || len(d.former) > 0 {
		c := plan.Change{Disruption: d.disruption(), Fields: []plan.Field{running}, Command: scripts.Command("github_runner-stop", plan.Root,
			append([]string{user, d.root, forced, kit.Choose(forgets, "forget", "keep"), d.label}, d.former...)...)}
		switch {
		case forgets:
			c.Fields = fields(d.registers()...)
		case !d.runs():
			c.Fields = []plan.Field{{Name: "job of another name", Before: strings.Join(d.former, ", "), After: "none"}}
		}
		add(cmp.Or(w.register, w.install, w.start), c)
	}
	if w.install != (plan.Reason{}) {
		a, _ := d.goal()
		before := kit.Choose(of(nameProgram).Differs(), of(nameProgram).Seen, d.at.version)
		least := kit.Choose(value(g.desired.MinVersion) != "", " (at least "+value(g.desired.MinVersion)+")", "")
		c := plan.Change{Fields: []plan.Field{{Name: nameProgram, Before: before, After: a.Version + least}}, Command: scripts.Command("github_runner-install", plan.Root,
			user, d.root, a.HostPath(), a.Version, forced), Delivery: &plan.Delivery{Artifact: a, Space: space}}
		if d.seen.free != kit.UnknownSpace {
			c.Delivery.Free = inventory.Present(d.seen.free)
		}
		add(w.install, c)
	}
	if w.register != (plan.Reason{}) {
		for _, e := range d.obsolete() {
			add(w.register, plan.Change{Peer: g.at(inventory.DeleteEntry, g.desired.Scope(), e),
				Fields: []plan.Field{{Name: "entry at GitHub", Before: kit.Choose(strings.EqualFold(e.Name, g.host.Name), "", e.Name+", ") + "id " + e.ID, After: "deleted"}}})
		}
		c := plan.Change{Input: plan.Admission, Fields: []plan.Field{{Name: "entry at GitHub", Before: "none", After: "new"}},
			Command: scripts.Command("github_runner-register", plan.Login, d.root, g.desired.Scope(), g.host.Name, strings.Join(g.desired.OwnLabels(), ","),
				value(g.desired.RunnerGroup), *g.desired.WorkFolder, kit.Choose(*g.desired.DefaultLabels, "", "bare"))}
		if !forgets {
			c.Fields = fields(d.registers()...)
		}
		add(w.register, c)
	}
	if w.start != (plan.Reason{}) {
		names := []string{nameLoaded, nameFile, nameService, namePath, nameProcess, nameEarlier}
		if d.entry != nil {
			names = append(names, nameOnline)
		}
		add(w.start, d.starts(w, fields(names...), of(nameProcess).Differs()))
	}
	if w.restore != (plan.Reason{}) && d.entry != nil {
		add(w.restore, plan.Change{Peer: g.at(inventory.RestoreAgent, g.desired.Scope(), *d.entry), Fields: fields(nameLabels, nameGroup, nameFence)})
	}
	return out
}

// starts writes the job and starts the runner. differs says that its process is among the fields.
func (d *diff) starts(w work, fields []plan.Field, differs bool) plan.Change {
	host := d.step.host
	if len(fields) == 0 || w.way != "keep" && d.runs() && !differs {
		fields = append(fields, plan.Field{Name: nameProcess, Before: kit.Choose(d.runs(), "running", "none"), After: kit.Choose(d.runs(), "restarted", "running")})
	}
	return plan.Change{Disruption: d.startDisruption(w), Fields: fields, Command: scripts.Command("github_runner-job", plan.Root, host.User, d.root, d.label, d.plist,
		w.way, searchPath, d.step.desired.Scope(), d.made(w), kit.Forced(d.view))}
}

// registers names the settings that a new registration shows. Without an entry everything about it differs: then only what is
// configured is worth a line.
func (d *diff) registers() []string {
	names := []string{nameRegistration, nameLabels}
	if d.entry != nil || !*d.step.desired.DefaultLabels {
		names = append(names, nameDefaults)
	}
	if d.entry != nil || value(d.step.desired.RunnerGroup) != "" {
		names = append(names, nameGroup)
	}
	if d.at.settings.WorkFolder != "" || *d.step.desired.WorkFolder != "_work" {
		names = append(names, nameWork)
	}
	return append(names, nameMode)
}

// space is what an installation needs on the disk: the archive and its unpacked files.
const space = 1 << 30

// made says whether macfleet installed the programs: only then it deletes the folder when the runner is removed. A runner that
// was taken over stays so, also if an update of it was interrupted.
func (d *diff) made(w work) string {
	fresh := d.at.root == "" || d.view.Pending && d.at.settings.AgentID == 0 // an earlier run was interrupted while it made the folder
	return kit.Choose(d.seen.receipt.made || d.seen.receipt.root == "" && w.install != (plan.Reason{}) && fresh, "made", "")
}

// obsolete returns the entries that a new registration replaces: those of the host's name, and the one that the host's files
// name, unless it is another host's.
func (d *diff) obsolete() []inventory.Agent {
	return entriesOf(d.view, d.service, d.step.host.Name, d.step.desired.Scope(), d.at.settings)
}

// entriesOf returns the entries at a scope that belong to a host: those with its name, and the one of its registration unless
// that is another host's, of which it has a copy.
func entriesOf(v plan.View, service inventory.AgentService, name, scope string, own settings) []inventory.Agent {
	out := service.Named(name)
	a, listed := service.Agent(own.id())
	if listed && own.at(scope) && !strings.EqualFold(a.Name, name) && !v.CopiedRegistration(a.Name, name) {
		out = append(out, a)
	}
	return out
}

// works reports whether the runner may have a job: it runs, GitHub knows it, and no other has its session.
func (d *diff) works() bool {
	return d.runs() && d.entry != nil && d.said != saidConflict && d.said != saidRefused || len(d.seen.work) > 0
}

// disruption is the class of a change that stops the runner.
func (d *diff) disruption() plan.Disruption {
	switch {
	case d.works():
		return plan.Drain
	case d.runs():
		return plan.Restart
	}
	return plan.NoDisruption
}

// startDisruption is the class of the change that starts the runner. An earlier change of the same step has stopped it.
func (d *diff) startDisruption(w work) plan.Disruption {
	if w.way != "kick" {
		return plan.NoDisruption
	}
	return d.disruption()
}

// refusal returns why nothing may be changed, or nil.
func (d *diff) refusal(w work) *plan.Trouble {
	g := d.step.desired
	group, known := d.wantedGroup()
	switch {
	case d.public() != kit.Choose(*g.AllowPublicRepositories, "allowed", "refused"):
		if d.ofEveryone() {
			return codePublic.Trouble("the repository " + strings.TrimPrefix(g.Scope(), "https://") + " is public: anyone who opens a pull request there could run code on the host")
		}
		return codePublic.Trouble("the runner group " + group.Name + " serves public repositories: anyone who opens a pull request there could run code on the host")
	case value(g.RunnerGroup) != "" && !known && !d.service.Groups.IsUnread():
		return codeGroupMissing.Trouble("GitHub has no runner group " + value(g.RunnerGroup))
	case w == (work{}):
		return nil
	case d.said == saidClock && d.runs(): // one that has stopped is started again, and reports it if the clock is still wrong
		return codeClock.Trouble("GitHub refuses the runner's session: the host's clock differs by more than five minutes")
	}
	if t := d.inUse(); t != nil && w.register != (plan.Reason{}) {
		return t
	}
	if w.install != (plan.Reason{}) {
		a, better := d.goal()
		switch {
		case !better && d.at.version != "":
			return codeNewestRefused.Trouble(fmt.Sprintf("%s; the newest one that GitHub offers is %s, so nothing is installed", w.install.Text, cmp.Or(a.Version, "unknown")))
		case before(a.Version, value(g.MinVersion)):
			return codeArchiveUnknown.Trouble("GitHub offers runner " + a.Version + ", and min_version is " + value(g.MinVersion))
		case a.SHA256 == "" || !better:
			return codeArchiveUnknown.Trouble("macfleet cannot verify an archive of runner " + cmp.Or(a.Version, "of any version") + ": GitHub gives no SHA-256 of it")
		case d.seen.free != kit.UnknownSpace && d.seen.free < space:
			return kit.DiskFull(d.seen.free, space)
		}
	}
	if d.service.ReadOnly && (w.register != (plan.Reason{}) || w.restore != (plan.Reason{}) || d.disruption() == plan.Drain) {
		return codeReadOnly.Trouble("macfleet may list the runners of " + g.Scope() + " but not change them")
	}
	if !d.seen.session && d.step.host.Spec.AutoLogin == nil && w.start != (plan.Reason{}) {
		return plan.CodeNoGUISession.Trouble(d.step.host.User + " is not logged in at the host's screen, so launchd cannot start the runner")
	}
	return nil
}

// inUse returns why the entries that a new registration replaces must not be deleted, or nil: another machine is online under
// the host's name, or has the session of its registration and runs a job.
func (d *diff) inUse() *plan.Trouble {
	for _, e := range d.obsolete() {
		own := d.entry != nil && e.ID == d.entry.ID
		switch {
		case !own && e.Online:
			return codeNameInUse.Trouble(fmt.Sprintf("another machine is online as %s (id %s)", e.Name, e.ID))
		case own && e.Busy && d.said == saidConflict && len(d.seen.work) == 0:
			return codeNameInUse.Trouble(fmt.Sprintf("another machine has the session of %s (id %s) and runs a job", e.Name, e.ID))
		}
	}
	return nil
}

// warnings are what is worth knowing and no difference.
func (d *diff) warnings() (out []plan.Trouble) {
	jobs := kit.RunsJob(d.seen.work)
	switch {
	case d.entry == nil:
	case jobs && !d.entry.Busy:
		out = append(out, *codeBusyUnseen.Trouble("a job runs on the host, and GitHub shows the runner as idle"))
	case !jobs && d.entry.Busy:
		out = append(out, *codeBusyStuck.Trouble("GitHub shows the runner as busy, and no job runs on the host"))
	}
	if others := d.seen.others(d.root, d.label); len(others) > 0 {
		out = append(out, *codeSecond.Trouble("another runner is loaded on the host: " + strings.Join(others, ", ")))
	}
	if name := value(d.step.desired.FenceGroup); name != "" && !d.service.Groups.IsUnread() {
		if _, there := d.service.GroupNamed(name); !there {
			out = append(out, *codeGroupMissing.Trouble("GitHub has no runner group " + name + " for fence_group"))
		}
	}
	return out
}

// weak warns where a fence does not keep all jobs away.
func (d *diff) weak() []plan.Trouble {
	if value(d.step.desired.FenceGroup) != "" || d.entry == nil {
		return nil
	}
	switch {
	case len(d.entry.Fixed) > 0:
		return []plan.Trouble{*codeFenceWeak.Trouble("macfleet takes the runner's labels off while it waits, but jobs for " + strings.Join(d.entry.Fixed, ", ") + " still reach it")}
	case value(d.step.desired.RunnerGroup) != "":
		return []plan.Trouble{*codeFenceWeak.Trouble("macfleet takes the runner's labels off while it waits, but jobs for its group still reach it")}
	}
	return nil
}

// Restart restarts the runner's job.
func (g githubRunner) Restart(v plan.View) plan.Change {
	r := &kit.Reader{Facts: v.Facts}
	seen := read(r, kit.AnsweredProbe(v.Facts, g.stateID()))
	at := seen.chosen(g.label(), g.desired.Scope())
	label, text := g.job(at.root)
	return plan.Change{Disruption: plan.Drain, Fields: []plan.Field{{Name: nameProcess, Before: "running", After: "restarted"}},
		Command: scripts.Command("github_runner-job", plan.Root, g.host.User, at.root, label, text, "kick", searchPath, g.desired.Scope(),
			kit.Choose(seen.receipt.made, "made", ""), kit.Forced(v))}
}
