package hosts

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/ssh"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
)

// peer is whatever answers on a host's port 22.
type peer struct {
	dial      Dial
	listener  net.Listener
	accepting sync.WaitGroup
	open      sync.WaitGroup // connections that the client has not closed yet
}

const peerAddress = "192.0.2.1"

func acme1() Target { return target("acme-1", peerAddress) }

// listen serves each connection with handle, which must return once the client
// has closed it.
func listen(t testing.TB, handle func(net.Conn)) *peer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &peer{dial: book(map[string]string{peerAddress + ":22": l.Addr().String()}), listener: l}
	p.accepting.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			p.open.Go(func() {
				defer c.Close()
				handle(c)
			})
		}
	})
	t.Cleanup(func() { p.closed(t) })
	return p
}

// closed takes no more connections and fails when the client still holds one.
func (p *peer) closed(t testing.TB) {
	t.Helper()
	_ = p.listener.Close() // it may be closed already
	done := make(chan struct{})
	go func() { p.accepting.Wait(); p.open.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(patience):
		t.Fatal("the client left its connection open")
	}
}

// untilClosed returns when the client has closed the connection.
func untilClosed(c net.Conn) { _, _ = io.Copy(io.Discard, c) }

// server is a small SSH server.
type server struct {
	key      ssh.Signer
	refuse   bool // every login
	attempts atomic.Int32
	silent   bool                      // answers no keepalive
	channel  func(ssh.NewChannel)      // instead of opening it
	command  func(ssh.Channel, string) // what an exec does; nil: the command is refused
	hang     bool                      // an exec ends when the connection does
	config   func(*ssh.ServerConfig)   // more settings
}

func (s *server) handle(raw net.Conn) {
	config := &ssh.ServerConfig{PublicKeyCallback: func(ssh.ConnMetadata, ssh.PublicKey) (*ssh.Permissions, error) {
		s.attempts.Add(1)
		if s.refuse {
			return nil, errors.New("refused")
		}
		return nil, nil
	}}
	config.AddHostKey(s.key)
	if s.config != nil {
		s.config(config)
	}
	conn, channels, requests, err := ssh.NewServerConn(raw, config)
	if err != nil {
		return
	}
	defer conn.Close()
	var all sync.WaitGroup
	defer all.Wait()
	gone := make(chan struct{})
	defer close(gone)
	all.Go(func() {
		for r := range requests {
			if r.WantReply && !s.silent {
				_ = r.Reply(false, nil)
			}
		}
	})
	for n := range channels {
		if s.channel != nil {
			s.channel(n)
			continue
		}
		ch, in, err := n.Accept()
		if err != nil {
			return
		}
		all.Go(func() { s.session(ch, in, gone) })
	}
}

func (s *server) session(ch ssh.Channel, requests <-chan *ssh.Request, gone <-chan struct{}) {
	var all sync.WaitGroup
	defer all.Wait()
	for r := range requests {
		var exec struct{ Command string }
		ok := r.Type == "exec" && (s.command != nil || s.hang) && ssh.Unmarshal(r.Payload, &exec) == nil
		_ = r.Reply(ok, nil)
		if ok {
			all.Go(func() {
				defer ch.Close()
				if s.hang {
					<-gone
					return
				}
				s.command(ch, exec.Command)
			})
		}
	}
}

// exit ends a command.
func exit(ch ssh.Channel, code uint32) {
	_, _ = ch.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{code}))
}

// markOf reads the mark, which is the first line of an exchange's data.
func markOf(ch ssh.Channel) string {
	var line []byte
	for b := make([]byte, 1); ; {
		if _, err := ch.Read(b); err != nil || b[0] == '\n' {
			return string(line)
		}
		line = append(line, b[0])
	}
}

// patient are deadlines that no test reaches.
func patient() Deadlines {
	return Deadlines{Dial: patience, Handshake: patience, Question: patience, Change: patience,
		Exchange: 3 * patience, Silence: 3 * patience}
}

func impatient(change func(*Deadlines)) Deadlines {
	d := patient()
	change(&d)
	return d
}

