package inventory

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"time"
)

// Cluster is what the cluster holds beside its Nodes that concerns the hosts.
// Each part is unread by itself: one right that is missing hides no other.
type Cluster struct {
	ID         Seen[ClusterID]  `json:"id,omitzero"`    // unread without a reason: nobody looked
	Noted      Seen[ClusterID]  `json:"noted,omitzero"` // the cluster that macfleet's namespace was prepared in; absent: it does not say
	Pods       Seen[[]Pod]      `json:"pods"`           // on the Nodes of Mac minis, by namespace and name
	Identities Seen[[]Identity] `json:"identities"`     // by host; those of this configuration alone
	Join       Seen[Join]       `json:"join"`
	Objects    Seen[[]Object]   `json:"objects"`  // what the configuration wants of the cluster itself, kept or not
	Machines   Seen[[]Machine]  `json:"machines"` // absent: the cluster knows no Cluster API
	// Foreign are ClusterRoleBindings of others whose names hosts' bindings had in earlier versions.
	Foreign []Object `json:"foreign,omitempty"`
}

// ClusterID says which cluster it is, and how it was reached.
type ClusterID struct {
	UID     string `json:"uid"`     // of its namespace kube-system: no two clusters have the same
	Context string `json:"context"` // of the kubeconfig; empty: the credentials came from elsewhere
	Server  string `json:"server"`  // the API's address
}

// Name names the cluster for people, as whoever looked calls it.
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
	Controller string    `json:"controller,omitempty"` // kind of the object that makes it again, for example DaemonSet; "" = none
	Mirror     bool      `json:"mirror,omitempty"`     // the kubelet's own, from a file: the API cannot delete it
	Finalizers []string  `json:"finalizers,omitempty"`
	Due        time.Time `json:"due,omitzero"`      // when it had to be gone: deletion plus grace; zero: it is not being deleted
	Overdue    bool      `json:"overdue,omitempty"` // that is past, by the cluster's own clock
}

// VMFinalizer keeps a Pod until its kubelet has removed the virtual machine. A
// kubelet that is built for another prefix of labels has that in its place.
const VMFinalizer = "tart-kubelet.tuist.dev/vm-cleanup"

// IsVMFinalizer reports whether a finalizer is that of a kubelet, of whatever build:
// one that is rolled over leaves its own on the Pods of the one before.
func IsVMFinalizer(name string) bool {
	prefix, what, _ := strings.Cut(name, "/")
	return what == "vm-cleanup" && strings.HasPrefix(prefix, "tart-kubelet.")
}

// Held reports whether the Pod should be gone, and the kubelet's finalizer is all
// that keeps it.
func (p Pod) Held() bool {
	return p.Overdue && !p.Mirror && len(p.Finalizers) > 0 && !slices.ContainsFunc(p.Finalizers, func(f string) bool { return !IsVMFinalizer(f) })
}

// Works reports whether a machine is needed for the Pod: not for one that has
// ended, and those of DaemonSets and of the kubelet itself come back anywhere.
func (p Pod) Works() bool { return !p.Finished() && !p.Mirror && p.Controller != "DaemonSet" }

// Stays reports whether a machine is needed for the Pod, and nobody has deleted it yet.
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

// CreateFailed is the reason of a Pod whose virtual machine could not be made.
const CreateFailed = "TartCreateFailed"

// Finished reports whether the Pod's work has ended, so that nothing runs for it
// any more.
func (p Pod) Finished() bool { return p.Phase == "Succeeded" || p.Phase == "Failed" }

// Identity is who a host's kubelet is to the cluster: a ServiceAccount, the
// Secret with its token, and its binding to the agents' role. A part that is
// missing is "" or false.
type Identity struct {
	Host           string `json:"host"`
	ServiceAccount string `json:"service_account"` // its uid
	Secret         string `json:"secret"`          // the uid of the Secret
	Issued         bool   `json:"issued"`          // the Secret holds a token
	// Token is the name of that Secret, the newest that holds a token; empty in older records.
	Token string `json:"token,omitempty"`
	// Since is when the Secret was made; zero: not known.
	Since time.Time `json:"since,omitzero"`
	// Spent are the names of Secrets with older tokens: those are good until the Secrets are deleted.
	Spent []string `json:"spent,omitempty"`
	Bound bool     `json:"bound"` // to the role, and to nothing else
	// Former says that a binding of ours is there under the name that earlier versions gave it.
	Former bool `json:"former,omitempty"`
}

// BindingOf names the binding of a host's identity. Only macfleet names one so.
func BindingOf(host string) string { return "macfleet-" + FormerBindingOf(host) }

// FormerBindingOf is the name that earlier versions gave it, which is also that of other controllers.
func FormerBindingOf(host string) string { return "tart-kubelet-" + host }

// Complete reports whether a kubelet can work with it.
func (i Identity) Complete() bool {
	return i.ServiceAccount != "" && i.Secret != "" && i.Issued && i.Bound
}

