package hosts

import (
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/macfleet/macfleet/plan"
)

// bastion is a jump host that this test can end.
type bastion struct {
	*peer
	server  *server
	address string
	count   atomic.Int32 // connections
	frozen  atomic.Bool  // nothing that it writes arrives any more
	mu      sync.Mutex
	open    []net.Conn
}

// mute is a connection that loses what is written once the bastion is frozen.
type mute struct {
	net.Conn
	of *bastion
}

func (m mute) Write(p []byte) (int, error) {
	if m.of.frozen.Load() {
		return len(p), nil
	}
	return m.Conn.Write(p)
}

func newBastion(t testing.TB, behind map[string]string) *bastion {
	t.Helper()
	b := &bastion{server: &server{key: newKey(t)}}
	b.server.channel = func(n ssh.NewChannel) {
		var to struct {
			Host string
			Port uint32
			From string
			Back uint32
		}
		if n.ChannelType() != "direct-tcpip" || ssh.Unmarshal(n.ExtraData(), &to) != nil {
			_ = n.Reject(ssh.UnknownChannelType, "no")
			return
		}
		far, err := net.Dial("tcp", behind[net.JoinHostPort(to.Host, fmt.Sprint(to.Port))])
		if err != nil {
			_ = n.Reject(ssh.ConnectionFailed, err.Error())
			return
		}
		near, requests, err := n.Accept()
		if err != nil {
			_ = far.Close()
			return
		}
		go ssh.DiscardRequests(requests)
		go func() { _, _ = io.Copy(far, near); _ = far.Close() }()
		go func() { _, _ = io.Copy(near, far); _ = near.Close() }()
	}
	b.peer = listen(t, func(c net.Conn) {
		b.count.Add(1)
		b.mu.Lock()
		b.open = append(b.open, c)
		b.mu.Unlock()
		b.server.handle(mute{c, b})
	})
	b.address = b.listener.Addr().String()
	return b
}

// kill ends all its connections.
func (b *bastion) kill() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.open {
		_ = c.Close()
	}
	b.open = nil
}

// behindBastion returns a client for whom every host is behind the bastion.
func behindBastion(t testing.TB, h home, b *bastion, o Options) *Client {
	t.Helper()
	o.User, o.Key, o.Dial = "acme", newKey(t), loopback(b.address)
	o.Config = h.config(t, fmt.Sprintf("Host acme-*\n ProxyJump bastion\nHost bastion\n HostName 127.0.0.1\n Port %s\n", portOf(t, b.address)))
	c := New(o)
	t.Cleanup(c.Close)
	return c
}

func TestJumpDies(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name      string
		deadlines Deadlines
		end       func(*bastion)
		text      string
	}{
		{"breaks", patient(), (*bastion).kill, "jump host bastion: connection lost"},
		{"falls silent", impatient(func(d *Deadlines) { d.Silence = time.Second }), func(b *bastion) { b.frozen.Store(true) },
			"jump host bastion: no data for 1s"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			asked, release := make(chan struct{}, 2), make(chan struct{})
			host := &server{key: newKey(t), command: func(ssh.Channel, string) { asked <- struct{}{}; <-release }}
			p := listen(t, host.handle)
			b := newBastion(t, map[string]string{peerAddress + ":22": p.listener.Addr().String()})
			h := newHome(t)
			h.know(t, map[string]ssh.PublicKey{b.address: b.server.key.PublicKey()})
			c := behindBastion(t, h, b, Options{Deadlines: tt.deadlines})
			conns := []*Conn{connect(t, c, acme1()), connect(t, c, target("acme-2", peerAddress))}
			errs := make(chan error, len(conns))
			for _, conn := range conns {
				go func() {
					_, _, err := conn.Probe(within(t), nil)
					errs <- err
				}()
			}
			<-asked
			<-asked
			tt.end(b)
			for range conns {
				e := asError(t, <-errs)
				if e.Code.String() != "jump-lost" || !strings.Contains(e.Error(), tt.text) || !strings.Contains(e.Remedy, "ssh bastion") {
					t.Errorf("error = %v (%s), remedy %q", e, e.Code, e.Remedy)
				}
			}
			close(release)
			// The next one finds a new connection.
			b.frozen.Store(false)
			again := connect(t, c, target("acme-3", peerAddress))
			if again.path != "public through bastion" || b.count.Load() != 2 {
				t.Errorf("path %q, %d connections to the bastion, want 2", again.path, b.count.Load())
			}
			again.Close()
			for _, conn := range conns {
				conn.Close()
			}
			c.Close()
			b.closed(t)
			p.closed(t)
		})
	}
}

