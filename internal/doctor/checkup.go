// Package doctor judges what was observed on one host: its problems, and where each of its
// values and differences comes from. It is pure.
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
	Problem State = "problem" // something is wrong, or differs from the configuration
	Warning State = "warning" // worth knowing; no apply changes it
	Unknown State = "unknown" // not compared: the host was not contacted, or the answer cannot be read
)

// Check is one check of a host.
type Check struct {
	Name    string    `json:"name"` // what was checked: inventory, connection, …, or "step" and its id
	State   State     `json:"state"`
	Code    plan.Code `json:"code,omitzero"`     // of the difference or the trouble, as plan reports it; empty when it is ok
	Refused plan.Code `json:"refused,omitzero"`  // why apply refuses to remove the difference; empty: it removes it, or Code says why
	Text    string    `json:"text"`              // what was found
	Remedy  string    `json:"remedy,omitempty"`  // what to type or do next; empty when it is ok
	Bytes   string    `json:"printed,omitempty"` // what a tool printed, where a step could not read it; in a document at most 500 bytes of it
}

// Checkup is the check list of one server.
type Checkup struct {
	Name     string  `json:"name"`   // the name it should have
	Server   string  `json:"server"` // its present name at the provider
	ServerID string  `json:"server_id"`
	Healthy  bool    `json:"healthy"` // every check is ok
	Checks   []Check `json:"checks"`
	// Hold blocks changes to the host; nil: there is none.
	Hold *plan.Held `json:"hold,omitempty"`
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

// ClockProbe asks a host for the time. It belongs to no step; only a checkup uses it.
func ClockProbe() plan.Probe {
	return plan.Probe{ID: "checkup.clock", Command: plan.Command{Name: "clock", Script: "date +%s\n", As: plan.Login}}
}

// Examine judges what was observed on one server, whatever its role. A host that was not contacted
// has only unknown checks besides the inventory. p is the plan of the server from the same
// snapshot; nil where none could be made, or the server is not a member.
func Examine(cfg *fleet.Config, stepsFor plan.StepsFor, snap plan.Snapshot, serverID string, p *plan.Plan) Checkup {
	e := examination{cfg: cfg, of: plan.SubjectOf(cfg, snap, serverID)}
	if e.of.Seen.Trouble == nil {
		e.of.Seen.Trouble = e.of.WrongKey() // then what it says of itself does not count
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
	steps := stepsFor(e.of.Spec)
	e.peers(planned, steps)
	switch {
	case e.of.Seen.Trouble != nil && planned.Stage.Final():
		e.release(p, planned)
	case e.of.Seen.Trouble != nil:
	case e.planned:
		e.advice(p, planned, steps)
	case e.of.Member:
		e.bad("steps", Unknown, "macfleet plan (it says why)", "not compared: no plan can be made")
	default:
		for _, s := range steps {
			e.spare(s)
		}
	}
	c := Checkup{Name: e.of.Name, Server: e.of.Server.Name, ServerID: e.of.Server.ID, Checks: e.checks, Hold: planned.ActiveHold()}
	c.Healthy = c.Count(OK) == len(c.Checks)
	return c
}

// examination carries the inputs and the list being built.
type examination struct {
	cfg    *fleet.Config
	of     plan.Subject
	pinned bool // a host key is pinned
	// planned says that the plan has the host, and so its differences.
	planned bool
	checks  []Check
}

func (e *examination) ok(name, format string, args ...any) {
	e.checks = append(e.checks, Check{Name: name, State: OK, Text: fmt.Sprintf(format, args...)})
}

func (e *examination) bad(name string, state State, remedy, format string, args ...any) {
	e.checks = append(e.checks, Check{Name: name, State: state, Text: fmt.Sprintf(format, args...), Remedy: remedy})
}

// trouble enters a trouble that was found elsewhere than in the plan.
func (e *examination) trouble(name string, t *plan.Trouble) {
	e.checks = append(e.checks, Check{Name: name, State: Problem, Code: t.Code, Text: t.Text, Remedy: t.Remedy})
}

func (e *examination) inventory() {
	s := e.of.Server
	role := "not managed: in no pool and no fleet"
	switch {
	case e.of.Member:
		role = "member of " + e.of.Fleet.Name + "." + e.of.Group.Name
	case e.of.Pooled:
		role = "in the pool"
	case e.of.Orphan != nil:
		role = "orphaned member: no place in the configuration"
	}
	text := fmt.Sprintf("%s in %s, address %s, status %s, delivered %t; %s", s.Type, s.Zone, cmp.Or(s.Address, "none"), s.Status, s.Delivered, role)
	switch {
	case e.of.Member && e.of.Name != s.Name:
		e.bad("inventory", Problem, "macfleet apply --on name="+e.of.Name+" (renames it back)", "%s; its name at Scaleway is %s", text, s.Name)
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

// peers checks what services have of the host. That an entry is not as configured is a finding of its step.
func (e *examination) peers(h plan.Host, steps []plan.Step) {
	for _, p := range plan.Peers(steps) {
		x, s := h.Peer(p.Service().ID), p.Service()
		_, wanted := p.Realm()
		switch {
		case x.Seen == nil, x.Entry == nil && !wanted:
		case x.Seen.Trouble != nil:
			e.trouble(s.Noun, x.Seen.Trouble)
			e.checks[len(e.checks)-1].State = Unknown
		case x.Seen.Unlisted:
			e.ok(s.Noun, "not checked: this control server's entries cannot be listed")
		case x.Entry == nil:
			e.bad(s.Noun, Problem, "macfleet apply", "%s lists no %s of the host", s.At(x.Realm), s.Noun)
		default:
			i := x.Entry
			all := []string{i.Name + " (id " + i.ID + ")", given(len(i.Addresses) > 0, "address "+strings.Join(i.Addresses, ", ")), i.Version,
				given(i.Online, "online") + given(!i.Online, "offline"), given(i.Busy, "busy") + given(x.Works && i.Online && !i.Busy, "idle"), given(x.Fenced, "fenced"), "tags " + list(i.Tags)}
			e.ok(s.Noun, "%s", strings.Join(slices.DeleteFunc(all, func(s string) bool { return s == "" }), ", "))
		}
	}
}

// list joins texts.
func list(all []string) string { return cmp.Or(strings.Join(all, ", "), "none") }

// cluster checks the host's Node, where the configuration has a cluster.
func (e *examination) cluster() {
	node, ok := e.of.Node.Get()
	switch {
	case ok && node.Ready != inventory.Ready:
		e.bad("node", Problem, "kubectl describe node "+node.Name, "Ready is %s: %s", node.Ready, node.Why)
	case ok:
		e.ok("node", "Ready")
	case e.of.Node.IsUnread():
		e.bad("node", Unknown, "kubectl get nodes", "not read: %s", e.of.Node.Why())
	}
	if e.of.Seen.Trouble == nil {
		return // they come with the findings of the plan
	}
	for _, w := range e.of.Warnings {
		if w.OfServer {
			continue
		}
		e.checks = append(e.checks, Check{Name: "node", State: Warning, Code: w.Code, Text: w.Text, Remedy: w.Remedy})
	}
}

// root checks passwordless sudo. A server as the provider delivers it asks for a password; its
// claim corrects that.
func (e *examination) root() {
	t := plan.MissingSudo()
	switch {
	case e.of.Seen.Root:
		e.ok("root", "passwordless sudo works")
	case !e.of.Spec.Spec.GrantsRoot():
		e.trouble("root", t)
	case e.of.Member:
		e.bad("root", Problem, "macfleet apply --on name="+e.of.Name, "passwordless sudo is missing")
	default:
		e.ok("root", "sudo asks for the password, as on every server that Scaleway delivers")
	}
}

// machine checks macOS and the serial number.
func (e *examination) machine() {
	e.root()
	version, read := e.of.Seen.OSVersion.Get()
	family := fleet.OSFamily(version)
	switch {
	case !read:
		e.bad("macos", Unknown, "run sw_vers on the host", "%s", e.of.Seen.OSVersion.Why())
	case family == "":
		e.bad("macos", Unknown, "upgrade macfleet", "%s: macfleet %s does not know this family", version, fleet.Version)
	case e.of.Member && family != e.of.Fleet.OS:
		e.bad("macos", Problem, "correct os of the fleet, or update macOS on the host", "%s (%s); fleet %s wants %s", version, family, e.of.Fleet.Name, e.of.Fleet.OS)
	default:
		e.ok("macos", "%s (%s)", version, family)
	}
	if serial, ok := e.of.Seen.Serial.Get(); ok {
		e.ok("serial", "%s", serial)
	} else {
		e.bad("serial", Unknown, "run ioreg -rd1 -c IOPlatformExpertDevice on the host", "%s", e.of.Seen.Serial.Why())
	}
}

// ownership checks the marker and the claim.
func (e *examination) ownership() {
	marker, marked := e.of.Seen.Marker.Get()
	trouble := plan.MarkerForbids(e.cfg, &e.of.Host)
	switch {
	case trouble != nil && (marked || e.of.Seen.Marker.IsUnread()):
		e.trouble("marker", trouble)
		trouble = nil
	case marked:
		e.ok("marker", "%s of %s; verified: %s", marker.Name, marker.Owner(), verified(marker))
	case e.of.Member:
		e.bad("marker", Problem, "macfleet apply --on name="+e.of.Name, "the server has a name of this configuration, and the host has no marker")
	default:
		e.ok("marker", "none, as expected for a server without an owner")
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
		e.bad("claim", Problem, "macfleet apply --on name="+claim.Name, "an earlier run started to claim it as %s and did not finish", claim.Name)
	default:
		e.ok("claim", "none")
	}
}

// verified lists the steps that the marker says were verified.
func verified(m plan.Marker) string {
	var ids []string
	for _, id := range slices.Sorted(maps.Keys(m.Steps)) {
		ids = append(ids, string(id))
	}
	return cmp.Or(strings.Join(ids, ", "), "none yet")
}

// maxSkew is how far a host's clock may be off: a few minutes more, and logins and certificates fail.
const maxSkew = time.Minute

// clock compares the host's clock with the local one; the answer took seconds at most.
func (e *examination) clock() {
	said := e.of.Seen.Facts.Get(ClockProbe().ID)
	answer, ok := said.Get()
	seconds, err := strconv.ParseInt(strings.TrimSpace(answer.Stdout), 10, 64)
	switch off := time.Unix(seconds, 0).Sub(e.of.Seen.At).Truncate(time.Second); {
	case !ok:
		e.bad("clock", Unknown, "run date on the host", "%s", said.Why())
	case err != nil || answer.Exit != 0:
		e.bad("clock", Unknown, "run date on the host", "date +%%s printed no number (exit %d)", answer.Exit)
		e.checks[len(e.checks)-1].Bytes = answer.Stdout + answer.Stderr
	case off.Abs() > maxSkew:
		e.bad("clock", Problem, "on the host: sudo sntp -sS time.apple.com", "off by %s", off)
	default:
		e.ok("clock", "less than a minute off")
	}
}

// unreadRemedy says what to do about an answer that a step could not read.
func (e *examination) unreadRemedy(u plan.Unread) string {
	if strings.HasPrefix(u.Why, plan.ServiceUnread) {
		return "" // that of the check runner
	}
	switch u.Why {
	case plan.NeedsRoot:
		return plan.MissingSudo().Remedy
	case plan.ProbeTimedOut:
		return "run the command again; if it fails again, raise question in the timeouts of the ssh block"
	case plan.AnswerTruncated:
		return "run the command again; if it fails again, log in with ssh and see what the login shell prints"
	}
	// The present name is found without the host's marker, too.
	return "macfleet doctor " + e.of.Server.Name + " --record FILE, and report it with the file"
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
	well   string   // the text where it is ok
	failed string   // why nothing else was checked, where it failed
	at     []string // codes of the troubles that end a conversation here: all stages before are ok
	early  []string // those of this stage that may come before anything is dialled
}

// stages are the checks of a conversation in their order. docs/connections.md
// lists the codes.
func (e *examination) stages() []stage {
	seen := e.of.Seen
	// No address: that of the ssh configuration or the tailnet may differ from the inventory's. The
	// path of a conversation that ended later is not known.
	answers, key := "the host answers", seen.Fingerprint+", not pinned yet; the first apply on the host pins it"
	if seen.Path != "" {
		answers += " (path: " + seen.Path + ")"
	}
	switch {
	case seen.Fingerprint == "" && e.pinned:
		key = "the pinned one"
	case seen.Fingerprint == "":
		key = "none pinned yet"
	case seen.Pinned:
		key = seen.Fingerprint + ", the pinned one"
	}
	return []stage{
		{"connection", answers, "there is no connection", []string{"unreachable", "host-down", "ssh-port-unreachable", "jump-lost"}, []string{"ssh-config", "jump-failed"}},
		{"ssh", "an ssh server answers", "no ssh server answers", []string{"no-ssh-answer"}, nil},
		{"host key", key, "the host key is not trusted", []string{"wrong-host-key", "host-key-unknown"}, []string{"damaged-pin"}},
		{"authentication", "logged in as " + e.cfg.SSH.User, "login failed", []string{"key-not-installed"}, []string{"no-key"}},
		{"answers", "the host answered all questions", "the connection was lost", []string{"connection-lost"}, nil},
	}
}

// connection checks how far the conversation came. Stages before the one that failed are ok, those
// after it are unknown; with a code of no stage all are unknown.
func (e *examination) connection() {
	all := e.stages()
	failed, passed := len(all), len(all)
	var t *plan.Trouble
	if e.of.Seen.Trouble != nil {
		t = e.of.Diagnosed(e.cfg.Vendor())
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
			e.bad(s.name, Unknown, "", "not checked: %s", all[failed].failed)
		case i == 0:
			e.trouble(s.name, t)
			e.checks[len(e.checks)-1].State = Unknown
		default:
			e.bad(s.name, Unknown, "", "not known")
		}
	}
}
