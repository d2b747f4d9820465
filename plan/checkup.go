package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
)

// CheckState is what came of a check.
type CheckState string

// The states of a check.
const (
	CheckOK      CheckState = "ok"
	CheckProblem CheckState = "problem"
	CheckUnknown CheckState = "unknown" // nobody knows: it was not asked, or the answer says nothing
)

// Check is one thing that was looked at on a host.
type Check struct {
	Name   string // what was looked at: inventory, connection, …, or "step" and its id
	State  CheckState
	Text   string // what was found
	Remedy string // what to type or do next; empty when it is ok
	Bytes  string // what a tool printed, where a step could not read it
}

// Checkup is the check list of one server.
type Checkup struct {
	Name   string // the name it should bear
	Server inventory.Server
	Checks []Check
}

// Count returns how many checks have a state.
func (c Checkup) Count(state CheckState) int {
	n := 0
	for _, check := range c.Checks {
		if check.State == state {
			n++
		}
	}
	return n
}

// Healthy reports whether every check is ok.
func (c Checkup) Healthy() bool { return c.Count(CheckOK) == len(c.Checks) }

// ClockProbe asks a host what time it is. It belongs to no step: only a checkup
// asks it.
func ClockProbe() Probe {
	return Probe{ID: "checkup.clock", Command: Command{Name: "clock", Script: "date +%s\n", As: Login}}
}

// Examine judges what was seen of one server, whatever its role, for a person.
// now is when its host was asked; a host that was not asked has only unknown
// checks beyond the inventory. It is pure.
func Examine(cfg *fleet.Config, stepsFor StepsFor, snap Snapshot, serverID string, now time.Time) Checkup {
	e := examination{cfg: cfg, now: now}
	c := takeCensus(cfg, snap)
	for _, p := range c.servers {
		if p.server.ID == serverID {
			e.placed = p
		}
	}
	e.fleet, e.group = e.nearestGroup()
	e.pinned = slices.ContainsFunc(snap.Pins, func(p Pin) bool { return p.ServerID == serverID })
	var asked bool
	if e.seen, asked = snap.Hosts[serverID]; !asked {
		e.seen.Trouble = &Trouble{Code: "not-asked", Text: "the host was not asked", Remedy: "run the command again"}
	}
	e.host = Host{Name: e.placed.name, Server: e.placed.server, Seen: e.seen, Node: e.placed.node,
		Spec: c.specOf(e.placed.name, fleet.Place{Fleet: e.fleet.Name, Group: e.group.Name}, serverID, e.group)}
	indexCluster(snap).enter(&e.host)
	e.inventory()
	e.cluster()
	e.connection()
	if e.seen.Trouble == nil {
		e.machine()
		e.ownership()
		e.clock()
		for _, s := range stepsFor(e.host.Spec) {
			e.step(s)
		}
	}
	return Checkup{Name: e.placed.name, Server: e.placed.server, Checks: e.checks}
}

// examination carries the inputs and the list being built.
type examination struct {
	cfg    *fleet.Config
	now    time.Time
	placed placed
	fleet  fleet.Fleet
	group  fleet.Group
	seen   HostSeen
	pinned bool // a host key is pinned
	host   Host
	checks []Check
}

func (e *examination) ok(name, format string, args ...any) {
	e.checks = append(e.checks, Check{Name: name, State: CheckOK, Text: fmt.Sprintf(format, args...)})
}

func (e *examination) bad(name string, state CheckState, remedy, format string, args ...any) {
	e.checks = append(e.checks, Check{Name: name, State: state, Text: fmt.Sprintf(format, args...), Remedy: remedy})
}

// nearestGroup returns the group of a member. Of another server it is the first
// group that wants its type, or the first of all: its probes are those that the
// server would have to answer.
func (e *examination) nearestGroup() (fleet.Fleet, fleet.Group) {
	if e.placed.role == member {
		f, g, _ := e.cfg.Group(e.placed.place.Fleet, e.placed.place.Group)
		return f, g
	}
	var near fleet.Fleet
	var group fleet.Group
	for _, f := range e.cfg.Fleets {
		for _, g := range f.Groups {
			if g.Type == e.placed.server.Type {
				return f, g
			}
			if near.Name == "" {
				near, group = f, g
			}
		}
	}
	return near, group
}

