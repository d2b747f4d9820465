// Package runlog keeps what runs did: a record of each run that changes something,
// a line for each event, and a log of what every command asked of the world.
package runlog

import (
	"cmp"
	"strings"
	"time"

	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/plan"
)

// Version is the version of a record's lines. A reader refuses a higher one, and
// ignores types and keys that it does not know.
const Version = 1

// Type is the type of a line: an event of the engine, or one of those below.
type Type = engine.EventType

// The types that are no engine events.
const (
	TypeRun  Type = "run"  // the first line: who, when, what
	TypePlan Type = "plan" // the approved plan
	TypeStop Type = "stop" // nothing more is started from here on
	TypeRise Type = "rise" // the run has a higher epoch from here on
	TypeLeft Type = "left" // the hosts that the run did not finish
	TypeEnd  Type = "end"  // the last line of a run that finished
)

// Entry is one line of a record: an event, with what stays of its action and its error.
type Entry struct {
	Version int `json:"v"`
	engine.Event
	Run       *Head      `json:"run,omitempty"`  // of TypeRun
	Plan      *Plan      `json:"plan,omitempty"` // of TypePlan
	End       *End       `json:"end,omitempty"`  // of TypeEnd
	Action    *Action    `json:"action,omitempty"`
	Code      plan.Code  `json:"code,omitzero"`       // of a failure or a trouble, if it has one
	Remedy    string     `json:"remedy,omitempty"`    // the fix, if this failure has one
	Output    []string   `json:"output,omitempty"`    // the last lines of a script that failed
	Uncertain bool       `json:"uncertain,omitempty"` // the run did not wait for the action's result
	Epoch     int64      `json:"epoch,omitempty"`     // of TypeRise
	Left      []LeftHost `json:"left,omitempty"`      // of TypeLeft; not part of the last line, which must stay short: lists of runs read only its end
}

// Head says whose run it is, and what it may do.
type Head struct {
	ID            string    `json:"id"`
	Who           string    `json:"who"`
	Epoch         int64     `json:"epoch"` // 0: it took no lock
	Started       time.Time `json:"started"`
	Command       string    `json:"command"`   // apply, restart
	Arguments     []string  `json:"arguments"` // words and flags that were given, with the values of variables left out
	Selection     Selection `json:"selection"`
	Version       string    `json:"macfleet_version"`
	Configuration string    `json:"configuration"`
	Environment   string    `json:"environment"`
	Directory     string    `json:"directory,omitempty"` // of the configuration's files, without links
	Sandbox       bool      `json:"sandbox,omitempty"`   // its hosts were simulated
	// ConfigHash is a digest of what the configuration says, variables included.
	ConfigHash string `json:"config_hash"`
	Limits     Limits `json:"limits"`
	Log        string `json:"log,omitempty"` // the file of its debug log
	// Boot names the boot of the kernel that the run worked on, empty if unknown, and Inode is the number of
	// the record's own file: a copy has another. By both a later run may know that this one's process is gone.
	Boot  string `json:"boot,omitempty"`
	Inode int64  `json:"inode,omitempty"`
}

// Selection is what a run was limited to; without any, it was about everything.
type Selection struct {
	On      []string `json:"on,omitempty"`
	Exclude []string `json:"exclude,omitempty"`
	Steps   []string `json:"steps,omitempty"`
	plan.Decisions
}

// Limits are what a run keeps to at every moment.
type Limits struct {
	Hosts            int           `json:"hosts"`             // worked on at once
	ConnectionStarts int           `json:"connection_starts"` // opened at once
	Uploads          int           `json:"uploads"`           // at once
	Deadline         string        `json:"deadline,omitempty"`
	Fleets           []FleetLimits `json:"fleets"`
}

// FleetLimits are the limits of one fleet's rollout.
type FleetLimits struct {
	Fleet          string `json:"fleet"`
	MaxUnavailable string `json:"max_unavailable"` // a number, or a part such as 20%
	Canary         int    `json:"canary"`
	Soak           string `json:"soak,omitempty"`
	FailureBudget  int    `json:"failure_budget"`
	MinReady       int    `json:"min_ready,omitempty"`
}

// Plan is the approved plan, abridged.
type Plan struct {
	Add       int      `json:"add"`
	Change    int      `json:"change"`
	Remove    int      `json:"remove"`
	Refused   int      `json:"refused"`
	Deferred  int      `json:"deferred"` // hosts
	Unknown   int      `json:"unknown"`
	Unread    int      `json:"unread"`
	Drift     int      `json:"drift"`
	Pending   int      `json:"pending"`
	Converged int      `json:"converged"`
	Hosts     []Host   `json:"hosts"`
	Actions   []Action `json:"actions"`
	// Healthy are the names of the hosts whose Nodes were Ready, by fleet: shares of a
	// rollout are shares of these.
	Healthy map[string][]string `json:"healthy,omitempty"`
}

