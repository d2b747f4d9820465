package plan

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
)

// Kind is what an action does.
type Kind string

// The kinds of action.
const (
	PinHost         Kind = "pin"         // pin the host's key again, which another source still knows
	ClaimServer     Kind = "claim"       // take a server from the pool: rename, read back
	RenameServer    Kind = "rename"      // restore a member's name
	CreateMarker    Kind = "marker"      // claim the host exclusively and write its marker
	IdentifyHost    Kind = "identity"    // complete the identity of the host's kubelet in the cluster
	RenewToken      Kind = "renew-token" // create a new token for the host's kubelet, next to the present one
	RetireTokens    Kind = "old-tokens"  // delete the older tokens of the host's kubelet, once the cluster has seen it with the newest
	SetProviderID   Kind = "provider-id" // set the provider id of the host's Node, which has none
	TaintNode       Kind = "taint"       // restore the kubelet's taint on the host's Node, which someone removed or changed
	ReplaceNode     Kind = "node"        // delete the host's Node, so that its kubelet registers a new one
	DrainNode       Kind = "drain"       // drain the host's present Node before the host gets a new name
	DeleteNode      Kind = "delete-node" // delete the Node of a host whose kubelet is gone
	UncordonNode    Kind = "uncordon"    // uncordon the host's Node, which an earlier run left cordoned, when it is Ready and the rest is done
	RevokeHost      Kind = "revoke"      // delete the identity of a host's kubelet; its server may be gone
	ReleasePods     Kind = "pods"        // release Pods that only macfleet's finalizer keeps
	KeepObject      Kind = "object"      // create or correct an object of the cluster itself; it has no host
	RemoveObject    Kind = "surplus"     // delete an object of the cluster itself that macfleet made and no longer needs
	RegisterKey     Kind = "ssh-key"     // register the fleet's SSH key in the provider's project; it has no host
	AuthorizeKey    Kind = "new-key"     // add the fleet's new SSH key on the host, and verify it by a login
	RetireKey       Kind = "old-key"     // remove the fleet's previous SSH key from the host
	AwaitNode       Kind = "ready"       // wait until the host's Node is Ready; it is not in plans, and ends an apply
	RunStep         Kind = "step"        // run a step's changes and verify them
	RemoveStep      Kind = "remove"      // remove what a step made, and verify it
	RebootServer    Kind = "reboot"      // restart the host; see PullsPlug
	RetirePeer      Kind = "retire"      // end the entry of a host that leaves at a service
	ForgetPeer      Kind = "forget"      // delete the entry of a host that is gone
	ReinstallServer Kind = "reinstall"   // erase a server that leaves, through the provider, and verify that it is empty
	ReleaseServer   Kind = "release"     // give an erased server its name in the pool
	ReplaceServer   Kind = "replace"     // release it and claim another one
)

// Sign is the symbol of an action: "+" create, "~" update, "-" remove, "-/+"
// replace.
type Sign string

// The signs.
const (
	Create  Sign = "+"
	Update  Sign = "~"
	Remove  Sign = "-"
	Replace Sign = "-/+"
)

// OfObject reports whether an action is of an object of the cluster itself.
func (k Kind) OfObject() bool { return k == KeepObject || k == RemoveObject }

// OfStep reports whether an action is a step's.
func (k Kind) OfStep() bool { return k == RunStep || k == RemoveStep }

// Sign returns the kind's symbol.
func (k Kind) Sign() Sign {
	switch k {
	case ClaimServer, CreateMarker, IdentifyHost, PinHost, RenewToken, RegisterKey, AuthorizeKey:
		return Create
	case ReinstallServer, ReleaseServer, RetirePeer, ForgetPeer, RemoveStep, ReleasePods, DeleteNode, RevokeHost, RetireTokens, RemoveObject, RetireKey:
		return Remove
	case ReplaceServer, ReplaceNode:
		return Replace
	}
	return Update
}

// OfCluster reports whether an action has no host: it concerns the cluster itself, or what it still has of a
// server that is gone.
func (a Action) OfCluster() bool { return a.ServerID == "" }

