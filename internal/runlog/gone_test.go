package runlog_test

import (
	"path/filepath"
	"testing"

	"github.com/macfleet/macfleet/internal/runlog"
)

// TestGone: a run is called gone only if its record shows it.
func TestGone(t *testing.T) {
	t.Parallel()
	if runlog.Boot() == "" {
		t.Skip("this system does not name its boot")
	}
	folder := t.TempDir()
	booted := func(id, boot string) *runlog.Writer {
		h := head(id)
		h.Boot = boot
		return begin(t, runlog.Options{Folder: folder}, h)
	}
	end(t, booted("killedrun1", runlog.Boot()), runlog.End{})
	if runlog.Gone(folder, "*") { // a host's lock file names the run
		t.Error("a pattern counts as a run that is gone")
	}
	living := booted("livingrun1", runlog.Boot())
	end(t, booted("otherboot1", "another"), runlog.End{})
	copied := t.TempDir()
	put(t, filepath.Join(copied, filepath.Base(living.Path())), content(t, living.Path()))
	if runlog.Gone(copied, "livingrun1") {
		t.Error("a copy of a living run's record counts as gone")
	}
	for id, want := range map[string]bool{"killedrun1": true, "livingrun1": false, "otherboot1": false, "norecord12": false, "": false, "*": false} {
		if got := runlog.Gone(folder, id); got != want {
			t.Errorf("%q is gone: %v, want %v", id, got, want)
		}
	}
	end(t, living, runlog.End{})
}