func TestJumpRefused(t *testing.T) {
	t.Parallel()
	other := newKey(t)
	tests := []struct {
		name     string
		known    func(*bastion) map[string]ssh.PublicKey
		config   string
		refuse   bool
		text     string
		remedy   string
		seen     int32 // connections that the bastion saw
		attempts int32
		final    bool
	}{
		{name: "unknown", known: func(*bastion) map[string]ssh.PublicKey { return nil },
			text: "jump host bastion: host key: no key of [127.0.0.1]:", remedy: "log in once by hand, compare the key and accept it: ssh bastion"},
		{name: "changed", known: func(b *bastion) map[string]ssh.PublicKey {
			return map[string]ssh.PublicKey{b.address: other.PublicKey()}
		},
			text: "known_hosts:1)", remedy: "ssh-keygen -R '[127.0.0.1]:", seen: 1, final: true},
		{name: "of another type", known: func(b *bastion) map[string]ssh.PublicKey {
			return map[string]ssh.PublicKey{b.address: signer(t, newRSAKey(t)).PublicKey()}
		}, text: "no common algorithm for host key", remedy: "remove the old key", seen: 1, final: true},
		{name: "refuses the key", known: func(b *bastion) map[string]ssh.PublicKey {
			return map[string]ssh.PublicKey{b.address: b.server.key.PublicKey()}
		}, refuse: true, text: "jump host bastion: authentication: the host refused the key", remedy: "authorized_keys", seen: 1, attempts: 1, final: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b, h := newBastion(t, nil), newHome(t)
			b.server.refuse = tt.refuse
			h.know(t, tt.known(b))
			c := behindBastion(t, h, b, Options{Deadlines: patient(), Via: []string{Public, Tailscale}, Tailnet: devices(map[string]string{"acme-1": "100.64.0.1"})})
			var wg sync.WaitGroup
			for _, name := range []string{"acme-1", "acme-2", "acme-3"} {
				wg.Go(func() {
					_, err := c.Connect(within(t), target(name, peerAddress))
					e := asError(t, err)
					if !strings.Contains(e.Error(), tt.text) || tt.final && (e.Code.String() != "jump-failed" || !strings.Contains(e.Remedy, tt.remedy)) {
						t.Errorf("error = %v (%s), remedy %q", err, e.Code, e.Remedy)
					}
					if tried := strings.Contains(e.Error(), "tailscale: "); tried == tt.final {
						t.Errorf("error = %v: the other path was tried: %t", err, tried)
					}
				})
			}
			wg.Wait()
			c.Close()
			b.closed(t)
			if b.count.Load() != tt.seen || b.server.attempts.Load() != tt.attempts {
				t.Errorf("the bastion saw %d connections and %d keys, want %d and %d", b.count.Load(), b.server.attempts.Load(), tt.seen, tt.attempts)
			}
		})
	}
}

func TestJumpLoops(t *testing.T) {
	t.Parallel()
	for _, config := range []string{
		"Host *\n ProxyJump bastion\n", // itself
		"Host acme-1\n ProxyJump a\nHost a\n ProxyJump b\nHost b\n ProxyJump a\n",
		"Host *\n ProxyJump x%n\n", // without end
	} {
		c := New(Options{User: "acme", Key: newKey(t), Dial: book(nil), Config: newHome(t).config(t, config)})
		_, err := c.Connect(within(t), acme1())
		wantError(t, err, "ssh-config", Dialing, `set "ProxyJump none" under "Host `)
	}
}

// TestJumpAfterClose: a Client that is closed opens nothing.
func TestJumpAfterClose(t *testing.T) {
	t.Parallel()
	b, h := newBastion(t, nil), newHome(t)
	c := behindBastion(t, h, b, Options{Deadlines: patient()})
	c.Close()
	c.Close()
	_, err := c.Connect(within(t), acme1())
	wantError(t, err, "unreachable", Dialing, "the run is over")
}

