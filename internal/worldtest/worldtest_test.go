package worldtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/macfleet/macfleet/internal/maintest"
)

func TestMain(m *testing.M) { maintest.Main(m) }

// listing lists a folder's files with mode, time, content, and which of them are one file.
func listing(t *testing.T, dir string) string {
	t.Helper()
	out, err := exec.Command("sh", "-c", `cd "$1" && find . -printf '%p %m %n %T@ %l\n' | sort && find . -type f -exec cksum {} + | sort && [ one -ef again ] && echo linked`, "sh", dir).Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// TestCopy: a copy has the files of the original with their modes, times and links, and shares none with it.
func TestCopy(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "from")
	const files = `mkdir -p "$1/in/ner" && cd "$1" && echo one >one && ln one again && ln -s one link && ln -s missing dangling && echo two >in/ner/two &&
chmod 500 one && chmod 750 in && touch -d '2026-01-02T03:04:05.678' one in/ner/two in/ner in`
	if out, err := exec.Command("sh", "-c", files, "sh", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	to := Copied(t, dir)
	want := listing(t, dir)
	if got := listing(t, to); got != want || !strings.HasSuffix(got, "linked\n") {
		t.Errorf("the copy has\n%s\nand the original\n%s", got, want)
	}
	if err := os.WriteFile(filepath.Join(to, "in/ner/two"), []byte("changed"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := listing(t, dir); got != want {
		t.Errorf("with the copy the original changed to\n%s", got)
	}
}

// TestPrepared: a shape is prepared once, and each test has its own copy.
func TestPrepared(t *testing.T) {
	t.Parallel()
	made := 0
	fill := func(dir string) {
		made++
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "file"), []byte(time.Now().String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	one, two, other := Prepared(t, "a shape", fill), Prepared(t, "a shape", fill), Prepared(t, "another shape", fill)
	if made != 2 || one == two {
		t.Errorf("prepared %d times, in %s and %s", made, one, two)
	}
	text := func(dir string) string {
		content, err := os.ReadFile(filepath.Join(dir, "file"))
		if err != nil {
			t.Fatal(err)
		}
		return string(content)
	}
	if text(one) != text(two) || text(one) == text(other) {
		t.Errorf("%s, %s and %s", text(one), text(two), text(other))
	}
}
