package archtest

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/macfleet/macfleet/internal/scripttest"
)

// TestExampleStep runs the commands of docs/extending.md in a copy of the tree: the example, with its incident, changes at most
// twelve files and no test that exists, and passes the tests that the page names. Compiling the second tree is a tenth of
// make test, so without a share the patch is only applied.
func TestExampleStep(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it compiles a second tree")
	}
	patch := read(t, "docs/extending/step.patch")
	files := regexp.MustCompile(`(?m)^--- (.*)\n\+\+\+ b/(.*)$`).FindAllStringSubmatch(patch, -1)
	for _, f := range files {
		if strings.HasSuffix(f[2], "_test.go") && f[1] != "/dev/null" {
			t.Errorf("a step touches %s", f[2])
		}
	}
	if n := len(files); n == 0 || n > 12 { // docs/codes.md and the pages in docs/reference are generated
		t.Errorf("a step touches %d files", n)
	}
	if _, err := os.Stat(filepath.Join(root, "steps", "guest_account.go")); err == nil {
		return // this is such a copy
	}
	_, block, _ := strings.Cut(read(t, "docs/extending.md"), "Try it:\n\n```sh\n")
	block, _, _ = strings.Cut(block, "```")
	commands := strings.Split(strings.TrimSpace(block), "\n")
	if len(commands) < 3 {
		t.Fatalf("docs/extending.md has the commands %q", commands)
	}
	if _, of := scripttest.Share(); of > scripttest.Shares {
		t.Log("only the patch is applied: with MACFLEET_TEST_SHARD the page's tests run too, in a second tree")
		commands = commands[:1]
	}
	dir := copied(t)
	for _, command := range commands {
		in(t, dir, command)
	}
}

// read returns a file of the tree.
func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
	must(t, err)
	return string(text)
}

// copied returns a folder with the files of the tree that git tracks.
func copied(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	list, err := exec.CommandContext(t.Context(), "git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard").Output()
	must(t, err)
	for name := range strings.SplitSeq(strings.TrimRight(string(list), "\x00"), "\x00") {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			continue // deleted, but still in git's index
		}
		to := filepath.Join(dir, name)
		must(t, os.MkdirAll(filepath.Dir(to), 0o755))
		must(t, os.WriteFile(to, text, 0o644))
	}
	return dir
}

// in runs a command of a page in a folder outside any git repository. With these flags go finds the packages that did not
// change in its cache, whatever their folder is.
func in(t *testing.T, dir, command string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, "sh", "-c", command)
	c.Dir, c.WaitDelay = dir, time.Second
	c.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir), "GOFLAGS=-trimpath -vet=off '-ldflags=-s -w'")
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", command, err, out)
	}
}
