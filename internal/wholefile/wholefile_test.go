package wholefile_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/macfleet/macfleet/internal/wholefile"
)

// TestLeavesNothing fails at the last moment: a folder is where the file should be.
func TestLeavesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "known_hosts")
	if err := os.MkdirAll(filepath.Join(path, "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := wholefile.Replace(path, 0o600, wholefile.Text("acme")); err == nil {
		t.Error("a file replaced a folder")
	}
	if err := wholefile.Create(path, 0o600, wholefile.Text("acme")); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a folder is at the path, but: %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("other files are left: %v, %v", left, err)
	}
}

// TestLock waits for the holder of the lock, and then locks the file that exists.
func TestLock(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	first, err := wholefile.Lock(t.Context(), path, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	given := errors.New("too late")
	ctx, cancel := context.WithTimeoutCause(t.Context(), 30*time.Millisecond, given)
	defer cancel()
	if _, err := wholefile.Lock(ctx, path, 0o600); !errors.Is(err, given) {
		t.Errorf("a second lock: %v", err)
	}
	time.AfterFunc(30*time.Millisecond, func() { _ = errors.Join(os.Rename(path, path+".whole"), first.Close()) })
	second, err := wholefile.Lock(t.Context(), path, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	mine, err := second.Stat()
	there, serr := os.Stat(path)
	if err != nil || serr != nil || !os.SameFile(mine, there) {
		t.Errorf("the lock is on another file: %v, %v", err, serr)
	}
}
