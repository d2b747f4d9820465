package runlog

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Kept is how many records a folder keeps; older ones go when a run begins.
const Kept = 100

// suffix is how the name of a record ends.
const suffix = ".jsonl"

// stamp is how the name of a log begins. It reads names with parts of a second too.
const stamp = "20060102T150405Z"

// FileName returns the name of a record. It has parts of a second: in a script two runs begin within one.
func FileName(at time.Time, id string) string {
	return at.UTC().Format("20060102T150405.000000Z") + "-" + id + suffix
}

// Last is what stands for the newest run.
const Last = "last"

// stamped returns the files of a folder whose names begin with a time and end so, the
// newest first. A folder that is not there holds none.
func stamped(folder, suffix string) ([]string, error) {
	entries, err := os.ReadDir(folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read the records of runs: %w", err)
	}
	began := make(map[string]time.Time)
	for _, e := range entries {
		if at, _, ok := strings.Cut(e.Name(), "-"); ok && e.Type().IsRegular() && strings.HasSuffix(e.Name(), suffix) {
			if t, err := time.Parse(stamp, at); err == nil {
				began[e.Name()] = t
			}
		}
	}
	return slices.SortedFunc(maps.Keys(began), func(a, b string) int {
		return cmp.Or(began[b].Compare(began[a]), strings.Compare(b, a))
	}), nil
}

// List returns the runs of a folder, the newest first. What is wrong with single
// files keeps no other from being listed. A file in which no run has begun is none.
func List(folder string) (runs []Record, wrong []error, err error) {
	all, err := stamped(folder, suffix)
	for _, name := range all {
		r, err := brief(filepath.Join(folder, name))
		switch {
		case err == nil:
			runs = append(runs, r)
		case !errors.Is(err, errUnbegun) && !errors.Is(err, fs.ErrNotExist): // another process removes old ones
			wrong = append(wrong, err)
		}
	}
	return runs, wrong, err
}

// Newest returns the newest run of a configuration and environment; without a path, there is none.
func Newest(folder, configuration, environment string) (Record, error) {
	all, err := stamped(folder, suffix)
	for _, name := range all {
		r, err := brief(filepath.Join(folder, name))
		if err == nil && r.Head.Configuration == configuration && r.Head.Environment == environment {
			return r, nil
		}
	}
	return Record{}, err
}

// Find returns the record of a run: the last one, or that whose id begins so and no other's.
func Find(folder, run string) (string, error) {
	all, err := stamped(folder, suffix)
	if err != nil {
		return "", err
	}
	var found []string
	for _, name := range all {
		_, id, _ := strings.Cut(strings.TrimSuffix(name, suffix), "-")
		if run == Last {
			if _, err := brief(filepath.Join(folder, name)); !errors.Is(err, errUnbegun) {
				found = []string{name}
				break
			}
		} else if run != "" && strings.HasPrefix(id, strings.ToLower(run)) {
			found = append(found, name)
		}
	}
	switch {
	case len(all) == 0:
		return "", fmt.Errorf("%s holds no record of a run: none was made from here yet; name another folder with --runs-dir", folder)
	case len(found) == 0:
		return "", fmt.Errorf("no run is called %q; macfleet runs lists them", run)
	case len(found) > 1:
		return "", fmt.Errorf("%d runs begin with %q; write more of the id: %s", len(found), run, strings.Join(found[:min(len(found), 5)], ", "))
	}
	return filepath.Join(folder, found[0]), nil
}

// Prune removes the oldest records of a folder, but for those of living processes, until keep are left.
func Prune(folder string, keep int) error {
	all, err := stamped(folder, suffix)
	for _, name := range all[min(keep, len(all)):] {
		path := filepath.Join(folder, name)
		f, living, oerr := open(path)
		if oerr != nil {
			continue // another process removed it
		}
		if err = errors.Join(err, f.Close()); !living {
			err = errors.Join(err, remove(path))
		}
	}
	return err
}

// remove removes a file, which another process may have done.
func remove(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
