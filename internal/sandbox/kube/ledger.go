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

// ledger gives out resource versions. Between begin and end, with the lock held, it counts in
// memory; what the file says is never behind what was given out, so that a process that is killed
// leaves a gap and no version twice.
type ledger struct {
	path    string
	version uint64 // of the newest write
	written uint64 // what the file says
	raised  bool   // since begin
}

// reserve is how many versions are taken at once where one does not suffice: 500 kubelets that
// register write 1000 objects.
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

// raise gives the next version.
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

// end returns the versions that were taken and not needed.
func (l *ledger) end() error {
	if l.written == l.version {
		return nil
	}
	return l.write(l.version)
}

// trust is what the cluster's controllers may rely on without looking at each file again: what this
// process saw or wrote a moment ago, as long as no other process has written since. A person's edit
// reaches the controllers a second later; requests always look at the files.
type trust struct {
	on      bool
	since   time.Time
	version uint64
	objects map[string]*object
	folders map[string][]string
}

const trustFor = time.Second

// trusting runs do with trust in what is known.
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

// wrote notes what this process has written, nil for a deletion.
func (t *trust) wrote(path string, o *object, version uint64) {
	t.saw(path, o)
	t.version = version
	delete(t.folders, filepath.Dir(path))
	delete(t.folders, filepath.Dir(filepath.Dir(path)))
}
