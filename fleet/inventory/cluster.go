package inventory

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"time"
)

// Cluster is what the cluster holds about the hosts, except Nodes. Each part can be unread: one missing right
// hides no other part.
type Cluster struct {
	ID         Seen[ClusterID]  `json:"id,omitzero"`    // unread without a reason: it was not read
	Noted      Seen[ClusterID]  `json:"noted,omitzero"` // the cluster that macfleet's namespace was prepared in; absent: unknown
	Pods       Seen[[]Pod]      `json:"pods"`           // on the Nodes of Mac minis, by namespace and name
	Identities Seen[[]Identity] `json:"identities"`     // by host; only those of this configuration
	Join       Seen[Join]       `json:"join"`
	Objects    Seen[[]Object]   `json:"objects"`  // objects that the configuration needs in the cluster itself, present or not
	Machines   Seen[[]Machine]  `json:"machines"` // absent: the cluster has no Cluster API
	// Foreign are ClusterRoleBindings of others with the names that hosts' bindings had in earlier versions.
	Foreign []Object `json:"foreign,omitempty"`
}

// ClusterID identifies a cluster, and says how it was reached.
type ClusterID struct {
	UID     string `json:"uid"`     // of its namespace kube-system: unique to the cluster
	Context string `json:"context"` // of the kubeconfig; empty: the credentials came from elsewhere
	Server  string `json:"server"`  // the API's address
}

// Name names the cluster for people, by the name its reader uses.
func (c ClusterID) Name() string {
	if c.Context == "" {
		return c.Server
	}
	return c.Context + " (" + c.Server + ")"
}

// String names the cluster with its uid, in short.
func (c ClusterID) String() string { return c.Name() + ", uid " + ShortUID(c.UID) }

// ShortUID is the part of a uid that people compare.
func ShortUID(uid string) string {
	short, _, _ := strings.Cut(uid, "-")
	return short
}

// Pod is a Pod on a Mac mini: there it is one virtual machine.
type Pod struct {
	Namespace  string    `json:"namespace"`
	Name       string    `json:"name"`
	UID        string    `json:"uid"`
	Node       string    `json:"node,omitempty"`
	Phase      string    `json:"phase,omitempty"`      // Pending, Running, Succeeded, Failed, Unknown
	Reason     string    `json:"reason,omitempty"`     // why its container does not run, for example TartCreateFailed
	Controller string    `json:"controller,omitempty"` // kind of the object that recreates it, for example DaemonSet; "" = none
	Mirror     bool      `json:"mirror,omitempty"`     // the kubelet's own, from a file: the API cannot delete it
	Finalizers []string  `json:"finalizers,omitempty"`
	Due        time.Time `json:"due,omitzero"`      // deletion plus grace; zero: it is not being deleted
	Overdue    bool      `json:"overdue,omitempty"` // that time has passed, by the cluster's clock
}

// VMFinalizer keeps a Pod until its kubelet has removed the virtual machine. A kubelet that is built for
// another label prefix uses that instead.
const VMFinalizer = "tart-kubelet.tuist.dev/vm-cleanup"

// IsVMFinalizer reports whether a finalizer is a kubelet's, of any build: after a rollout, Pods may still
// have the earlier build's.
func IsVMFinalizer(name string) bool {
	prefix, what, _ := strings.Cut(name, "/")
	return what == "vm-cleanup" && strings.HasPrefix(prefix, "tart-kubelet.")
}

// Held reports whether the Pod should be gone, but the kubelet's finalizer keeps it.
func (p Pod) Held() bool {
	return p.Overdue && !p.Mirror && len(p.Finalizers) > 0 && !slices.ContainsFunc(p.Finalizers, func(f string) bool { return !IsVMFinalizer(f) })
}

// Works reports whether the Pod needs a virtual machine: not if it has finished, and not those of DaemonSets
// and the kubelet itself, which are recreated anywhere.
func (p Pod) Works() bool { return !p.Finished() && !p.Mirror && p.Controller != "DaemonSet" }

