// Package tailscale is the step that makes a host a device of the tailnet: the daemon from an artifact, its job, its
// registration and its settings.
package tailscale

import (
	"embed"
	"fmt"
	"strconv"
	"strings"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/plan/lists"
	"github.com/macfleet/macfleet/steps/kit"
	"github.com/macfleet/macfleet/steps/launchd"
)

//go:embed scripts
var files embed.FS

var scripts = kit.ScriptsOf(files)

// The paths of Tailscale on a host.
const (
	label   = "com.tailscale.tailscaled"
	list    = "/Library/LaunchDaemons/" + label + ".plist"
	daemon  = "/usr/local/bin/tailscaled"
	client  = "/usr/local/bin/tailscale"
	state   = "/Library/Tailscale/tailscaled.state"
	socket  = "/var/run/tailscaled.socket"
	logFile = "/var/log/tailscaled.log"
)

// tailscale compares a host's daemon with the configuration and with what the control server lists. Each is wrong in some
// incident: a daemon reports Running after its device was deleted, and the list has devices of Macs that were erased.
type tailscale struct {
	desired *fleet.Tailscale
	host    fleet.Host
}

var _ plan.Peer = tailscale{}

// New returns the step for a host.
func New(h fleet.Host) plan.Step { return tailscale{h.Spec.Tailscale, h} }

func (tailscale) ID() plan.StepID { return "tailscale" }

// Service is the tailnet's control server.
func (tailscale) Service() plan.Service {
	return plan.Service{ID: inventory.TailnetService, Entry: "device in the tailnet", Noun: "device", Field: "device in the tailnet", Place: "the tailnet", Accept: "tailnet", Idle: "disconnected",
		LeftOver: codeLeftOver, Required: true, Made: gives, Quota: quota}
}

// gives reports whether an entry has a tag that hosts get.
func gives(cfg *fleet.Config, e inventory.Entry) bool {
	return cfg.Tailnet != nil && cfg.Tailnet.Gives(e.Tags)
}

// quota counts all devices with tags, and those to come for which the configuration reserves room.
func quota(cfg *fleet.Config, all []inventory.Entry) *plan.Quota {
	if cfg.Tailnet == nil {
		return &plan.Quota{}
	}
	t, tagged := *cfg.Tailnet, 0
	for _, e := range all {
		if len(e.Tags) > 0 {
			tagged++
		}
	}
	return &plan.Quota{Taken: tagged + t.ReservedDevices, Limit: t.DeviceBudget, Full: func(taken int) *plan.Trouble {
		return codeCap.Trouble(fmt.Sprintf("the tailnet has %d devices with tags, %d of them reserved or planned by this run, and device_budget is %d",
			taken, taken-tagged, t.DeviceBudget))
	}}
}

// Realm reports whether the host should be a device. A configuration has one tailnet.
func (t tailscale) Realm() (string, bool) { return "", t.desired != nil }

// Restart returns the change that restarts the daemon.
func (t tailscale) Restart(v plan.View) plan.Change {
	c := t.run("ask", v.Path)
	c.Disruption = plan.Restart
	return c
}

// stale reports whether a device with the host's name is one that macfleet may delete: it is not connected, and has one of the tags
// that hosts get.
func (t tailscale) stale(d inventory.Device) bool {
	return !d.Connected && t.tailnet().Gives(d.Tags)
}

// tailnet returns the tailnet of the configuration; a zero one if the block is gone.
func (t tailscale) tailnet() fleet.Tailnet {
	if t.host.Tailnet == nil {
		return fleet.Tailnet{}
	}
	return *t.host.Tailnet
}

// probe is the id of the probe for the daemon.
const probe = "tailscale.state"

func (t tailscale) Probes() []plan.Probe {
	return kit.ProbeOrTraces(t.desired != nil, scripts.Probe(t.ID(), "state", plan.Root))
}

// Said returns the device that the host's daemon says it is.
func (t tailscale) Said(facts plan.Facts) (lists.Said, bool) {
	s := read(&kit.Reader{Facts: facts}, kit.AnsweredProbe(facts, probe))
	return lists.Said{ID: s.status.Self.ID, Realm: s.status.MagicDNSSuffix}, s.status.Self.ID != ""
}

// job renders the daemon's job.
func (t tailscale) job() launchd.Job {
	port := 0
	if t.desired != nil && t.desired.Port != nil {
		port = *t.desired.Port
	}
	return launchd.Job{Label: label, Arguments: []string{daemon, "--state=" + state, "--socket=" + socket, "--port=" + strconv.Itoa(port)},
		RunAtLoad: true, KeepAlive: true, Throttle: 10, Stdout: logFile, Stderr: logFile}
}

func (t tailscale) Wanted() string {
	if t.desired == nil {
		return ""
	}
	d := &diff{step: t, goal: kit.GoalOf(t.desired.Artifact)}
	return kit.Wanted(d.settings())
}