func asError(t testing.TB, err error) *Error {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) {
		t.Fatalf("error = %v (%T), want an *Error", err, err)
	}
	return e
}

// wantError compares what a program and a person see of an error.
func wantError(t testing.TB, err error, code string, phase Phase, text string) {
	t.Helper()
	e := asError(t, err)
	if e.Host != "acme-1" || e.Code != code || e.Phase != phase {
		t.Errorf("error of %q has code %q in phase %q, want acme-1, %q, %q (%v)", e.Host, e.Code, e.Phase, code, phase, err)
	}
	if e.Remedy == "" {
		t.Errorf("%v: no remedy", err)
	}
	if !strings.Contains(err.Error(), text) {
		t.Errorf("error = %q, want it to hold %q", err, text)
	}
}

func TestConnectToDeadPeer(t *testing.T) {
	t.Parallel()
	const soon = 100 * time.Millisecond
	handshake := impatient(func(d *Deadlines) { d.Handshake = soon })
	silence := impatient(func(d *Deadlines) { d.Silence = soon })
	say := func(text string) func(net.Conn) {
		return func(c net.Conn) {
			_, _ = io.WriteString(c, text)
			untilClosed(c)
		}
	}
	hangUp := func(text string) func(net.Conn) { return func(c net.Conn) { _, _ = io.WriteString(c, text) } }
	const banner = "SSH-2.0-acme\r\n"
	tests := []struct {
		name      string
		handle    func(net.Conn)
		deadlines Deadlines
		text      string
	}{
		{"silent, until the handshake's deadline", untilClosed, handshake, "no answer within the deadline"},
		{"silent, until the deadline of silence", untilClosed, silence, "i/o timeout"},
		{"a banner and silence", say(banner), handshake, "no answer within the deadline"},
		{"a banner and silence, until the deadline of silence", say(banner), silence, "i/o timeout"},
		{"half a banner", say("SSH-2.0-ac"), handshake, "no answer within the deadline"},
		{"hangs up at once", hangUp(""), patient(), ""},
		{"hangs up after the banner", hangUp(banner), patient(), ""},
		{"another protocol", say("HTTP/1.1 400 Bad Request\r\n\r\n" + strings.Repeat("acme ", 100)), handshake, ""},
		{"an old protocol", say("SSH-1.5-acme\r\n"), handshake, ""},
		{"rubbish after the banner", say(banner + strings.Repeat("\xff", 64)), patient(), ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := listen(t, tt.handle)
			c := New(Options{User: "acme", Key: newKey(t), Dial: p.dial, Deadlines: tt.deadlines})
			_, err := c.Connect(within(t), acme1())
			wantError(t, err, "no-ssh-answer", Handshaking, tt.text)
			p.closed(t)
			if got := c.Stats(); got.Connections != 1 || got.Execs != 0 {
				t.Errorf("stats = %+v, want one connection and no exec", got)
			}
		})
	}
}

func TestConnectWhereNobodyIs(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	hangs := func(ctx context.Context, _, _ string) (net.Conn, error) { <-ctx.Done(); return nil, ctx.Err() }
	tests := []struct {
		name   string
		to     Target
		dial   Dial
		is     error
		text   string
		remedy string
	}{
		{"refused", acme1(), book(map[string]string{peerAddress + ":22": nobody}), nil, "refused", "Remote Login"},
		{"no answer", acme1(), hangs, context.DeadlineExceeded, "deadline", "see whether the machine runs"},
		{"no address", target("acme-1", ""), nil, nil, "no address", "Scaleway console"},
		{"IPv6", target("acme-1", "2001:db8::1"), book(nil), nil, "[2001:db8::1]:22", "see whether the machine runs"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := New(Options{User: "acme", Key: newKey(t), Dial: tt.dial,
				Deadlines: impatient(func(d *Deadlines) { d.Dial = 50 * time.Millisecond })})
			_, err := c.Connect(within(t), tt.to)
			wantError(t, err, "unreachable", Dialing, tt.text)
			if tt.is != nil && !errors.Is(err, tt.is) {
				t.Errorf("error = %v, want one that wraps %v", err, tt.is)
			}
			if e := asError(t, err); !strings.Contains(e.Remedy, tt.remedy) {
				t.Errorf("remedy = %q, want one with %q", e.Remedy, tt.remedy)
			}
			if got := c.Stats(); got != (Stats{}) {
				t.Errorf("stats = %+v of a connection that never stood", got)
			}
		})
	}
}

