package plan

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
)

// Kind is what an action does.
type Kind string

// The kinds of action.
const (
	PinHost       Kind = "pin"         // keep the host's key again, which another witness knows still
	ClaimServer   Kind = "claim"       // take a server from the pool: rename, read back
	RenameServer  Kind = "rename"      // give a member its name back
	CreateMarker  Kind = "marker"      // claim the host exclusively and write its marker
	IdentifyHost  Kind = "identity"    // complete who the host's kubelet is to the cluster
	RenewToken    Kind = "renew-token" // make a new token for the host's kubelet, beside the one that it has
	RetireTokens  Kind = "old-tokens"  // end the older tokens of the host's kubelet, once the cluster has heard of it with the newest
	SetProviderID Kind = "provider-id" // set the provider id of the host's Node, which has none
	TaintNode     Kind = "taint"       // give the host's Node the taint of its kubelet, which somebody took away or changed
	ReplaceNode   Kind = "node"        // delete the host's Node, so that its kubelet registers another
	DrainNode     Kind = "drain"       // drain the Node as which the host works, before it gets another name
	DeleteNode    Kind = "delete-node" // delete the Node of a host that has no kubelet any more
	UncordonNode  Kind = "uncordon"    // let Pods onto the host's Node again, which an earlier run closed; when it is Ready and the rest is done
	RevokeHost    Kind = "revoke"      // take the identity of a host's kubelet away; it may have no server any more
	ReleasePods   Kind = "pods"        // let Pods go that only our finalizer holds
	KeepObject    Kind = "object"      // bring an object of the cluster itself to what is wanted; it has no host
	RemoveObject  Kind = "surplus"     // take an object of the cluster itself away that macfleet made and does not want any more
	AwaitNode     Kind = "ready"       // wait until the host's Node is Ready; it stands in no plan, and ends an apply
	RunStep       Kind = "step"        // run a step's changes and prove them
	RemoveStep    Kind = "remove"      // take away what a step made, and prove it
	ReleaseServer Kind = "release"     // give a server back to the pool
	ReplaceServer Kind = "replace"     // give it back and claim another in its place
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
	case ClaimServer, CreateMarker, IdentifyHost, PinHost, RenewToken:
		return Create
	case ReleaseServer, RemoveStep, ReleasePods, DeleteNode, RevokeHost, RetireTokens, RemoveObject:
		return Remove
	case ReplaceServer, ReplaceNode:
		return Replace
	}
	return Update
}

// OfCluster reports whether an action is of no host: of the cluster itself, or of
// what it still holds of a server that is gone.
func (a Action) OfCluster() bool { return a.ServerID == "" }

// Origin tells the two sources of a difference apart; both can be true. Where the last
// proof is lost, or shows only to root, nobody can tell, and neither is.
type Origin struct {
	Drift   bool `json:"drift"`   // the facts moved since the last proof
	Pending bool `json:"pending"` // the wish moved since the last proof, or there was none yet
	// NotKnown says that it was proven before, and that nobody can compare it with that now.
	NotKnown bool `json:"origin_unknown,omitempty"`
}

// Action is one thing a plan will do. An action depends on all earlier actions
// of its host and on nothing else.
type Action struct {
	Kind     Kind   `json:"kind"`
	Host     string `json:"host"` // the name the host has or gets
	Fleet    string `json:"fleet"`
	Group    string `json:"group"`
	ServerID string `json:"server_id"`      // of the host's server; empty: the action is no host's
	Step     StepID `json:"step,omitempty"` // of RunStep and RemoveStep
	Was      string `json:"was,omitempty"`  // of DrainNode, DeleteNode and RevokeHost: the name that the host had before, whose Node or identity it is
	Reason   Reason `json:"-"`              // why, in short: of a step, its first change's
	Origin
	Fields     []Field           `json:"fields"` // what moves, over all changes
	Changes    []Change          `json:"changes,omitempty"`
	Pods       []inventory.Pod   `json:"held_pods,omitempty"` // of ReleasePods
	Object     *inventory.Object `json:"object,omitempty"`    // of KeepObject and RemoveObject
	AfterRoot  bool              `json:"deferred"`            // the changes are known only once an earlier action gave root
	Disruption Disruption        `json:"disruption"`
	Busy       []Task            `json:"tasks,omitempty"`   // what goes on on the host that it would hurt, as the plan saw it
	Drains     bool              `json:"drains,omitempty"`  // the host's Node is drained first
	Evicts     int               `json:"evicts,omitempty"`  // Pods that the drain takes from it, as the plan saw them
	Forced     bool              `json:"forced,omitempty"`  // the host is not waited for: somebody named it
	Refusal    *Trouble          `json:"refused,omitempty"` // set when the action is wanted and cannot be done
	// Deferral is set when the action may be done, and a limit of the run leaves it for a later one.
	Deferral *Trouble `json:"deferral,omitempty"`
}

