package hosts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/macfleet/macfleet/internal/scripttest"
	"github.com/macfleet/macfleet/internal/secret"
	"github.com/macfleet/macfleet/plan"
)

// lines are the two ways to a lab. A file "cut.PATH" in its state cuts one: its
// connections break and new ones fail.
type lines struct {
	lab
	peers map[string]*peer
	key   ssh.Signer
	execs atomic.Int32
	// lose says of an exec, by its number, whether the line breaks before it is run
	// or after, before its answer.
	lose func(n int32) (before, after bool)
}

func newLines(t testing.TB) *lines {
	t.Helper()
	needRoot(t)
	need(t, "dash", "perl")
	n := &lines{lab: newLab(t, []string{"dash"}), peers: make(map[string]*peer), key: newKey(t)}
	s := &server{key: n.key, command: n.command}
	for _, path := range []string{Tailscale, Public} {
		n.peers[path] = listen(t, s.handle)
	}
	return n
}

// command runs what a client sends, and then lets happen what it did to the lines.
func (n *lines) command(ch ssh.Channel, command string) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var before, after bool
	if number := n.execs.Add(1); n.lose != nil {
		before, after = n.lose(number)
	}
	if before {
		n.peers[Tailscale].cut()
		return
	}
	cmd := exec.CommandContext(ctx, "dash", "-c", n.here(command))
	cmd.Stdin, cmd.Stdout, cmd.Stderr = ch, ch, ch.Stderr()
	if after {
		cmd.Stdout, cmd.Stderr = io.Discard, io.Discard
	}
	_ = cmd.Run()
	once := os.Remove(filepath.Join(n.State, "once")) == nil
	for path, p := range n.peers {
		if once || after || n.cut(path) {
			p.cut()
		}
	}
	exit(ch, uint32(max(0, cmd.ProcessState.ExitCode())))
}

func (n *lines) cut(path string) bool {
	_, err := os.Stat(filepath.Join(n.State, "cut."+path))
	return err == nil
}

// dial also lets the time pass after which a host without a login undoes the change: at a path's second dial that
// fails, so that a confirmation over the other path would come before.
func (n *lines) dial(ctx context.Context, network, address string) (net.Conn, error) {
	path := Public
	if strings.HasPrefix(address, "100.") {
		path = Tailscale
	}
	if n.cut(path) {
		switch {
		case n.read(n.State, "patient") == "":
		case n.read(n.State, "failed."+path) == "":
			n.Set("failed."+path, "yes")
		default:
			n.clock(9000)
			n.daemon(0)
		}
		return nil, errors.New("the line is cut")
	}
	return (&net.Dialer{}).DialContext(ctx, network, n.peers[path].listener.Addr().String())
}

func (n *lines) client(change func(*Options)) *Client {
	o := Options{User: me(n.T), Key: newKey(n.T), Dial: n.dial, Prologue: n.prologue(), Via: []string{Tailscale, Public},
		Tailnet: devices(map[string]string{"acme-1": "100.64.0.1"}), Poll: 5 * time.Millisecond, Deadlines: patient()}
	change(&o)
	return New(o)
}

// guardedChange is a change whose scripts leave a line in the lab's log.
func (n *lines) guardedChange(script string) plan.Change {
	restore := &plan.Command{Name: "restore", As: plan.Root, Script: "echo restored >>" + n.State + "/log; rm -f " + n.State + "/cut.*\n"}
	return plan.Change{Command: plan.Command{Name: "change", As: plan.Root, Script: "echo changed >>" + n.State + "/log\n" + script},
		Guard: &plan.Guard{Restore: restore, Persist: plan.Command{Name: "persist", As: plan.Root, Script: "echo persisted >>" + n.State + "/log\n"}}}
}

