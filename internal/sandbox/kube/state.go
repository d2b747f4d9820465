package kube

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/macfleet/macfleet/internal/sandbox/cloud"
	"github.com/macfleet/macfleet/internal/sandbox/store"
)

// state is the folder of objects. Its methods are called with the API's lock held.
type state struct {
	dir string
}

// path gives the file of an object. The names come checked by validName.
func (s *state) path(resource, namespace, name string) string {
	return filepath.Join(s.dir, resource, namespace, name+".json")
}

// get gives an object, or nil if there is none.
func (s *state) get(resource, namespace, name string) (*unstructured.Unstructured, error) {
	if !validName(name) || namespace != "" && !validName(namespace) {
		return nil, nil
	}
	path := s.path(resource, namespace, name)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the sandbox's object: %w", err)
	}
	var content map[string]any
	if err := store.Decode(path, data, &content); err != nil {
		return nil, err
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(withType(content, resource)); err != nil {
		return nil, fmt.Errorf("%s: not a Kubernetes object: %w; correct the file or delete it", path, err)
	}
	if object.GetName() != name {
		return nil, fmt.Errorf("%s: its name is %q; name the file after the object", path, object.GetName())
	}
	complete(object, resource, namespace)
	return object, nil
}

// complete adds what a person who writes an object by hand leaves out and a server never does.
func complete(object *unstructured.Unstructured, resource, namespace string) {
	object.SetNamespace(namespace)
	if object.GetUID() == "" {
		sum := sha256.Sum256([]byte(resource + "/" + namespace + "/" + object.GetName()))
		object.SetUID(uid(cloud.FormatUUID([16]byte(sum[:16]))))
	}
	if object.GetResourceVersion() == "" {
		object.SetResourceVersion("1")
	}
	if resource == secrets {
		mergeStringData(object)
	}
}

// list gives the objects of a resource, of one namespace or ("") of all, in the order of their keys.
func (s *state) list(resource, namespace string) ([]*unstructured.Unstructured, error) {
	folders := []string{namespace}
	if kinds()[resource].namespaced && namespace == "" {
		var err error
		if folders, err = names(filepath.Join(s.dir, resource), fs.FileMode.IsDir, ""); err != nil {
			return nil, err
		}
	}
	var objects []*unstructured.Unstructured
	for _, folder := range folders {
		files, err := names(filepath.Join(s.dir, resource, folder), fs.FileMode.IsRegular, ".json")
		if err != nil {
			return nil, err
		}
		for _, name := range files {
			object, err := s.get(resource, folder, name)
			if err != nil {
				return nil, err
			}
			if object != nil {
				objects = append(objects, object)
			}
		}
	}
	return objects, nil
}

// names gives the names in a folder, without suffix, that validName allows; none if the folder is missing.
func names(folder string, want func(fs.FileMode) bool, suffix string) ([]string, error) {
	entries, err := os.ReadDir(folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list the sandbox's objects: %w", err)
	}
	var found []string
	for _, entry := range entries {
		name, ok := strings.CutSuffix(entry.Name(), suffix)
		if ok && want(entry.Type()) && validName(name) {
			found = append(found, name)
		}
	}
	slices.Sort(found)
	return found, nil
}

// put writes an object under the next resource version.
func (s *state) put(resource string, object *unstructured.Unstructured) error {
	version, err := s.raise()
	if err != nil {
		return err
	}
	object.SetResourceVersion(strconv.FormatUint(version, 10))
	path := s.path(resource, object.GetNamespace(), object.GetName())
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("write the sandbox's object: %w", err)
	}
	return store.WriteJSON(path, object.Object)
}

func (s *state) remove(resource string, object *unstructured.Unstructured) error {
	if _, err := s.raise(); err != nil {
		return err
	}
	if err := os.Remove(s.path(resource, object.GetNamespace(), object.GetName())); err != nil {
		return fmt.Errorf("delete the sandbox's object: %w", err)
	}
	return nil
}

// version gives the resource version of the newest write.
func (s *state) version() (uint64, error) {
	path := filepath.Join(s.dir, "resource-version")
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 1, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read the sandbox's resource version: %w", err)
	}
	version, err := strconv.ParseUint(strings.TrimSpace(string(data)), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s: not a number; write one into it that is higher than any resourceVersion: %w", path, err)
	}
	return version, nil
}

func (s *state) raise() (uint64, error) {
	version, err := s.version()
	if err != nil {
		return 0, err
	}
	version++
	return version, store.WriteFile(filepath.Join(s.dir, "resource-version"), fmt.Appendln(nil, version))
}
