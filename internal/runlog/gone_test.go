package runlog_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/runlog"
)

// TestGone: a run is called gone only if its record shows it.
func TestGone(t *testing.T) {
	t.Parallel()
	if runlog.Boot() == "" {
		t.Skip("this system does not name its boot")
	}
	folder := t.TempDir()
	begin := func(id, boot string) *runlog.Writer {
		h := head(id)
		h.Boot = boot
		w, err := runlog.Create(runlog.Options{Folder: folder, Scrub: scrub()}, h)
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	living := begin("livingrun1", runlog.Boot())
	for id, boot := range map[string]string{"killedrun1": runlog.Boot(), "otherboot1": "another"} {
		if err := begin(id, boot).End(runlog.End{}, engine.Result{}); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(living.Path())
	if err != nil {
		t.Fatal(err)
	}
	copied := t.TempDir()
	if err := os.WriteFile(filepath.Join(copied, filepath.Base(living.Path())), text, 0o600); err != nil {
		t.Fatal(err)
	}
	if runlog.Gone(copied, "livingrun1") {
		t.Error("a copy of a living run's record counts as gone")
	}
	for id, want := range map[string]bool{"killedrun1": true, "livingrun1": false, "otherboot1": false, "norecord12": false, "": false, "*": false} {
		if got := runlog.Gone(folder, id); got != want {
			t.Errorf("%q is gone: %v, want %v", id, got, want)
		}
	}
	if err := living.End(runlog.End{}, engine.Result{}); err != nil {
		t.Error(err)
	}
}