func TestConnectCancelled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(within(t))
	p := listen(t, func(c net.Conn) {
		// The client's banner says that it is past dialing.
		_, _ = io.ReadFull(c, make([]byte, 1))
		cancel()
		untilClosed(c)
	})
	c := New(Options{User: "acme", Key: newKey(t), Dial: p.dial, Deadlines: patient()})
	_, err := c.Connect(ctx, acme1())
	wantError(t, err, "no-ssh-answer", Handshaking, "canceled")
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error = %v, want one that wraps context.Canceled", err)
	}
}

func TestConnectHostKey(t *testing.T) {
	t.Parallel()
	key, other := newKey(t), newKey(t)
	tests := []struct {
		name     string
		to       Target
		refuse   bool
		code     string // "": connects
		phase    Phase
		text     string
		remedy   string
		attempts int32
	}{
		{name: "no pin", to: acme1(), attempts: 1},
		{name: "pinned", to: pinned(acme1(), key.PublicKey()), attempts: 1},
		{name: "another key", to: pinned(acme1(), other.PublicKey()), code: "wrong-host-key", phase: HostKey,
			text: "the host shows the key " + ssh.FingerprintSHA256(key.PublicKey()), remedy: "macfleet hosts trust acme-1"},
		{name: "no key of the pinned type", to: pinned(acme1(), signer(t, newRSAKey(t)).PublicKey()), code: "wrong-host-key", phase: HostKey,
			text: "no common algorithm", remedy: "macfleet hosts trust acme-1"},
		{name: "login refused", to: pinned(acme1(), key.PublicKey()), refuse: true, code: "key-refused", phase: Authorising,
			text: "tried once, not again", remedy: "authorized_keys", attempts: 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := &server{key: key, refuse: tt.refuse}
			p := listen(t, s.handle)
			c := New(Options{User: "acme", Key: newKey(t), Dial: p.dial, Deadlines: patient()})
			conn, err := c.Connect(within(t), tt.to)
			if tt.code != "" {
				wantError(t, err, tt.code, tt.phase, tt.text)
				if e := asError(t, err); !strings.Contains(e.Remedy, tt.remedy) {
					t.Errorf("remedy = %q, want one with %q", e.Remedy, tt.remedy)
				}
			} else if err != nil {
				t.Fatal(err)
			} else {
				conn.Close()
			}
			p.closed(t)
			// The provider bans an address after failed logins.
			if got := s.attempts.Load(); got != tt.attempts {
				t.Errorf("the key was offered %d times, want %d", got, tt.attempts)
			}
		})
	}
}