// Origin distinguishes the two causes of a difference; both can be true. Neither is set if the last record is
// lost, or can be read only by root.
type Origin struct {
	Drift   bool `json:"drift"`   // the facts changed since the last verification
	Pending bool `json:"pending"` // the configuration changed since the last verification, or there was none yet
	// NotKnown says that it was verified before, but the record cannot be compared now.
	NotKnown bool `json:"origin_unknown,omitempty"`
}

// Action is one thing a plan will do. An action depends on all earlier actions
// of its host and on nothing else.
type Action struct {
	Kind     Kind   `json:"kind"`
	Host     string `json:"host"` // the host's present or new name
	Fleet    string `json:"fleet"`
	Group    string `json:"group"`
	ServerID string `json:"server_id"`       // of the host's server; empty: the action has no host
	Step     StepID `json:"step,omitempty"`  // of RunStep, RemoveStep, RetirePeer and ForgetPeer
	About    string `json:"about,omitempty"` // what people call the entry of RetirePeer and ForgetPeer
	Was      string `json:"was,omitempty"`   // of DrainNode, DeleteNode and RevokeHost: the host's former name
	Reason   Reason `json:"-"`               // why, in short; of a step, its first change's
	Origin
	Fields     []Field           `json:"fields"` // what changes, over all changes
	Changes    []Change          `json:"changes,omitempty"`
	Pods       []inventory.Pod   `json:"held_pods,omitempty"` // of ReleasePods
	Object     *inventory.Object `json:"object,omitempty"`    // of KeepObject and RemoveObject
	Reset      *Reset            `json:"reset,omitempty"`     // of ReinstallServer and ReleaseServer
	AfterRoot  bool              `json:"deferred"`            // the changes are known only after an earlier action has set up root
	Disruption Disruption        `json:"disruption"`
	Busy       []Task            `json:"tasks,omitempty"`  // work on the host that it would interrupt, as the plan saw it
	Drains     bool              `json:"drains,omitempty"` // the host's Node is drained first
	Evicts     int               `json:"evicts,omitempty"` // Pods that the drain evicts, as the plan saw them
	Forced     bool              `json:"forced,omitempty"` // do not wait until the host is idle: --force-busy names it
	// PullsPlug says that the provider restarts the server, as if someone pulled its plug: its host cannot do it itself. Otherwise
	// the host restarts cleanly.
	PullsPlug bool     `json:"pulls_plug,omitempty"`
	Refusal   *Trouble `json:"refused,omitempty"` // set when the action is blocked
	// Deferral is set when a limit of the run leaves the action for a later one.
	Deferral *Trouble `json:"deferral,omitempty"`
}

// Runs reports whether the run performs the action: it is neither refused nor deferred.
func (a Action) Runs() bool { return a.Refusal == nil && a.Deferral == nil }

// Needs returns what the action needs to run; nothing if it does not run.
func (a Action) Needs() Needs {
	if !a.Runs() {
		return Needs{}
	}
	return needsOf(a.Changes)
}

// Convergence is how a host compares with its specification.
type Convergence string

// The values of a host's convergence.
const (
	Converged   Convergence = "yes"
	Differs     Convergence = "no"
	NotCompared Convergence = "unknown" // something could not be read
)

