// Package plan holds the vocabulary of a run (steps, probes, facts, changes,
// actions) and the pure computation from what is wanted and what was seen to
// what would be done. It does no I/O and takes no clock, randomness or context.
package plan

import (
	"fmt"
	"slices"
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
)

// The codes that are raised here.
var (
	CodeDiskFull = NewCode("disk-full", Critical, "the host has less room than an artifact needs",
		"make room on the host, such as by deleting images (tart list, tart delete, tart prune), and run the command again")
	CodeNoGUISession = NewCode("no-gui-session", Critical, "the login user has no session at the host's screen",
		"the step auto_login makes the session; or log in through VNC")
	CodeUnreachable = NewCode("unreachable", Critical, "nobody answers at the host's address", "see whether the machine runs")
)

// StepID names one concern on a host. It is the name of its block.
type StepID string

// Step is one concern on a host, made for one host's specification: its wish is
// inside, nil where the configuration has no such block.
type Step interface {
	// ID is unique among the steps of a host.
	ID() StepID
	// Wanted is what the configuration alone wants of the step, in normal form and
	// without secrets; empty: nothing. Its digest enters the marker after the proof.
	Wanted() string
	// Probes are the questions whose answers Diff needs. They change nothing.
	Probes() []Probe
	// Diff compares what was seen with what is wanted. It is pure.
	Diff(View) Finding
}

// NodeMaker is the step that makes a host a Node: its finding says how the kubelet is.
type NodeMaker interface {
	Step
	// MakesNode reports whether the host is to be one.
	MakesNode() bool
}

// NodeStep returns the step of a host that makes it a Node; ok is false where none does.
func NodeStep(all []Step) (step Step, ok bool) {
	for _, s := range all {
		if m, is := s.(NodeMaker); is && m.MakesNode() {
			return s, true
		}
	}
	return nil, false
}

// User is whom a script runs as.
type User string

// The users a script may ask for.
const (
	Root  User = "root"
	Login User = "user" // the host's login user
	Gui   User = "gui"  // the login user inside his Aqua session, as a job of launchd
)

// Command is a fixed script and its data. The script is POSIX sh with bare tool
// names; the arguments reach it as $1, $2, … and no document holds any of it.
type Command struct {
	Name   string   `json:"-"` // of the script, for messages
	Script string   `json:"-"`
	As     User     `json:"-"`
	Args   []string `json:"-"` // any text without NUL bytes
}

// Probe is a read-only question to a host.
type Probe struct {
	ID string // unique among all probes of a host, begins with the step's id
	Command
	// Unless is the id of a probe whose answer says all that this one's does: where
	// that one is asked, this one is not.
	Unless string
}

// Facts are the answers to probes, by probe id. Whether an answer means that a thing is
// absent, the step that asked decides.
type Facts map[string]inventory.Seen[Answer]

// Get returns the answer to a probe; a probe that nobody asked is unread.
func (f Facts) Get(id string) inventory.Seen[Answer] {
	if a, ok := f[id]; ok {
		return a
	}
	return inventory.Unread[Answer]("the probe " + id + " was not asked")
}

// View is all that a step may look at.
type View struct {
	Host     fleet.Host
	Server   inventory.Server
	Node     inventory.Seen[inventory.Node]
	Facts    Facts
	Root     bool                               // root is to be had without a password
	Proven   bool                               // the marker has a proof of it: what is there may be macfleet's, and may go with the block
	Pending  bool                               // an earlier run began a change and never proved it: that is a difference
	Identity inventory.Seen[inventory.Identity] // who the host's kubelet is to the cluster
	Join     inventory.Seen[inventory.Join]     // how hosts reach the cluster
	Pods     inventory.Seen[[]inventory.Pod]    // those on the host's Node
	NewToken bool                               // the kubelet is to have another token than now
	Rollback bool                               // the version that was there before is wanted, and not the configuration's
	Force    bool                               // a change does not wait, also one that looks for itself what goes on there
	At       time.Time                          // when the host had answered, by the clock of Node.Heard; zero: not known
}

// Finding is what a step found on a host.
type Finding struct {
	// Facts are what was seen in normal form, without secrets; empty: nothing was compared.
	// They do not move when the configuration does, as their digest enters the marker.
	Facts string
	// Changes remove the difference, in order; there are none when something is unread.
	Changes []Change
	// Unread are answers that could not be understood: the run is incomplete, which is
	// never a difference.
	Unread    []Unread
	Warnings  []Trouble                // true and worth saying, without a change
	Watched   []StepWarning            // what moved on the Node and is not macfleet's to mend: drift without a change
	VMs       inventory.Seen[[]string] // names of the virtual machines on the host, running or not; unread: the step did not look
	Kubelet   inventory.Seen[Kubelet]  // the process that makes the host a Node; unread: the step did not look
	NoSession bool                     // nobody is logged in at the host's screen: then no virtual machine starts
	// Busy is what goes on on the host that changes of the class Drain would hurt. The
	// engine makes the host idle before them, or the plan refuses them.
	Busy []Task
	// Refused says that macfleet cannot or must not remove the difference. Changes are
	// shown then and not made.
	Refused *Trouble
}