// Stays reports whether the Pod needs a virtual machine and is not being deleted.
func (p Pod) Stays() bool { return p.Works() && p.Due.IsZero() }

// VM returns the name of the Pod's virtual machine, as the kubelet makes it: at
// most 63 characters of namespace and name; a longer one is cut and ends in a
// digest.
func (p Pod) VM() string {
	name := p.Namespace + "-" + p.Name
	if len(name) <= maxVMName {
		return name
	}
	sum := sha256.Sum256([]byte(p.Namespace + "/" + p.Name))
	digest := "-" + hex.EncodeToString(sum[:4])
	return name[:maxVMName-len(digest)] + digest
}

const maxVMName = 63

// CreateFailed is the reason of a Pod whose virtual machine could not be created.
const CreateFailed = "TartCreateFailed"

// Finished reports whether the Pod has finished, so that nothing runs for it any more.
func (p Pod) Finished() bool { return p.Phase == "Succeeded" || p.Phase == "Failed" }

// Identity is the account of a host's kubelet in the cluster: a ServiceAccount, the Secret with its token,
// and its binding to the agents' role. A missing part is "" or false.
type Identity struct {
	Host           string `json:"host"`
	ServiceAccount string `json:"service_account"` // its uid
	Secret         string `json:"secret"`          // the uid of the Secret
	Issued         bool   `json:"issued"`          // the Secret holds a token
	// Token is the name of that Secret, the newest with a token; empty in older records.
	Token string `json:"token,omitempty"`
	// Since is when the Secret was created; zero: unknown.
	Since time.Time `json:"since,omitzero"`
	// Spent are the names of Secrets with older tokens: they are valid until the Secrets are deleted.
	Spent []string `json:"spent,omitempty"`
	Bound bool     `json:"bound"` // to the role, and to nothing else
	// Former says that macfleet's binding with the name from earlier versions exists.
	Former bool `json:"former,omitempty"`
}

// BindingOf names the binding of a host's identity. Only macfleet uses such names.
func BindingOf(host string) string { return "macfleet-" + FormerBindingOf(host) }

// FormerBindingOf is the name from earlier versions, which other controllers use too.
func FormerBindingOf(host string) string { return "tart-kubelet-" + host }

// Complete reports whether a kubelet can work with it.
func (i Identity) Complete() bool {
	return i.ServiceAccount != "" && i.Secret != "" && i.Issued && i.Bound
}

// TokenName returns the name of the Secret with the token that a host should have. The first one has no
// number.
func (i Identity) TokenName() string { return cmp.Or(i.Token, FirstToken(i.Host)) }

// FirstToken returns the name of the Secret with a host's first token.
func FirstToken(host string) string { return "tart-kubelet-" + host + "-token" }

// Join is how hosts reach the cluster.
type Join struct {
	Server string `json:"server"` // https URL
	CA     string `json:"ca"`     // PEM
	// TLSServerName is the name in the server's certificate, if it differs from the address; ProxyURL is the
	// proxy for all requests. Both may be empty.
	TLSServerName string `json:"tls_server_name,omitempty"`
	ProxyURL      string `json:"proxy_url,omitempty"`
}

// Object is an object that the cluster itself must have: a namespace, a role, a Secret.
type Object struct {
	Kind      string      `json:"kind"`
	Namespace string      `json:"namespace"`
	Name      string      `json:"name"`
	State     ObjectState `json:"state"`
	Why       string      `json:"why"` // what differs
	// Prepared says that macfleet init cluster creates it, with rights that macfleet's own account lacks.
	Prepared bool `json:"prepared"`
	Gates    Gate `json:"gates,omitempty"` // what fails on hosts while it is missing
	// Void says of a differing object that it grants nothing it should, such as a role without rules: it
	// counts as missing.
	Void bool `json:"void,omitempty"`
	Made Made `json:"made,omitempty"`
	// Recent says that it cannot come from a version of macfleet that kept no record.
	Recent bool `json:"recent,omitempty"`
}

