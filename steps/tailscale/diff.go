package tailscale

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/steps/kit"
	"github.com/macfleet/macfleet/steps/launchd"
)

// diff compares a host's daemon with the configuration.
type diff struct {
	step tailscale
	view plan.View
	list *plan.PeerSeen // what the control server lists; nil: only the wanted side of settings is needed
	seen seen
	goal kit.Goal
}

// The positions of settings.
const (
	daemonVersion = iota
	clientVersion
	jobFile
	jobLoaded
	arguments
	process
	start
	runningVersion
	stateFolder
	membership
	deviceName
	deviceTags
	approval
	expiry
	control
	preferences
	resolverFiles
	keyFiles
	leftKeys
	earlierRun
)

// settings compares everything. Without a host only the wanted side means something.
func (d *diff) settings() []kit.Setting {
	t, s := d.step.tailnet(), d.seen
	job := d.step.job()
	want := d.goal.String()
	all := []kit.Setting{
		daemonVersion:  kit.Compare("tailscaled", s.daemon.Version(s.daemonFile), want),
		clientVersion:  kit.Compare("tailscale", s.client.Version(s.cliFile), want),
		jobFile:        kit.Compare("job file", s.plist.Is(s.plist.Text == launchd.Plist(job), kit.FileMode), kit.AsRendered),
		jobLoaded:      kit.Compare("job in launchd", d.loaded(job), kit.AsRendered),
		arguments:      kit.Compare("arguments", kit.Choose(s.loaded, strings.Join(s.service.Arguments, " "), "none"), strings.Join(job.Arguments, " ")),
		process:        kit.Compare("process", kit.Choose(s.service.PID != 0 && s.answers, "runs", "none"), "runs"),
		start:          kit.Compare("start", kit.Choose(s.unfinished, "unfinished", "finished"), "finished"),
		runningVersion: kit.Compare("running version", stamped(s.status.Version, d.goal.Name), d.goal.Name),
		stateFolder:    kit.Compare("state folder", kit.Choose(s.folder, "present", "missing"), "present"),
		membership:     kit.Compare("tailnet", d.member(), "joined"),
		deviceName:     kit.Compare("name in the tailnet", d.name(), d.step.host.Name),
		deviceTags:     kit.Compare("tags", d.tags(), strings.Join(t.OwnTags(), ", ")),
		approval:       kit.Compare("approval", d.approval(), "approved"),
		expiry: kit.Compare("node key expires", d.listed("never", func(v inventory.Device) string {
			return kit.Choose(v.KeyExpires.IsZero(), "never", v.KeyExpires.Format("2006-01-02"))
		}), "never"),
		control:       kit.Compare("control server", controlText(s.prefs.ControlURL), controlText(t.ControlURL)),
		preferences:   kit.Compare("settings", d.preferences(), settled),
		resolverFiles: kit.Compare("files in /etc/resolver", kit.ListOr(s.resolvers, "none"), "none"),
		keyFiles:      kit.Compare("files with keys", kit.ListOr(s.keys, "none"), "none"),
		leftKeys:      kit.Compare("unused keys", kit.Choose(len(d.left()) == 0, "none", kit.Count(len(d.left()), "key")), "none"),
		earlierRun:    kit.Compare("earlier run", kit.Choose(d.view.Pending || s.former, "unfinished", "finished"), "finished"),
	}
	if !d.alive() { // what the daemon would say is not known
		all[runningVersion].Seen, all[preferences].Seen, all[control].Seen = "none", "unknown", "unknown"
	}
	return all
}

// stamped returns the version that a daemon reports, without the stamp that a build adds.
func stamped(version, want string) string {
	if rest, is := strings.CutPrefix(version, want); is && (rest == "" || rest[0] == '-') {
		return want
	}
	return cmp.Or(version, "none")
}

// settled are the preferences that every host has: a host resolves no names in the tailnet, takes no routes from it, and serves
// no second SSH.
const settled = "accept-dns=false accept-routes=false ssh=false"

func (d *diff) preferences() string {
	p := d.seen.prefs
	return fmt.Sprintf("accept-dns=%t accept-routes=%t ssh=%t", p.CorpDNS, p.RouteAll, p.RunSSH)
}

// controlText names a control server.
func controlText(url string) string {
	if url == "" || strings.HasPrefix(url, "https://controlplane.tailscale.com") || strings.HasPrefix(url, "https://login.tailscale.com") {
		return "Tailscale"
	}
	return strings.TrimSuffix(url, "/")
}

