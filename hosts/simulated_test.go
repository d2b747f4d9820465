package hosts

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/macfleet/macfleet/fleet"
	simulated "github.com/macfleet/macfleet/internal/sandbox/mac"
	"github.com/macfleet/macfleet/internal/secret"
	"github.com/macfleet/macfleet/plan"
)

// simulation is a simulated Mac behind a dialer that a test may damage.
type simulation struct {
	*simulated.Machine
	t      *testing.T
	key    ssh.Signer
	dialed func() error // before each dial
	to     string
}

func newSimulation(t *testing.T) *simulation {
	t.Helper()
	s := &simulation{t: t, key: newKey(t)}
	m, err := simulated.Create(filepath.Join(t.TempDir(), "mac"), simulated.Factory{Serial: "C07ACME001", OSVersion: "26.3", User: "m1",
		AuthorizedKeys: []string{string(ssh.MarshalAuthorizedKey(s.key.PublicKey()))}, PasswordlessSudo: true})
	must(t, err)
	s.Machine = m
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	s.to = ln.Addr().String()
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { _ = m.Serve(context.Background(), conn, func(string) {}) })
		}
	})
	t.Cleanup(func() { _ = ln.Close(); serving.Wait() })
	return s
}

func (s *simulation) client() *Client {
	dial := func(ctx context.Context, network, _ string) (net.Conn, error) {
		if s.dialed != nil {
			if err := s.dialed(); err != nil {
				return nil, err
			}
		}
		return (&net.Dialer{}).DialContext(ctx, network, s.to)
	}
	return New(Options{User: "m1", Key: s.key, Dial: dial, Deadlines: patient(), Poll: 5 * time.Millisecond})
}

// text returns a file of the Mac, or "".
func (s *simulation) text(path string) string {
	data, err := s.ReadFile(path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}

// on returns a command that writes a word into a file of the Mac.
func on(path, word string) plan.Command {
	return plan.Command{Name: word, As: plan.Root, Script: `printf '%s\n' "$2" >"$1"` + "\n", Args: []string{path, word}}
}

// TestSimulatedUndo lets a simulated Mac's own launchd take a change back.
func TestSimulatedUndo(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		cuts  bool
		after func(*simulation) error // once no login succeeds
		why   string
	}{
		{"stands", false, nil, ""},
		{"taken back", true, func(s *simulation) error { return s.Advance(2 * time.Minute) }, "no confirmation within 60 s"},
		{"restarted", true, func(s *simulation) error { return s.Reboot(context.Background()) }, "the Mac was restarted"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newSimulation(t)
			restore := on("/var/live", "old")
			ch := plan.Change{Command: on("/var/live", "new"), Guard: &plan.Guard{Restore: &restore, Persist: on("/var/kept", "new")}}
			conn := connect(t, s.client(), acme1())
			s.dialed = func() error {
				if !tt.cuts || s.text("/var/live") != "new" {
					return nil
				}
				return errors.Join(errors.New("the line is cut"), tt.after(s), s.Settle(context.Background()))
			}
			for range 2 { // the second time the job exists already
				err := conn.RunGuarded(within(t), "vm_firewall", ch)
				live, kept := "new", "new"
				if tt.why != "" {
					live, kept = "old", ""
					wantError(t, err, "rolled-back", Undoing, "vm_firewall was undone: "+tt.why)
				} else {
					must(t, err)
				}
				is(t, "live and kept", s.text("/var/live")+","+s.text("/var/kept"), live+","+kept)
				seen := conn.Observe(within(t), nil)
				if seen.Trouble != nil || (seen.Undone != nil) != (tt.why != "") || seen.Undone != nil && seen.Undone.Why != tt.why {
					t.Errorf("trouble %+v, undone %+v", seen.Trouble, seen.Undone)
				}
			}
			conn.Close()
		})
	}
}

func TestSimulatedJobs(t *testing.T) {
	t.Parallel()
	s := newSimulation(t)
	conn := connect(t, s.client(), acme1())
	for as, want := range map[plan.User]string{plan.Root: "root", plan.Login: "m1"} {
		for range 2 {
			a, err := conn.RunDetached(within(t), "build_tools", detachedChange(as, `id -un; printf '<%s>' "$@"; echo oh >&2; exit 7`, "it's", "", "a\n"))
			if !scriptFailed(err) || a != (plan.Answer{Exit: 7, Stdout: want + "\n<it's><><a\n>", Stderr: "oh\n"}) {
				t.Errorf("%s: %+v, %v", as, a, err)
			}
		}
	}
	ask := plan.Command{Name: "ask", As: plan.Gui, Script: "id -un; exit 3"}
	_, err := conn.Run(within(t), ask, secret.Value{})
	wantError(t, err, "no-gui-session", Talking, "no gui session of m1")
	must(t, s.LogIn())
	for range 2 {
		if a, err := conn.Run(within(t), ask, secret.Value{}); !scriptFailed(err) || a != (plan.Answer{Exit: 3, Stdout: "m1\n"}) {
			t.Errorf("%+v, %v", a, err)
		}
		if a, err := conn.RunDetached(within(t), "local_network", plan.Change{Command: ask}); !scriptFailed(err) || a != (plan.Answer{Exit: 3, Stdout: "m1\n"}) {
			t.Errorf("%+v, %v", a, err)
		}
	}
	if left, err := s.Run(within(t), "root", "ls -A /etc/macfleet/jobs"); err != nil || len(left.Stdout) > 0 {
		t.Errorf("left behind: %s%s, %v", left.Stdout, left.Stderr, err)
	}
}