// Gone reports whether the cluster does not have the object.
func (o Object) Gone() bool { return o.State == ObjectMissing || o.State == ObjectUnserved }

// Lacking reports whether the cluster works as if the object were missing.
func (o Object) Lacking() bool { return o.Gone() || o.State == ObjectDiffers && o.Void }

// BindsAgents reports whether the cluster limits each kubelet to its own objects: the admission policy and its binding exist as macfleet wants
// them. Without them any host may write what macfleet notes on Nodes.
func BindsAgents(all []Object) bool {
	kept := func(kind string) bool {
		return slices.ContainsFunc(all, func(o Object) bool { return o.Kind == kind && o.State == ObjectKept })
	}
	return kept("ValidatingAdmissionPolicy") && kept("ValidatingAdmissionPolicyBinding")
}

// Made compares an object with the record of the last macfleet init cluster: it shows whether a difference
// comes from someone or from a later configuration.
type Made string

// The values of Made.
const (
	MadeUnknown   Made = ""          // no record: an older version prepared the cluster, or the record is gone
	MadeNever     Made = "never"     // it was not created: the configuration or the version needs it since
	MadeAsWanted  Made = "as-wanted" // it was created as it should be now
	MadeOtherwise Made = "otherwise" // it was created for an earlier configuration and has not changed, or it is missing
	MadeMoved     Made = "moved"     // likewise, but it has changed
)

// Gate is what fails on hosts while an object of the cluster is missing.
type Gate string

// The gates.
const (
	GateNothing Gate = ""
	// GateNodes: no kubelet can become a Node. A kubelet that is started registers nothing.
	GateNodes Gate = "nodes"
	// GatePods: no kubelet can finish a Pod in the object's namespace or, if it has none, anywhere. A drain
	// kills their virtual machines and never finishes.
	GatePods Gate = "pods"
)

// String returns the object as messages name it.
func (o Object) String() string {
	if o.Namespace == "" {
		return o.Kind + " " + o.Name
	}
	return o.Kind + " " + o.Namespace + "/" + o.Name
}

// ObjectState compares an object of the cluster with what it should be.
type ObjectState string

// The states of an object.
const (
	ObjectKept    ObjectState = "kept"
	ObjectMissing ObjectState = "missing"
	ObjectDiffers ObjectState = "differs"
	ObjectSurplus ObjectState = "surplus" // it was needed once, and is not any more
	// ObjectForeign: someone else's, with the name of one that macfleet made. It is not changed.
	ObjectForeign ObjectState = "foreign"
	// ObjectUnserved: init cluster created it, and the server does not serve its kind any more.
	ObjectUnserved ObjectState = "unserved"
	// ObjectUnread: macfleet created it once, and the account may not check whether it still exists.
	ObjectUnread ObjectState = "unread"
)

// Machine is a Machine of the Cluster API.
type Machine struct {
	Namespace  string `json:"namespace"`
	Name       string `json:"name"`
	ProviderID string `json:"provider_id"`
	NodeRef    string `json:"node_ref"` // name of the Node that it is bound to; "" = none
	// Infrastructure is the provider's part of it, as KIND/NAME for kubectl. Its controller claims and sets
	// up servers by itself, and has its own pause.
	Infrastructure string `json:"infrastructure"`
	Paused         bool   `json:"paused"` // it is paused: the Cluster API does not bind it to a Node
	// InfrastructurePaused says that the provider's controller does not change the server. Pausing the
	// Machine does not pause it, pausing its Cluster does.
	InfrastructurePaused bool   `json:"infrastructure_paused"`
	InfrastructureUnread string `json:"infrastructure_unread"` // why it is unknown; "" = it was read
	Deployment           string `json:"deployment"`            // MachineDeployment that it belongs to; "" = none
	Available            bool   `json:"available"`             // that MachineDeployment is available
}
