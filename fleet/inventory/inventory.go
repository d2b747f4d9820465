// Package inventory holds what the providers return, as plain data without their types.
package inventory

import (
	"errors"
	"strings"
	"time"
)

// ErrDenied says that the provider denies the request to these credentials.
var ErrDenied = errors.New("permission denied")

// Server is a Mac mini as Scaleway knows it.
type Server struct {
	ID        string    `json:"id"`
	Name      string    `json:"name"`
	Type      string    `json:"type"` // for example M2-L
	Zone      string    `json:"zone"`
	ProjectID string    `json:"project_id,omitempty"` // empty: the provider did not say
	Address   string    `json:"address"`              // public IP
	OSFamily  string    `json:"os_family"`            // family first installed, for example Tahoe; not what runs now
	SystemID  string    `json:"system_id,omitempty"`  // the provider's id of that OS
	Status    string    `json:"status"`               // ready, starting, reinstalling, locked, …
	Delivered bool      `json:"delivered"`            // first provisioning is complete
	Created   time.Time `json:"created"`
	// DeletionScheduled says that the provider will delete the server, at DeletableAt or soon after.
	DeletionScheduled bool `json:"deletion_scheduled,omitempty"`
	// DeletableAt is the earliest time at which the provider can delete the server; zero: unknown.
	DeletableAt time.Time `json:"deletable_at,omitzero"`
	// RunnerConfigurations are the ids of the provider's own CI runners on the server, joined by commas. They take jobs
	// next to the configured runners.
	RunnerConfigurations string `json:"runner_configurations,omitempty"`
}

// Usable reports whether the provider's status allows changing the server.
func (s Server) Usable() bool { return s.Status == "ready" && s.Delivered }

// ProviderID returns the Node's spec.providerID of this server.
func (s Server) ProviderID() string { return providerScheme + s.Zone + "/" + s.ID }

// Region returns the region of the server's zone: fr-par of fr-par-1. A zone of another form has none.
func (s Server) Region() string {
	i := strings.LastIndexByte(s.Zone, '-')
	if i < 1 || i+1 == len(s.Zone) || strings.Trim(s.Zone[i+1:], "0123456789") != "" {
		return ""
	}
	return s.Zone[:i]
}

const providerScheme = "scw-applesilicon://"

// Node is a Mac mini as the cluster knows it.
type Node struct {
	Name          string    `json:"name"`
	UID           string    `json:"uid,omitempty"`
	ProviderID    string    `json:"provider_id"`
	Ready         Readiness `json:"ready"`          // Unknown too if the last heartbeat is too old, whatever the condition says
	Why           string    `json:"why"`            // why it is not Ready
	LastHeartbeat time.Time `json:"heard,omitzero"` // of its last heartbeat, by this machine's clock; zero: unknown
	Cordoned      bool      `json:"cordoned"`
	CordonedBy    string    `json:"cordoned_by,omitempty"` // who cordoned it with macfleet; empty: not cordoned, or by someone else
	CordonRun     string    `json:"cordon_run,omitempty"`  // the run of macfleet apply that cordoned it, and will uncordon it; empty: none
	// CordonSince is when it was cordoned, at the latest; zero: unknown.
	CordonSince time.Time `json:"cordon_since,omitzero"`
	// CordonClient is the program that cordoned it, as the cluster recorded it; empty: unknown.
	CordonClient string            `json:"cordon_client,omitempty"`
	Taints       Seen[[]Taint]     `json:"taints,omitzero"`
	Conditions   []Condition       `json:"conditions,omitempty"`
	Labels       map[string]string `json:"labels,omitempty"`
	Capacity     Capacity          `json:"capacity,omitzero"`
	// Hold is the hold in its annotation; nil: none.
	Hold       *Hold  `json:"hold,omitempty"`
	HoldUnread string `json:"hold_unread,omitempty"` // why that annotation cannot be read; empty: it can, or there is none
	// Machine is the Machine of the Cluster API that its annotations name, as NAMESPACE/NAME, in whatever cluster that
	// is; empty: none.
	Machine string `json:"machine,omitempty"`
	// Writers are controllers that write fields of the Node which macfleet relies on, by name; without macfleet, the
	// kubelet, Kubernetes' own controllers, people, and those that are paused for this Node.
	Writers []Writer `json:"writers,omitempty"`
	// Repairs are the failed repairs in its annotation; nil: none.
	Repairs *Repairs `json:"repairs,omitempty"`
	// HostKey is its annotation with the host's key, "ssh-ed25519 SHA256:…"; empty: there is none.
	HostKey string `json:"host_key,omitempty"`
	// InternalIP is the address that the kubelet reports; empty: none.
	InternalIP string `json:"internal_ip,omitempty"`
}

// Writer is a program that wrote fields of a Node, as the cluster recorded it.
type Writer struct {
	Name   string   `json:"name"`
	Fields []string `json:"fields"` // for example spec.taints, sorted
	Pause  string   `json:"pause"`  // how to pause it for this Node, a command if one is known
}

// Hold is a person's "do not change this host until …". It is stored in the host's marker and as an
// annotation on its Node, and either is enough. Its JSON is the same in both.
type Hold struct {
	Who    string    `json:"who"` // user@machine
	Reason string    `json:"reason"`
	Since  time.Time `json:"since,omitzero"`
	Until  time.Time `json:"until,omitzero"` // zero: it has no end, and holds until it is removed
}

// Taint keeps Pods off a Node that do not tolerate it.
type Taint struct {
	Key    string    `json:"key"`
	Value  string    `json:"value,omitempty"`
	Effect string    `json:"effect"`         // NoSchedule, PreferNoSchedule, NoExecute
	Since  time.Time `json:"since,omitzero"` // zero: unknown
}

// String returns the taint as kubectl writes it.
func (t Taint) String() string {
	if t.Value == "" {
		return t.Key + ":" + t.Effect
	}
	return t.Key + "=" + t.Value + ":" + t.Effect
}

// AgentTaint is the taint that the kubelet gives to the Node that it registers: it keeps off Pods that need
// Linux.
func AgentTaint() Taint { return Taint{Key: "tuist.dev/macos", Value: "true", Effect: "NoSchedule"} }

// AgentLabel is the label that shows that such a kubelet manages a Node.
const AgentLabel = "tuist.dev/runtime"

// Condition is one condition of a Node.
type Condition struct {
	Type   string    `json:"type"`
	Status string    `json:"status"` // True, False, Unknown
	Why    string    `json:"why,omitempty"`
	Since  time.Time `json:"since,omitzero"` // when the status last changed; zero: unknown
}

// Capacity is what a Node offers to Pods.
type Capacity struct {
	CPU    int   `json:"cpu"`    // cores
	Memory int64 `json:"memory"` // bytes
	Pods   int   `json:"pods"`
}

// ServerID returns the server id in the Node's providerID, or "".
func (n Node) ServerID() string {
	rest, ok := strings.CutPrefix(n.ProviderID, providerScheme)
	if !ok {
		return ""
	}
	_, id, _ := strings.Cut(rest, "/")
	return id
}

// Readiness is a Node's Ready condition.
type Readiness string

// The values of a Ready condition.
const (
	Ready        Readiness = "True"
	NotReady     Readiness = "False"
	ReadyUnknown Readiness = "Unknown"
)
