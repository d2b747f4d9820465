package kube

import (
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Seed is the content of a new cluster: no Nodes, the usual namespaces, and one Secret.
type Seed struct {
	ClusterUID string    // the uid of kube-system, which identifies a cluster
	CreatedAt  time.Time // of everything in it
	Secret     *Secret   // nil = none
}

// Secret is one value under one key.
type Secret struct {
	Namespace, Name, Key, Value string
}

// Create writes the state of a new cluster into dir, before any API serves it.
func Create(dir string, seed Seed) error {
	kinds := newCatalogue()
	objects := newState(dir, kinds)
	wanted := builtInNamespaces()
	if s := seed.Secret; s != nil {
		if !validFile(s.Namespace) || !validFile(s.Name) || kinds.named(secrets).validName(s.Name, false) != nil {
			return fmt.Errorf("create the sandbox's cluster: %q in namespace %q cannot be the name of a Secret", s.Name, s.Namespace)
		}
		wanted = append(wanted, s.Namespace)
	}
	if err := errors.Join(makeFolders(dir, kinds), servePolicies(dir), objects.begin()); err != nil {
		return err
	}
	return errors.Join(fill(objects, seed, wanted), objects.end())
}

// servePolicies makes the cluster one of Kubernetes 1.30 or later, which has policies; one without
// these folders is older. Policies are stored, but not enforced.
func servePolicies(dir string) error {
	return errors.Join(os.MkdirAll(filepath.Join(dir, policies), 0o700), os.MkdirAll(filepath.Join(dir, policyBindings), 0o700))
}

func fill(objects *state, seed Seed, wanted []string) error {
	for _, name := range wanted {
		if present, err := objects.peek(namespaces, "", name); err != nil || present != nil {
			continue
		}
		o := newNamespace(objects.kinds, name, seed.CreatedAt)
		if name == "kube-system" && seed.ClusterUID != "" {
			o.SetUID(types.UID(seed.ClusterUID))
		}
		if err := objects.put(namespaces, o); err != nil {
			return err
		}
	}
	if seed.Secret == nil {
		return nil
	}
	o := newObject(objects.kinds.named(secrets), seed.Secret.Namespace, seed.Secret.Name, seed.CreatedAt)
	o.Object["type"] = "Opaque"
	o.Object["data"] = map[string]any{seed.Secret.Key: base64.StdEncoding.EncodeToString([]byte(seed.Secret.Value))}
	return objects.put(secrets, o)
}

func newNamespace(kinds catalogue, name string, created time.Time) *object {
	k := kinds.named(namespaces)
	o := newObject(k, "", name, created)
	k.fill(o)
	return o
}

// Secret returns the value under a key of a Secret, if it exists.
func (a *API) Secret(namespace, name, key string) (value string, found bool, err error) {
	unlock, err := a.lock.Lock()
	if err != nil {
		return "", false, err
	}
	defer unlock()
	secret, err := a.state.peek(secrets, namespace, name)
	if err != nil || secret == nil || at(secret, "data", key) == nil {
		return "", false, err
	}
	value, found = secretValue(secret, key)
	if !found {
		return "", false, fmt.Errorf("%s: the value of %q is not base64; write plain values under stringData",
			a.state.path(secrets, namespace, name), key)
	}
	return value, true, nil
}

// SecretFile returns the path of a Secret's file, which may be missing.
func (a *API) SecretFile(namespace, name string) string {
	return a.state.path(secrets, namespace, name)
}
