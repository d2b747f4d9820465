package kube

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/macfleet/macfleet/internal/sandbox/store"
)

// ledger assigns resource versions. Between begin and end, with the lock held, it counts in memory.
// The file is never behind the assigned versions, so a killed process leaves a gap but no duplicates.
type ledger struct {
	path    string
	version uint64 // of the newest write
	written uint64 // in the file
	raised  bool   // since begin
}

// reserve is how many versions are reserved at once if one is not enough: 500 registering kubelets
// write 1000 objects.
const reserve = 1024

func (l *ledger) begin() error {
	l.raised = false
	data, err := os.ReadFile(l.path)
	if errors.Is(err, fs.ErrNotExist) {
		l.version, l.written = 1, 1
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the sandbox's resource version: %w", err)
	}
	l.version, err = strconv.ParseUint(strings.TrimSpace(string(data)), 10, 64)
	if err != nil {
		return fmt.Errorf("%s: not a number; write one into it that is higher than any resourceVersion: %w", l.path, err)
	}
	l.written = l.version
	return nil
}

// raise returns the next version.
func (l *ledger) raise() (uint64, error) {
	again := l.raised
	l.raised = true
	l.version++
	if l.version <= l.written {
		return l.version, nil
	}
	next := l.version
	if again {
		next += reserve
	}
	return l.version, l.write(next)
}

func (l *ledger) write(version uint64) error {
	l.written = version
	return store.WriteFile(l.path, fmt.Appendln(nil, version))
}

// end returns the unused versions.
func (l *ledger) end() error {
	if l.written == l.version {
		return nil
	}
	return l.write(l.version)
}

// trust lets the cluster's controllers skip reading files: they use what this process read or wrote
// just now, unless another process has written since. They see a person's edit a second later;
// requests always read the files.
type trust struct {
	on      bool
	since   time.Time
	version uint64
	objects map[string]*object
	folders map[string][]string
}

const trustFor = time.Second

// trusting runs do with trust in the cache.
func (s *state) trusting(do func() error) error {
	t := &s.trust
	if t.version != s.version || time.Since(t.since) > trustFor {
		*t = trust{since: time.Now(), version: s.version, objects: map[string]*object{}, folders: map[string][]string{}}
	}
	t.on = true
	defer func() { t.on, t.version = false, s.version }()
	return do()
}

func (t *trust) object(path string) (*object, bool) {
	if !t.on {
		return nil, false
	}
	known, ok := t.objects[path]
	return known, ok
}

func (t *trust) saw(path string, o *object) {
	if t.objects != nil {
		t.objects[path] = o
	}
}

func (t *trust) names(folder string) ([]string, bool) {
	if !t.on {
		return nil, false
	}
	known, ok := t.folders[folder]
	return known, ok
}

func (t *trust) listed(folder string, names []string) {
	if t.folders != nil {
		t.folders[folder] = names
	}
}

// wrote records what this process has written; nil for a deletion.
func (t *trust) wrote(path string, o *object, version uint64) {
	t.saw(path, o)
	t.version = version
	delete(t.folders, filepath.Dir(path))
	delete(t.folders, filepath.Dir(filepath.Dir(path)))
}
