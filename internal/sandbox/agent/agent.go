// Package agent is what the simulated Macs and the simulated cluster know of each other: the
// kubelets that run on the Macs, and the Pods that the cluster gives them. Neither side imports the
// other; the world carries these values between them.
package agent

import (
	"crypto/sha256"
	"encoding/hex"
	"time"
)

// Kubelet is one run of a kubelet on a Mac, as the cluster meets it. A process that died before it
// had registered is none.
type Kubelet struct {
	ServerID string    `json:"server_id"`
	Job      string    `json:"job"` // label of the launchd job that runs it
	PID      int       `json:"pid"`
	Started  time.Time `json:"started"`
	Ended    time.Time `json:"ended,omitzero"` // zero: it runs

	Node       string            `json:"node"` // --node-name
	ProviderID string            `json:"provider_id,omitempty"`
	Labels     map[string]string `json:"labels,omitempty"` // --node-labels
	Address    string            `json:"address,omitempty"`
	CPU        int               `json:"cpu"`
	MemoryMB   int               `json:"memory_mb"`
	MaxPods    int               `json:"max_pods"`
	GC         bool              `json:"gc"`               // it deletes virtual machines that no Pod is behind
	Version    string            `json:"version"`          // what the binary says of itself
	Token      string            `json:"token"`            // of its kubeconfig: whether the cluster takes it, the cluster says
	NoVMs      string            `json:"no_vms,omitempty"` // why no virtual machine can start on its Mac; "" = they can
}

// Runs reports whether the process lives.
func (k Kubelet) Runs() bool { return k.Ended.IsZero() }

// Pod is a Pod of a Node, as its Mac needs to know it.
type Pod struct {
	Namespace, Name string
	Deleted         bool // it is to go
	Finished        bool // its phase is terminal
	Runs            bool // its kubelet has started it and reports it: it has a virtual machine
}

// Wanted reports whether a Pod is to have its virtual machine.
func (p Pod) Wanted() bool { return !p.Deleted && !p.Finished }

// MaxVMs is how many virtual machines with macOS one Mac runs: its kernel counts them.
const MaxVMs = 2

// TooManyVMs is what tart says of one more.
const TooManyVMs = "The number of VMs exceeds the system limit"

// VM is the name of the virtual machine of a Pod: at most 63 characters of
// namespace and name; a longer one is cut and ends in a digest.
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