// TestTalkToDeadPeer goes through a host that stops answering after the login.
func TestTalkToDeadPeer(t *testing.T) {
	t.Parallel()
	exchange := impatient(func(d *Deadlines) { d.Exchange, d.Change = 200*time.Millisecond, 1 })
	silence := impatient(func(d *Deadlines) { d.Silence = time.Second })
	print := func(text string, code uint32) func(ssh.Channel, string) {
		return func(ch ssh.Channel, _ string) {
			_, _ = io.WriteString(ch, strings.ReplaceAll(text, "MARK", markOf(ch)))
			exit(ch, code)
		}
	}
	flood := func(to func(ssh.Channel) io.Writer) func(ssh.Channel, string) {
		return func(ch ssh.Channel, _ string) {
			block := bytes.Repeat([]byte("acme"), 8192)
			for {
				if _, err := to(ch).Write(block); err != nil {
					return
				}
			}
		}
	}
	tests := []struct {
		name      string
		server    *server
		deadlines Deadlines
		text      string
	}{
		{"silent but for keepalives", &server{hang: true}, exchange, "no end of the command within"},
		{"silent", &server{hang: true, silent: true}, silence, ""},
		{"floods stdout", &server{command: flood(func(ch ssh.Channel) io.Writer { return ch })}, patient(), "printed more than 4194304 bytes"},
		{"floods stderr", &server{command: flood(func(ch ssh.Channel) io.Writer { return ch.Stderr() })}, patient(), "printed more than 4194304 bytes"},
		{"refuses the channel", &server{channel: func(n ssh.NewChannel) { _ = n.Reject(ssh.Prohibited, "no more sessions") }}, patient(), "no more sessions"},
		{"refuses the command", &server{}, patient(), ""},
		{"hangs up in the answer", &server{command: func(ch ssh.Channel, _ string) {
			_, _ = io.WriteString(ch, "\n"+markOf(ch)+" host 0\n")
		}}, patient(), ""},
		{"ends without a word", &server{command: print("", 0)}, patient(), "first mark did not arrive"},
		{"has no shell", &server{command: print("This account is currently not available.\n", 1)}, patient(), `"This account is currently not available.\n"`},
		{"ends before the last mark", &server{command: print("\nMARK host 0\n", 91)}, patient(), "ended before its last mark"},
		{"dies by a signal", &server{command: func(ch ssh.Channel, _ string) {
			_, _ = io.WriteString(ch, "\n"+markOf(ch)+" host 0\n")
			_, _ = ch.SendRequest("exit-signal", false, ssh.Marshal(struct {
				Signal     string
				Core       bool
				Text, Lang string
			}{Signal: "KILL"}))
		}}, patient(), "ended before its last mark"},
	}
	probes := []plan.Probe{probe("a.b", ":")}
	for _, tt := range tests {
		tt.server.key = newKey(t)
		talk := func(t *testing.T, say func(*Conn) error) {
			t.Helper()
			t.Parallel()
			p := listen(t, tt.server.handle)
			c := New(Options{User: "acme", Key: newKey(t), Dial: p.dial, Deadlines: tt.deadlines})
			conn := connect(t, c, acme1())
			err := say(conn)
			wantError(t, err, "connection-lost", Talking, tt.text)
			conn.Close()
			p.closed(t)
		}
		t.Run(tt.name+", probe", func(t *testing.T) {
			talk(t, func(conn *Conn) error {
				facts, err := conn.Probe(within(t), probes)
				if facts != nil {
					t.Errorf("facts beside the error: %v", facts)
				}
				return err
			})
		})
		t.Run(tt.name+", run", func(t *testing.T) {
			talk(t, func(conn *Conn) error {
				a, err := conn.Run(within(t), probes[0].Command)
				if a != (plan.Answer{}) {
					t.Errorf("an answer beside the error: %+v", a)
				}
				return err
			})
		})
		t.Run(tt.name+", observe", func(t *testing.T) {
			talk(t, func(conn *Conn) error {
				seen := conn.Observe(within(t), probes)
				if seen.Trouble == nil {
					t.Fatalf("seen = %+v, want its trouble", seen)
				}
				want := plan.HostSeen{Trouble: seen.Trouble, Key: keyText(tt.server.key.PublicKey()),
					Fingerprint: ssh.FingerprintSHA256(tt.server.key.PublicKey())}
				if diff := cmp.Diff(want, seen, whole); diff != "" {
					t.Errorf("seen (-want +got):\n%s", diff)
				}
				text, ok := strings.CutPrefix(seen.Trouble.Text, "command: ")
				if !ok {
					t.Errorf("trouble = %q, want the phase in front", seen.Trouble.Text)
				}
				return &Error{Host: "acme-1", Code: seen.Trouble.Code, Phase: Talking, Remedy: seen.Trouble.Remedy, Err: errors.New(text)}
			})
		})
	}
}

