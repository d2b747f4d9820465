// Package maintest runs the tests of a package, and gives ports to the programs that they start.
package maintest

import (
	"flag"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"syscall"
	"testing"

	"go.uber.org/goleak"
)

// enoughMemory is how many bytes must be free in memory before tests keep their files there.
const enoughMemory = 2 << 30

// InMemory puts the temporary files of this process and its children in a separate folder, in memory
// if the machine has room for them, and returns a function that removes it. A simulated world is
// hundreds of small, short-lived files: on a disk, creating and removing them takes most of a test's time.
// A folder set by TMPDIR is kept, and the files are in a folder of it.
func InMemory() (remove func()) {
	for _, place := range places() {
		dir, err := os.MkdirTemp(place, "macfleet-tests-")
		if err != nil {
			continue
		}
		remove := func() { _ = os.RemoveAll(dir) } // a leftover is gone after the next restart of the machine
		// Containers may forbid to run programs in that folder. Tests do run some, also as other users.
		program := filepath.Join(dir, "program")
		if os.Chmod(dir, 0o755) == nil && os.WriteFile(program, []byte("#!/bin/sh\n"), 0o755) == nil && exec.Command(program).Run() == nil && os.Setenv("TMPDIR", dir) == nil {
			return remove
		}
		remove()
	}
	return func() {}
}

// places are the folders that may have the temporary files, the best one first.
func places() []string {
	var free syscall.Statfs_t
	if os.Getenv("TMPDIR") != "" || syscall.Statfs("/dev/shm", &free) != nil || uint64(free.Bavail)*uint64(free.Bsize) < enoughMemory {
		return []string{os.TempDir()}
	}
	return []string{"/dev/shm", os.TempDir()}
}

// DefaultSignals lets tests interrupt the programs that they start, also when this process was started
// with the signals ignored, as under nohup and by some CI systems. A started program inherits an ignored
// signal; one that is caught here has its default there.
func DefaultSignals() {
	for _, s := range []os.Signal{syscall.SIGINT, syscall.SIGHUP} { // Go catches all others
		if signal.Ignored(s) {
			signal.Notify(make(chan os.Signal, 1), s)
		}
	}
}

// Main runs a package's tests with their files in memory, and fails if a test leaves a goroutine
// behind. It runs more tests at once than there are processors, since most of them wait for other
// processes or for a deadline, and collects garbage less often than Go does, since the tests are
// short.
func Main(m *testing.M) {
	DefaultSignals()
	flag.Parse()
	if atOnce := flag.Lookup("test.parallel"); atOnce.Value.String() == atOnce.DefValue {
		_ = atOnce.Value.Set(strconv.Itoa(2 * runtime.GOMAXPROCS(0))) // a number is valid
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
	goleak.VerifyTestMain(inMemory{m})
}

type inMemory struct{ *testing.M }

// Run runs the tests.
func (m inMemory) Run() int {
	defer InMemory()()
	return m.M.Run()
}
