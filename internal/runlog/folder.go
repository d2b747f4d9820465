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

// Kept is how many records a folder keeps; a new run deletes older ones.
const Kept = 100

// suffix ends the name of a record.
const suffix = ".jsonl"

// stamp starts the name of a log. It also parses fractions of a second.
const stamp = "20060102T150405Z"

// FileName returns the name of a record, with fractions of a second, because scripts start several runs per second.
func FileName(at time.Time, id string) string {
	return at.UTC().Format("20060102T150405.000000Z") + "-" + id + suffix
}

// Last stands for the newest run.
const Last = "last"

// stamped returns the files of a folder whose names start with a time and have the suffix,
// newest first. A missing folder has none.
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

// List returns the runs of a folder, newest first. Unreadable files do not hide others. A record
// without a first line is skipped.
func List(folder string) (runs []Record, wrong []error, err error) {
	all, err := stamped(folder, suffix)
	for _, name := range all {
		r, err := brief(filepath.Join(folder, name))
		switch {
		case err == nil:
			runs = append(runs, r)
		case !errors.Is(err, errNotStarted) && !errors.Is(err, fs.ErrNotExist): // another process removes old ones
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

// Find returns the record of a run: Last, or a unique prefix of an id.
func Find(folder, run string) (string, error) {
	all, err := stamped(folder, suffix)
	if err != nil {
		return "", err
	}
	var found []string
	for _, name := range all {
		_, id, _ := strings.Cut(strings.TrimSuffix(name, suffix), "-")
		if run == Last {
			if _, err := brief(filepath.Join(folder, name)); !errors.Is(err, errNotStarted) {
				found = []string{name}
				break
			}
		} else if run != "" && strings.HasPrefix(id, strings.ToLower(run)) {
			found = append(found, name)
		}
	}
	switch {
	case len(all) == 0:
		return "", fmt.Errorf("no runs recorded in %s; choose another folder with --runs-dir", folder)
	case len(found) == 0:
		return "", fmt.Errorf("no run %q; list them with macfleet runs", run)
	case len(found) > 1:
		return "", fmt.Errorf("%d runs start with %q; use a longer id: %s", len(found), run, strings.Join(found[:min(len(found), 5)], ", "))
	}
	return filepath.Join(folder, found[0]), nil
}

// Prune deletes the oldest records of a folder until keep are left, except those of running processes.
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

// remove deletes a file, unless another process did.
func remove(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