func (d *diff) loaded(job launchd.Job) string {
	s := d.seen
	switch {
	case !s.loaded:
		return "not loaded"
	case len(s.service.Differs(job)) > 0:
		return "other " + strings.Join(s.service.Differs(job), ", ")
	}
	return kit.AsRendered
}

// alive reports whether the daemon answers.
func (d *diff) alive() bool { return d.seen.answers && d.seen.service.PID != 0 }

// lists reports whether the control server's list counts.
func (d *diff) lists() bool { return d.list.Read() }

// device returns the device that the daemon says it is, as the control server lists it.
func (d *diff) device() (inventory.Device, bool) {
	if !d.lists() {
		return inventory.Device{}, false
	}
	return d.list.Net().Device(d.seen.status.Self.ID)
}

// listed returns what the list says of the host's device, or what is right if there is no list, or no device yet.
func (d *diff) listed(right string, of func(inventory.Device) string) string {
	if one, is := d.device(); is {
		return of(one)
	}
	return right
}

// member says whether the host is in the tailnet: the daemon runs and has not expired, and the list has its device.
func (d *diff) member() string {
	s := d.seen.status
	one, is := d.device()
	switch {
	case !d.alive():
		return kit.Choose(d.seen.daemon.Exists(), "unknown: no daemon answers", "not joined")
	case d.retrying():
		return "retries with a key in its memory"
	case s.Self.Expired:
		return "node key expired"
	case d.lists() && s.Self.ID != "" && !is && s.BackendState != NeedsLogin:
		return "device deleted"
	case s.BackendState == Stopped && s.HaveNodeKey:
		return "down"
	case s.BackendState == NeedsMachineAuth:
		return "joined" // the approval is a separate setting
	case s.BackendState == Starting, s.BackendState == NoState:
		return "no answer of the control server"
	case s.BackendState != Running:
		return kit.Choose(s.HaveNodeKey || s.Self.ID != "" || d.view.Verified, "logged out", "not joined")
	case is && one.Shared:
		return "another machine uses its node key"
	case is && len(s.TailscaleIPs) > 0 && !one.Has(s.TailscaleIPs[0]):
		return "the list has a different address"
	}
	return "joined"
}

// approval says whether the device is approved, by the list and by the daemon: one of them may be late, and a control server
// whose devices are not listed says it to the daemon only.
func (d *diff) approval() string {
	waits := d.alive() && d.seen.status.BackendState == NeedsMachineAuth
	one, is := d.device()
	switch {
	case is && !one.Approved, !is && waits:
		return "waits"
	case waits:
		return "approved, and tailscaled does not know it yet"
	}
	return "approved"
}

// retrying reports whether the daemon tries to join with a key in its memory: it is not logged out and wants to run, and has no
// device.
func (d *diff) retrying() bool {
	s, p := d.seen.status, d.seen.prefs
	return s.BackendState == NeedsLogin && p.WantRunning && !p.LoggedOut && s.Self.ID == "" && !s.Self.Expired
}

// joined reports whether nothing about the membership differs.
func (d *diff) joined() bool { return d.member() == "joined" }

// name is the device's name in the tailnet.
func (d *diff) name() string {
	if !d.alive() || d.seen.status.Self.ID == "" {
		return d.step.host.Name
	}
	return d.listed(d.step.host.Name, func(v inventory.Device) string { return v.Name })
}

func (d *diff) tags() string {
	right := strings.Join(d.step.tailnet().OwnTags(), ", ")
	return d.listed(right, func(v inventory.Device) string {
		return kit.Choose(len(v.Tags) > 0, strings.Join(v.Tags, ", "), "none")
	})
}

// left are the keys of earlier runs that can still be used.
func (d *diff) left() []inventory.DeviceKey {
	if !d.lists() {
		return nil
	}
	return keysOf(d.list)
}

// keysOf are macfleet's unused keys for the host; none if they cannot be listed.
func keysOf(list *plan.PeerSeen) []inventory.DeviceKey {
	all, _ := list.Net().Keys.Get()
	return all
}

// others are the devices that have the host's name and are not its own: stale ones, which macfleet may delete, and others.
func (d *diff) others() (stale, live []inventory.Device) {
	if !d.lists() {
		return nil, nil
	}
	for _, one := range d.list.Net().Devices {
		switch own := one.ID == d.seen.status.Self.ID; {
		case own && (d.joined() || d.member() == "down"):
		case own, d.step.stale(one):
			stale = append(stale, one)
		case strings.EqualFold(one.Name, d.step.host.Name):
			live = append(live, one)
		}
	}
	return stale, live
}

