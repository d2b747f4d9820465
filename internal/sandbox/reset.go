package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Exists reports whether dir holds a sandbox. It checks the name of a file, not its content: a world
// whose settings were damaged is still one.
func Exists(dir string) bool {
	info, err := os.Stat(filepath.Join(dir, settingsFile))
	return err == nil && info.Mode().IsRegular()
}

// Reset removes the world in dir: its files, and the folder if nothing else is in it.
func Reset(dir string) error {
	if !Exists(dir) {
		return fmt.Errorf("reset the sandbox: %s is not a sandbox (it has no %s); nothing was removed", dir, settingsFile)
	}
	for _, name := range contents() {
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			return fmt.Errorf("reset the sandbox: %w; fix: make its files removable and run it again", err)
		}
	}
	err := os.Remove(dir)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTEMPTY) || errors.Is(err, syscall.EEXIST) {
		return nil // other files stay
	}
	if err != nil {
		return fmt.Errorf("reset the sandbox: its files were removed, but not the empty folder: %w", err)
	}
	return nil
}
