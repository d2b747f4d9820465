package sandbox

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/macfleet/macfleet/internal/sandbox/agent"
	"github.com/macfleet/macfleet/internal/sandbox/cloud"
	"github.com/macfleet/macfleet/internal/sandbox/mac"
	"github.com/macfleet/macfleet/internal/sandbox/store"
)

// agentsFile says which kubelets run on the Macs, by server id: the cluster reads it. It lies in the
// cluster's folder and is changed under a lock of its own, since Macs write it while they are
// locked themselves.
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

// replace notes the kubelets of one server.
func (a *agents) replace(server cloud.Server, kubelets []agent.Kubelet) error {
	unlock, err := a.lock.Lock()
	if err != nil {
		return fmt.Errorf("note the kubelets of %s: %w", server.Name, err)
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
	}
}

// podCluster is what a cluster that knows Pods offers to the Macs.
type podCluster interface {
	// Pods gives the Pods of a kubelet's Node, and an error where the cluster refuses its token.
	Pods(agent.Kubelet) ([]agent.Pod, error)
	// PutPod makes a Pod that runs on the Node of a server, or fails where there is no such Node.
	PutPod(serverID, namespace, name string) error
}

// errNoPods says that the cluster of this world has none.
var errNoPods = errors.New("the simulated cluster knows no Pods")

func (w *World) pods() (podCluster, error) {
	if cluster, ok := any(w.kube).(podCluster); ok {
		return cluster, nil
	}
	return nil, errNoPods
}

func (w *World) podsOf(k agent.Kubelet) ([]agent.Pod, error) {
	cluster, err := w.pods()
	if err != nil {
		return nil, err
	}
	return cluster.Pods(k)
}

// RunPod lets a Pod run on a host: its virtual machine on the Mac and, where the cluster knows Pods,
// its object there.
func (w *World) RunPod(host, namespace, name string) error {
	server, err := w.find(host)
	if err != nil {
		return err
	}
	machine, err := w.macs.get(server)
	if err != nil {
		return err
	}
	if err := machine.StartVM(agent.Pod{Namespace: namespace, Name: name}.VM()); err != nil {
		return fmt.Errorf("run Pod %s/%s on %s: %w", namespace, name, server.Name, err)
	}
	cluster, err := w.pods()
	if errors.Is(err, errNoPods) {
		return nil
	}
	if err == nil {
		err = cluster.PutPod(server.ID, namespace, name)
	}
	if err != nil {
		return fmt.Errorf("run Pod %s/%s on %s: %w", namespace, name, server.Name, err)
	}
	return nil
}
