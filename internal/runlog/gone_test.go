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
	living := booted("livingrun1", runlog.Boot())
	for id, boot := range map[string]string{"killedrun1": runlog.Boot(), "otherboot1": "another"} {
		end(t, booted(id, boot), runlog.End{})
	}
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
