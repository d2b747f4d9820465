package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/macfleet/macfleet/internal/maintest"
)

// worlds is a folder of prepared simulated worlds. A world is only files, so tests start from a copy.
type worlds struct {
	dir   string
	until func() // removes a folder for this process only
}

// worldLasts is how long a prepared world is used. Its tokens and certificates age.
const worldLasts = 2 * time.Hour

// prepared holds the worlds that this program made. They outlast the process, so that a test that is run again finds
// its world. Those of former programs are removed.
var prepared = sync.OnceValues(func() (worlds, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.DevNull // below which nothing can be written
	}
	program, err := os.Executable()
	if err != nil {
		return worlds{}, err
	}
	f, err := os.Open(program)
	if err != nil {
		return worlds{}, err
	}
	defer f.Close()
	digest := sha256.New()
	if _, err := io.Copy(digest, f); err != nil {
		return worlds{}, err
	}
	return worldsIn(filepath.Join(cache, "macfleet-test", "worlds"), fmt.Sprintf("%.8x", digest.Sum(nil)))
})

// worldsIn returns the worlds of a program in a folder, or in one of this process if that cannot be written.
func worldsIn(all, program string) (worlds, error) {
	dir := filepath.Join(all, program)
	if os.MkdirAll(dir, 0o700) != nil || syscall.Access(dir, 2) != nil { // 2: to write
		dir, err := os.MkdirTemp("", "macfleet-worlds-")
		return worlds{dir, func() { _ = os.RemoveAll(dir) }}, err
	}
	others, err := os.ReadDir(all)
	for _, o := range others {
		// Another process may use worlds of a younger folder.
		if info, ierr := o.Info(); ierr == nil && time.Since(info.ModTime()) > 2*worldLasts {
			err = errors.Join(err, os.RemoveAll(filepath.Join(all, o.Name())))
		}
	}
	return worlds{dir, func() {}}, err
}

// copy puts a copy of a world at a new path. The first caller makes the world for a key, at a path that make is given.
func (w worlds) copy(key, to string, make func(path string) error) error {
	if _, err := os.Stat(to); err == nil {
		return fmt.Errorf("there is a world in %s already", to)
	}
	lock, err := os.Create(filepath.Join(w.dir, key+".lock"))
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return err
	}
	kept := filepath.Join(w.dir, key)
	made, err := os.Stat(filepath.Join(kept, "world"))
	if err != nil || time.Since(made.ModTime()) > worldLasts {
		if err := w.make(kept, make); err != nil {
			return err
		}
	}
	return copyAll(filepath.Join(kept, "world"), to)
}

// make makes a world in the folder for temporary files, which may be in memory, and keeps it only as a whole.
func (w worlds) make(kept string, make func(path string) error) error {
	dir, err := os.MkdirTemp("", "macfleet-world-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	part := kept + ".part"
	if err := errors.Join(os.RemoveAll(kept), os.RemoveAll(part), os.Mkdir(part, 0o700)); err != nil {
		return err
	}
	world := filepath.Join(dir, "world")
	if err := make(world); err != nil {
		return err
	}
	if err := copyAll(world, part); err != nil {
		return err
	}
	now := time.Now()
	return errors.Join(os.Chtimes(filepath.Join(part, "world"), now, now), os.Rename(part, kept))
}

// TestWorlds: a world is made by the first caller, kept for other processes but not for long, and made for this
// process only where nothing can be kept.
func TestWorlds(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cache := filepath.Join(dir, "cache")
	must(t, os.MkdirAll(filepath.Join(cache, "former"), 0o700))
	old := time.Now().Add(-3 * worldLasts)
	must(t, os.Chtimes(filepath.Join(cache, "former"), old, old))
	w, err := worldsIn(cache, "program")
	must(t, err)
	if _, err := os.Stat(filepath.Join(cache, "former")); err == nil {
		t.Error("the worlds of a former program were not removed")
	}
	var made atomic.Int32
	take := func(w worlds, to string) {
		t.Helper()
		must(t, w.copy("key", filepath.Join(dir, to), func(path string) error {
			made.Add(1)
			if lock, err := os.Open(filepath.Join(w.dir, "key.lock")); err != nil || syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
				t.Errorf("another process may make the same world now (%v)", err)
			} else {
				_ = lock.Close() // it was only read
			}
			return errors.Join(os.Mkdir(path, 0o700), os.WriteFile(filepath.Join(path, "file"), nil, 0o600))
		}))
		if _, err := os.Stat(filepath.Join(dir, to, "file")); err != nil {
			t.Error(err)
		}
	}
	wanted := func(n int32) {
		t.Helper()
		if got := made.Load(); got != n {
			t.Errorf("made %d times, wanted %d", got, n)
		}
	}
	var both sync.WaitGroup
	for _, to := range []string{"one", "two"} {
		both.Go(func() { take(w, to) })
	}
	both.Wait()
	again, err := worldsIn(cache, "program")
	must(t, err)
	take(again, "three")
	wanted(1)
	if err := w.copy("broken", filepath.Join(dir, "four"), func(path string) error { return errors.Join(os.Mkdir(path, 0o700), io.EOF) }); err == nil {
		t.Error("half a world is used")
	}
	must(t, os.Chtimes(filepath.Join(w.dir, "key", "world"), old, old))
	take(w, "five")
	wanted(2)

	alone, err := worldsIn(filepath.Join(dir, "one", "file"), "program") // below a file nothing can be written
	must(t, err)
	take(alone, "six")
	wanted(3)
	alone.until()
	if _, err := os.Stat(alone.dir); err == nil {
		t.Error("a folder for this process outlasts it")
	}
}

// copyAll copies a folder with its owners, modes and times.
func copyAll(from, to string) error {
	if out, err := exec.Command("cp", "-a", from, to).CombinedOutput(); err != nil {
		return fmt.Errorf("copy a world: %w: %s", err, out)
	}
	return nil
}

// tested runs the tests, then removes what only they need.
type tested struct{ *testing.M }

func (m tested) Run() int {
	maintest.DefaultSignals()
	defer maintest.InMemory()()
	code := m.M.Run()
	if w, err := prepared(); err == nil {
		w.until()
	}
	return code
}

// world COMMAND... gives the script a new world in the state after these commands, each of which is approved.
func world(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: world COMMAND...")
	}
	key := sha256.New()
	fmt.Fprintf(key, "%q", args)
	for _, v := range environ(ts) {
		// The folders of each script are its own.
		name, value, _ := strings.Cut(v, "=")
		if value != "" && strings.HasPrefix(name, "MACFLEET_") && name != "MACFLEET_SANDBOX" && name != "MACFLEET_DIRECTORY" {
			fmt.Fprintf(key, "%q", v)
		}
	}
	files, err := filepath.Glob(filepath.Join(ts.MkAbs(ts.Getenv("MACFLEET_DIRECTORY")), "*.fleet.hcl"))
	ts.Check(err)
	for _, name := range files {
		fmt.Fprintf(key, "%s=%q", filepath.Base(name), ts.ReadFile(name))
	}
	all, err := prepared()
	ts.Check(err)
	was := ts.Getenv("MACFLEET_SANDBOX")
	to := ts.MkAbs(was)
	ts.Check(all.copy(fmt.Sprintf("%.8x", key.Sum(nil)), to, func(path string) error {
		defer ts.Setenv("MACFLEET_SANDBOX", was)
		ts.Setenv("MACFLEET_SANDBOX", path)
		for _, line := range args {
			done(ts, append(strings.Fields(line), "--auto-approve")...)
		}
		return nil
	}))
	runnerOf(ts).notice(to) // what the world's makers did costs this script nothing
}
