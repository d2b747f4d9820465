package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/macfleet/macfleet/internal/secret"
)

// writePrivate makes a file with a secret that only its owner may read. It is
// there whole or not at all, and never takes another file's place unless it may.
func writePrivate(name string, text secret.Value, replace bool) (err error) {
	// CreateTemp's mode is 0600.
	f, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if rerr := os.Remove(f.Name()); rerr != nil && !errors.Is(rerr, os.ErrNotExist) {
			err = errors.Join(err, rerr)
		}
	}()
	_, err = f.WriteString(text.Reveal())
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	if replace {
		return os.Rename(f.Name(), name)
	}
	return os.Link(f.Name(), name) // it fails where something is
}
