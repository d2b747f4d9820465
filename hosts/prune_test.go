package hosts

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestPruneArtifacts keeps what a receipt names, and what is young.
func TestPruneArtifacts(t *testing.T) {
	labs(t, func(t *testing.T, l lab) {
		dir := filepath.Join(l.etc, "artifacts")
		l.tool("stat", `exec /usr/bin/stat -c %Y "$3"`)
		l.clock(1_000_000)
		kept, old, young := strings.Repeat("a1", 32), strings.Repeat("b2", 32), strings.Repeat("c3", 32)
		put := func(name string, at int64) {
			write(t, filepath.Join(dir, name), "x", 0o644)
			when := time.Unix(at, 0)
			must(t, os.Chtimes(filepath.Join(dir, name), when, when))
		}
		for _, name := range []string{kept, old, "." + old + ".part", "." + kept + ".download", "notes.txt", ".hidden"} {
			put(name, 1000)
		}
		put(young, 999_000)
		put("."+young+".part", 999_000)
		write(t, filepath.Join(l.etc, "tart.receipt"), "current "+strings.Repeat("0", 64)+" 2\nprevious "+kept+" 1\n", 0o644)
		prune := func() {
			if a, _ := l.run(0, own("artifact-prune", "root", dir, "86400")); a.Exit != 0 || a.Stderr != "" {
				t.Errorf("%+v", a)
			}
		}
		before := listed(t, dir)
		unread := own("artifact-prune", "root", dir, "86400")
		unread.Script = "cat() { return 1; }\n" + unread.Script
		if a, _ := l.run(0, unread); a.Exit == 0 || listed(t, dir) != before {
			t.Errorf("with a receipt that cannot be read: %+v, left are %q", a, listed(t, dir))
		}
		prune()
		if got, want := listed(t, dir), strings.Join([]string{"." + young + ".part", ".hidden", kept, young, "notes.txt"}, " "); got != want {
			t.Errorf("left are %q, want %q", got, want)
		}
		if a, _ := l.run(0, own("artifact-prune", "root", dir, "-1")); a.Exit != 0 || a.Stderr != "" { // what it belonged to was removed
			t.Errorf("%+v", a)
		}
		if got, want := listed(t, dir), strings.Join([]string{".hidden", kept, "notes.txt"}, " "); got != want {
			t.Errorf("left are %q, want %q", got, want)
		}
		must(t, os.RemoveAll(dir))
		prune()
	})
}
