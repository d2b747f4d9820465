package kube

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Seed is what a new cluster holds: no Nodes, the namespaces every cluster has, and one Secret.
type Seed struct {
	ClusterUID string    // the uid of kube-system, by which a cluster is known
	CreatedAt  time.Time // of everything in it
	Secret     *Secret   // nil = none
}

// Secret is one value under one key.
type Secret struct {
	Namespace, Name, Key, Value string
}

// Create writes the state of a new cluster into dir, which no API serves yet.
func Create(dir string, seed Seed) error {
	objects := &state{dir: dir}
	wanted := []string{"default", "kube-system"}
	if s := seed.Secret; s != nil {
		if !validName(s.Namespace) || !validName(s.Name) {
			return fmt.Errorf("make the sandbox's cluster: %q in namespace %q cannot be the name of a Secret", s.Name, s.Namespace)
		}
		if s.Namespace != "default" && s.Namespace != "kube-system" {
			wanted = append(wanted, s.Namespace)
		}
	}
	for _, kind := range kinds() {
		if err := os.MkdirAll(filepath.Join(dir, kind.resource), 0o700); err != nil {
			return fmt.Errorf("make the sandbox's cluster: %w", err)
		}
	}
	for _, name := range wanted {
		object := newObject("Namespace", "", name, seed.CreatedAt)
		object.Object["spec"] = map[string]any{"finalizers": []any{"kubernetes"}}
		object.Object["status"] = map[string]any{"phase": "Active"}
		object.SetLabels(map[string]string{"kubernetes.io/metadata.name": name})
		complete(object, namespaces, "")
		if name == "kube-system" && seed.ClusterUID != "" {
			object.SetUID(uid(seed.ClusterUID))
		}
		if err := objects.put(namespaces, object); err != nil {
			return err
		}
	}
	if seed.Secret == nil {
		return nil
	}
	object := newObject("Secret", seed.Secret.Namespace, seed.Secret.Name, seed.CreatedAt)
	object.Object["type"] = "Opaque"
	object.Object["data"] = map[string]any{seed.Secret.Key: base64.StdEncoding.EncodeToString([]byte(seed.Secret.Value))}
	complete(object, secrets, seed.Secret.Namespace)
	return objects.put(secrets, object)
}

func newObject(kind, namespace, name string, created time.Time) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": kind}}
	object.SetName(name)
	object.SetNamespace(namespace)
	_ = unstructured.SetNestedField(object.Object, created.UTC().Format(time.RFC3339), "metadata", "creationTimestamp")
	return object
}

// Secret gives the value under a key of a Secret, if there is one.
func (a *API) Secret(namespace, name, key string) (value string, found bool, err error) {
	unlock, err := a.lock.Lock()
	if err != nil {
		return "", false, err
	}
	defer unlock()
	object, err := a.state.get(secrets, namespace, name)
	if err != nil || object == nil {
		return "", false, err
	}
	encoded, found, err := unstructured.NestedString(object.Object, "data", key)
	if err != nil || !found {
		return "", false, err
	}
	decoded, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return "", false, fmt.Errorf("%s: the value of %q is not base64; write plain values under stringData",
			a.state.path(secrets, namespace, name), key)
	}
	return string(decoded), true, nil
}

// SecretFile gives the file that a Secret lies in, or would.
func (a *API) SecretFile(namespace, name string) string {
	return a.state.path(secrets, namespace, name)
}