func (e *examination) inventory() {
	s := e.placed.server
	role := "in no pool and no fleet"
	switch e.placed.role {
	case member:
		role = "member of " + e.fleet.Name + "." + e.group.Name
	case pool:
		role = "in the pool"
	}
	text := fmt.Sprintf("%s in %s, address %s, status %s, delivered %t; %s", s.Type, s.Zone, cmp.Or(s.Address, "none"), s.Status, s.Delivered, role)
	switch {
	case !s.Usable():
		e.bad("inventory", CheckProblem, "wait for it, or look at the server in the Scaleway console", "%s", text)
	case e.placed.renamed():
		e.bad("inventory", CheckProblem, "give it its name back: macfleet apply --on name="+e.placed.name, "%s; Scaleway calls it %s", text, s.Name)
	default:
		e.ok("inventory", "%s", text)
	}
}

// cluster tells what the cluster says, where the configuration has one.
func (e *examination) cluster() {
	node, ok := e.placed.node.Get()
	switch {
	case ok && node.Ready != inventory.Ready:
		e.bad("node", CheckProblem, "kubectl describe node "+node.Name, "Ready is %s: %s", node.Ready, node.Why)
	case ok && node.Cordoned:
		e.ok("node", "Ready, cordoned")
	case ok:
		e.ok("node", "Ready")
	case e.placed.node.IsUnread():
		e.bad("node", CheckUnknown, "look at the cluster", "%s", e.placed.node.Why())
	}
}

// root tells how root is to be had. A server as the provider delivers it asks for
// a password, and its claim sets that right.
func (e *examination) root() {
	t := missingSudo()
	switch {
	case e.seen.Root:
		e.ok("root", "to be had without a password")
	case !e.host.Spec.Spec.GrantsRoot():
		e.bad("root", CheckProblem, t.Remedy, "%s", t.Text)
	case e.placed.role == member:
		e.bad("root", CheckProblem, "macfleet apply --on name="+e.placed.name, "not to be had without a password")
	default:
		e.ok("root", "not without a password yet, as the provider delivers its servers")
	}
}

// machine tells what kind of Mac it is.
func (e *examination) machine() {
	e.root()
	version, read := e.seen.OSVersion.Get()
	family := osFamily(version)
	switch {
	case !read:
		e.bad("macos", CheckUnknown, "run sw_vers on the host", "%s", e.seen.OSVersion.Why())
	case family == "":
		e.bad("macos", CheckUnknown, "look for a newer macfleet", "%s, a family that macfleet %s does not know", version, fleet.Version)
	case e.placed.role == member && family != e.fleet.OS:
		e.bad("macos", CheckProblem, "set os of the fleet, or replace the server by hand: give this one back to the pool (drain, reinstall, "+
			"rename, then macfleet hosts trust "+e.placed.name+") and let macfleet claim another", "%s (%s), %s wants %s", version, family, e.fleet.Name, e.fleet.OS)
	default:
		e.ok("macos", "%s (%s)", version, family)
	}
	if serial, ok := e.seen.Serial.Get(); ok {
		e.ok("serial", "%s", serial)
	} else {
		e.bad("serial", CheckUnknown, "run ioreg -rd1 -c IOPlatformExpertDevice on the host", "%s", e.seen.Serial.Why())
	}
}

// ownership tells whose the host is.
func (e *examination) ownership() {
	marker, marked := e.seen.Marker.Get()
	trouble := NotOurs(e.cfg, e.host)
	switch {
	case trouble != nil && (marked || e.seen.Marker.IsUnread()):
		e.bad("marker", CheckProblem, trouble.Remedy, "%s", trouble.Text)
		trouble = nil
	case marked:
		e.ok("marker", "%s of %s; proven: %s", marker.Name, marker.Owner(), proven(marker))
	case e.placed.role == member:
		e.bad("marker", CheckProblem, "macfleet apply --on name="+e.placed.name, "the server bears our name and the host has no marker")
	default:
		e.ok("marker", "none, as it should be for a server that is nobody's")
	}
	claim, claimed := e.seen.Claim.Get()
	switch {
	case trouble != nil:
		e.bad("claim", CheckProblem, trouble.Remedy, "%s", trouble.Text)
	case e.seen.Claim.IsUnread():
		t := claimUnreadable(e.seen.Claim.Why())
		e.bad("claim", CheckProblem, t.Remedy, "%s", t.Text)
	case claimed && marked:
		e.ok("claim", "as %s", claim.Name)
	case claimed:
		e.bad("claim", CheckProblem, "macfleet apply --on name="+claim.Name, "an earlier run claimed it as %s and did not finish", claim.Name)
	default:
		e.ok("claim", "none")
	}
}

