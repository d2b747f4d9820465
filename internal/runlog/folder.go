package runlog

import (
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

// stamp is how the name of a record begins: names sort by time.
const stamp = "20060102T150405Z"

// FileName returns the name of a run's record.
func FileName(started time.Time, id string) string {
	return started.UTC().Format(stamp) + "-" + id + suffix
}

// Last is what stands for the newest run.
const Last = "last"

// names returns the records of a folder, the newest first. A folder that is not
// there holds none.
func names(folder string) ([]string, error) {
	entries, err := os.ReadDir(folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read the records of runs: %w", err)
	}
	var out []string
	for _, e := range entries {
		if at, _, ok := strings.Cut(e.Name(), "-"); ok && e.Type().IsRegular() && strings.HasSuffix(e.Name(), suffix) {
			if _, err := time.Parse(stamp, at); err == nil {
				out = append(out, e.Name())
			}
		}
	}
	slices.Sort(out)
	slices.Reverse(out)
	return out, nil
}

// List returns the runs of a folder, the newest first. The errors are about files
// that are no records; they keep no other from being listed.
func List(folder string) ([]Brief, error) {
	all, err := names(folder)
	if err != nil {
		return nil, err
	}
	out := []Brief{}
	var errs []error
	for _, name := range all {
		b, err := brief(filepath.Join(folder, name))
		if err != nil {
			errs = append(errs, err)
			continue
		}
		out = append(out, b)
	}
	return out, errors.Join(errs...)
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
	if run == Last && len(all) > 0 {
		return filepath.Join(folder, all[0]), nil
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
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
