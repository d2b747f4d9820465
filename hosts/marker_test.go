package hosts

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/ssh"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/scripttest"
	"github.com/macfleet/macfleet/plan"
)

// disk is a peer that runs the commands for real, with a folder in place of
// /etc/macfleet, where no test may write.
func disk(t testing.TB, dir string) *server {
	t.Helper()
	need(t, "dash", "perl")
	return &server{key: newKey(t), command: func(ch ssh.Channel, command string) {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		cmd := exec.CommandContext(ctx, "dash", "-c", strings.ReplaceAll(command, "/etc/macfleet", dir))
		cmd.Stdin, cmd.Stdout, cmd.Stderr = ch, ch, ch.Stderr()
		_ = cmd.Run()
		exit(ch, uint32(max(0, cmd.ProcessState.ExitCode())))
	}}
}

// TestDropClaim takes a claim back together with what gives root, but not if there is a marker, and no other
// run's claim.
func TestDropClaim(t *testing.T) {
	t.Parallel()
	needRoot(t)
	dir := filepath.Join(openDir(t), "etc")
	must(t, os.Mkdir(dir, 0o700))
	p := listen(t, disk(t, dir).handle)
	target := acme1()
	target.Run = &plan.Run{ID: "k3h7w2mq5a", Who: "ann@laptop", Epoch: 1}
	conn := connect(t, New(Options{User: me(t), Key: newKey(t), Dial: p.dial, Deadlines: patient()}), target)
	ours, theirs := acmeClaim(), acmeClaim()
	theirs.Nonce = "m"
	must(t, second(conn.Claim(within(t), ours)))
	root, marker := filepath.Join(openDir(t), "sudoers"), filepath.Join(dir, "host.json")
	write(t, root, "x", 0o440)
	write(t, marker, "{}", 0o644)
	for _, step := range []struct {
		claim plan.Claim
		there bool
	}{{ours, true}, {theirs, true}, {ours, false}} {
		err := conn.DropClaim(within(t), step.claim, root)
		_, rerr := os.Stat(root)
		_, cerr := os.Stat(filepath.Join(dir, "claim.json"))
		if err != nil || (rerr == nil) != step.there || (cerr == nil) != step.there {
			t.Errorf("dropping the claim %+v: %v; root's file %v, claim %v", step.claim, err, rerr, cerr)
		}
		_ = os.Remove(marker) // gone behind the first
	}
	if left, err := filepath.Glob(filepath.Join(dir, "runs", "*.left")); err != nil || len(left) != 1 {
		t.Errorf("the host does not know that the run is done with it: %q, %v", left, err)
	}
}

// TestClaimAndMarker goes through a host's whole way into a fleet.
func TestClaimAndMarker(t *testing.T) {
	t.Parallel()
	needRoot(t)
	bin, dir := filepath.Join(openDir(t), "bin"), filepath.Join(openDir(t), "etc")
	must(t, os.Mkdir(dir, 0o700))
	write(t, filepath.Join(bin, "sw_vers"), "#!/bin/sh\necho 26.3\n", 0o755)
	write(t, filepath.Join(bin, "ioreg"), "#!/bin/sh\ncat <<'E'\n"+ioregText+"E\n", 0o755)
	p := listen(t, disk(t, dir).handle)
	conn := connect(t, New(Options{User: me(t), Key: newKey(t), Dial: p.dial, Deadlines: patient(), Prologue: withStubs(bin)}), acme1())

	seen := conn.Observe(within(t), nil)
	if seen.Trouble != nil || !seen.Marker.IsAbsent() || !seen.Claim.IsAbsent() {
		t.Fatalf("a clean host shows %+v", seen)
	}
	ours, theirs := acmeClaim(), acmeClaim()
	theirs.Configuration, theirs.Nonce = "acme's other", "m"
	for _, claim := range []plan.Claim{ours, theirs, ours} {
		got, err := conn.Claim(within(t), claim)
		must(t, err)
		is(t, "the claim on the host", got, ours)
	}
	for _, marker := range []plan.Marker{acmeMarker(), acmeMarker().With("power", plan.Digest{Wanted: "a", Facts: "it's"})} {
		must(t, conn.WriteMarker(within(t), marker, ""))
		seen = conn.Observe(within(t), nil)
		want := plan.HostSeen{Path: Public, Marker: inventory.Present(marker), Claim: inventory.Present(ours), Serial: inventory.Present("C07ACME001"),
			OSVersion: inventory.Present("26.3"), Jobs: inventory.Unread[[]plan.Job]("exit code 1: launchctl does not print its jobs"), Root: true, Key: seen.Key, Fingerprint: seen.Fingerprint, LoginKey: seen.LoginKey, Facts: seen.Facts}
		is(t, "seen", seen, want)
	}
	other := connect(t, New(Options{User: me(t), Key: newKey(t), Dial: p.dial, Deadlines: patient(), Prologue: withStubs(bin)}), acme1())
	held := acmeMarker()
	held.Hold = &inventory.Hold{Who: "sam@desk", Reason: "it's\n\"loud\"", Until: time.Unix(1794000000, 0).UTC()}
	if err := other.WriteMarker(within(t), held, ""); err != nil {
		t.Fatal(err) // who has seen none writes his own
	}
	if err := conn.WriteMarker(within(t), acmeMarker(), "power"); !errors.Is(err, plan.ErrMarkerMoved) {
		t.Errorf("over a marker that no one here has seen: %v", err)
	}
	if m, _ := conn.Observe(within(t), nil).Marker.Get(); cmp.Diff(held, m) != "" {
		t.Errorf("the hold is gone: %+v", m)
	}
	if err := conn.WriteMarker(within(t), acmeMarker(), "power"); err != nil {
		t.Errorf("over a marker that was seen: %v", err)
	}
	left, err := os.ReadDir(dir)
	must(t, err)
	for _, entry := range left {
		info, err := entry.Info()
		must(t, err)
		if info.Mode() != 0o644 || len(left) != 2 {
			t.Errorf("%s has mode %v among %d files, want 0644 and two files", entry.Name(), info.Mode(), len(left))
		}
	}

	// Only the verified step is not pending any more.
	pending := filepath.Join(dir, "pending")
	write(t, filepath.Join(pending, "power"), "", 0o644)
	write(t, filepath.Join(pending, "tart"), "", 0o644)
	must(t, conn.WriteMarker(within(t), acmeMarker(), "power"))
	is(t, "pending", listed(t, pending), "tart")
	must(t, os.RemoveAll(pending))

	// A script that fails is an error, and says what the tool said.
	broken := filepath.Join(dir, "claim.json")
	must(t, os.Remove(broken))
	must(t, os.Symlink("nowhere", broken))
	if got, err := conn.Claim(within(t), ours); err == nil || !strings.Contains(err.Error(), "claim-create on acme-1 failed with exit code 1") {
		t.Errorf("claim over a broken link = %+v, %v", got, err)
	}
	must(t, os.RemoveAll(dir))
	if err := conn.WriteMarker(within(t), acmeMarker(), ""); err == nil || !strings.Contains(err.Error(), "marker-write on acme-1 failed with exit code 1: ") {
		t.Errorf("marker without its folder = %v", err)
	}
}

// needRoot fails in CI, and skips elsewhere, when root is not available without
// a password.
func needRoot(t testing.TB) {
	t.Helper()
	if !hasRoot() {
		scripttest.Lacking(t, "this test writes files of root: run it as root or with a sudo that asks for no password")
	}
}

func hasRoot() bool { return isRoot() || exec.Command("sudo", "-n", "true").Run() == nil }
