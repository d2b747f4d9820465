package store

import (
	"errors"
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// Locker is an exclusive lock between goroutines and processes, tied to a file. The operating system
// releases it when its holder dies, so it is never stale.
type Locker struct {
	path string
	mu   sync.Mutex
}

// NewLocker returns the lock of the file at path. Lock creates the file.
func NewLocker(path string) *Locker {
	return &Locker{path: path}
}

// Lock waits for the lock and returns the function that releases it.
func (l *Locker) Lock() (unlock func(), err error) {
	// The mutex comes first so that the goroutines of one process wait in Go, not each in a system
	// call with its own thread.
	l.mu.Lock()
	file, err := lockFile(l.path)
	if err != nil {
		l.mu.Unlock()
		return nil, err
	}
	return func() {
		// Closing the only descriptor releases the lock. An error is harmless, since nothing was
		// written.
		_ = file.Close()
		l.mu.Unlock()
	}, nil
}

func lockFile(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the sandbox: %w", err)
	}
	for {
		err = unix.Flock(int(file.Fd()), unix.LOCK_EX)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if err != nil {
		return nil, fmt.Errorf("lock the sandbox at %s: %w", path, errors.Join(err, file.Close()))
	}
	return file, nil
}
