// Package worldtest gives tests copies of worlds that are prepared once in each run of a test binary. To set
// a simulated fleet up takes a hundred times as long as to copy its folder.
package worldtest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// world is the folder of one shape.
type world struct {
	once sync.Once
	dir  string // empty: it could not be prepared
}

var worlds sync.Map // of *world by shape

// Prepared returns the folder of a copy of a world. The first test that wants the shape prepares it: fill
// makes the world in a folder, which is missing, and leaves nothing open there. If that test fails
// meanwhile, so do all others that want the shape. The folders are temporary files, which maintest removes.
func Prepared(t testing.TB, shape string, fill func(dir string)) string {
	t.Helper()
	value, _ := worlds.LoadOrStore(shape, new(world))
	w := value.(*world)
	w.once.Do(func() { // it also ends when fill ends the test
		dir, err := os.MkdirTemp("", "macfleet-world-")
		if err != nil {
			t.Fatal(err)
		}
		made := filepath.Join(dir, "world")
		if fill(made); !t.Failed() {
			w.dir = made
		}
	})
	if w.dir == "" {
		t.Fatalf("the world with %s was not prepared: see the first test that failed", shape)
	}
	return Copied(t, w.dir)
}

// Copied returns the folder of a copy of a world that no process has open.
func Copied(t testing.TB, from string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "world")
	if err := Copy(to, from); err != nil {
		t.Fatal(err)
	}
	return to
}

// Copy copies a folder with its modes, times, links and hard links, as cp -a does: a simulated Mac
// knows its files by their times.
func Copy(to, from string) error {
	c := copier{to: to, from: from, names: make(map[uint64]string)}
	if err := filepath.WalkDir(from, c.entry); err != nil {
		return fmt.Errorf("copy %s: %w", from, err)
	}
	return c.folders()
}

// copier copies a folder.
type copier struct {
	to, from string
	names    map[uint64]string // of copies whose files have more than one name, by inode
	dirs     []folder
}

// folder is one whose time is set when it has all its files.
type folder struct {
	path string
	info fs.FileInfo
}

func (c *copier) entry(path string, d fs.DirEntry, err error) error {
	if err != nil {
		return err
	}
	info, err := d.Info()
	if err != nil {
		return err
	}
	name, err := filepath.Rel(c.from, path)
	if err != nil {
		return err
	}
	to := filepath.Join(c.to, name)
	switch info.Mode().Type() {
	case fs.ModeDir:
		c.dirs = append(c.dirs, folder{to, info})
		return os.Mkdir(to, 0o700)
	case fs.ModeSymlink:
		target, err := os.Readlink(path)
		if err != nil {
			return err
		}
		return errors.Join(os.Symlink(target, to), keepTime(to, info))
	case 0:
		return c.file(path, to, info)
	}
	return fmt.Errorf("%s is neither a file, a folder nor a link", path)
}

func (c *copier) file(path, to string, info fs.FileInfo) error {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return errors.ErrUnsupported
	}
	if first := c.names[stat.Ino]; first != "" {
		return os.Link(first, to)
	}
	if stat.Nlink > 1 {
		c.names[stat.Ino] = to
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := os.WriteFile(to, content, info.Mode().Perm()); err != nil {
		return err
	}
	return keep(to, info)
}

// folders sets the modes and times of all folders, the inner ones first.
func (c *copier) folders() error {
	for i := len(c.dirs) - 1; i >= 0; i-- {
		if err := keep(c.dirs[i].path, c.dirs[i].info); err != nil {
			return err
		}
	}
	return nil
}

// keep gives a copy the mode and the time of what it is a copy of.
func keep(to string, info fs.FileInfo) error {
	return errors.Join(os.Chmod(to, info.Mode().Perm()), keepTime(to, info))
}

// keepTime does not follow links.
func keepTime(to string, info fs.FileInfo) error {
	at, err := unix.TimeToTimespec(info.ModTime())
	if err != nil {
		return err
	}
	return unix.UtimesNanoAt(unix.AT_FDCWD, to, []unix.Timespec{at, at}, unix.AT_SYMLINK_NOFOLLOW)
}
