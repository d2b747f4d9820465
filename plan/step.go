// Package plan has the data of a run (steps, probes, facts, changes, actions) and computes what a run would
// do from the configuration and what was seen. It does no I/O and takes no clock, randomness or context.
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
	CodeDiskFull = NewCode("disk-full", Critical, "the host has too little free space for an artifact",
		"delete unused images on the host (tart prune --older-than 7), then run the command again")
	CodeNoGUISession = NewCode("no-gui-session", Critical, "the login user has no GUI session",
		"macfleet apply (auto_login opens the session), or log in over VNC")
	CodeUnreachable = NewCode("unreachable", Critical, "no SSH server answers at the host's address", "macfleet doctor NAME; if the machine does not run: macfleet reboot NAME")
)

// StepID names one concern on a host. It is the name of its block.
type StepID string

// Step is one concern on a host, made for one host's specification. It holds the desired state, nil where the
// configuration has no such block.
type Step interface {
	// ID is unique among the steps of a host.
	ID() StepID
	// Wanted is the step's part of the configuration, in normal form and without secrets; empty: none. Its
	// digest is stored in the marker after verification.
	Wanted() string
	// Probes are the queries whose answers Diff needs. They change nothing.
	Probes() []Probe
	// Diff compares what was seen with the configuration. It is pure.
	Diff(View) Finding
}

// NodeMaker is the step that makes a host a Node: its finding has the state of the kubelet.
type NodeMaker interface {
	Step
	// MakesNode reports whether the host should be a Node.
	MakesNode() bool
}

// WorkReader is a step that reads what runs on a host also where macfleet is not root.
type WorkReader interface {
	Step
	// WorkProbe returns the probe, as the login user. Diff reads its answer into Finding.Running if it has no better one.
	WorkProbe() Probe
}

// NodeStep returns the step that makes a host a Node; ok is false if there is none.
func NodeStep(all []Step) (step Step, ok bool) {
	for _, s := range all {
		if m, is := s.(NodeMaker); is && m.MakesNode() {
			return s, true
		}
	}
	return nil, false
}

// SessionKeeper is the step that keeps a user logged in at the host's screen, also after a restart.
type SessionKeeper interface {
	Step
	// KeepsSession reports whether the host should have a session.
	KeepsSession() bool
}

// User is the user that a script runs as.
type User string

// The users a script may ask for.
const (
	Root  User = "root"
	Login User = "user" // the host's login user
	Gui   User = "gui"  // the login user inside the Aqua session, as a job of launchd
)

// Command is a fixed script and its data. The script is POSIX sh with bare tool names; the arguments reach it
// as $1, $2, … and no document contains them.
type Command struct {
	Name   string   `json:"-"` // of the script, for messages
	Script string   `json:"-"`
	As     User     `json:"-"`
	Args   []string `json:"-"` // any text without NUL bytes
}

// Probe is a read-only query of a host.
type Probe struct {
	ID string // unique among all probes of a host, begins with the step's id
	Command
	// Unless is the id of a probe whose answer contains this one's: if that one runs, this one does not.
	Unless string
}

// Facts are the answers to probes, by probe id. The step decides whether an answer means that a thing is
// absent.
type Facts map[string]inventory.Seen[Answer]

// Get returns the answer to a probe; a probe that did not run is unread.
func (f Facts) Get(id string) inventory.Seen[Answer] {
	if a, ok := f[id]; ok {
		return a
	}
	return inventory.Unread[Answer]("the probe " + id + " did not run")
}

// View is all that a step may read.
type View struct {
	Host      fleet.Host
	Server    inventory.Server
	Node      inventory.Seen[inventory.Node]
	Facts     Facts
	OSVersion string                             // of macOS, such as 26.3; empty: unknown
	Root      bool                               // passwordless sudo works
	Verified  bool                               // the marker records it as verified: what exists may be macfleet's, and may be removed with the block
	Pending   bool                               // an earlier run started a change and never verified it: that is a difference
	Identity  inventory.Seen[inventory.Identity] // the identity of the host's kubelet in the cluster
	Join      inventory.Seen[inventory.Join]     // how hosts reach the cluster
	Pods      inventory.Seen[[]inventory.Pod]    // those on the host's Node
	NewToken  bool                               // the kubelet should get a new token
	Rollback  bool                               // the earlier version is requested instead of the configured one
	Force     bool                               // changes do not wait, including those that check for work themselves
	At        time.Time                          // when the host had answered, by the clock of Node.Heard; zero: unknown
	Peers     []HostPeer                         // what services have of this host
	Path      string                             // how the host was reached, as HostSeen.Path
	Servers   map[string]bool                    // the names of all servers and members; shared, so it must not be changed
	Fence     *Fence                             // an earlier run kept new jobs away from the host's agent; nil: none did
	Fenced    bool                               // this run keeps new jobs away: labels and group of the agent are not compared
	Taken     time.Time                          // when the lists were read; zero: unknown
}