// listProbe names the control server's list where a probe is named.
const listProbe = "the tailnet's list"

// unlisted is the finding without an answer of the control server: nothing about the device is a difference then.
func unlisted(why string) plan.Finding {
	return plan.Finding{Unread: []plan.Unread{{Probe: listProbe, Why: why}}}
}

func (t tailscale) Diff(v plan.View) plan.Finding {
	r := &kit.Reader{Facts: v.Facts}
	seen, list := read(r, kit.AnsweredProbe(v.Facts, probe)), v.Peer(inventory.TailnetService)
	switch {
	case t.desired == nil:
		return t.leave(v, seen, r)
	case len(r.Unread) > 0:
		return plan.Finding{Unread: r.Unread}
	case list == nil:
		return unlisted("it was not read")
	case list.Trouble != nil:
		return unlisted("it was not used (" + list.Trouble.Code.String() + ")")
	}
	goal, back := seen.daemon.Goal(t.desired.Artifact, seen.kept, v.Rollback)
	d := &diff{step: t, view: v, list: list, seen: seen, goal: goal}
	f := d.finding()
	f.Warnings = append(seen.daemon.RolledBack(goal, v.Rollback), f.Warnings...)
	if back != nil {
		f.Warnings = append(f.Warnings, *back)
	}
	return f
}

// Leave ends the device of a host that leaves.
func (t tailscale) Leave(v plan.View) plan.Finding {
	r := &kit.Reader{Facts: v.Facts}
	return t.leave(v, read(r, kit.AnsweredProbe(v.Facts, probe)), r)
}

// leave removes a daemon that macfleet installed, as its receipt shows: the daemon first, so that it cannot join again, then
// its device, then its files.
func (t tailscale) leave(v plan.View, seen seen, r *kit.Reader) plan.Finding {
	if f, blind := r.Unreadable(v); blind {
		return f
	}
	if !seen.daemon.Exists() && !v.Pending {
		return plan.Finding{}
	}
	own, list := seen.status.Self, v.Peer(inventory.TailnetService)
	all := []kit.Setting{
		kit.Compare("Tailscale", kit.Choose(seen.daemon.Exists(), seen.daemon.Current.String(), "partly removed"), ""),
		kit.Compare("device", kit.Choose(own.ID != "", own.name()+" ("+own.ID+")", "none"), "none"),
	}
	why := plan.Reason{Code: codeNotWanted, Text: "the configuration no longer wants the host in a tailnet"}
	change := func(c plan.Change) plan.Change {
		c.Reason, c.Removes = why, true
		return c
	}
	f := plan.Finding{Facts: kit.Facts(all), Changes: []plan.Change{change(plan.Change{Fields: kit.Fields(all...), Command: scripts.Command("tailscale-stop", plan.Root,
		kit.Choose(list == nil || list.Unlisted, "logout", ""))})}}
	switch {
	case overTailnet(v.Path):
		f.Refused = codePathInUse.Trouble("the connection to the host goes over the tailnet, which the host would leave")
	case list != nil && list.Trouble != nil:
		f.Refused = list.Trouble // the device would stay
	case list.Read():
		for _, d := range list.Net().Devices {
			if !seen.answers && d.Connected && strings.EqualFold(d.Name, t.host.Name) { // an interrupted run stopped the daemon a moment ago
				f.Refused = codeNameTaken.Trouble("the device "+d.Name+" (id "+d.ID+") is still connected, and no tailscaled of the host says that it is its own",
					"if it is the host's, the tailnet sees within minutes that it is gone: macfleet apply; otherwise rename it in the admin console")
			}
			if d.ID == own.ID || t.stale(d) && d.Claims(t.host.Name) {
				f.Changes = append(f.Changes, change(plan.Change{Peer: at(inventory.DeleteEntry, d),
					Fields: []plan.Field{{Name: "device in the tailnet", Before: d.Name + ", id " + d.ID, After: "deleted"}}}))
			}
		}
		for _, k := range keysOf(list) {
			f.Changes = append(f.Changes, change(revoke(k)))
		}
	case own.ID != "":
		f.Warnings = append(f.Warnings, *codeDeviceStays.Trouble("macfleet cannot delete the device " + own.name() + " (id " + own.ID + ", " + own.address() +
			"): the configuration has no credentials for its tailnet"))
	}
	f.Changes = append(f.Changes, change(plan.Change{Fields: []plan.Field{{Name: "programs and state", Before: "present", After: "deleted"}},
		Command: scripts.Command("tailscale-remove", plan.Root)}))
	return f
}

// overTailnet reports whether a path to the host leads over the tailnet.
func overTailnet(path string) bool { return strings.HasPrefix(path, "tailscale") }