// finding returns the difference as changes, in the order that keeps no key alive and no device twice.
func (d *diff) finding() plan.Finding {
	all := d.settings()
	f := plan.Finding{Facts: kit.Facts(all)}
	if on, known := d.list.Net().MagicDNS.Get(); known && !on {
		f.Warnings = append(f.Warnings, *codeMagicDNS.Trouble("MagicDNS is off in the tailnet"))
	}
	if kit.Differing(all) == 0 {
		return f
	}
	if d.goal.SHA == "" {
		f.Refused = kit.ArtifactMissing(d.step.ID())
	}
	add := func(c plan.Change, settings ...kit.Setting) {
		c.Fields = append(c.Fields, kit.Fields(settings...)...)
		f.Changes = append(f.Changes, c)
	}
	for _, k := range d.left() {
		add(revoke(k))
	}
	rolls := d.install(all, add)
	refused := d.membershipChanges(all, rolls, add)
	f.Refused = cmp.Or(f.Refused, refused)
	if all[resolverFiles].Differs() || all[keyFiles].Differs() || len(f.Changes) == 0 && f.Refused == nil {
		add(plan.Change{Reason: d.leftover(all), Command: scripts.Command("tailscale-tidy", plan.Root)}, all[resolverFiles], all[keyFiles], all[earlierRun])
	}
	if s := d.goal.Delivery(installSpace, d.seen.free); f.Refused == nil && all[daemonVersion].Differs() && s != nil && d.seen.free != kit.UnknownSpace && d.seen.free < s.Space {
		f.Refused = kit.DiskFull(d.seen.free, s.Space)
	}
	f.Changes = slices.DeleteFunc(f.Changes, func(c plan.Change) bool { return len(c.Fields) == 0 })
	return f
}

// at is a change of a device at the control server.
func at(verb inventory.Verb, device inventory.Device) *plan.PeerChange {
	return &plan.PeerChange{Peer: inventory.TailnetService, Verb: verb, Entry: device.Entry()}
}

// revoke ends a key that an earlier run left.
func revoke(k inventory.DeviceKey) plan.Change {
	return plan.Change{Reason: plan.Reason{Code: codeKeyLeft, Text: "the auth key " + k.ID + " of an earlier run can still be used"},
		Peer: &plan.PeerChange{Peer: inventory.TailnetService, Verb: inventory.RevokeKey, Key: k.ID}, Fields: []plan.Field{{Name: "auth key", Before: k.ID + ", unused", After: "revoked"}}}
}

// leftover is the reason of a change that only tidies up.
func (d *diff) leftover(all []kit.Setting) plan.Reason {
	return kit.Causes(
		kit.When(all[keyFiles].Differs(), codeKeyFile, "a file with an auth key was left on the host: "+all[keyFiles].Seen),
		kit.When(all[resolverFiles].Differs(), codeResolver, "a tailscaled that was killed left "+all[resolverFiles].Seen),
	)[0]
}

// installSpace is the space the installation needs, in sizes of the archive.
const installSpace = 6

// install adds what puts the programs and the job in place and restarts the daemon. It reports whether the daemon is started
// again.
func (d *diff) install(all []kit.Setting, add func(plan.Change, ...kit.Setting)) bool {
	s := d.seen
	installs := all[daemonVersion].Differs()
	if installs || all[clientVersion].Differs() {
		add(plan.Change{Reason: d.programReason(all), Delivery: d.goal.Delivery(installSpace, s.free),
			Command: scripts.Command("tailscale-install", plan.Root, d.goal.Path(), d.goal.SHA, d.goal.Name, d.goal.Way(), kit.Choose(installs, "", "client"))}, all[daemonVersion], all[clientVersion])
	}
	if !installs && kit.Differing(all[jobFile:stateFolder+1]) == 0 {
		return false
	}
	how := "ask"
	if !s.loaded || all[jobLoaded].Differs() || installs || s.service.Refused() {
		how = "load"
	}
	c := d.step.run(how, d.view.Path)
	if c.Reason = d.jobReason(all); installs {
		c.Reason = d.programReason(all)
	}
	if fields := kit.Fields(all[jobFile : stateFolder+1]...); len(fields) > 0 {
		c.Fields = fields
	}
	add(c)
	return true
}

// run returns the change that restarts the daemon. Over a connection that the daemon carries, the host takes it back unless a new
// connection confirms it.
func (t tailscale) run(how, path string) plan.Change {
	guarded := overTailnet(path)
	c := plan.Change{Command: scripts.Command("tailscale-run", plan.Root, launchd.Plist(t.job()), how, kit.Choose(guarded, "guarded", "")),
		Fields: []plan.Field{{Name: "process", Before: "running", After: "restarted"}}}
	if guarded {
		back := scripts.Command("tailscale-restore", plan.Root)
		c.Guard = &plan.Guard{Restore: &back, Persist: scripts.Command("tailscale-keep", plan.Root)}
	}
	return c
}