func TestTalkCancelled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(within(t))
	s := &server{key: newKey(t), command: func(ch ssh.Channel, _ string) { cancel(); _, _ = io.Copy(io.Discard, ch) }}
	p := listen(t, s.handle)
	conn := connect(t, New(Options{User: "acme", Key: newKey(t), Dial: p.dial, Deadlines: patient()}), acme1())
	_, err := conn.Run(ctx, probe("a.b", ":").Command)
	wantError(t, err, "connection-lost", Talking, "canceled")
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error = %v, want one that wraps context.Canceled", err)
	}
	// A cut conversation is over: nothing may be sent as if it were not.
	if _, err := conn.Probe(within(t), nil); err == nil {
		t.Error("a second exchange went through the closed connection")
	}
	p.closed(t)
}

// swapping is a host key that another takes the place of.
type swapping struct {
	now   atomic.Pointer[ssh.Signer]
	first ssh.Signer
}

func (s *swapping) signer() ssh.Signer {
	if k := s.now.Load(); k != nil {
		return *k
	}
	return s.first
}
func (s *swapping) PublicKey() ssh.PublicKey { return s.signer().PublicKey() }
func (s *swapping) Sign(r io.Reader, b []byte) (*ssh.Signature, error) {
	return s.signer().Sign(r, b)
}

// TestHostKeyOfNewSessionKeys makes the server ask for new session keys after
// every few bytes; each time it shows its host key again.
func TestHostKeyOfNewSessionKeys(t *testing.T) {
	t.Parallel()
	answer := func(ch ssh.Channel, _ string) {
		mark := markOf(ch)
		_, _ = io.Copy(io.Discard, ch)
		for range 64 {
			_, _ = io.WriteString(ch, strings.Repeat("noise", 20))
		}
		_, _ = fmt.Fprintf(ch, "\n%s host 0\n\n%s done\n", mark, mark)
		exit(ch, 0)
	}
	often := func(c *ssh.ServerConfig) { c.RekeyThreshold = 256 }
	t.Run("the same", func(t *testing.T) {
		t.Parallel()
		key := newKey(t)
		p := listen(t, (&server{key: key, command: answer, config: often}).handle)
		conn := connect(t, New(Options{User: "acme", Key: newKey(t), Dial: p.dial, Deadlines: patient()}), acme1())
		for range 3 {
			seen := conn.Observe(within(t), nil)
			if seen.Trouble != nil || seen.Key != keyText(key.PublicKey()) {
				t.Errorf("trouble = %+v, key = %s", seen.Trouble, seen.Key)
			}
		}
	})
	t.Run("another", func(t *testing.T) {
		t.Parallel()
		key, other := &swapping{first: newKey(t)}, newKey(t)
		p := listen(t, (&server{key: key, command: answer, config: often}).handle)
		conn := connect(t, New(Options{User: "acme", Key: newKey(t), Dial: p.dial, Deadlines: patient()}), acme1())
		key.now.Store(&other)
		seen := conn.Observe(within(t), nil)
		if seen.Trouble == nil || seen.Key != keyText(key.first.PublicKey()) {
			t.Errorf("trouble = %+v, key = %s: the host became another one unnoticed", seen.Trouble, seen.Key)
		}
	})
}

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

