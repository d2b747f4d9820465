package runlog

import (
	"bufio"
	"path/filepath"
	"slices"

	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/plan"
)

// Worked returns, of the runs of a folder that a caller wants, those that did something or
// were interrupted: their first lines, newest first. Unreadable records are left out.
func Worked(folder string, wanted func(Head) bool) []Head {
	all, _ := stamped(folder, suffix)
	var out []Head
	for _, name := range all {
		path := filepath.Join(folder, name)
		if h, err := headOf(path); err != nil || !wanted(h) {
			continue
		}
		if r, err := brief(path); err == nil && (r.End == nil || r.End.Done > 0) {
			out = append(out, r.Head)
		}
	}
	return out
}

// Met returns those servers on whose hosts a run that a caller wants started something, sorted. A host's key is pinned
// before anything is sent to it, so each of them was pinned once. One that was released since is unknown again. What
// cannot be read to its end counts as far as it can be read.
func Met(folder string, wanted func(Head) bool, servers []string) []string {
	all, _ := stamped(folder, suffix)
	met := make(map[string]bool)
	for _, name := range slices.Backward(all) { // the oldest first
		path := filepath.Join(folder, name)
		if h, err := headOf(path); err != nil || !wanted(h) {
			continue
		}
		r, _ := Read(path)
		for _, e := range r.Entries {
			switch {
			case e.Action == nil:
			case e.Type == engine.Started:
				met[e.Action.ServerID] = true
			case e.Type == engine.Done && (e.Action.Kind == string(plan.ReleaseServer) || e.Action.Kind == string(plan.ReplaceServer)):
				delete(met, e.Action.ServerID)
			}
		}
	}
	return slices.Sorted(func(yield func(string) bool) {
		for _, id := range servers {
			if met[id] && !yield(id) {
				return
			}
		}
	})
}

// DoneBy returns the ids of the runs that performed actions, by the actions' keys: of the runs of a folder that a caller selects,
// the newest. Records that cannot be read are left out.
func DoneBy(folder string, selected func(Head) bool) map[string]string {
	all, _ := stamped(folder, suffix)
	done := make(map[string]string)
	for _, name := range slices.Backward(all) { // oldest first
		path := filepath.Join(folder, name)
		if h, err := headOf(path); err != nil || !selected(h) {
			continue
		}
		r, _ := Read(path)
		for _, e := range r.Entries {
			if e.Type == engine.Done && e.Action != nil {
				done[e.Action.Key()] = r.Head.ID
			}
		}
	}
	return done
}

func headOf(path string) (Head, error) {
	f, _, err := open(path)
	if err != nil {
		return Head{}, err
	}
	defer f.Close()
	line, err := bufio.NewReader(f).ReadBytes('\n')
	if err != nil {
		return Head{}, err
	}
	first, err := entryOf(line)
	if err != nil || first.Run == nil {
		return Head{}, ErrNoRecord
	}
	return *first.Run, nil
}

// Gone reports whether the process of a run has certainly ended: its record is in this folder, was made under the
// present boot of this kernel, is the very file that the run wrote, and is not locked. A process keeps that lock as long as
// it lives, whatever its number and its container are. Another machine that shares the folder may not see the lock, and a
// copy of the folder has none, so neither is certain.
func Gone(folder, id string) bool {
	if id == "" || Boot() == "" {
		return false
	}
	found, err := filepath.Glob(filepath.Join(folder, "*-"+id+suffix))
	if err != nil || len(found) != 1 {
		return false
	}
	f, living, err := open(found[0])
	if err != nil {
		return false
	}
	defer f.Close()
	if living {
		return false
	}
	line, err := bufio.NewReader(f).ReadBytes('\n')
	if err != nil {
		return false
	}
	own, err := inode(f)
	if err != nil {
		return false
	}
	e, err := entryOf(line)
	return err == nil && e.Run != nil && e.Run.ID == id && e.Run.Boot == Boot() && e.Run.Inode == own
}
