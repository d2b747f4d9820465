package archtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestExampleStep applies the example of docs/extending.md to a copy of the tree: it changes at most
// nine files and no guard test, and passes the tests of its packages.
func TestExampleStep(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it compiles a second tree")
	}
	dir := copied(t)
	patch, err := os.ReadFile(filepath.Join(dir, "docs", "extending", "step.patch"))
	if err != nil {
		t.Fatal(err)
	}
	files := regexp.MustCompile(`(?m)^\+\+\+ b/(.*)$`).FindAllStringSubmatch(string(patch), -1)
	for _, f := range files {
		if strings.HasPrefix(f[1], "internal/") || strings.HasSuffix(f[1], "_test.go") && f[1] != "steps/guest_account_test.go" {
			t.Errorf("a step touches %s", f[1])
		}
	}
	if n := len(files); n > 9 { // docs/codes.md and docs/reference/configuration.md are generated
		t.Errorf("a step touches %d files", n)
	}
	in(t, dir, "git", "apply", "docs/extending/step.patch")
	// With -trimpath a package has one place in the build cache, whatever its folder is. Each
	// package is built once: the guard tests write docs/codes.md in the run that reads it.
	test := []string{"test", "-trimpath", "-vet=off", "-run", "Outline|Faults|Values|^TestScripts$|NoWish|Guest|OneStepOnePlace|EveryField|^TestCodes|Schema|Reference"}
	in(t, dir, "go", append(test, "./internal/archtest", "-update")...)
	in(t, dir, "go", "test", "-trimpath", "-vet=off", "-run", "^TestReference$", "./fleet/load", "-update")
	in(t, dir, "go", append(test, "./fleet/load", "./steps")...)
}

// copied returns a folder with the files of the tree that git tracks.
func copied(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	list, err := exec.Command("git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard").Output()
	if err != nil {
		t.Fatal(err)
	}
	for name := range strings.SplitSeq(strings.TrimRight(string(list), "\x00"), "\x00") {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			continue // deleted, but still in git's index
		}
		to := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// in runs a command in a folder outside any git repository.
func in(t *testing.T, dir, name string, args ...string) {
	t.Helper()
	c := exec.Command(name, args...)
	c.Dir = dir
	c.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir))
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
}
