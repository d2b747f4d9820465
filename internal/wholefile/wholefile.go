// Package wholefile writes files atomically, so that a file is complete or missing even if the process
// or the machine dies, and locks files that one process at a time writes.
package wholefile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Replace writes a file, or replaces it. A reader sees the old or the new one.
func Replace(path string, mode fs.FileMode, write func(io.Writer) error) error {
	return put(path, mode, write, os.Rename)
}

// Create is like Replace, but fails with fs.ErrExist if the file exists.
func Create(path string, mode fs.FileMode, write func(io.Writer) error) error {
	return put(path, mode, write, os.Link)
}

// put writes a hidden file next to path, which only the owner may read until it is complete, and then
// renames it.
func put(path string, mode fs.FileMode, write func(io.Writer) error, name func(from, to string) error) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+strings.TrimPrefix(filepath.Base(path), ".")+".*")
	if err != nil {
		return err
	}
	defer func() {
		if rerr := os.Remove(f.Name()); rerr != nil && !errors.Is(rerr, fs.ErrNotExist) {
			err = errors.Join(err, rerr)
		}
	}()
	if err := errors.Join(write(f), f.Chmod(mode), f.Sync(), f.Close()); err != nil {
		return err
	}
	return name(f.Name(), path)
}

// Text writes a text, for Replace and Create.
func Text[T string | []byte](text T) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := w.Write([]byte(text))
		return err
	}
}

// Lock opens a file, creating it if necessary, for this process to write. It waits until another
// process releases the lock or ctx ends. Closing the file releases the lock, and so does the end of
// the process.
func Lock(ctx context.Context, path string, mode fs.FileMode) (*os.File, error) {
	for {
		file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, mode)
		if err != nil {
			return nil, err
		}
		err = unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil && isAt(file, path) {
			return file, nil
		}
		_ = file.Close() // nothing was written
		if err != nil && !errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// isAt reports whether a file is still at that path: its last holder may have renamed it.
func isAt(file *os.File, path string) bool {
	mine, err := file.Stat()
	there, perr := os.Stat(path)
	return err == nil && perr == nil && os.SameFile(mine, there)
}