func (d *diff) programReason(all []kit.Setting) plan.Reason {
	s := d.seen
	return kit.Causes(
		kit.When(!s.daemonFile.Exists || !s.cliFile.Exists, codeMissing, "the programs of Tailscale are missing"),
		kit.When(!s.daemon.Exists(), codeUnknown, "macfleet did not install tailscaled: version unknown"),
		kit.When(strings.HasSuffix(all[daemonVersion].Seen, ", edited") || strings.HasSuffix(all[clientVersion].Seen, ", edited"), codeEdited, "a program of Tailscale was modified after it was installed"),
		kit.When(true, codeOutdated, "Tailscale is "+all[daemonVersion].Seen),
	)[0]
}

func (d *diff) jobReason(all []kit.Setting) plan.Reason {
	s := d.seen
	return kit.Causes(
		kit.When(!s.folder && s.daemon.Exists(), codeNoState, "the folder of "+state+" is missing"),
		kit.When(s.loaded && all[process].Differs(), codeStopped, "tailscaled does not run"+kit.Choose(s.service.LastExit != "", " (last exit: "+s.service.LastExit+")", "")),
		kit.When(s.loaded && (all[jobFile].Differs() || all[jobLoaded].Differs()), codeJobEdited, "the job of tailscaled is not as rendered"),
		kit.When(!s.loaded, codeStopped, "launchd has no job "+label),
		kit.When(all[runningVersion].Differs(), codeOldProcess, "the running tailscaled is "+all[runningVersion].Seen),
	)[0]
}

// changer adds a change with the settings that it sets.
type changer func(plan.Change, ...kit.Setting)

// membershipChanges adds what makes the host a device with the right name, tags and settings.
func (d *diff) membershipChanges(all []kit.Setting, restarts bool, add changer) *plan.Trouble {
	member := all[membership].Seen
	_, is := d.device()
	// A daemon without a node key has the preferences of a new profile: they say nothing about where it belongs.
	elsewhere := all[control].Differs() && d.alive() && d.seen.status.HaveNodeKey
	if t := d.stuck(all, !is && !restarts); t != nil {
		return t
	}
	switch {
	case !restarts && !d.alive():
		return nil
	case !d.alive() && d.seen.daemon.Exists() && d.view.Verified && d.seen.folder && !(d.lists() && len(d.list.Net().Devices) == 0):
		return nil // it joined before: whether it still has is seen when it runs
	case member == "down":
		add(plan.Change{Reason: plan.Reason{Code: codeDown, Text: "someone ran tailscale down"}, Command: scripts.Command("tailscale-up", plan.Root)}, all[membership])
	case member != "joined" || elsewhere:
		return d.join(all, elsewhere, add)
	}
	if all[preferences].Differs() && d.alive() {
		add(plan.Change{Reason: plan.Reason{Code: codeSettings, Text: "the settings of tailscaled are " + all[preferences].Seen}, Command: scripts.Command("tailscale-set", plan.Root, d.step.host.Name)}, all[preferences])
	}
	if is {
		return d.deviceChanges(all, add)
	}
	return nil
}

// stuck returns why only a person can do the rest, or nil. waits says that an approval that is missing cannot be given by this run.
func (d *diff) stuck(all []kit.Setting, waits bool) *plan.Trouble {
	one, _ := d.device()
	switch member := all[membership].Seen; {
	case member == "another machine uses its node key":
		return codeShared.Trouble("another machine uses a copy of the node key of " + one.Name + " (" + one.ID + ")")
	case member == "no answer of the control server":
		return codeOffline.Trouble("tailscaled does not reach its control server: " + kit.ListOr(d.seen.status.Health, "it does not say why"))
	case all[approval].Differs() && waits:
		return codeUnapproved.Trouble("the host's device waits for an administrator's approval",
			"approve the machine in the admin console of the control server, then: macfleet apply")
	}
	return nil
}