// proven lists the steps whose proof the marker holds.
func proven(m Marker) string {
	if len(m.Steps) == 0 {
		return "nothing yet"
	}
	ids := make([]string, 0, len(m.Steps))
	for id := range m.Steps {
		ids = append(ids, string(id))
	}
	slices.Sort(ids)
	return strings.Join(ids, ", ")
}

// maxSkew is how far a host's clock may be off: logins and certificates start
// to fail minutes beyond.
const maxSkew = time.Minute

// clock compares the host's clock with ours; the answer took seconds at most.
func (e *examination) clock() {
	answer, ok := e.seen.Facts.Get(ClockProbe().ID).Get()
	if !ok {
		e.bad("clock", CheckUnknown, "run date on the host", "%s", e.seen.Facts.Get(ClockProbe().ID).Why())
		return
	}
	seconds, err := strconv.ParseInt(strings.TrimSpace(answer.Stdout), 10, 64)
	if err != nil || answer.Exit != 0 {
		e.checks = append(e.checks, Check{Name: "clock", State: CheckUnknown, Text: fmt.Sprintf("date +%%s ended with exit %d and no number", answer.Exit),
			Remedy: "run date on the host", Bytes: answer.Stdout + answer.Stderr})
		return
	}
	if off := time.Unix(seconds, 0).Sub(e.now).Truncate(time.Second); off.Abs() > maxSkew {
		e.bad("clock", CheckProblem, "set it on the host: sudo sntp -sS time.apple.com", "the host's clock is off by %s", off)
		return
	}
	e.ok("clock", "within a minute of this machine's")
}

// step tells whether a step can read its answers. What differs is no matter of
// a checkup: plan shows it.
func (e *examination) step(s Step) {
	probes := s.Probes()
	if len(probes) == 0 {
		return // the configuration wants nothing of it
	}
	name := "step " + string(s.ID())
	finding := s.Diff(e.host.View(s.ID()))
	if r := finding.Refused; r != nil && e.placed.role == member {
		e.checks = append(e.checks, Check{Name: name, State: CheckProblem, Text: r.Code + ": " + r.Text, Remedy: r.Remedy})
		return
	}
	if len(finding.Unread) == 0 {
		e.ok(name, "%s read, %s", count(len(probes), "answer"), differing(finding, e.placed.role))
		return
	}
	for _, u := range finding.Unread {
		c := Check{Name: name, State: CheckUnknown, Text: u.Probe + ": " + u.Why, Bytes: u.Bytes, Remedy: e.unreadRemedy(u)}
		if u.Bytes != "" {
			c.State = CheckProblem
		}
		e.checks = append(e.checks, c)
	}
}

// The reasons of package hosts for an answer that did not come.
const (
	whyStopped = "it did not answer in time and was stopped"
	whyCutOff  = "the answer was cut off"
)

// unreadRemedy says what to do about an answer that a step could not read.
func (e *examination) unreadRemedy(u Unread) string {
	switch u.Why {
	case NeedsRoot:
		return missingSudo().Remedy
	case whyStopped:
		return "run the command again; if it stays, see on the host what the tool waits for, or raise question in timeouts of the ssh block"
	case whyCutOff:
		return "run the command again; if it stays, log in by hand and see what the login shell prints"
	}
	// The present name: it is the one that is found without the host's marker.
	return "record it (macfleet doctor " + e.placed.server.Name + " --record FILE) and report it"
}

func differing(f Finding, r role) string {
	switch {
	case r != member:
		return "nothing is wanted of a server that is no member"
	case len(f.Changes) == 0:
		return "no difference"
	}
	return count(len(f.Changes), "difference") + ": see macfleet plan"
}