// TestClaimAndMarker goes through a host's whole way into a fleet.
func TestClaimAndMarker(t *testing.T) {
	t.Parallel()
	needRoot(t)
	bin, dir := filepath.Join(openDir(t), "bin"), filepath.Join(openDir(t), "etc")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
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
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(ours, got); diff != "" {
			t.Errorf("the claim that stands (-want +got):\n%s", diff)
		}
	}
	for _, marker := range []plan.Marker{acmeMarker(), acmeMarker().With("power", plan.Digest{Wanted: "a", Facts: "it's"})} {
		if err := conn.WriteMarker(within(t), marker); err != nil {
			t.Fatal(err)
		}
		seen = conn.Observe(within(t), nil)
		want := plan.HostSeen{Marker: inventory.Present(marker), Claim: inventory.Present(ours), Serial: inventory.Present("C07ACME001"),
			OSVersion: inventory.Present("26.3"), Root: true, Key: seen.Key, Fingerprint: seen.Fingerprint, Facts: seen.Facts}
		if diff := cmp.Diff(want, seen, whole); diff != "" {
			t.Errorf("seen (-want +got):\n%s", diff)
		}
	}
	left, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range left {
		info, err := entry.Info()
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode() != 0o644 || len(left) != 2 {
			t.Errorf("%s has mode %v among %d files, want 0644 and two files", entry.Name(), info.Mode(), len(left))
		}
	}

	// A script that fails is an error, and says what the tool said.
	broken := filepath.Join(dir, "claim.json")
	if err := os.Remove(broken); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("nowhere", broken); err != nil {
		t.Fatal(err)
	}
	if got, err := conn.Claim(within(t), ours); err == nil || !strings.Contains(err.Error(), "claim-create on acme-1 ended with exit 1") {
		t.Errorf("claim over a broken link = %+v, %v", got, err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := conn.WriteMarker(within(t), acmeMarker()); err == nil || !strings.Contains(err.Error(), "marker-write on acme-1 ended with exit 1: ") {
		t.Errorf("marker without its folder = %v", err)
	}
}

// needRoot fails in CI, and skips elsewhere, when root is not to be had without
// a password.
func needRoot(t testing.TB) {
	t.Helper()
	if hasRoot() {
		return
	}
	const text = "this test writes files of root: run it as root or with a sudo that asks for no password"
	if os.Getenv("CI") != "" {
		t.Fatal(text)
	}
	t.Skip(text)
}

func hasRoot() bool { return isRoot() || exec.Command("sudo", "-n", "true").Run() == nil }

// TestRunUnread: a change for root on a host without root is not run.
func TestRunUnread(t *testing.T) {
	t.Parallel()
	command := func(ch ssh.Channel, _ string) {
		mark := markOf(ch)
		text := "\n" + mark + " begin change\n\n" + mark + " end needs-root\n"
		_, _ = fmt.Fprintf(ch, "\n%s host 501\n%s\n%s done\n", mark, text, mark)
		_, _ = io.WriteString(ch.Stderr(), text)
		exit(ch, 0)
	}
	p := listen(t, (&server{key: newKey(t), command: command}).handle)
	conn := connect(t, New(Options{User: "acme", Key: newKey(t), Dial: p.dial, Deadlines: patient()}), acme1())
	_, err := conn.Run(within(t), plan.Command{Name: "set-power", Script: ":", As: plan.Root})
	if want := "set-power on acme-1: needs root"; err == nil || err.Error() != want {
		t.Errorf("error = %v, want %q", err, want)
	}
	// The connection is sound: only this change was not possible.
	if seen := conn.Observe(within(t), nil); seen.Trouble != nil || seen.Root {
		t.Errorf("seen = %+v, want a host without root and without trouble", seen)
	}
}

// TestTooMuchToAsk: what cannot be sent is an error before anything is.
func TestTooMuchToAsk(t *testing.T) {
	t.Parallel()
	p := listen(t, (&server{key: newKey(t)}).handle)
	c := New(Options{User: "acme", Key: newKey(t), Dial: p.dial, Deadlines: patient()})
	conn := connect(t, c, acme1())
	for name, bad := range map[string]plan.Probe{
		"script": probe("a.b", strings.Repeat(":\n", maxScript)),
		"data":   probe("a.b", ":", "acme\x00"),
	} {
		if _, err := conn.Probe(within(t), []plan.Probe{bad}); err == nil {
			t.Errorf("%s: it was sent", name)
		}
	}
	if got := c.Stats().Execs; got != 0 {
		t.Errorf("%d execs, want none", got)
	}
}

func TestNewFillsDeadlines(t *testing.T) {
	t.Parallel()
	c := New(Options{Deadlines: Deadlines{Silence: time.Minute}})
	want := DefaultDeadlines()
	want.Silence = time.Minute
	if diff := cmp.Diff(want, c.opts.Deadlines); diff != "" {
		t.Errorf("deadlines (-want +got):\n%s", diff)
	}
	if c.opts.Prologue != DefaultPrologue || c.opts.Dial == nil {
		t.Error("the prologue or the dialer is not filled in")
	}
}