// TestManyBehindJump moves much in both directions over one jump host at once.
func TestManyBehindJump(t *testing.T) {
	t.Parallel()
	const hosts, turns = 20, 4
	text := strings.Repeat("acme globex\n", 20_000)
	p := listen(t, (&server{key: newKey(t), command: func(ch ssh.Channel, _ string) {
		mark := markOf(ch)
		n, _ := io.Copy(io.Discard, ch)
		frame := fmt.Sprintf("\n%s host 0\n\n%s begin a.b\n%s\n%s end 0\n\n%s done\n", mark, mark, text, mark, mark)
		_, _ = io.WriteString(ch, frame)
		_, _ = fmt.Fprintf(ch.Stderr(), "\n%s begin a.b\n%d\n%s end 0\n", mark, n, mark)
		exit(ch, 0)
	}}).handle)
	b, h := newBastion(t, map[string]string{peerAddress + ":22": p.listener.Addr().String()}), newHome(t)
	h.know(t, map[string]ssh.PublicKey{b.address: b.server.key.PublicKey()})
	c := behindBastion(t, h, b, Options{Deadlines: patient()})
	var wg sync.WaitGroup
	for i := range hosts {
		wg.Go(func() {
			conn := connected(t, c, target(fmt.Sprint("acme-", i), peerAddress))
			if conn == nil {
				return
			}
			defer conn.Close()
			for range turns {
				facts, _, err := conn.Probe(within(t), []plan.Probe{probe("a.b", ":", text)})
				if a, ok := facts.Get("a.b").Get(); err != nil || !ok || a.Stdout != text || len(a.Stderr) == 0 {
					t.Errorf("acme-%d: %d bytes, %v", i, len(a.Stdout), err)
				}
			}
		})
	}
	wg.Wait()
	is(t, "connections to the bastion", b.count.Load(), 1)
	c.Close()
	b.closed(t)
	p.closed(t)
}

// TestJumpForgiven: what failed before a key was offered is tried again a while
// later, and what a login ended on never is.
func TestJumpForgiven(t *testing.T) {
	t.Parallel()
	done := make(chan struct{})
	close(done)
	long := time.Now().Add(-time.Hour)
	for name, tt := range map[string]struct {
		jump *jump
		want bool
	}{
		"long ago":    {&jump{ready: done, err: &Error{}, since: long}, true},
		"just now":    {&jump{ready: done, err: &Error{}, since: time.Now()}, false},
		"key refused": {&jump{ready: done, err: &Error{final: true}, since: long}, false},
		"stands":      {&jump{ready: done, conn: &Conn{ended: make(chan struct{})}}, false},
		"gone":        {&jump{ready: done, conn: &Conn{ended: done}}, true},
		"under way":   {&jump{ready: make(chan struct{})}, false},
	} {
		is(t, name+": over", tt.jump.over(time.Minute), tt.want)
	}
}

// TestJumpUnderTwoNames: two names of one jump host are one machine, to which a
// refused key is not shown again.
func TestJumpUnderTwoNames(t *testing.T) {
	t.Parallel()
	b, h := newBastion(t, nil), newHome(t)
	b.server.refuse = true
	h.know(t, map[string]ssh.PublicKey{b.address: b.server.key.PublicKey()})
	config := h.config(t, fmt.Sprintf("Host acme-1\n ProxyJump east\nHost acme-2\n ProxyJump west\nHost east west\n HostName 127.0.0.1\n Port %s\n", portOf(t, b.address)))
	c := New(Options{User: "acme", Key: newKey(t), Dial: loopback(b.address), Config: config, Deadlines: patient()})
	t.Cleanup(c.Close)
	for _, name := range []string{"acme-1", "acme-2"} {
		_, err := c.Connect(within(t), target(name, peerAddress))
		if e := asError(t, err); e.Code.String() != "jump-failed" {
			t.Errorf("%s: %v", name, err)
		}
	}
	is(t, "keys offered", b.server.attempts.Load(), 1)
}
