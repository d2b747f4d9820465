package kube

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/macfleet/macfleet/internal/sandbox/agent"
	"github.com/macfleet/macfleet/internal/sandbox/store"
)

const (
	agentsFile      = "agents.json"      // written by the Macs: server id -> the runs of its kubelets
	memoryFile      = "controllers.json" // state of the cluster's controllers and the kubelets
	preferencesFile = "preferences.json" // behaviour that varies between clusters
)

// memory is the state that no object shows.
type memory struct {
	Runs map[string]*run `json:"runs,omitempty"` // by runKey; of those that the Macs report

	// By server id: incidents.
	OldBug map[string]bool   `json:"old_bug,omitempty"` // its kubelet ignores terminated Pods, even deleted ones
	NoVMs  map[string]string `json:"no_vms,omitempty"`  // why its kubelet cannot start virtual machines
	Bare   map[string]bool   `json:"bare,omitempty"`    // its kubelet's heartbeats write only the Node's status, as old builds do
	// How often its kubelet still skips deleted Pods before it ends them; below 0: always.
	Lingers map[string]int `json:"lingers,omitempty"`
}

// run is one process of a kubelet as the cluster sees it.
type run struct {
	Registered bool      `json:"registered,omitempty"` // it has created or taken over its Node
	Refused    time.Time `json:"refused,omitzero"`     // since when its token is invalid or lacks rights
	Unleased   time.Time `json:"unleased,omitzero"`    // since when it may not renew its Lease; its start: it never could
	Silent     time.Time `json:"silent,omitzero"`      // since when its heartbeats are dropped
	Strange    time.Time `json:"strange,omitzero"`     // since when someone's changes to its Node's labels and taints await its heartbeat
}

// preferences are for a person to edit.
type preferences struct {
	// DeletedNodeReturns is "at-restart" of its kubelet, or "at-heartbeat". Both are reported for
	// tart-kubelet.
	DeletedNodeReturns string `json:"deleted_node_returns"`
	// VMFinalizer is the finalizer that a kubelet sets on its Pods.
	VMFinalizer string `json:"vm_finalizer"`
}

func defaultPreferences() preferences {
	return preferences{DeletedNodeReturns: "at-restart", VMFinalizer: "tart-kubelet.tuist.dev/vm-cleanup"}
}

func runKey(k agent.Kubelet) string {
	return fmt.Sprintf("%s/%s/%d/%d", k.ServerID, k.Job, k.PID, k.Started.UnixNano())
}

// cached is a JSON file that is read again only after a change.
type cached[T any] struct {
	stamp stamp
	value T
}

// read returns the content of the file at path, or none() if it is missing.
func (c *cached[T]) read(path string, none func() T) (T, error) {
	var status unix.Stat_t
	if err := unix.Lstat(path, &status); errors.Is(err, fs.ErrNotExist) {
		c.stamp = stamp{}
		return none(), nil
	} else if err != nil {
		return none(), fmt.Errorf("read sandbox state %s: %w", path, err)
	}
	now := stampOf(&status)
	if c.stamp == now {
		return c.value, nil
	}
	value := none()
	if err := store.ReadJSON(path, &value); err != nil {
		return none(), err
	}
	c.stamp = stamp{}
	if time.Now().UnixNano()-now.changed > int64(settled) {
		c.stamp, c.value = now, value
	}
	return value, nil
}

// kubelets returns the runs that the Macs report, by server and in the order of their start.
func (a *API) kubelets() ([]agent.Kubelet, error) {
	byServer, err := a.agents.read(filepath.Join(a.state.dir, agentsFile), func() map[string][]agent.Kubelet { return nil })
	if err != nil {
		return nil, err
	}
	var all []agent.Kubelet
	for _, id := range slices.Sorted(maps.Keys(byServer)) {
		all = append(all, byServer[id]...)
	}
	slices.SortStableFunc(all, func(x, y agent.Kubelet) int { return x.Started.Compare(y.Started) })
	return all, nil
}

// remembered returns the memory for the caller to change.
func (a *API) remembered() (*memory, error) {
	known := &memory{}
	return known, a.state.memo(memoryFile, known)
}

func (a *API) preferences() (preferences, error) {
	own := defaultPreferences()
	return own, a.state.memo(preferencesFile, &own)
}

func (m *memory) of(k agent.Kubelet) *run {
	if m.Runs == nil {
		m.Runs = map[string]*run{}
	}
	known := m.Runs[runKey(k)]
	if known == nil {
		known = &run{}
		m.Runs[runKey(k)] = known
	}
	return known
}

// forget removes the runs that no Mac reports any more, and reports whether there were any.
func (m *memory) forget(present []agent.Kubelet) bool {
	if len(m.Runs) <= len(present) {
		return false
	}
	kept := map[string]*run{}
	for _, k := range present {
		if known := m.Runs[runKey(k)]; known != nil {
			kept[runKey(k)] = known
		}
	}
	forgot := len(kept) != len(m.Runs)
	m.Runs = kept
	return forgot
}
