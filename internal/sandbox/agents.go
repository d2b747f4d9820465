package sandbox

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/macfleet/macfleet/internal/sandbox/agent"
	"github.com/macfleet/macfleet/internal/sandbox/cloud"
	"github.com/macfleet/macfleet/internal/sandbox/kube"
	"github.com/macfleet/macfleet/internal/sandbox/mac"
	"github.com/macfleet/macfleet/internal/sandbox/store"
)

// agentsFile holds the kubelets that run on the Macs, by server id, for the cluster to read. It has a
// separate lock, because Macs write it while they hold their own.
const (
	agentsFile = "agents.json"
	agentsLock = "agents.lock"
)

// agents is the file of all kubelets.
type agents struct {
	path string
	lock *store.Locker
}

func newAgents(dir string) *agents {
	folder := filepath.Join(dir, kubeFolder)
	return &agents{filepath.Join(folder, agentsFile), store.NewLocker(filepath.Join(folder, agentsLock))}
}

// replace records the kubelets of one server.
func (a *agents) replace(server cloud.Server, kubelets []agent.Kubelet) error {
	unlock, err := a.lock.Lock()
	if err != nil {
		return fmt.Errorf("record the kubelets of %s: %w", server.Name, err)
	}
	defer unlock()
	all := map[string][]agent.Kubelet{}
	if err := store.ReadJSON(a.path, &all); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	delete(all, server.ID)
	for _, k := range kubelets {
		k.ServerID, k.Address = server.ID, cmp.Or(k.Address, server.IP.String())
		all[server.ID] = append(all[server.ID], k)
	}
	return store.WriteJSON(a.path, all)
}

// outside is the world around a Mac.
func (w *World) outside(server cloud.Server) mac.Outside {
	return mac.Outside{
		Download: w.Download,
		Kubelets: func(all []agent.Kubelet) error { return w.agents.replace(server, all) },
		Pods:     w.podsOf,
		Runners:  w.github.For(server.ID),
		Tailnets: reaches{w, server.ID},
		MayHavePods: func() bool {
			may, err := w.kube.HasPods(server.ID)
			return may || err != nil // an error is reported when the Pods are read
		},
	}
}

// Optional functions of a cluster. A cluster without Pods has none of them.
type (
	podLister interface {
		Pods(node string) ([]agent.Pod, error)
	}
	podMaker interface {
		// PutPod creates a Pod that is bound to a Node.
		PutPod(node, namespace, name string) error
	}
	kubeletJudge interface {
		// AcceptsKubelet reports whether the cluster accepts a kubelet's token.
		AcceptsKubelet(agent.Kubelet) (bool, error)
	}
)

// errNoPods is returned by a cluster that does not implement Pods.
var errNoPods = errors.New("the cluster reports no Pods")

// podsOf returns the Pods of a kubelet's Node.
func (w *World) podsOf(k agent.Kubelet) ([]agent.Pod, error) {
	if judge, ok := any(w.kube).(kubeletJudge); ok {
		if accepted, err := judge.AcceptsKubelet(k); err != nil || !accepted {
			return nil, errors.Join(errNoPods, err)
		}
	}
	cluster, ok := any(w.kube).(podLister)
	if !ok {
		return nil, errNoPods
	}
	return cluster.Pods(k.Node)
}

// RunPod runs a Pod on a host: its virtual machine on the Mac and, if the cluster has Pods, its object
// there.
func (w *World) RunPod(host, namespace, name string) error {
	server, err := w.find(host)
	if err != nil {
		return err
	}
	machine, err := w.macs.get(server)
	if err != nil {
		return err
	}
	pod := agent.Pod{Namespace: namespace, Name: name}
	made, err := w.putPod(machine, pod)
	if err == nil && made {
		if err = w.own(namespace, name); err == nil {
			err = w.taken(machine, pod)
		}
		if err == nil {
			err = machine.StartPod(pod)
		}
	} else if err == nil {
		err = machine.StartVM(pod.VM())
	}
	if err != nil {
		return fmt.Errorf("run Pod %s/%s on %s: %w", namespace, name, server.Name, err)
	}
	return nil
}

// taken returns an error for a Pod that the Mac's kubelet ignores: it would never start, and never be
// deleted.
func (w *World) taken(machine *mac.Machine, pod agent.Pod) error {
	all, err := machine.Kubelets()
	if err != nil {
		return err
	}
	for _, k := range all {
		if !k.Runs() {
			continue
		}
		pods, err := w.podsOf(k)
		if errors.Is(err, errNoPods) {
			continue // its token is not accepted, so it sees no Pods
		}
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(pods, func(one agent.Pod) bool { return one.VM() == pod.VM() && one.Runs }) {
			return fmt.Errorf("its kubelet does not start it: check the kubelet's rights in the namespace %s, and the Pod's status", pod.Namespace)
		}
	}
	return nil
}

// own gives a Pod a controller, which replaces it elsewhere after an eviction.
func (w *World) own(namespace, name string) error {
	return w.kube.Edit(kube.Object{Resource: "pods", Namespace: namespace, Name: name}, func(content map[string]any) map[string]any {
		if metadata, ok := content["metadata"].(map[string]any); ok {
			metadata["labels"] = map[string]any{"app": name}
			metadata["ownerReferences"] = []any{map[string]any{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "uid": "of-" + name, "controller": true}}
		}
		return content
	})
}

// Linger creates a host's kubelet ignore a deleted Pod that many times before it ends it; a negative
// number means for ever.
func (w *World) Linger(host string, looks int) error {
	server, err := w.find(host)
	if err != nil {
		return err
	}
	return w.kube.Linger(server.ID, looks)
}

// putPod creates the object of a Pod on the Node of a Mac's kubelet, if the cluster has Pods.
func (w *World) putPod(machine *mac.Machine, pod agent.Pod) (made bool, err error) {
	cluster, ok := any(w.kube).(podMaker)
	if !ok {
		return false, nil
	}
	all, err := machine.Kubelets()
	if err != nil {
		return false, err
	}
	i := slices.IndexFunc(all, agent.Kubelet.Runs)
	if i < 0 {
		return false, errors.New("no kubelet runs on the host")
	}
	return true, cluster.PutPod(all[i].Node, pod.Namespace, pod.Name)
}
