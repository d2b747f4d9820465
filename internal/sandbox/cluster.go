package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/macfleet/macfleet/internal/sandbox/kube"
	"github.com/macfleet/macfleet/internal/sandbox/store"
)

// Cluster is the name that stands for the cluster, instead of a host's, in incidents of the user's access to it.
const Cluster = "kubernetes"

// ClusterIncidents returns the incidents of the user's access to the cluster.
func ClusterIncidents() []Incident {
	var all []Incident
	for _, known := range kubeconfigTroubles() {
		all = append(all, known.Incident)
	}
	return all
}

// access is what the user's kubeconfig leads to. A person may create the file; without it, to the world's cluster.
type access struct {
	// Kubeconfig may be "revoked": the cluster refuses its credentials; or "other-cluster": it leads to another one.
	Kubeconfig string `json:"kubeconfig"`
}

const (
	revokedAccess = "revoked"
	otherAccess   = "other-cluster"
)

// otherUID identifies the other cluster, which has the same SSH key, is not prepared and has no Node.
const otherUID = "0e1f2a3b-0000-4000-8000-00000000000c"

// front serves the cluster that the user's kubeconfig leads to. Kubelets reach their cluster without it.
type front struct {
	world *World
	opens sync.Mutex
	other *kube.API // nil: not opened yet
}

// ServeHTTP answers a request of the user.
func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	own, err := f.world.access()
	if err == nil && own.Kubeconfig == otherAccess {
		var other *kube.API
		if other, err = f.another(); err == nil {
			other.ServeHTTP(w, r)
			return
		}
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	if own.Kubeconfig == revokedAccess && r.Header.Get("Authorization") == "Bearer "+f.world.settings.KubernetesToken {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer revoked")
	}
	f.world.kube.ServeHTTP(w, r)
}

// access reads what the user's kubeconfig leads to.
func (w *World) access() (access, error) {
	path := filepath.Join(w.dir, accessFile)
	var own access
	if err := store.ReadJSON(path, &own); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return own, err
	}
	switch own.Kubeconfig {
	case "", revokedAccess, otherAccess:
		return own, nil
	}
	return own, fmt.Errorf("%s: kubeconfig is %q; it can be %q or %q", path, own.Kubeconfig, revokedAccess, otherAccess)
}

// another returns the other cluster, which is created when it is used first.
func (f *front) another() (*kube.API, error) {
	f.opens.Lock()
	defer f.opens.Unlock()
	if f.other != nil {
		return f.other, nil
	}
	dir := filepath.Join(f.world.dir, otherKubeFolder)
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		seed := kube.Seed{ClusterUID: otherUID, CreatedAt: firstOrder()}
		if seed.Secret, err = f.world.keySecret(); err != nil {
			return nil, err
		}
		if err := kube.Create(dir, seed); err != nil {
			return nil, err
		}
	}
	var err error
	f.other, err = kube.New(dir, kube.Options{Token: f.world.settings.KubernetesToken})
	return f.other, err
}

// keySecret returns the Secret that holds the fleet's SSH key; nil: it is elsewhere.
func (w *World) keySecret() (*kube.Secret, error) {
	if !strings.HasPrefix(w.settings.SSHKeyRef, kubernetesScheme) {
		return nil, nil
	}
	namespace, name, key, err := splitKubernetes(w.settings.SSHKeyRef)
	if err != nil {
		return nil, err
	}
	value, err := w.SSHKey()
	return &kube.Secret{Namespace: namespace, Name: name, Key: key, Value: value}, err
}

// kubeconfigTroubles are the incidents of the user's access to the cluster.
func kubeconfigTroubles() []trouble {
	leads := func(name, summary, to string) trouble {
		return trouble{
			Incident: Incident{name, summary}, place: Cluster, remember: nothing,
			cause: func(_ context.Context, v *victim) error {
				return store.WriteJSON(filepath.Join(v.world.dir, accessFile), access{to})
			},
			lasts: func(_ context.Context, v *victim) (bool, error) {
				own, err := v.world.access()
				return own.Kubeconfig == to, err
			},
			cure: func(_ context.Context, v *victim) error {
				if own, err := v.world.access(); err != nil || own.Kubeconfig != to {
					return err
				}
				return os.Remove(filepath.Join(v.world.dir, accessFile))
			},
		}
	}
	return []trouble{
		leads("revoked-kubeconfig", "someone revoked the credentials of the kubeconfig: the cluster refuses every request", revokedAccess),
		leads("wrong-cluster", "the kubeconfig leads to another cluster, which has none of the fleet's Nodes", otherAccess),
	}
}