// join adds what lets the host join, without what it is in the tailnet now.
func (d *diff) join(all []kit.Setting, elsewhere bool, add changer) *plan.Trouble {
	member := all[membership].Seen
	stale, live := d.others()
	switch {
	case overTailnet(d.view.Path):
		return codePathInUse.Trouble("the connection to the host goes over the tailnet, which the host would leave and join again")
	case len(live) > 0:
		return d.taken(live)
	}
	fresh := kit.Choose(member != "not joined" || len(stale) > 0, "fresh", "")
	reason := d.joinReason(member, elsewhere)
	if fresh != "" && d.alive() {
		add(plan.Change{Reason: reason, Command: scripts.Command("tailscale-stop", plan.Root, ""), Fields: []plan.Field{{Name: "tailscaled", Before: "running", After: "stopped"}}})
	}
	for _, old := range stale {
		add(plan.Change{Reason: reason, Peer: at(inventory.DeleteEntry, old),
			Fields: []plan.Field{{Name: "stale device in the tailnet", Before: old.Name + ", id " + old.ID, After: "deleted"}}})
	}
	fields := kit.Fields(all[membership])
	if len(fields) == 0 {
		fields = kit.Fields(all[control])
	}
	add(plan.Change{Reason: reason, Input: plan.Admission, Fields: fields,
		Command: scripts.Command("tailscale-join", plan.Root, d.step.host.Name, d.step.tailnet().ControlURL, fresh)})
	return nil
}

// deviceChanges adds what gives the device of a host that has joined its approval, tags, expiry and name.
func (d *diff) deviceChanges(all []kit.Setting, add changer) *plan.Trouble {
	stale, live := d.others()
	one, _ := d.device()
	onlyDevice := func(verb inventory.Verb, code plan.Code, text string, s kit.Setting, to ...string) {
		change := at(verb, one)
		change.To = to
		add(plan.Change{Reason: plan.Reason{Code: code, Text: text}, Peer: change}, s)
	}
	if all[approval].Differs() {
		if !one.Approved {
			onlyDevice(inventory.ApproveDevice, codeUnapproved, "the device "+one.Name+" waits for an administrator's approval", all[approval])
		}
		if d.alive() && d.seen.status.BackendState == NeedsMachineAuth {
			add(plan.Change{Reason: plan.Reason{Code: codeUnapproved, Text: "tailscaled does not know of the approval yet"}, Command: scripts.Command("tailscale-wait", plan.Root),
				Fields: []plan.Field{{Name: "tailscaled", Before: NeedsMachineAuth, After: Running}}})
		}
	}
	if all[deviceTags].Differs() {
		onlyDevice(inventory.RetagDevice, codeTags, "the device has the tags "+all[deviceTags].Seen, all[deviceTags], d.step.tailnet().OwnTags()...)
	}
	if all[expiry].Differs() {
		onlyDevice(inventory.KeepDevice, codeExpires, "the node key expires on "+all[expiry].Seen, all[expiry])
	}
	if all[deviceName].Differs() {
		if len(live) > 0 {
			return d.taken(live)
		}
		for _, old := range stale {
			add(plan.Change{Reason: plan.Reason{Code: codeNameTaken, Text: "the stale device " + old.ID + " has the host's name"}, Peer: at(inventory.DeleteEntry, old),
				Fields: []plan.Field{{Name: "stale device in the tailnet", Before: old.Name + ", id " + old.ID, After: "deleted"}}})
		}
		onlyDevice(inventory.RenameDevice, kit.Choose(len(stale) > 0, codeNameTaken, codeRenamed), "the device is called "+all[deviceName].Seen, all[deviceName], d.step.host.Name)
	}
	return nil
}

// taken is the refusal because of devices with the host's name that macfleet does not delete: connected ones, and those of others.
func (d *diff) taken(live []inventory.Device) *plan.Trouble {
	return codeNameTaken.Trouble("the " + kit.Choose(live[0].Connected, "connected", "untagged") + " device " + live[0].ID + " (" + kit.Choose(len(live[0].Addresses) > 0, kit.ListOr(live[0].Addresses, ""), "no address") + ") is called " + live[0].Name)
}

func (d *diff) joinReason(member string, elsewhere bool) plan.Reason {
	s := d.seen.status
	return kit.Causes(
		kit.When(elsewhere, codeElsewhere, "tailscaled uses the control server "+controlText(d.seen.prefs.ControlURL)),
		kit.When(member == "retries with a key in its memory", codeRetrying, "tailscaled has an auth key in its memory and could not join: "+kit.ListOr(s.Health, "it does not say why")),
		kit.When(member == "node key expired", codeExpired, "the host's node key has expired"),
		kit.When(member == "device deleted", codeDeleted, "the tailnet has no device "+s.Self.ID+", although tailscaled says "+s.BackendState),
		kit.When(!d.alive() && d.view.Verified, codeDeleted, "the tailnet has no device of the host any more"),
		kit.When(member == "logged out", codeLoggedOut, "tailscaled is logged out"),
		kit.When(member == "the list has a different address", codeDeleted, "the tailnet lists another address for the device "+s.Self.ID),
		kit.When(true, codeNotJoined, "the host has not joined the tailnet yet"),
	)[0]
}
