package engine_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/macfleet/macfleet/hosts"
	"github.com/macfleet/macfleet/internal/overssh"
	"github.com/macfleet/macfleet/internal/sandbox"
	"github.com/macfleet/macfleet/internal/sandbox/mac"
)

// TestApplyInterruptedAnywhere lets the line break at each command of a first set-up,
// and everything on the host die before each tool that may change something. The
// next runs converge, with nothing doubled, nothing half-written, no wrong password
// and no healthy session ended.
func TestApplyInterruptedAnywhere(t *testing.T) {
	t.Parallel()
	clean, _ := converged(t, 3, hostCore("production", 1))
	want := remains(t, root(t, clean, member(t, clean)))
	eachInterruption(t, 4, func(t *testing.T, n int, interruption interruption) bool {
		return interruptOnce(t, n, interruption, want)
	})
}

// interruptOnce sets a host up with an interruption after n tools. It reports whether the
// interruption fell: not after the last tool.
func interruptOnce(t *testing.T, n int, interruption interruption, want []string) bool {
	t.Helper()
	declares(t, 4, "a change that was cut off is taken back before anyone may repeat it")
	w, _ := world(t, 3)
	e := run(t, w, hostCore("production", 1))
	p := planned(t, e)
	host := p.Hosts[0].Server.ID
	v := &victim{world: w, engine: e}
	v.is(t, host)
	machine, fell := v.machine, interruption(v, n)
	performed(t, e, p)
	if !fell() {
		return false
	}
	before, err := machine.SessionSince()
	must(t, err)
	for range 3 {
		if r := apply(t, e); r.Converged() {
			break
		}
		must(t, machine.Advance(2*time.Minute))
	}
	if p := planned(t, e); len(p.Actions) > 0 || !p.Summarise().Complete() {
		t.Errorf("interrupted after %d: %q is left", n, codesOf(p, p.Hosts[0].Name))
	}
	if got := remains(t, root(t, w, host)); !slices.Equal(got, want) {
		t.Errorf("interrupted after %d: files (-want +got):\n%s", n, cmp.Diff(want, got))
	}
	after, err := machine.SessionSince()
	must(t, err)
	if !before.IsZero() && !after.Equal(before) {
		t.Errorf("interrupted after %d: a healthy session was ended", n)
	}
	for _, try := range tries(t, machine) {
		if !try.Right {
			t.Errorf("interrupted after %d: a wrong password was tried", n)
		}
	}
	return true
}

// overtaken returns a client for which the host's clock runs ahead once an interruption
// has fallen: a change that was cut off is waited for as long as its undo may take.
func overtaken(t *testing.T, w *sandbox.World, machine *mac.Machine) overssh.Hosts {
	t.Helper()
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := w.DialContext(ctx, network, address)
		return clocked{conn, machine}, err
	}
	c := overssh.New(hosts.Options{User: "m1", Key: fleetKey(t, w), Dial: dial, Poll: time.Millisecond})
	t.Cleanup(c.Close)
	return c
}

// clocked is a connection whose every word takes two seconds of the host's time,
// once an interruption has fallen.
type clocked struct {
	net.Conn
	machine *mac.Machine
}

// Write passes the words on.
func (c clocked) Write(p []byte) (int, error) {
	if !c.machine.InterruptPending() {
		if err := c.machine.Advance(2 * time.Second); err != nil {
			return 0, err
		}
	}
	return c.Conn.Write(p)
}

// member is the name of a world's one member.
func member(t *testing.T, w *sandbox.World) string {
	t.Helper()
	all := names(t, w)
	i := slices.IndexFunc(all, func(name string) bool { return strings.HasPrefix(name, "acme-production-") })
	if i < 0 {
		t.Fatalf("no member among %q", all)
	}
	return all[i]
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
		must(t, err)
	}
	return out
}

// tries are the password checks of a Mac.
func tries(t *testing.T, machine *mac.Machine) []mac.PasswordTry {
	t.Helper()
	all, err := machine.PasswordTries()
	must(t, err)
	return all
}
