package wholefile_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/macfleet/macfleet/internal/wholefile"
)

// TestLeavesNothing fails at the last moment: a folder stands where the file
// belongs.
func TestLeavesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "known_hosts")
	if err := os.MkdirAll(filepath.Join(path, "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := wholefile.Replace(path, 0o600, wholefile.Text("acme")); err == nil {
		t.Error("a folder was replaced by a file")
	}
	if err := wholefile.Create(path, 0o600, wholefile.Text("acme")); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a folder was there, and: %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("beside the folder lie %v, %v", left, err)
	}
}