// TestSimulatedDelivery brings an artifact twice: the second time it exists.
func TestSimulatedDelivery(t *testing.T) {
	t.Parallel()
	s := newSimulation(t)
	conn := connect(t, s.client(), acme1())
	d := deliveryOf(random(100_000))
	for i := range 2 {
		got, err := conn.Deliver(within(t), d.Delivery, d.source)
		if want := (Delivered{There: i == 1, Sent: int64(1-i) * 100_000}); err != nil || got != want {
			t.Fatalf("%+v, %v", got, err)
		}
	}
	r, err := s.Run(within(t), "root", "cd /usr/local/lib/macfleet/artifacts && stat -f '%Su:%Sg %Lp' . * && ls -A | grep -c .")
	if got, rerr := s.ReadFile(d.Artifact.HostPath()); err != nil || rerr != nil || string(got) != string(d.data) || string(r.Stdout) != "root:wheel 755\nroot:wheel 644\n1\n" {
		t.Errorf("%v, %v, %d bytes, %s%s", err, rerr, len(got), r.Stdout, r.Stderr)
	}
	d.Space = 1 << 60
	other := deliveryOf(random(1000))
	other.Space = 1 << 60
	_, err = conn.Deliver(within(t), other.Delivery, other.source)
	wantError(t, err, "disk-full", Delivering, "needs 1153 PB")
}

// TestSimulatedFetch lets a simulated Mac download, as the world lets it.
func TestSimulatedFetch(t *testing.T) {
	t.Parallel()
	data := random(1000)
	for how, wants := range map[string][]string{ // codes, run after run
		"steady": {""}, "breaks-once": {"download-failed", ""}, "wrong-bytes": {"wrong-artifact", "wrong-artifact"}, "gone": {"download-failed"}, "slow": {"download-failed"},
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			s := newSimulation(t)
			s.Connect(simulated.Outside{Download: func(string) (io.ReadSeekCloser, error) { return nopClose{bytes.NewReader(data)}, nil }})
			must(t, s.SetSwitch("download", how))
			conn := connect(t, s.client(), acme1())
			d := deliveryOf(data)
			d.Artifact.Source, d.Artifact.Fetch = "https://releases.acme.dev/tool", fleet.FetchHost
			for _, want := range wants {
				_, err := conn.Deliver(within(t), d.Delivery, nil)
				if want != "" {
					wantError(t, err, want, Delivering, "artifact.kubelet: ")
				} else if got, rerr := s.ReadFile(d.Artifact.HostPath()); err != nil || rerr != nil || string(got) != string(data) {
					t.Errorf("%v, %v, %d bytes", err, rerr, len(got))
				}
			}
			if n, err := s.Downloaded(); err != nil || wants[len(wants)-1] == "" && n != int64(len(data)) {
				t.Errorf("%d bytes were downloaded, %v", n, err)
			}
			if sent := conn.client.Stats().Sent; sent > 200_000 {
				t.Errorf("%d bytes were sent", sent)
			}
		})
	}
}

type nopClose struct{ *bytes.Reader }

func (nopClose) Close() error { return nil }

// TestSimulatedFirewall loads rules that cut the line, also the one that loads
// them: the Mac flushes them by itself.
func TestSimulatedFirewall(t *testing.T) {
	t.Parallel()
	s := newSimulation(t)
	setup := `echo 'anchor "acme"' >>/etc/pf.conf && pfctl -f /etc/pf.conf && pfctl -s info | grep -q Enabled`
	if r, err := s.Run(within(t), "root", setup); err != nil || r.Exit != 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	must(t, s.ArmCut(false))
	conn := connect(t, s.client(), acme1())
	s.dialed = func() error {
		if reachable, err := s.Reachable(); err != nil || reachable {
			return err
		}
		return errors.Join(errors.New("the line is cut"), s.Advance(time.Minute), s.Settle(context.Background()))
	}
	restore := plan.Command{Name: "restore", As: plan.Root, Script: `pfctl -a acme -F rules`}
	err := conn.RunGuarded(within(t), "vm_firewall", plan.Change{
		Command: plan.Command{Name: "load", As: plan.Root, Script: `echo 'block drop all' | pfctl -a acme -f -`},
		Guard:   &plan.Guard{Restore: &restore, Persist: on("/var/kept", "new")}})
	wantError(t, err, "rolled-back", Undoing, "vm_firewall was undone: no confirmation within 60 s")
	if a, err := conn.Run(within(t), plan.Command{Name: "rules", As: plan.Root, Script: "pfctl -a acme -sr"}, secret.Value{}); err != nil || a.Exit != 0 || a.Stdout != "" {
		t.Errorf("%+v, %v", a, err)
	}
	is(t, "kept, though not confirmed", s.text("/var/kept"), "")
}