// Needs are what changes need that no look at the host finds.
type Needs struct {
	Password bool             // the login user's password
	Files    []fleet.Artifact // that are sent to the host from where the run is
}

func needsOf(changes []Change) Needs {
	var n Needs
	for i := range changes {
		c := &changes[i]
		n.Password = n.Password || c.Input.NeedsPassword()
		if c.Delivery != nil && c.Delivery.Artifact.Fetch == fleet.FetchPush {
			n.Files = append(n.Files, c.Delivery.Artifact)
		}
	}
	return n
}

// Unread is an answer that says nothing about the host.
type Unread struct {
	Probe string `json:"probe"`
	Why   string `json:"why"`
	Bytes string `json:"printed,omitempty"` // what the tool printed, shown to the person; empty when nothing came
}

// Change is one difference within a step, as data. Only package hosts executes
// it, and apply runs the very changes that were shown.
type Change struct {
	Reason     Reason     `json:"reason"`
	Fields     []Field    `json:"-"`
	Command    Command    `json:"-"`
	Input      InputKind  `json:"input,omitempty"` // what the script reads on its standard input
	Disruption Disruption `json:"disruption"`
	Removes    bool       `json:"removes,omitempty"`     // it takes away what macfleet made
	GrantsRoot bool       `json:"grants_root,omitempty"` // afterwards root is to be had without a password
	Detached   bool       `json:"detached,omitempty"`    // it takes over a minute or cuts the line, so launchd runs it on the host
	Guard      *Guard     `json:"guard,omitempty"`       // it may cut the line to the host; nil: it cannot
	Delivery   *Delivery  `json:"delivery,omitempty"`    // what must be on the host before the script runs; nil: nothing
	Remedy     string     `json:"remedy,omitempty"`      // what helps where the script ends with NotStaying; empty: what helps with any failure
}

// NotStaying is the exit code of a change's script whose process was started, and does
// not stay up.
const NotStaying = 70

// Delivery is an artifact that a change installs. The engine brings it to the host, to
// fleet.Artifact.HostPath, just before the change's script runs, unless it is there already.
type Delivery struct {
	fleet.Artifact
	// Space is how many bytes must be free on the host before anything is written:
	// the artifact, what is unpacked from it, and what stays of the version before.
	Space int64 `json:"space"`
	// Free is how many bytes are free there, as the step saw it.
	Free inventory.Seen[int64] `json:"free,omitzero"`
}

// InputKind names what a change's script reads on its standard input. The step
// never sees it: the engine obtains it just before the script runs.
type InputKind string

// The kinds of input.
const (
	NoInput       InputKind = ""
	LoginPassword InputKind = "login-password" // the login user's password, one line
	Kubeconfig    InputKind = "kubeconfig"     // the kubeconfig of the host's identity
	AutoLogin     InputKind = "auto-login"     // "accepted" and the wanted /etc/kcpassword in base64, one line
	// AutoLoginCheck is AutoLogin where a password is known and the host takes it. Else it is a line for each
	// known password that the host refused, or nothing.
	AutoLoginCheck InputKind = "auto-login-check"
)

// NeedsPassword reports whether there is no such input without the login user's password.
func (k InputKind) NeedsPassword() bool { return k == LoginPassword || k == AutoLogin }

// Guard keeps a change from locking everybody out. The change's own command works on what
// is live alone; the host takes it back by itself unless new connections confirm it.
type Guard struct {
	Restore *Command `json:"restore,omitempty"` // brings back what was live before; nil: there is nothing to go back to
	Persist Command  `json:"-"`                 // makes the confirmed change outlive a boot
	Why     string   `json:"why,omitempty"`     // why nothing can be restored, where Restore is nil
}

// Field is one value that a change moves, as a person reads it.
type Field struct {
	Name   string `json:"name"`
	Before string `json:"before"`
	After  string `json:"after"`
}

// Reason says why: a stable code for programs, and the observation in words.
type Reason struct {
	Code Code   `json:"code"`
	Text string `json:"text"`
}

// Disruption is what an action does to the work on a host.
type Disruption int

// The classes, from harmless to worst.
const (
	NoDisruption Disruption = iota
	Restart
	Drain
	Reboot
	Wipe
)

// disruptions are the names of the classes.
var disruptions = []string{"none", "restart", "drain", "reboot", "wipe"}

// String returns the class as it stands in documents: "none" to "wipe".
func (d Disruption) String() string { return disruptions[d] }

// MarshalText returns the class as it stands in documents.
func (d Disruption) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads the name of a class.
func (d *Disruption) UnmarshalText(text []byte) error {
	i := slices.Index(disruptions, string(text))
	if i < 0 {
		return fmt.Errorf("%q is no class of disruption", text)
	}
	*d = Disruption(i)
	return nil
}