// TokenName returns the name of the Secret with the token that a host is to have. The first one of a host has no
// number.
func (i Identity) TokenName() string { return cmp.Or(i.Token, FirstToken(i.Host)) }

// FirstToken returns the name of the Secret with a host's first token.
func FirstToken(host string) string { return "tart-kubelet-" + host + "-token" }

// Join is how hosts reach the cluster.
type Join struct {
	Server string `json:"server"` // https URL
	CA     string `json:"ca"`     // PEM
	// TLSServerName is the name in the server's certificate, where it is not the address's; ProxyURL
	// is what all goes through. Both may be empty.
	TLSServerName string `json:"tls_server_name,omitempty"`
	ProxyURL      string `json:"proxy_url,omitempty"`
}

// Object is a thing that the cluster itself must hold: a namespace, a role, a
// Secret.
type Object struct {
	Kind      string      `json:"kind"`
	Namespace string      `json:"namespace"`
	Name      string      `json:"name"`
	State     ObjectState `json:"state"`
	Why       string      `json:"why"` // what is not as wanted
	// Prepared says that macfleet init cluster makes it, with rights that macfleet
	// itself lacks.
	Prepared bool `json:"prepared"`
	Gates    Gate `json:"gates,omitempty"` // what fails on hosts while the cluster lacks it
	// Void says of one that differs that it grants nothing of what it is for, such as a
	// role without rules: it is as good as missing.
	Void bool `json:"void,omitempty"`
	Made Made `json:"made,omitempty"`
	// Recent says that a version of macfleet which noted nothing did not make it.
	Recent bool `json:"recent,omitempty"`
}

// Gone reports whether the cluster does not hold the object at all.
func (o Object) Gone() bool { return o.State == ObjectMissing || o.State == ObjectUnserved }

// Lacking reports whether the cluster works as if the object were not there.
func (o Object) Lacking() bool { return o.Gone() || o.State == ObjectDiffers && o.Void }

// Made is how an object stands to what macfleet init cluster noted when it last made all:
// by this a difference is somebody's doing, or a later wish.
type Made string

// The values of Made.
const (
	MadeUnknown Made = ""          // nothing is noted: an older version prepared the cluster, or the note is gone
	MadeNever   Made = "never"     // it was not made: the configuration or the version wants it since
	MadeSo      Made = "as-wanted" // it was made as it is wanted now
	MadeElse    Made = "otherwise" // it was made as an older wish was, and is still so, or it is missing
	MadeMoved   Made = "moved"     // so here, and it is no longer so
)

// Gate is what fails on hosts while an object of the cluster is missing.
type Gate string

// The gates.
const (
	GateNothing Gate = ""
	// GateNodes: no kubelet can be a Node. One that is started registers nothing.
	GateNodes Gate = "nodes"
	// GatePods: no kubelet can end a Pod in the object's namespace or, where it has none,
	// anywhere. A drain kills their virtual machines and never comes to its end.
	GatePods Gate = "pods"
)

// String returns the object as messages name it.
func (o Object) String() string {
	if o.Namespace == "" {
		return o.Kind + " " + o.Name
	}
	return o.Kind + " " + o.Namespace + "/" + o.Name
}

// ObjectState is how an object of the cluster stands to what is wanted.
type ObjectState string

// The states of an object.
const (
	ObjectKept    ObjectState = "kept"
	ObjectMissing ObjectState = "missing"
	ObjectDiffers ObjectState = "differs"
	ObjectSurplus ObjectState = "surplus" // it was wanted once, and is not any more
	// ObjectForeign: somebody else's, in the place of one that macfleet made once. It is left alone.
	ObjectForeign ObjectState = "foreign"
	// ObjectUnserved: init cluster made it, and the server does not serve its kind any more.
	ObjectUnserved ObjectState = "unserved"
	// ObjectUnread: macfleet made it once, and whether it is left cannot be seen with the rights at hand.
	ObjectUnread ObjectState = "unread"
)

// Machine is a Machine of the Cluster API.
type Machine struct {
	Namespace  string `json:"namespace"`
	Name       string `json:"name"`
	ProviderID string `json:"provider_id"`
	NodeRef    string `json:"node_ref"` // name of the Node that it is bound to; "" = none
	// Infrastructure is the provider's part of it, as kubectl takes it: KIND/NAME. Its
	// controller claims and sets up servers by itself, and is paused by itself.
	Infrastructure string `json:"infrastructure"`
	Paused         bool   `json:"paused"` // the Cluster API's own controllers leave it alone: they bind it to no Node
	// InfrastructurePaused says that the provider's controller leaves the server alone. The
	// pause of the Machine does not reach it, that of its Cluster does.
	InfrastructurePaused bool   `json:"infrastructure_paused"`
	InfrastructureUnread string `json:"infrastructure_unread"` // why nobody knows; "" = it was read
	Deployment           string `json:"deployment"`            // MachineDeployment that it belongs to; "" = none
	Available            bool   `json:"available"`             // that MachineDeployment is available
}