// Host is one host as the plan saw it.
type Host struct {
	Name     string    `json:"name"`
	Fleet    string    `json:"fleet"`
	Group    string    `json:"group"`
	ServerID string    `json:"server_id"`
	Member   bool      `json:"member"`              // false: it will be claimed
	Ready    string    `json:"ready"`               // True, False or Unknown of its Node; "-": it has none or it was not read
	LoginKey string    `json:"login_key,omitempty"` // fingerprint of the SSH key that the host accepted; empty: unknown
	Trouble  plan.Code `json:"trouble,omitzero"`    // the code of why it could not be read or must not be changed
}

// Action is one action of a plan.
type Action struct {
	Kind       string    `json:"kind"`
	Host       string    `json:"host,omitempty"` // empty: it is of the cluster
	Fleet      string    `json:"fleet,omitempty"`
	Group      string    `json:"group,omitempty"`
	ServerID   string    `json:"server_id,omitempty"`
	Step       string    `json:"step,omitempty"`
	Object     string    `json:"object,omitempty"` // of the cluster
	Reason     plan.Code `json:"reason,omitzero"`  // its code
	Disruption string    `json:"disruption"`
	Refused    plan.Code `json:"refused,omitzero"`  // the code of why it is blocked
	Deferred   plan.Code `json:"deferred,omitzero"` // the code of which limit leaves it for a later run
	Drains     bool      `json:"drains,omitempty"`  // the host's Node is drained first
	Forced     bool      `json:"forced,omitempty"`  // running work on the host is not waited for: --force-busy
}

// Outcome is the result of a run.
type Outcome string

// The outcomes.
const (
	Converged  Outcome = "converged"
	Deferred   Outcome = "deferred"   // the run did all that it may, and a limit left hosts for a later one
	Incomplete Outcome = "incomplete" // something failed, was not started or did not converge
	Errored    Outcome = "error"      // the run failed, or its result could not be verified
	LeftAtOnce Outcome = "left"       // a second Ctrl-C: what ran is uncertain
	// BrokeOff and Running are of records without a last line.
	BrokeOff Outcome = "broke off"
	Running  Outcome = "running"
)

// End is how a run ended.
type End struct {
	Outcome    Outcome `json:"outcome"`
	Exit       int     `json:"exit"`
	Stopped    string  `json:"stopped,omitempty"` // why nothing more was started before the end
	Error      string  `json:"error,omitempty"`
	Done       int     `json:"done"`
	Failed     int     `json:"failed"`
	NotStarted int     `json:"not_started"`
	NotWaited  int     `json:"not_waited"` // hosts whose Nodes were not waited for to the end
	Deferred   int     `json:"deferred"`   // hosts on which a limit left something for a later run
	Left       int     `json:"left"`       // changes that the last comparison still found
	// Hosts counts the hosts that the run did not finish, by state, each once.
	Hosts map[State]int `json:"hosts,omitempty"`
}

// ActionOf returns an action as records hold it.
func ActionOf(a plan.Action) Action {
	out := Action{Kind: string(a.Kind), Host: a.Host, Fleet: a.Fleet, Group: a.Group, ServerID: a.ServerID,
		Step: string(a.Step), Reason: a.Reason.Code, Disruption: a.Disruption.String(), Drains: a.Drains, Forced: a.Forced}
	if a.Object != nil {
		out.Object = a.Object.String()
	}
	if a.Refusal != nil {
		out.Refused = a.Refusal.Code
	}
	if a.Deferral != nil {
		out.Deferred = a.Deferral.Code
	}
	return out
}

// Key identifies an action within its run.
func (a Action) Key() string {
	return strings.Join([]string{a.ServerID, a.Host, a.Kind, a.Step, a.Object}, " ")
}

// Label names an action's subject.
func (a Action) Label() string { return cmp.Or(a.Step, a.Object, a.Kind) }

// PlanOf returns a plan as records hold it.
func PlanOf(p *plan.Plan) Plan {
	s := p.Summarise()
	out := Plan{Add: s.Add, Change: s.Change, Remove: s.Remove, Refused: s.Refused, Deferred: s.Deferred, Unknown: s.Unknown, Unread: s.Unread,
		Drift: s.Drift, Pending: s.Pending, Converged: s.Converged, Hosts: []Host{}, Actions: []Action{},
		Healthy: make(map[string][]string)}
	for fleet, all := range p.Healthy {
		for _, h := range all {
			out.Healthy[fleet] = append(out.Healthy[fleet], h.Name)
		}
	}
	for _, h := range p.Hosts {
		x := Host{Name: h.Name, Fleet: h.Fleet, Group: h.Group, ServerID: h.Server.ID, Member: h.Member, Ready: "-"}
		if n, ok := h.Node.Get(); ok {
			x.Ready = string(n.Ready)
		}
		x.LoginKey = h.Seen.LoginKey
		if t := cmp.Or(h.Unknown, h.Refused); t != nil {
			x.Trouble = t.Code
		}
		out.Hosts = append(out.Hosts, x)
	}
	for _, a := range p.Actions {
		out.Actions = append(out.Actions, ActionOf(a))
	}
	return out
}