// Host is one host of the plan: a member, or a server that is being claimed.
type Host struct {
	Name     string                             `json:"name"`
	Fleet    string                             `json:"fleet"`
	Group    string                             `json:"group"`
	Server   inventory.Server                   `json:"server"`
	Spec     fleet.Host                         `json:"-"`
	Member   bool                               `json:"member"`           // false: it is still in the pool
	Leaves   bool                               `json:"leaves,omitempty"` // its server is released to the pool
	Asked    bool                               `json:"-"`                // a person asked to release it, and it has no place in the configuration
	Unowned  bool                               `json:"-"`                // and nothing shows that it is this configuration's
	Stage    Stage                              `json:"stage,omitempty"`  // how far an earlier run has released it
	Seen     HostSeen                           `json:"-"`
	Node     inventory.Seen[inventory.Node]     `json:"-"`
	Identity inventory.Seen[inventory.Identity] `json:"-"`
	Join     inventory.Seen[inventory.Join]     `json:"-"`
	Cluster  *inventory.ClusterID               `json:"-"` // the cluster that was read; nil: none, or unknown
	// MovedFrom is the uid of the cluster from which hosts are moved to this one.
	MovedFrom string                          `json:"-"`
	Pods      inventory.Seen[[]inventory.Pod] `json:"-"`
	Former    []Former                        `json:"-"`                   // what the cluster has of it under its former names
	Kubelet   inventory.Seen[Kubelet]         `json:"-"`                   // absent: could not be read
	NewToken  bool                            `json:"new_token,omitempty"` // --rotate-tokens requests a new token for it
	Token     *TokenAge                       `json:"token,omitempty"`     // its newest token for the cluster; nil: unknown
	Rollback  bool                            `json:"rollback,omitempty"`  // --previous requests its earlier version
	// ForceBusy says that changes do not wait until the host is idle.
	ForceBusy bool `json:"force_busy,omitempty"`
	// Unapproved says that the applied plan file does not have the host, or has another key of it: nothing is
	// written there, and no key is pinned.
	Unapproved bool       `json:"unapproved,omitempty"`
	Held       *Held      `json:"held,omitempty"`  // a person's hold, also an expired one; nil: none
	Peers      []HostPeer `json:"peers,omitempty"` // what services have of it, for example of its CI agent
	// FailedRepairs are those in a row, and whether it is quarantined; nil: none.
	FailedRepairs *inventory.Repairs `json:"failed_repairs,omitempty"`
	Unknown       *Trouble           `json:"unknown,omitempty"` // it could not be read
	Refused       *Trouble           `json:"refused,omitempty"` // it was read and must not be changed
	Unread        []StepUnread       `json:"unread,omitempty"`
	Warnings      []StepWarning      `json:"warnings,omitempty"`
	Verified      map[StepID]Digest  `json:"-"` // of the steps without a difference
	Converged     Convergence        `json:"converged"`
	Compared      bool               `json:"asked"`           // its steps were compared, whatever the result
	NeedsRoot     bool               `json:"blind,omitempty"` // something of it only root could read

	trust         Trust
	adopting      bool    // it has a host block, but no apply has adopted it yet
	rootToCome    bool    // one of its actions sets up root
	leftNode      bool    // its kubelet already uses its name, but its Node is still the former one
	markerLost    bool    // someone removed its marker
	noSession     bool    // no user is logged in at its screen
	restarts      *Reason // why a step needs the host to restart
	restartsAfter StepID  // the step
	vms           inventory.Seen[[]string]
	servers       map[string]bool // names of all servers and members
	taken         time.Time       // when the lists were read
	fence         *Fence          // an earlier run kept new jobs away from its agent
	steps         []Step          // while the plan is computed; see computation.stepsOf
}

// MarkerStale reports whether the marker lacks something that is known now: the record of a step that is in
// sync, or the place of the host, which later runs rely on.
func (h Host) MarkerStale() bool {
	m, ok := h.Seen.Marker.Get()
	if !ok || !h.Writable() {
		return false // creating a missing marker records everything; a held host is not changed
	}
	if h.Server.Name != h.Name && slices.ContainsFunc(h.Former, func(f Former) bool { return f.Name == m.Name }) {
		return false // it has not moved yet
	}
	if m.Fence != nil && !h.worked() { // the agent is gone that it was about
		return true
	}
	if m.Name != h.Name || m.Fleet != h.Fleet || m.Group != h.Group || h.Cluster != nil && m.ClusterUID != h.Cluster.UID {
		return true
	}
	for id, d := range h.Verified {
		if !m.Steps[id].Same(d) {
			return true
		}
	}
	return false
}

// Writable reports whether a run may write to the host or pin its key: it is not held, and the applied plan
// file has it.
func (h Host) Writable() bool { return h.ActiveHold() == nil && !h.Unapproved }

// StepUnread is an answer that a step could not use.
type StepUnread struct {
	Step StepID `json:"step"`
	Unread
}

