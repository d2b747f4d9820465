// Package doctor looks at what was seen of one host: whether it is well, and what every
// value and difference of it rests on. It is pure.
package doctor

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
)

// State is what came of a check.
type State string

// The states of a check.
const (
	OK      State = "ok"
	Problem State = "problem" // something is wrong, or differs from what is wanted
	Warning State = "warning" // worth knowing; no apply changes it
	Unknown State = "unknown" // nobody knows: it was not asked, or the answer says nothing
)

// Check is one thing that was looked at on a host.
type Check struct {
	Name    string    `json:"name"` // what was looked at: inventory, connection, …, or "step" and its id
	State   State     `json:"state"`
	Code    plan.Code `json:"code,omitzero"`     // of the difference or the trouble, as plan says it; empty when it is ok
	Refused plan.Code `json:"refused,omitzero"`  // why apply does not remove the difference; empty: it does, or Code says it
	Text    string    `json:"text"`              // what was found
	Remedy  string    `json:"remedy,omitempty"`  // what to type or do next; empty when it is ok
	Bytes   string    `json:"printed,omitempty"` // what a tool printed, where a step could not read it; in a document at most 500 bytes of it
}

// Checkup is the check list of one server.
type Checkup struct {
	Name     string  `json:"name"`   // the name it should bear
	Server   string  `json:"server"` // as the provider calls it now
	ServerID string  `json:"server_id"`
	Healthy  bool    `json:"healthy"` // every check is ok
	Checks   []Check `json:"checks"`
}

// Count returns how many checks have a state.
func (c Checkup) Count(state State) int {
	n := 0
	for _, check := range c.Checks {
		if check.State == state {
			n++
		}
	}
	return n
}

// ClockProbe asks a host what time it is. It belongs to no step: only a checkup
// asks it.
func ClockProbe() plan.Probe {
	return plan.Probe{ID: "checkup.clock", Command: plan.Command{Name: "clock", Script: "date +%s\n", As: plan.Login}}
}

// Examine judges what was seen of one server, whatever its role, for a person. A host
// that was not asked has only unknown checks beyond the inventory. p is the plan of the server
// and the same snapshot; nil where none could be made, or the server is no member.
func Examine(cfg *fleet.Config, stepsFor plan.StepsFor, snap plan.Snapshot, serverID string, p *plan.Plan) Checkup {
	e := examination{cfg: cfg, of: plan.SubjectOf(cfg, snap, serverID)}
	if e.of.Seen.Trouble == nil {
		e.of.Seen.Trouble = e.of.Strange() // what it says of itself counts for nothing then
	}
	var planned plan.Host
	if p != nil {
		planned, e.planned = p.HostByServer(serverID)
	}
	e.pinned = slices.ContainsFunc(snap.Pins, func(p plan.Pin) bool { return p.ServerID == serverID })
	e.inventory()
	e.cluster()
	e.connection()
	if e.of.Seen.Trouble == nil {
		e.machine()
		e.ownership()
		e.clock()
	}
	switch steps := stepsFor(e.of.Spec); {
	case e.of.Seen.Trouble != nil:
	case e.planned:
		e.advice(p, planned, steps)
	case e.of.Member:
		e.bad("steps", Unknown, "run macfleet plan: it says why", "not compared: no plan can be made")
	default:
		for _, s := range steps {
			e.spare(s)
		}
	}
	c := Checkup{Name: e.of.Name, Server: e.of.Server.Name, ServerID: e.of.Server.ID, Checks: e.checks}
	c.Healthy = c.Count(OK) == len(c.Checks)
	return c
}

// examination carries the inputs and the list being built.
type examination struct {
	cfg    *fleet.Config
	of     plan.Subject
	pinned bool // a host key is pinned
	// planned says that the plan has the host: what differs, the plan says.
	planned bool
	checks  []Check
}

func (e *examination) ok(name, format string, args ...any) {
	e.checks = append(e.checks, Check{Name: name, State: OK, Text: fmt.Sprintf(format, args...)})
}

func (e *examination) bad(name string, state State, remedy, format string, args ...any) {
	e.checks = append(e.checks, Check{Name: name, State: state, Text: fmt.Sprintf(format, args...), Remedy: remedy})
}

// trouble enters a trouble that something else than the plan has found.
func (e *examination) trouble(name string, t *plan.Trouble) {
	e.checks = append(e.checks, Check{Name: name, State: Problem, Code: t.Code, Text: t.Text, Remedy: t.Remedy})
}

