package kube

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/macfleet/macfleet/internal/sandbox/agent"
)

// settlePods does what the kubelets do with the Pods of their Nodes: start them, and end deleted ones.
// A Pod of a silent kubelet is unchanged.
func (a *API) settlePods(known *memory, own preferences, now time.Time) error {
	all, err := a.state.list(pods, "")
	if err != nil {
		return err
	}
	runs := map[string]int{} // by Node: the number of its Pods' virtual machines
	for _, pod := range all {
		if running(pod) {
			runs[textAt(pod, "spec", "nodeName")]++
		}
	}
	tenants := map[string]bool{}
	for _, pod := range all {
		node := textAt(pod, "spec", "nodeName")
		b := a.beats[node]
		// Pods with several containers or init containers are ignored.
		if b == nil || b.live == nil || len(itemsAt(pod, "spec", "containers")) != 1 || len(itemsAt(pod, "spec", "initContainers")) > 0 {
			continue
		}
		if may, err := b.live.mayPods(pod.GetNamespace()); err != nil {
			return err
		} else if !may {
			continue // the kubelet sees the Pod, but its writes are refused
		}
		tenants[b.live.ServerID] = true
		switch {
		case finished(pod) && (pod.GetDeletionTimestamp() == nil || known.OldBug[b.live.ServerID]):
		case pod.GetDeletionTimestamp() != nil:
			if known.lingers(b.live.ServerID) {
				continue
			}
			if running(pod) {
				runs[node]--
			}
			err = a.endPod(pod, own)
		default:
			why := cmp.Or(known.NoVMs[b.live.ServerID], b.live.NoVMs)
			if !running(pod) && why == "" {
				if runs[node] < agent.MaxVMs {
					runs[node]++
				} else {
					why = "tart run: " + agent.TooManyVMs
				}
			}
			err = a.startPod(pod, b.live, why, own, now)
		}
		if err != nil {
			return fmt.Errorf("the Pod %s: %w", key(pod), err)
		}
	}
	return a.noteTenants(tenants)
}

// running reports whether a Pod's virtual machine runs, according to its kubelet.
func running(pod *object) bool { return textAt(pod, "status", "phase") == "Running" }

// tenantsFile lists the servers whose kubelets have Pods: a Mac reads it before it asks for them.
const tenantsFile = "tenants.json"

func (a *API) noteTenants(tenants map[string]bool) error {
	noted, err := a.tenants.read(filepath.Join(a.state.dir, tenantsFile), func() map[string]bool { return nil })
	if err != nil || maps.Equal(noted, tenants) {
		return err
	}
	return a.state.keep(tenantsFile, tenants)
}

// HasPods reports, without a lock, whether a server's kubelet had Pods at the cluster's last update.
func (a *API) HasPods(serverID string) (bool, error) {
	var noted map[string]bool
	err := a.state.memo(tenantsFile, &noted)
	return noted[serverID], err
}

// endPod stops the virtual machine of a Pod, removes the finalizer that kept the Pod, and deletes it
// at once.
func (a *API) endPod(pod *object, own preferences) error {
	rest := slices.DeleteFunc(slices.Clone(pod.GetFinalizers()), func(name string) bool { return ownFinalizer(name, own) })
	if len(rest) == 0 {
		return a.state.remove(pods, pod)
	}
	if len(rest) == len(pod.GetFinalizers()) && numberAt(pod, "metadata", "deletionGracePeriodSeconds") == 0 {
		return nil
	}
	left := pod.DeepCopy()
	left.SetFinalizers(rest)
	none := int64(0)
	left.SetDeletionGracePeriodSeconds(&none)
	return a.state.put(pods, left)
}

// ownFinalizer reports whether a finalizer is the kubelet's: its prefix depends on the build.
func ownFinalizer(name string, own preferences) bool {
	return name == own.VMFinalizer || strings.HasSuffix(name, "/vm-cleanup")
}

// startPod starts a Pod's virtual machine, or sets the reason for the failure in the Pod's status.
func (a *API) startPod(pod *object, m *member, why string, own preferences, now time.Time) error {
	phase, reason := textAt(pod, "status", "phase"), textAt(pod, "status", "reason")
	if why == "" && phase == "Running" || why != "" && (phase == "Running" || reason == createFailed && textAt(pod, "status", "message") == why) {
		return nil
	}
	started := pod.DeepCopy()
	container := map[string]any{"name": itemsAt(pod, "spec", "containers")[0]["name"], "image": itemsAt(pod, "spec", "containers")[0]["image"], "imageID": "", "restartCount": int64(0)}
	status := map[string]any{"phase": "Running", "qosClass": "BestEffort", "hostIP": m.Address, "podIP": podIP(pod), "startTime": stampText(now)}
	ready := "True"
	if why != "" {
		ready = "False"
		status["phase"], status["reason"], status["message"] = "Pending", createFailed, why
		delete(status, "podIP")
		container["ready"] = false
		container["state"] = map[string]any{"waiting": map[string]any{"reason": createFailed, "message": why}}
	} else {
		container["ready"], container["started"] = true, true
		container["state"] = map[string]any{"running": map[string]any{"startedAt": stampText(now)}}
		status["podIPs"] = []any{map[string]any{"ip": status["podIP"]}}
	}
	status["containerStatuses"] = []any{container}
	for _, kind := range []string{"Initialized", "Ready", "ContainersReady", "PodScheduled"} {
		value := ready
		if kind == "PodScheduled" || kind == "Initialized" {
			value = "True"
		}
		conditions, _ := status["conditions"].([]any)
		status["conditions"] = append(conditions, map[string]any{"type": kind, "status": value, "lastTransitionTime": stampText(now)})
	}
	started.Object["status"] = status
	if !slices.ContainsFunc(pod.GetFinalizers(), func(name string) bool { return ownFinalizer(name, own) }) {
		started.SetFinalizers(append(started.GetFinalizers(), own.VMFinalizer))
	}
	return a.state.put(pods, started)
}

// createFailed is tart-kubelet's reason for a Pod whose virtual machine did not start.
const createFailed = "TartCreateFailed"

// podIP returns the address of a Pod's virtual machine in the Mac's network.
func podIP(pod *object) string {
	sum := sha256.Sum256([]byte(key(pod)))
	return fmt.Sprintf("192.168.64.%d", 2+int(sum[0])%250)
}

// Pods returns the Pods of a Node for its Mac.
func (a *API) Pods(node string) ([]agent.Pod, error) {
	unlock, err := a.lock.Lock()
	if err != nil {
		return nil, err
	}
	defer unlock()
	all, err := a.state.list(pods, "")
	var found []agent.Pod
	for _, pod := range all {
		if textAt(pod, "spec", "nodeName") == node {
			found = append(found, agent.Pod{
				Namespace: pod.GetNamespace(), Name: pod.GetName(), Deleted: pod.GetDeletionTimestamp() != nil, Finished: finished(pod), Runs: running(pod),
			})
		}
	}
	return found, err
}
