package app

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestReplaceFile(t *testing.T) {
	t.Parallel()
	full := errors.New("no space left on device")
	put := func(text string, err error) func(io.Writer) error {
		return func(w io.Writer) error {
			_, werr := io.WriteString(w, text)
			return errors.Join(werr, err)
		}
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "record.json")
	if err := replaceFile(file, put("one", full)); !errors.Is(err, full) {
		t.Errorf("a full disk: %v", err)
	}
	must(t, replaceFile(file, put("old", nil)))
	if err := replaceFile(file, put("half", full)); !errors.Is(err, full) {
		t.Errorf("a full disk: %v", err)
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "old" {
		t.Errorf("the file is %q, %v; want the old one", text, err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	for _, name := range []string{dir, os.DevNull, filepath.Join(dir, "none", "x"), filepath.Join(file, "x")} {
		if err := replaceFile(name, put("new", nil)); err == nil || !strings.Contains(err.Error(), filepath.Dir(name)) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