func (e *examination) inventory() {
	s := e.of.Server
	role := "in no pool and no fleet"
	switch {
	case e.of.Member:
		role = "member of " + e.of.Fleet.Name + "." + e.of.Group.Name
	case e.of.Pooled:
		role = "in the pool"
	case e.of.Orphan != nil:
		role = "ours, without a place in the configuration"
	}
	text := fmt.Sprintf("%s in %s, address %s, status %s, delivered %t; %s", s.Type, s.Zone, cmp.Or(s.Address, "none"), s.Status, s.Delivered, role)
	switch {
	case e.of.Member && e.of.Name != s.Name:
		e.bad("inventory", Problem, "give it its name back: macfleet apply --on name="+e.of.Name, "%s; Scaleway calls it %s", text, s.Name)
	case e.of.Orphan != nil:
		e.trouble("inventory", e.of.Orphan.Code.Trouble(text+"; "+e.of.Orphan.Text, e.of.Orphan.Remedy))
	default:
		e.ok("inventory", "%s", text)
	}
	for _, w := range e.of.Warnings {
		switch {
		case w.OfServer && e.of.Member:
			e.checks = append(e.checks, Check{Name: "inventory", State: Warning, Code: w.Code, Text: w.Text, Remedy: w.Remedy})
		case w.OfServer:
			e.trouble("inventory", &w.Trouble)
		}
	}
}

// cluster tells what the cluster says, where the configuration has one.
func (e *examination) cluster() {
	node, ok := e.of.Node.Get()
	switch {
	case ok && node.Ready != inventory.Ready:
		e.bad("node", Problem, "kubectl describe node "+node.Name, "Ready is %s: %s", node.Ready, node.Why)
	case ok:
		e.ok("node", "Ready")
	case e.of.Node.IsUnread():
		e.bad("node", Unknown, "look at the cluster", "%s", e.of.Node.Why())
	}
	if e.of.Seen.Trouble == nil {
		return // the plan's findings have them
	}
	for _, w := range e.of.Warnings {
		if w.OfServer {
			continue
		}
		e.checks = append(e.checks, Check{Name: "node", State: Warning, Code: w.Code, Text: w.Text, Remedy: w.Remedy})
	}
}

// root tells how root is to be had. A server as the provider delivers it asks for
// a password, and its claim sets that right.
func (e *examination) root() {
	t := plan.MissingSudo()
	switch {
	case e.of.Seen.Root:
		e.ok("root", "to be had without a password")
	case !e.of.Spec.Spec.GrantsRoot():
		e.trouble("root", t)
	case e.of.Member:
		e.bad("root", Problem, "macfleet apply --on name="+e.of.Name, "not to be had without a password")
	default:
		e.ok("root", "not without a password yet, as the provider delivers its servers")
	}
}

// machine tells what kind of Mac it is.
func (e *examination) machine() {
	e.root()
	version, read := e.of.Seen.OSVersion.Get()
	family := fleet.OSFamily(version)
	switch {
	case !read:
		e.bad("macos", Unknown, "run sw_vers on the host", "%s", e.of.Seen.OSVersion.Why())
	case family == "":
		e.bad("macos", Unknown, "look for a newer macfleet", "%s, a family that macfleet %s does not know", version, fleet.Version)
	case e.of.Member && family != e.of.Fleet.OS:
		e.bad("macos", Problem, "set os of the fleet", "%s (%s), %s wants %s", version, family, e.of.Fleet.Name, e.of.Fleet.OS)
	default:
		e.ok("macos", "%s (%s)", version, family)
	}
	if serial, ok := e.of.Seen.Serial.Get(); ok {
		e.ok("serial", "%s", serial)
	} else {
		e.bad("serial", Unknown, "run ioreg -rd1 -c IOPlatformExpertDevice on the host", "%s", e.of.Seen.Serial.Why())
	}
}

// ownership tells whose the host is.
func (e *examination) ownership() {
	marker, marked := e.of.Seen.Marker.Get()
	trouble := plan.NotOurs(e.cfg, &e.of.Host)
	switch {
	case trouble != nil && (marked || e.of.Seen.Marker.IsUnread()):
		e.trouble("marker", trouble)
		trouble = nil
	case marked:
		e.ok("marker", "%s of %s; proven: %s", marker.Name, marker.Owner(), proven(marker))
	case e.of.Member:
		e.bad("marker", Problem, "macfleet apply --on name="+e.of.Name, "the server bears our name and the host has no marker")
	default:
		e.ok("marker", "none, as it should be for a server that is nobody's")
	}
	claim, claimed := e.of.Seen.Claim.Get()
	switch {
	case trouble != nil:
		e.trouble("claim", trouble)
	case e.of.Seen.Claim.IsUnread():
		e.trouble("claim", plan.ClaimUnreadable(e.of.Seen.Claim.Why()))
	case claimed && marked:
		e.ok("claim", "as %s", claim.Name)
	case claimed:
		e.bad("claim", Problem, "macfleet apply --on name="+claim.Name, "an earlier run claimed it as %s and did not finish", claim.Name)
	default:
		e.ok("claim", "none")
	}
}

// proven lists the steps whose proof the marker holds.
func proven(m plan.Marker) string {
	var ids []string
	for _, id := range slices.Sorted(maps.Keys(m.Steps)) {
		ids = append(ids, string(id))
	}
	return cmp.Or(strings.Join(ids, ", "), "nothing yet")
}