// Runs reports whether the run does the action: it is neither refused nor deferred.
func (a Action) Runs() bool { return a.Refusal == nil && a.Deferral == nil }

// Needs returns what the action needs to run; of one that does not run, nothing.
func (a Action) Needs() Needs {
	if !a.Runs() {
		return Needs{}
	}
	return needsOf(a.Changes)
}

// Convergence is what is known of a host against its specification.
type Convergence string

// The values of a host's convergence.
const (
	Converged   Convergence = "yes"
	Differs     Convergence = "no"
	NotCompared Convergence = "unknown" // something could not be read
)

// Host is one host of the plan: a member, or a server that a claim makes one.
type Host struct {
	Name     string                             `json:"name"`
	Fleet    string                             `json:"fleet"`
	Group    string                             `json:"group"`
	Server   inventory.Server                   `json:"server"`
	Spec     fleet.Host                         `json:"-"`
	Member   bool                               `json:"member"` // false: it is still in the pool
	Seen     HostSeen                           `json:"-"`
	Node     inventory.Seen[inventory.Node]     `json:"-"`
	Identity inventory.Seen[inventory.Identity] `json:"-"`
	Join     inventory.Seen[inventory.Join]     `json:"-"`
	Cluster  *inventory.ClusterID               `json:"-"` // which one is looked at; nil: none, or it is not known
	// MovedFrom is the uid of the cluster from which a person moves hosts to this one.
	MovedFrom string                          `json:"-"`
	Pods      inventory.Seen[[]inventory.Pod] `json:"-"`
	Former    []Former                        `json:"-"`                   // what the cluster knows of it under names that it had before
	Kubelet   inventory.Seen[Kubelet]         `json:"-"`                   // absent: nobody could look
	NewToken  bool                            `json:"new_token,omitempty"` // a new token is wanted in the place of the one that it has
	Token     *TokenAge                       `json:"token,omitempty"`     // of its newest token for the cluster; nil: not known
	Rollback  bool                            `json:"rollback,omitempty"`  // the version that it had before is wanted
	// ForceBusy says that it is not waited for, whatever it is at work on.
	ForceBusy bool `json:"force_busy,omitempty"`
	// Unapproved says that the plan file that is applied does not know the host, or
	// knows another key of it: nothing is written there, and no key is pinned.
	Unapproved bool              `json:"unapproved,omitempty"`
	Held       *Held             `json:"held,omitempty"`    // a person wants it left alone, or did until a while ago; nil: nobody
	Unknown    *Trouble          `json:"unknown,omitempty"` // it could not be asked
	Refused    *Trouble          `json:"refused,omitempty"` // it was asked and must not be changed
	Unread     []StepUnread      `json:"unread,omitempty"`
	Warnings   []StepWarning     `json:"warnings,omitempty"`
	Proven     map[StepID]Digest `json:"-"` // of the steps without a difference
	Converged  Convergence       `json:"converged"`
	Asked      bool              `json:"asked"`           // its steps were asked, whatever they said
	Blind      bool              `json:"blind,omitempty"` // something of it only root could see

	trust      Trust
	adopting   bool // it is listed, and no apply of ours has known it yet
	rootToCome bool // an action of it makes root to be had
	leftNode   bool // its kubelet goes by its name already, and its Node is still one of before
	proofLost  bool // somebody took its marker away
	noSession  bool // nobody is logged in at its screen
	vms        inventory.Seen[[]string]
}

// MarkerStale reports whether the marker lacks something that is known by now: the proof
// of a step that matches, or where the host belongs, which a later run goes by.
func (h Host) MarkerStale() bool {
	m, ok := h.Seen.Marker.Get()
	if !ok || !h.Writable() {
		return false // creating a marker that is missing enters everything; a held host is left alone
	}
	if h.Server.Name != h.Name && slices.ContainsFunc(h.Former, func(f Former) bool { return f.Name == m.Name }) {
		return false // it has not moved yet
	}
	if m.Name != h.Name || m.Fleet != h.Fleet || m.Group != h.Group || h.Cluster != nil && m.ClusterUID != h.Cluster.UID {
		return true
	}
	for id, d := range h.Proven {
		if !m.Steps[id].Same(d) {
			return true
		}
	}
	return false
}

// Writable reports whether a run may note anything on the host, or pin its key:
// nobody holds it, and what is applied knows it.
func (h Host) Writable() bool { return h.Standing() == nil && !h.Unapproved }

// StepUnread is an answer that a step could not use.
type StepUnread struct {
	Step StepID `json:"step"`
	Unread
}

// StepWarning is what a step says without a difference; without a step, what the
// cluster says of the host's Node, or the provider of its server.
type StepWarning struct {
	Step     StepID `json:"step,omitempty"`
	OfServer bool   `json:"of_server,omitempty"` // the provider says it
	// Drift says that something moved behind our back, and that only a person can decide
	// what becomes of it. Then Fields say what moved.
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
	Fleet   string `json:"fleet"`
	Group   string `json:"group"`
	Type    string `json:"type"`
	OS      string `json:"os"`
	Missing int    `json:"missing"` // how many servers are wanted and not given
	Trouble
}

