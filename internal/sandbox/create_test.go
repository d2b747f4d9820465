package sandbox_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/macfleet/macfleet/internal/sandbox"
)

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	file := filepath.Join(base, "file")
	must(t, os.WriteFile(file, []byte("mine"), 0o600))
	for name, test := range map[string]struct {
		dir      string
		change   func(*sandbox.Seed)
		contains string
	}{
		"a folder with something else": {base, nil, "is not empty and not a sandbox"},
		"a file":                       {file, nil, "not a directory"},
		"below a file":                 {filepath.Join(file, "a", "b"), nil, "not a directory"},
		"a faulty project":             {filepath.Join(base, "x"), func(s *sandbox.Seed) { s.ProjectID = "acme" }, "not a lower-case UUID"},
		"a faulty zone":                {filepath.Join(base, "x"), func(s *sandbox.Seed) { s.Zones = []string{"paris"} }, "fr-par-1"},
		"too many hosts":               {filepath.Join(base, "x"), func(s *sandbox.Seed) { s.Hosts = 1 << 30 }, "hosts"},
		"less than none":               {filepath.Join(base, "x"), func(s *sandbox.Seed) { s.Hosts = -1 }, "hosts"},
		"a faulty reference":           {filepath.Join(base, "x"), func(s *sandbox.Seed) { s.SSHKeyRef = "k8s://a" }, "k8s://namespace/name/key"},
		"a faulty namespace":           {filepath.Join(base, "x"), func(s *sandbox.Seed) { s.SSHKeyRef = "k8s://../../x" }, ".."},
	} {
		with := seed(2)
		if test.change != nil {
			test.change(&with)
		}
		w, err := sandbox.Open(test.dir, with)
		if w != nil || err == nil || !strings.Contains(err.Error(), test.contains) {
			t.Errorf("%s: %v, want an error with %q", name, err, test.contains)
		}
	}
	left, err := os.ReadDir(base)
	if err != nil || len(left) != 1 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

func TestOpenOfEmptyFolderAndLink(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	real := filepath.Join(base, "real")
	must(t, os.Mkdir(real, 0o700))
	link := filepath.Join(base, "link")
	must(t, os.Symlink("real", link))
	open(t, link, seed(1))
	if !sandbox.Exists(real) || !sandbox.Exists(link) {
		t.Error("the link has no world")
	}
}

func TestBrokenWorld(t *testing.T) {
	t.Parallel()
	w, dir := newWorld(t, 1)
	must(t, w.Close())
	path := filepath.Join(dir, "macfleet-sandbox.json")
	whole, err := os.ReadFile(path)
	must(t, err)
	for name, text := range map[string]string{
		"cut off":      string(whole[:len(whole)/2]),
		"other format": strings.Replace(string(whole), `"format": 1`, `"format": 99`, 1),
	} {
		must(t, os.WriteFile(path, []byte(text), 0o600))
		if _, err := sandbox.Open(dir, seed(1)); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v, want an error that names %s", name, err, path)
		}
	}
	if err := sandbox.Reset(dir); err != nil {
		t.Errorf("a broken world cannot be reset: %v", err)
	}
}

// TestUnwritableWorld puts a folder in the place of the lock, since modes do not stop root.
func TestUnwritableWorld(t *testing.T) {
	t.Parallel()
	w, dir := newWorld(t, 1)
	must(t, w.Close())
	path := filepath.Join(dir, "api.lock")
	must(t, errors.Join(os.Remove(path), os.Mkdir(path, 0o700)))
	if _, err := sandbox.Open(dir, seed(1)); err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "--sandbox=DIR") {
		t.Errorf("%v, want an error that names %s", err, path)
	}
}

func TestReset(t *testing.T) {
	t.Parallel()
	w, dir := newWorld(t, 2)
	hosts(t, w)
	must(t, w.Inject("acme-pool-01", "unreachable"))
	cache := filepath.Join(dir, sandbox.ArtifactsFolder)
	must(t, errors.Join(os.Mkdir(cache, 0o755), os.WriteFile(filepath.Join(cache, "receipt.json"), []byte("{}"), 0o600)))
	own := filepath.Join(dir, "notes.txt")
	must(t, os.WriteFile(own, []byte("mine"), 0o600))
	must(t, sandbox.Reset(dir))
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 || left[0].Name() != "notes.txt" {
		t.Errorf("left: %v %v", left, err)
	}
	if err := sandbox.Reset(dir); err == nil || !strings.Contains(err.Error(), "not a sandbox") {
		t.Errorf("a folder that is not a sandbox: %v", err)
	}
	if _, err := os.Stat(own); err != nil {
		t.Error(err)
	}
	must(t, os.Remove(own))
	open(t, dir, seed(1))
	must(t, sandbox.Reset(dir))
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the empty folder was not removed: %v", err)
	}
}