// maxSkew is how far a host's clock may be off: logins and certificates start
// to fail minutes beyond.
const maxSkew = time.Minute

// clock compares the host's clock with ours; the answer took seconds at most.
func (e *examination) clock() {
	said := e.of.Seen.Facts.Get(ClockProbe().ID)
	answer, ok := said.Get()
	seconds, err := strconv.ParseInt(strings.TrimSpace(answer.Stdout), 10, 64)
	switch off := time.Unix(seconds, 0).Sub(e.of.Seen.At).Truncate(time.Second); {
	case !ok:
		e.bad("clock", Unknown, "run date on the host", "%s", said.Why())
	case err != nil || answer.Exit != 0:
		e.bad("clock", Unknown, "run date on the host", "date +%%s ended with exit %d and no number", answer.Exit)
		e.checks[len(e.checks)-1].Bytes = answer.Stdout + answer.Stderr
	case off.Abs() > maxSkew:
		e.bad("clock", Problem, "set it on the host: sudo sntp -sS time.apple.com", "the host's clock is off by %s", off)
	default:
		e.ok("clock", "within a minute of this machine's")
	}
}

// The reasons of package hosts for an answer that did not come.
const (
	whyStopped = "it did not answer in time and was stopped"
	whyCutOff  = "the answer was cut off"
)

// unreadRemedy says what to do about an answer that a step could not read.
func (e *examination) unreadRemedy(u plan.Unread) string {
	switch u.Why {
	case plan.NeedsRoot:
		return plan.MissingSudo().Remedy
	case whyStopped:
		return "run the command again; if it stays, see on the host what the tool waits for, or raise question in timeouts of the ssh block"
	case whyCutOff:
		return "run the command again; if it stays, log in by hand and see what the login shell prints"
	}
	// The present name: it is the one that is found without the host's marker.
	return "record it (macfleet doctor " + e.of.Server.Name + " --record FILE) and report it"
}

func count(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}

// stage is one check of a conversation.
type stage struct {
	name   string
	well   string   // what is said where it is well
	failed string   // why nothing else was asked, where it failed
	at     []string // codes of the troubles that end a conversation here: all before is well
	early  []string // those of this stage that may come before anything is dialled
}

// stages are the checks of a conversation in their order. docs/connections.md
// lists the codes.
func (e *examination) stages() []stage {
	seen := e.of.Seen
	// No address: the ssh configuration or the tailnet may have had another one than the
	// inventory. Of a conversation that ended later nobody says which path it was.
	answers, key := "the host answers", seen.Fingerprint+", not pinned yet: an apply that works on the host pins it"
	if seen.Path != "" {
		answers += " (path: " + seen.Path + ")"
	}
	switch {
	case seen.Fingerprint == "" && e.pinned:
		key = "it is the pinned one"
	case seen.Fingerprint == "":
		key = "none is pinned yet, so any is taken"
	case seen.Pinned:
		key = seen.Fingerprint + ", the pinned one"
	}
	return []stage{
		{"connection", answers, "there is no connection", []string{"unreachable", "jump-lost"}, []string{"ssh-config", "jump-failed"}},
		{"ssh", "an ssh server answers", "no ssh server answers", []string{"no-ssh-answer"}, nil},
		{"host key", key, "the host key is in doubt", []string{"wrong-host-key", "host-key-unknown"}, []string{"damaged-pin"}},
		{"authentication", "user " + e.cfg.SSH.User + " was let in", "no login is possible", []string{"key-refused"}, []string{"no-key"}},
		{"answers", "all questions were answered in one command", "the conversation broke off", []string{"connection-lost"}, nil},
	}
}

// connection tells how far the conversation came. Only what was looked at is
// well: the rest nobody knows, and nothing at all where the trouble's code is a
// strange one.
func (e *examination) connection() {
	all := e.stages()
	failed, passed := len(all), len(all)
	var t *plan.Trouble
	if found := e.of.Seen.Trouble; found != nil {
		t = plan.Diagnosed(*found, e.cfg.Vendor(), e.of.Server)
		failed, passed = -1, 0
		for i, s := range all {
			switch {
			case slices.Contains(s.at, t.Code.String()):
				failed, passed = i, i
			case slices.Contains(s.early, t.Code.String()):
				failed = i
			}
		}
	}
	for i, s := range all {
		switch {
		case i < passed:
			e.ok(s.name, "%s", s.well)
		case i == failed:
			e.trouble(s.name, t)
		case failed >= 0:
			e.bad(s.name, Unknown, "", "not asked: %s", all[failed].failed)
		case i == 0:
			e.trouble(s.name, t)
			e.checks[len(e.checks)-1].State = Unknown
		default:
			e.bad(s.name, Unknown, "", "not known either")
		}
	}
}