// Finding is what a step read on a host.
type Finding struct {
	// Facts are what was read, in normal form and without secrets; empty: nothing was compared. They do not
	// depend on the configuration, as their digest is stored in the marker.
	Facts string
	// Changes remove the difference, one after the other; there are none when something is unread.
	Changes []Change
	// Unread are answers that could not be understood: the run is then incomplete, which is never a
	// difference.
	Unread    []Unread
	Warnings  []Trouble                // reported without a change
	Watched   []StepWarning            // what changed on the Node and macfleet does not fix: drift without a change
	VMs       inventory.Seen[[]string] // names of the virtual machines on the host, running or not; unread: the step did not read them
	Kubelet   inventory.Seen[Kubelet]  // the process that makes the host a Node; unread: the step did not read it
	Running   inventory.Seen[[]Task]   // the work on the host, whether or not a change would interrupt it; unread: the step did not read it
	NoSession bool                     // no user is logged in at the host's screen: no virtual machine can start
	// Restart says why the host has to restart, after all changes; nil: it does not have to. The run makes it idle first.
	Restart *Reason
	// Busy is the work on the host that changes of class Drain would interrupt. The engine makes the host
	// idle first, or the plan refuses these changes.
	Busy []Task
	// Refused says that macfleet cannot or must not remove the difference. Changes are then shown but not
	// made.
	Refused *Trouble
}

// Needs are what changes need that cannot be read from the host.
type Needs struct {
	Password bool             // the login user's password
	Files    []fleet.Artifact // artifacts sent to the host from the machine of the run
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

// Unread is an answer that could not be used.
type Unread struct {
	Probe string `json:"probe"`
	Why   string `json:"why"`
	Bytes string `json:"printed,omitempty"` // the tool's output, shown to the person; empty if there was none
}

// Change is one difference within a step, as data. Only package hosts executes it, and apply runs exactly the
// changes that were shown.
type Change struct {
	Reason     Reason      `json:"reason"`
	Fields     []Field     `json:"-"`
	Command    Command     `json:"-"`
	Input      InputKind   `json:"input,omitempty"` // what the script reads on its standard input
	Disruption Disruption  `json:"disruption"`
	Removes    bool        `json:"removes,omitempty"`     // it removes what macfleet made
	GrantsRoot bool        `json:"grants_root,omitempty"` // it sets up passwordless sudo
	Detached   bool        `json:"detached,omitempty"`    // it takes over a minute or cuts the connection, so launchd runs it on the host
	Guard      *Guard      `json:"guard,omitempty"`       // it may cut the connection to the host; nil: it cannot
	Peer       *PeerChange `json:"peer,omitempty"`        // it happens at a service, and Command is empty; nil: on the host
	Delivery   *Delivery   `json:"delivery,omitempty"`    // an artifact that must be on the host before the script runs; nil: none
	Remedy     string      `json:"remedy,omitempty"`      // the remedy if the script exits with NotStaying; empty: the usual one
}

// NotStaying is the exit code of a change's script whose process was started but does not keep running.
const NotStaying = 70

// Delivery is an artifact that a change installs. The engine copies it to fleet.Artifact.HostPath on the host
// just before the script runs, unless the host already has it.
type Delivery struct {
	fleet.Artifact
	// Space is how many bytes must be free on the host before anything is written: the artifact, its unpacked
	// files, and what is kept of the earlier version.
	Space int64 `json:"space"`
	// Free is how many bytes are free there, as the step read it.
	Free inventory.Seen[int64] `json:"free,omitzero"`
}

// InputKind names what a change's script reads on its standard input. The step never has it: the engine gets
// it just before the script runs.
type InputKind string

// The kinds of input.
const (
	NoInput       InputKind = ""
	LoginPassword InputKind = "login-password" // the login user's password, one line
	Kubeconfig    InputKind = "kubeconfig"     // the kubeconfig of the host's identity
	AutoLogin     InputKind = "auto-login"     // "accepted" and the configured /etc/kcpassword in base64, one line
	// AutoLoginCheck is AutoLogin if a password is known and the host accepts it. Otherwise it is a line for
	// each known password that the host refused, or nothing.
	AutoLoginCheck InputKind = "auto-login-check"
	// Admission is what the step's service admits the host with, one line.
	Admission InputKind = "admission"
)

// NeedsPassword reports whether the input requires the login user's password.
func (k InputKind) NeedsPassword() bool { return k == LoginPassword || k == AutoLogin }

// Guard keeps a change from locking everyone out. The change's command only changes the live state; the host
// rolls it back unless a new connection confirms it.
type Guard struct {
	Restore *Command `json:"restore,omitempty"` // restores the earlier live state; nil: there is none
	Persist Command  `json:"-"`                 // makes the confirmed change persist over a reboot
	Why     string   `json:"why,omitempty"`     // restores the earlier live state; nil: there is none
}

// Field is one value that a change sets, for people.
type Field struct {
	Name   string `json:"name"`
	Before string `json:"before"`
	After  string `json:"after"`
}

// Reason says why: a stable code for programs, and a text.
type Reason struct {
	Code Code   `json:"code"`
	Text string `json:"text"`
}

// Disruption is how much an action interrupts the work on a host.
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

// String returns the class as in documents: "none" to "wipe".
func (d Disruption) String() string { return disruptions[d] }

// MarshalText returns the class as in documents.
func (d Disruption) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads the name of a class.
func (d *Disruption) UnmarshalText(text []byte) error {
	i := slices.Index(disruptions, string(text))
	if i < 0 {
		return fmt.Errorf("unknown disruption class %q", text)
	}
	*d = Disruption(i)
	return nil
}