// Rejected is a pool server that was looked at for a claim and not taken.
type Rejected struct {
	Server inventory.Server `json:"server"`
	// Begun says that an earlier run pinned the server's key and began to claim it, and that
	// it shows another key now. That run may have sent it a password, so a person looks.
	Begun bool `json:"claim_begun,omitempty"`
	Trouble
}

// Lost is a server that earlier runs knew or the configuration lists, and the
// inventory does not hold.
type Lost struct {
	Name     string `json:"name"`
	Fleet    string `json:"fleet"`
	ServerID string `json:"server_id,omitempty"` // empty: the configuration lists a name alone
	Trouble
}

// Plan is the whole difference between what is wanted and what was seen.
type Plan struct {
	Owner     fleet.Owner        `json:"-"`
	Narrowed  bool               `json:"narrowed"`           // the run is limited to a selection
	On        []string           `json:"on,omitempty"`       // selectors that it is limited to
	Exclude   []string           `json:"exclude,omitempty"`  // selectors whose hosts it leaves out
	LeftOut   int                `json:"left_out,omitempty"` // hosts that these leave out, wanted ones too
	Steps     []StepID           `json:"steps,omitempty"`    // the only steps that were compared; empty: all
	Fleets    []string           `json:"fleets,omitempty"`   // in the order of the configuration
	Hosts     []Host             `json:"hosts"`              // by fleet and group in that order, members before claims, then by name
	Actions   []Action           `json:"resource_changes"`   // of no host first, then by host in that order, a host's in the order they run
	Shortages []Shortage         `json:"shortages"`
	Rejected  []Rejected         `json:"rejected_pool_servers"`
	Strays    []inventory.Server `json:"stray_servers,omitempty"` // in no pool and no fleet: shown, never touched
	// Orphans are hosts of ours without a place in the configuration: shown, never changed.
	Orphans      []Orphan             `json:"orphans,omitempty"`
	AllowOrphans bool                 `json:"orphans_allowed,omitempty"` // servers may be claimed all the same
	Lost         []Lost               `json:"lost,omitempty"`
	Cluster      bool                 `json:"cluster"`                    // the configuration has a cluster
	ClusterID    *inventory.ClusterID `json:"cluster_id,omitempty"`       // which cluster was looked at; null: none, or it is not known
	Healthy      map[string][]Healthy `json:"-"`                          // by fleet, selected or not; without a cluster: the hosts that answered
	Unread       []Unread             `json:"cluster_unread,omitempty"`   // parts of the cluster that could not be read, and that hosts need
	Warnings     []Trouble            `json:"cluster_warnings,omitempty"` // what the cluster says of no host
	Unasked      []Unasked            `json:"unasked,omitempty"`          // groups of which nobody was asked anything
	Rollouts     []Rollout            `json:"rollouts,omitempty"`         // of fleets whose hosts are disturbed, in that order
	Doubts       []Trouble            `json:"doubts,omitempty"`           // of the configuration as a whole
}

// Runnable returns the actions that will run, by host in the plan's order; those of
// no host come first. A host with no such action is not in the list.
func (p *Plan) Runnable() [][]Action {
	var out [][]Action
	for _, actions := range p.byServer() {
		if runs := slices.DeleteFunc(slices.Clone(actions), func(a Action) bool { return !a.Runs() }); len(runs) > 0 {
			out = append(out, runs)
		}
	}
	return out
}

// byServer yields the actions of each server, those of none first.
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
// host.NAME.KIND, or cluster.KIND.NAME for an object of the cluster.
func (a Action) Address() string {
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

// Unasked is a group of which nobody was asked anything: it is not compared.
type Unasked struct {
	Fleet    string `json:"fleet"`
	Group    string `json:"group"`
	Type     string `json:"type"`
	OS       string `json:"os"`
	Replicas int    `json:"replicas"`
}

// String says what is wanted, and that it was not compared.
func (u Unasked) String() string {
	return fmt.Sprintf("not compared: %s of type %s with macOS %s wanted; without secrets nobody was asked", count(u.Replicas, "host"), u.Type, u.OS)
}

// ComputeUnasked returns the plan of a run that may ask nobody: what is wanted, and
// that nothing of it was compared. It is never complete unless nothing is wanted.
func ComputeUnasked(cfg *fleet.Config) *Plan {
	p := &Plan{Owner: cfg.Owner}
	for _, f := range cfg.Fleets {
		p.Fleets = append(p.Fleets, f.Name)
		for _, g := range f.Groups {
			p.Unasked = append(p.Unasked, Unasked{Fleet: f.Name, Group: g.Name, Type: g.Type, OS: f.OS, Replicas: g.Replicas})
		}
	}
	return p
}
