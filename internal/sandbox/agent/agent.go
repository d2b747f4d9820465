// Package agent is the data that simulated Macs and the simulated cluster share: the kubelets that run
// on the Macs, and the Pods that the cluster assigns to them. Neither side imports the other; the
// world passes these values between them.
package agent

import (
	"crypto/sha256"
	"encoding/hex"
	"time"
)

// Kubelet is one run of a kubelet on a Mac, as the cluster sees it. A process that exited before it
// registered is not one.
type Kubelet struct {
	ServerID string    `json:"server_id"`
	Job      string    `json:"job"` // label of the launchd job that runs it
	PID      int       `json:"pid"`
	Started  time.Time `json:"started"`
	Ended    time.Time `json:"ended,omitzero"` // zero: it is running

	Node       string            `json:"node"` // --node-name
	ProviderID string            `json:"provider_id,omitempty"`
	Labels     map[string]string `json:"labels,omitempty"` // --node-labels
	Address    string            `json:"address,omitempty"`
	Metrics    string            `json:"metrics,omitempty"` // where its metrics listen, as ADDRESS:PORT or :PORT
	CPU        int               `json:"cpu"`
	MemoryMB   int               `json:"memory_mb"`
	MaxPods    int               `json:"max_pods"`
	GC         bool              `json:"gc"`               // it deletes virtual machines without a Pod
	Version    string            `json:"version"`          // reported by the binary
	Token      string            `json:"token"`            // of its kubeconfig; the cluster decides whether to accept it
	NoVMs      string            `json:"no_vms,omitempty"` // why no virtual machine can start on its Mac; "" = they can
}

// Runs reports whether the process is running.
func (k Kubelet) Runs() bool { return k.Ended.IsZero() }

// Pod is a Pod of a Node, with what its Mac needs.
type Pod struct {
	Namespace, Name string
	Deleted         bool // it is being deleted
	Finished        bool // its phase is terminal
	Runs            bool // its kubelet has started it and reports it: it has a virtual machine
}

// Wanted reports whether a Pod should have its virtual machine.
func (p Pod) Wanted() bool { return !p.Deleted && !p.Finished }

// MaxVMs is how many macOS virtual machines one Mac can run: its kernel counts them.
const MaxVMs = 2

// TooManyVMs is tart's message for one more.
const TooManyVMs = "The number of VMs exceeds the system limit"

// VM returns the name of the virtual machine of a Pod: namespace and name, at most 63 characters; a
// longer one is cut and ends in a digest.
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
