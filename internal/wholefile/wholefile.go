// Package wholefile writes files that are there whole or not at all, whenever the
// process or the machine dies.
package wholefile

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Replace puts a file with what write writes in the place of another one, or where
// none is. A reader sees the old or the new one.
func Replace(path string, mode fs.FileMode, write func(io.Writer) error) error {
	return put(path, mode, write, os.Rename)
}

// Create is Replace that fails with fs.ErrExist where something is.
func Create(path string, mode fs.FileMode, write func(io.Writer) error) error {
	return put(path, mode, write, os.Link)
}

// put writes to a hidden file beside path, which nobody but the owner may read until
// it is whole, and then gives it its name.
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
