package kube

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/macfleet/macfleet/internal/sandbox/cloud"
	"github.com/macfleet/macfleet/internal/sandbox/store"
)

// state is the folder of objects. Its methods are called with the API's lock held.
//
// The results of peek and list are shared and must not be changed. To change an object, use get or
// copy it.
type state struct {
	dir   string
	kinds catalogue
	files files
	trust trust
	rules map[roleRef]ruled
	ledger
}

func newState(dir string, kinds catalogue) *state {
	return &state{dir: dir, kinds: kinds, files: files{}, rules: map[roleRef]ruled{}, ledger: ledger{path: filepath.Join(dir, "resource-version")}}
}

// path returns the file of an object. validFile has checked the names.
func (s *state) path(resource, namespace, name string) string {
	return filepath.Join(s.dir, resource, namespace, name+".json")
}

// get returns a copy of an object, or nil if it is missing.
func (s *state) get(resource, namespace, name string) (*object, error) {
	shared, err := s.peek(resource, namespace, name)
	if err != nil || shared == nil {
		return nil, err
	}
	return shared.DeepCopy(), nil
}

// peek returns an object that must not be changed, or nil if it is missing.
func (s *state) peek(resource, namespace, name string) (*object, error) {
	if !validFile(name) || namespace != "" && !validFile(namespace) {
		return nil, nil
	}
	path := s.path(resource, namespace, name)
	if known, ok := s.trust.object(path); ok {
		return known, nil
	}
	found, err := s.files.read(path, func(data []byte) (*object, error) {
		return s.decode(path, data, resource, namespace, name)
	})
	if err == nil {
		s.trust.saw(path, found)
	}
	return found, err
}

// decode returns the object in a file, with the fields that a person may leave out.
func (s *state) decode(path string, data []byte, resource, namespace, name string) (*object, error) {
	content, err := jsonObject(data)
	if err != nil {
		var strict map[string]any
		if err := store.Decode(path, data, &strict); err != nil {
			return nil, err // the error names the line
		}
		return nil, fmt.Errorf("%s: %w; fix: correct the file or delete it", path, err)
	}
	if _, ok := content["metadata"].(map[string]any); !ok {
		return nil, fmt.Errorf("%s: not a Kubernetes object: it has no metadata; fix: correct the file or delete it", path)
	}
	found := &object{Object: content}
	found.SetGroupVersionKind(s.kinds.named(resource).gvk())
	if found.GetName() != name {
		return nil, fmt.Errorf("%s: the object's name is %q; fix: name the file after the object", path, found.GetName())
	}
	complete(found, resource, namespace)
	return found, nil
}

func complete(o *object, resource, namespace string) {
	o.SetNamespace(namespace)
	if o.GetUID() == "" {
		sum := sha256.Sum256([]byte(resource + "/" + namespace + "/" + o.GetName()))
		o.SetUID(types.UID(cloud.FormatUUID([16]byte(sum[:16]))))
	}
	if o.GetResourceVersion() == "" {
		o.SetResourceVersion("1")
	}
	if resource == secrets {
		mergeStringData(o)
	}
}

// list returns the objects of a resource in one namespace, or ("") in all, sorted by key. They must
// not be changed.
func (s *state) list(resource, namespace string) ([]*object, error) {
	folders := []string{namespace}
	if s.kinds.named(resource).namespaced && namespace == "" {
		var err error
		if folders, err = s.names(filepath.Join(s.dir, resource), fs.FileMode.IsDir, ""); err != nil {
			return nil, err
		}
	} else if namespace != "" && !validFile(namespace) {
		return nil, nil
	}
	var objects []*object
	for _, folder := range folders {
		found, err := s.names(filepath.Join(s.dir, resource, folder), fs.FileMode.IsRegular, ".json")
		if err != nil {
			return nil, err
		}
		for _, name := range found {
			object, err := s.peek(resource, folder, name)
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

// names returns the valid names in a folder without suffix; none if the folder is missing.
func (s *state) names(folder string, want func(fs.FileMode) bool, suffix string) ([]string, error) {
	if known, ok := s.trust.names(folder); ok {
		return known, nil
	}
	entries, err := os.ReadDir(folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list the sandbox's objects: %w", err)
	}
	var found []string
	for _, entry := range entries {
		name, ok := strings.CutSuffix(entry.Name(), suffix)
		if ok && want(entry.Type()) && validFile(name) {
			found = append(found, name)
		}
	}
	slices.Sort(found)
	s.trust.listed(folder, found)
	return found, nil
}

// put writes an object with the next resource version.
func (s *state) put(resource string, o *object) error {
	version, err := s.raise()
	if err != nil {
		return err
	}
	o.SetResourceVersion(strconv.FormatUint(version, 10))
	path := s.path(resource, o.GetNamespace(), o.GetName())
	if !validFile(o.GetName()) {
		return fmt.Errorf("write the sandbox's object: %q cannot be the name of a file", o.GetName())
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("write the sandbox's object: %w", err)
	}
	s.files.forget(path)
	s.trust.wrote(path, o.DeepCopy(), version)
	return store.WriteJSON(path, o.Object)
}

// remove deletes an object, and records it for watchers.
func (s *state) remove(resource string, o *object) error {
	version, err := s.raise()
	if err != nil {
		return err
	}
	path := s.path(resource, o.GetNamespace(), o.GetName())
	s.files.forget(path)
	s.trust.wrote(path, nil, version)
	if err := os.Remove(path); err != nil {
		return fmt.Errorf("delete the sandbox's object: %w", err)
	}
	return s.bury(resource, o, version)
}

// memo reads a file of the cluster that is not an object; a missing one leaves v unchanged.
func (s *state) memo(name string, v any) error {
	err := store.ReadJSON(filepath.Join(s.dir, name), v)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func (s *state) keep(name string, v any) error {
	return store.WriteJSON(filepath.Join(s.dir, name), v)
}

// encoded returns the JSON of a value that was decoded from JSON, which cannot fail.
func encoded(v any) []byte {
	data, _ := json.Marshal(v)
	return data
}