// StepWarning is what a step reports without a difference. Without a step, it comes from the cluster or from
// the provider.
type StepWarning struct {
	Step     StepID `json:"step,omitempty"`
	OfServer bool   `json:"of_server,omitempty"` // it comes from the provider
	// Drift says that something changed outside macfleet and only a person can decide about it. Then Fields
	// say what changed.
	Drift  bool    `json:"drift,omitempty"`
	Fields []Field `json:"fields,omitempty"`
	Trouble
}

// About names what the warning is about: a step, "server" or "node".
func (w StepWarning) About() string {
	switch {
	case w.Step != "":
		return string(w.Step)
	case w.OfServer:
		return "server"
	}
	return string(ReplaceNode)
}

// Shortage is a group that gets too few servers.
type Shortage struct {
	Fleet string `json:"fleet"`
	Group string `json:"group"`
	Type  string `json:"type"` // that the group prefers
	OS    string `json:"os"`
	// Also are further types that the group accepts.
	Also    []string `json:"other_types,omitempty"`
	Missing int      `json:"missing"` // how many servers are missing
	// Order is what a person can order to end the shortage; nil: an order would not end it.
	Order *Order `json:"order,omitempty"`
	Trouble
}

// Rejected is a pool server that was considered for a claim and cannot be used.
type Rejected struct {
	Server inventory.Server `json:"server"`
	// ClaimStarted says that an earlier run pinned the server's key and started to claim it, but it shows a
	// different key now. That run may have sent it a password, so a person has to check.
	ClaimStarted bool `json:"claim_begun,omitempty"`
	Trouble
}

// Lost is a server that earlier runs knew or the configuration lists, and that is not in the inventory.
type Lost struct {
	Name     string `json:"name"`
	Fleet    string `json:"fleet"`
	ServerID string `json:"server_id,omitempty"` // empty: the configuration lists only a name
	Trouble
}

// Plan is the whole difference between the configuration and what was seen.
type Plan struct {
	Owner    fleet.Owner `json:"-"`
	Narrowed bool        `json:"narrowed"`           // the run is limited to a selection
	On       []string    `json:"on,omitempty"`       // selectors that it is limited to
	Exclude  []string    `json:"exclude,omitempty"`  // selectors whose hosts it leaves out
	LeftOut  int         `json:"left_out,omitempty"` // hosts that these leave out, including those still to be claimed
	Steps    []StepID    `json:"steps,omitempty"`    // the only steps that were compared; empty: all
	Decisions
	Fleets    []string           `json:"fleets,omitempty"` // in the order of the configuration
	Hosts     []Host             `json:"hosts"`            // by fleet and group in that order, members before claims, then by name
	Actions   []Action           `json:"resource_changes"` // those without a host first, then by host in that order, a host's in the order they run
	Shortages []Shortage         `json:"shortages"`
	Rejected  []Rejected         `json:"rejected_pool_servers"`
	Strays    []inventory.Server `json:"stray_servers,omitempty"` // in no pool and no fleet: shown, never touched
	// Orphans are members without a place in the configuration: shown, never changed.
	Orphans      []Orphan             `json:"orphans,omitempty"`
	Lost         []Lost               `json:"lost,omitempty"`
	Cluster      bool                 `json:"cluster"`                    // the configuration has a cluster
	ClusterID    *inventory.ClusterID `json:"cluster_id,omitempty"`       // the cluster that was read; null: none, or unknown
	Healthy      map[string][]Healthy `json:"-"`                          // by fleet, selected or not; without a cluster: the hosts that answered
	Unread       []Unread             `json:"cluster_unread,omitempty"`   // parts of the cluster that could not be read, and that hosts need
	Warnings     []Trouble            `json:"cluster_warnings,omitempty"` // what the cluster reports that concerns no host
	Services     []SilentService      `json:"service_warnings,omitempty"` // services that could not be read
	NotContacted []NotContacted       `json:"unasked,omitempty"`          // groups whose hosts were not contacted
	Rollouts     []Rollout            `json:"rollouts,omitempty"`         // of fleets whose hosts are disturbed, in that order
	WhatIf       []WhatIf             `json:"what_if,omitempty"`          // groups with other numbers of servers than configured: the plan cannot be applied
	Forecast     *Forecast            `json:"forecast,omitempty"`         // how long an apply takes; null: nothing to do
	KeyRotation  *KeyRotation         `json:"key_rotation,omitempty"`     // of the fleet's SSH key; null: none is in progress
	Doubts       []Trouble            `json:"doubts,omitempty"`           // about the configuration as a whole
	// Left and Stay are ids of servers whose stored stage means nothing any more: those that are released, and
	// hosts of this plan that stay.
	Left []string `json:"released_servers,omitempty"`
	Stay []string `json:"kept_servers,omitempty"`
	// Sizes are what pins should note of the sizes of their groups, by server id.
	Sizes map[string]string `json:"-"`
}