// TestRunGuarded also has changes that nothing takes back: new connections must answer anyway.
func TestRunGuarded(t *testing.T) {
	t.Parallel()
	const everything = "touch STATE/cut.public STATE/cut.tailscale"
	for _, tt := range []struct {
		name    string
		script  string // STATE is the lab's state
		before  string // a path that is cut before
		log     string
		code    string // of the error; "" = none
		text    string
		failed  string // text of the error inside
		unarmed bool
	}{
		{"stands", ":", "", "changed persisted", "", "", "", false},
		{"one path did not work before", ":", Tailscale, "changed persisted", "", "", "", false},
		{"the old line breaks, new ones stand", "touch STATE/once", "", "changed persisted", "", "", "", false},
		{"cuts everything", everything, "", "changed restored", "rolled-back", "vm_firewall was undone: no confirmation within", "the line is cut", false},
		{"cuts the path in use", "touch STATE/cut.tailscale", "", "changed restored", "rolled-back", "was undone", "no new connection over tailscale", false},
		{"cuts the other path", "touch STATE/cut.public", "", "changed restored", "rolled-back", "was undone", "no new connection over public", false},
		{"fails", "echo oh >&2; exit 7", "", "changed restored", "rolled-back", "the change failed", "change on acme-1 failed with exit code 7: oh", false},
		{"fails and cuts", everything + "; exit 7", "", "changed restored", "rolled-back", "no confirmation within", "", false},
		{"succeeds, unarmed", ":", "", "changed persisted", "", "", "", true},
		{"fails, unarmed", "exit 7", "", "changed", "", "", "change on acme-1 failed with exit code 7", true},
		{"cuts a path, unarmed", "touch STATE/cut.public", "", "changed", "cut-off", "no new connection over public", "", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			n := newLines(t)
			if tt.before != "" {
				n.Set("cut."+tt.before, "")
			}
			conn := connect(t, n.client(func(o *Options) {
				if tt.unarmed {
					o.Deadlines.Undo, o.Deadlines.Return = 50*time.Millisecond, 50*time.Millisecond
				}
			}), acme1())
			ch := n.guardedChange(n.words().Replace(tt.script))
			if tt.unarmed {
				ch.Guard.Restore = nil
			} else {
				n.Set("patient", "yes")
			}
			err := conn.RunGuarded(within(t), "vm_firewall", ch)
			is(t, "log", strings.Join(strings.Fields(n.read(n.State, "log")), " "), tt.log)
			if tt.code != "" {
				wantError(t, err, tt.code, Undoing, tt.text)
			}
			if (err != nil) != (tt.code+tt.failed != "") || err != nil && !strings.Contains(err.Error(), tt.failed) {
				t.Errorf("error = %v, want %q", err, tt.failed)
			}
			if tt.unarmed {
				return
			}
			if tt.code != "" && !strings.Contains(err.Error(), ": vm_firewall was undone: ") {
				t.Error(err)
			}
			// The connection continues, whichever it is.
			if a, err := conn.Run(within(t), plan.Command{Name: "later", Script: "echo later", As: plan.Login}, secret.Value{}); err != nil || a.Stdout != "later\n" {
				t.Errorf("later: %+v, %v", a, err)
			}
			is(t, "left behind", strings.TrimSpace(strings.Replace(n.undoDir(), "undone", "", 1)), "")
			if seen := conn.Observe(within(t), nil); seen.Pinned || seen.Trouble != nil || (seen.Undone != nil) != (tt.code != "") {
				t.Errorf("pinned %t, trouble %v, undone %+v", seen.Pinned, seen.Trouble, seen.Undone)
			}
		})
	}
}

