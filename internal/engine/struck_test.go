package engine_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/macfleet/macfleet/internal/sandbox/mac"
)

// TestApplyStruckAnywhere lets the line break, and everything on the host die,
// before each single tool that a first set-up runs there. The next run converges,
// with nothing doubled, nothing half-written, no wrong password and no healthy
// session ended.
func TestApplyStruckAnywhere(t *testing.T) {
	t.Parallel()
	clean, _ := world(t, 3)
	converges(t, run(t, clean, hostCore("production", 1)))
	want := remains(t, root(t, clean, names(t, clean)[0]))
	for name, kind := range map[string]mac.Strike{"the line breaks": mac.LineBreaks, "killed": mac.Killed} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for n := 0; strikeOnce(t, n, kind, want); n++ {
				if n > 2000 {
					t.Fatal("the set-up has no end")
				}
			}
		})
	}
}

// strikeOnce sets a host up with a strike after n tools. It reports whether the
// strike fell: not after the last tool.
func strikeOnce(t *testing.T, n int, kind mac.Strike, want []string) bool {
	t.Helper()
	w, _ := world(t, 3)
	e := run(t, w, hostCore("production", 1))
	p := planned(t, e)
	host := p.Hosts[0].Server.ID
	machine, err := w.Mac(host)
	if err != nil {
		t.Fatal(err)
	}
	machine.StrikeAfter(n, kind)
	performed(t, e, p)
	if !machine.Struck() {
		return false
	}
	before, err := machine.Screen()
	if err != nil {
		t.Fatal(err)
	}
	// A guarded change that was cut off is taken back by the host before anybody
	// may change it again.
	for range 3 {
		if r := apply(t, e); r.Converged() {
			break
		}
	}
	if r := apply(t, e); !r.Converged() || r.Done > 0 {
		t.Errorf("struck after %d tools: %d actions done, failures %v", n, r.Done, r.Failures)
	}
	if got := remains(t, root(t, w, host)); !slices.Equal(got, want) {
		t.Errorf("struck after %d tools:\n%s\nand not\n%s", n, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	after, err := machine.Screen()
	if err != nil {
		t.Fatal(err)
	}
	if before.User != "" && !after.Since.Equal(before.Since) {
		t.Errorf("struck after %d tools: a healthy session was ended", n)
	}
	for _, try := range tries(t, machine) {
		if !try.Right {
			t.Errorf("struck after %d tools: a wrong password was tried", n)
		}
	}
	return true
}

// remains lists the files in the places where macfleet writes, with what counts
// in them.
func remains(t *testing.T, root string) []string {
	t.Helper()
	var out []string
	for _, folder := range []string{"private/etc", "Library/LaunchDaemons", "Library/Preferences", "private/tmp", "Users/m1"} {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, d fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err != nil {
				return err
			}
			name, err := filepath.Rel(root, path)
			if err != nil || d.IsDir() {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			switch {
			case strings.HasSuffix(name, ".plist"), strings.HasSuffix(name, "host.json"), strings.HasSuffix(name, "claim.json"), strings.HasSuffix(name, "kcpassword"):
				text = nil // times, nonces, random bytes
			}
			out = append(out, fmt.Sprintf("%s %d bytes", name, len(text)))
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// tries are the password checks of a Mac.
func tries(t *testing.T, machine *mac.Machine) []mac.PasswordTry {
	t.Helper()
	all, err := machine.PasswordTries()
	if err != nil {
		t.Fatal(err)
	}
	return all
}