// Runnable returns the actions that will run, by host in the plan's order; those without a host come first. A
// host with no such action is not in the list.
func (p *Plan) Runnable() [][]Action {
	var out [][]Action
	for _, actions := range p.byServer() {
		if runs := slices.DeleteFunc(slices.Clone(actions), func(a Action) bool { return !a.Runs() }); len(runs) > 0 {
			out = append(out, runs)
		}
	}
	return out
}

// byServer yields the actions of each server, those without one first.
func (p *Plan) byServer() iter.Seq2[string, []Action] {
	return func(yield func(string, []Action) bool) {
		for rest := p.Actions; len(rest) > 0; {
			id := rest[0].ServerID
			n := slices.IndexFunc(rest, func(a Action) bool { return a.ServerID != id })
			if n < 0 {
				n = len(rest)
			}
			if !yield(id, rest[:n]) {
				return
			}
			rest = rest[n:]
		}
	}
}

// hostsByServer indexes the hosts.
func (p *Plan) hostsByServer() map[string]*Host {
	out := make(map[string]*Host, len(p.Hosts))
	for i := range p.Hosts {
		out[p.Hosts[i].Server.ID] = &p.Hosts[i]
	}
	return out
}

// HostByServer returns the host of a server id.
func (p *Plan) HostByServer(id string) (Host, bool) {
	for i := range p.Hosts {
		if p.Hosts[i].Server.ID == id {
			return p.Hosts[i], true
		}
	}
	return Host{}, false
}

// Address names what an action is about, once in a plan: host.NAME.STEP, or
// host.NAME.KIND, cluster.KIND.NAME for an object of the cluster, or project.KIND.
func (a Action) Address() string {
	if a.Kind == RegisterKey {
		return "project." + string(a.Kind)
	}
	if o := a.Object; a.Kind.OfObject() && o != nil {
		parts := []string{"cluster", o.Kind, o.Namespace, o.Name}
		return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), ".")
	}
	return "host." + a.Host + "." + a.what()
}

// what names what an action does to its host: its step, or its kind.
func (a Action) what() string {
	what := cmp.Or(string(a.Step), string(a.Kind))
	if a.Was != "" {
		what += "." + a.Was
	}
	return what
}

// NotContacted is a group whose hosts were not contacted: it is not compared.
type NotContacted struct {
	Fleet    string `json:"fleet"`
	Group    string `json:"group"`
	Type     string `json:"type"`
	OS       string `json:"os"`
	Replicas int    `json:"replicas"`
}

// String says what is configured, and that it was not compared.
func (u NotContacted) String() string {
	return fmt.Sprintf("not compared: %s of type %s with macOS %s (no host is contacted without secrets)", count(u.Replicas, "host"), u.Type, u.OS)
}

// ComputeOffline returns the plan of a run that contacts no host: what is configured, and that it was not
// compared. It is complete only if nothing is configured.
func ComputeOffline(cfg *fleet.Config) *Plan {
	p := &Plan{Owner: cfg.Owner}
	for _, f := range cfg.Fleets {
		p.Fleets = append(p.Fleets, f.Name)
		for _, g := range f.Groups {
			p.NotContacted = append(p.NotContacted, NotContacted{Fleet: f.Name, Group: g.Name, Type: g.TypeText(), OS: f.OS, Replicas: g.Replicas})
		}
	}
	return p
}