// TestRunGuardedNoAnswer: a host that does not come back is not called rolled back.
func TestRunGuardedNoAnswer(t *testing.T) {
	t.Parallel()
	n := newLines(t)
	conn := connect(t, n.client(func(o *Options) { o.Deadlines.Undo, o.Deadlines.Return = 2*time.Second, 50*time.Millisecond }), acme1())
	ch := n.guardedChange("touch " + n.State + "/cut.public " + n.State + "/cut.tailscale")
	err := conn.RunGuarded(within(t), "vm_firewall", ch)
	wantError(t, err, "cut-off", Undoing, "unknown whether the change is active: no new connection over tailscale: acme-1: the line is cut; no new connection over public")
	if remedy := asError(t, err).Remedy; !strings.Contains(remedy, "macfleet reboot acme-1: ") {
		t.Errorf("remedy %q", remedy)
	}
	conn.Close()
}

// breaks are the kinds of places at which a line breaks: before the host runs each exec, and after.
func breaks(execs int) (kinds []string) {
	for n := range execs {
		kinds = append(kinds, fmt.Sprintf("exec %d, before", n+1), fmt.Sprintf("exec %d, after", n+1))
	}
	return kinds
}

// TestRunGuardedInterrupted breaks the line at every exec that is this run's, before the
// host runs it and after. Whatever this side knows then, on the host the change is
// or was undone: never both and never neither.
func TestRunGuardedInterrupted(t *testing.T) {
	t.Parallel()
	for place := range scripttest.Places(t, breaks(6)) {
		number, ran := int32(place+1)/2, place%2 == 0
		t.Run(fmt.Sprintf("exec %d, run %t", number, ran), func(t *testing.T) {
			t.Parallel()
			n := newLines(t)
			n.lose = func(at int32) (before, after bool) { return at == number && !ran, at == number && ran }
			short := func(o *Options) {
				if number == 2 && !ran { // do not wait for a change that never started
					o.Deadlines.Undo, o.Deadlines.Return = 2*time.Second, 50*time.Millisecond
				}
			}
			conn := connect(t, n.client(short), acme1())
			err := conn.RunGuarded(within(t), "vm_firewall", n.guardedChange(":"))
			conn.Close()
			stands := strings.Contains(n.undoDir(), "confirmed.") || strings.Contains(n.read(n.State, "log"), "persisted")
			n.clock(9000)
			n.daemon(0)
			log := strings.Join(strings.Fields(n.read(n.State, "log")), " ")
			restored := strings.HasSuffix(log, "restored")
			if strings.Contains(log, "changed") && stands == restored {
				t.Errorf("log %q, confirmed %t, error %v", log, stands, err)
			}
			if err == nil && log != "changed persisted" {
				t.Errorf("it is called a success: %q", log)
			}
			// The host remembers the answers of the change and of its confirmation.
			if ran && (number == 2 || number == 3) && err != nil {
				t.Error(err)
			}
		})
	}
}

func TestRunGuardedRefuses(t *testing.T) {
	t.Parallel()
	n := newLines(t)
	conn := connect(t, n.client(func(*Options) {}), acme1())
	for text, change := range map[string]func(*plan.Change){
		"no undo":          func(c *plan.Change) { c.Guard = nil },
		"by root":          func(c *plan.Change) { c.Command.As = plan.Login },
		"can have an undo": func(c *plan.Change) { c.Guard.Restore.As = plan.Login },
		"not have input":   func(c *plan.Change) { c.Input = plan.LoginPassword },
		"NUL byte":         func(c *plan.Change) { c.Command.Args = []string{"\x00"} },
	} {
		ch := n.guardedChange(":")
		change(&ch)
		if err := conn.RunGuarded(within(t), "vm_firewall", ch); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("error = %v, want %q", err, text)
		}
	}
	is(t, "what was done", n.undoDir()+n.read(n.State, "log"), "")
	if a, _ := n.run(0, n.arm("a", "60")); a.Exit != 0 {
		t.Fatalf("%+v", a)
	}
	err := conn.RunGuarded(within(t), "other", n.guardedChange(":"))
	wantError(t, err, "undo-armed", Undoing, "a change of vm_firewall is not confirmed yet; the host undoes it within 1m0s")
	conn.Close()
}
