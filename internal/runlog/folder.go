package runlog

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
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

// stamp is how the name of a log begins: names sort by time. Names are read by it
// too, and a part of a second behind its seconds is no hindrance.
const stamp = "20060102T150405Z"

// fineStamp is how the name of a record begins. Two runs begin within one second
// where a script makes them, and which was the last must be right all the same.
const fineStamp = "20060102T150405.000000Z"

// FileName returns the name of a record that began at a time.
func FileName(at time.Time, id string) string {
	return at.UTC().Format(fineStamp) + "-" + id + suffix
}

// Last is what stands for the newest run.
const Last = "last"

// names returns the records of a folder, the newest first. A folder that is not
// there holds none.
func names(folder string) ([]string, error) {
	out, err := stamped(folder, suffix)
	if err != nil {
		return nil, fmt.Errorf("read the records of runs: %w", err)
	}
	return out, nil
}

// stamped returns the files of a folder whose names begin with a time and end so, the
// newest first.
func stamped(folder, suffix string) ([]string, error) {
	entries, err := os.ReadDir(folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var out []string
	for _, e := range entries {
		if at, _, ok := strings.Cut(e.Name(), "-"); ok && e.Type().IsRegular() && strings.HasSuffix(e.Name(), suffix) {
			if _, err := time.Parse(stamp, at); err == nil {
				out = append(out, e.Name())
			}
		}
	}
	slices.SortFunc(out, func(a, b string) int { return cmp.Or(began(b).Compare(began(a)), strings.Compare(b, a)) })
	return out, nil
}

// began returns when a record began, by its name.
func began(name string) time.Time {
	at, _, _ := strings.Cut(name, "-")
	t, _ := time.Parse(stamp, at) // names are checked
	return t
}

// List returns the runs of a folder, the newest first. What is wrong with single
// files keeps no other from being listed. A file in which no run has begun is none.
func List(folder string) (runs []Brief, wrong []error, err error) {
	all, err := names(folder)
	if err != nil {
		return nil, nil, err
	}
	runs = []Brief{}
	for _, name := range all {
		b, err := brief(filepath.Join(folder, name))
		switch {
		case err == nil:
			runs = append(runs, b)
		case !errors.Is(err, errUnbegun) && !errors.Is(err, fs.ErrNotExist): // another process removes old ones
			wrong = append(wrong, err)
		}
	}
	return runs, wrong, nil
}

// Newest returns the newest run of a configuration and environment; without a path,
// there is none. Files that are no records are passed over.
func Newest(folder, configuration, environment string) (Brief, error) {
	all, err := names(folder)
	if err != nil {
		return Brief{}, err
	}
	for _, name := range all {
		b, err := brief(filepath.Join(folder, name))
		if err == nil && b.Head.Configuration == configuration && b.Head.Environment == environment {
			return b, nil
		}
	}
	return Brief{}, nil
}

// Find returns the record of a run: the last one, or that whose id begins so and
// no other's.
func Find(folder, run string) (string, error) {
	all, err := names(folder)
	if err != nil {
		return "", err
	}
	if run == Last {
		for _, name := range all {
			path := filepath.Join(folder, name)
			if _, err := brief(path); !errors.Is(err, errUnbegun) {
				return path, nil
			}
		}
	}
	var found []string
	for _, name := range all {
		_, id, _ := strings.Cut(strings.TrimSuffix(name, suffix), "-")
		if run != "" && strings.HasPrefix(id, strings.ToLower(run)) {
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

// Prune removes the oldest records of a folder until no more than keep are left.
// That of a living process stays.
func Prune(folder string, keep int) error {
	all, err := names(folder)
	if err != nil || len(all) <= keep {
		return err
	}
	var errs []error
	for _, name := range all[keep:] {
		path := filepath.Join(folder, name)
		if living, err := lives(path); err != nil || living {
			continue // another process removed it, or writes it
		}
		errs = append(errs, remove(path))
	}
	return errors.Join(errs...)
}

// remove removes a file, which another process may have done.
func remove(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
