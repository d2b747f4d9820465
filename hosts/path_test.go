package hosts

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/macfleet/macfleet/hosts/tailnet"
)

// devices answers as this machine's Tailscale does, with names and their addresses.
func devices(entries map[string]string) func(context.Context) (tailnet.Devices, error) {
	var all tailnet.Devices
	for name, address := range entries {
		all = append(all, tailnet.Device{Name: name, Host: name, Address: netip.MustParseAddr(address)})
	}
	return func(context.Context) (tailnet.Devices, error) { return all, nil }
}

// TestPaths goes over the tailnet and, only where no key was offered there, over
// the public address.
func TestPaths(t *testing.T) {
	t.Parallel()
	key, other := newKey(t), newKey(t)
	both := []string{Tailscale, Public}
	silence := impatient(func(d *Deadlines) { d.Handshake = 100 * time.Millisecond })
	good := func() *server { return &server{key: key} }
	tests := []struct {
		name      string
		via       []string
		devices   map[string]string
		down      error   // instead
		tailnet   *server // nil: the port is closed
		handle    func(net.Conn)
		deadlines Deadlines
		pin       ssh.PublicKey
		path      string
		code      string
		text      string
		attempts  int32 // keys offered over the tailnet
		public    int32 // and over the public address
	}{
		{name: "tailscale", via: both, devices: map[string]string{"acme-1": "100.64.0.1"}, tailnet: good(), path: "tailscale", attempts: 1},
		{name: "tailscale over IPv6", via: both, devices: map[string]string{"acme-1": "fd7a:115c:a1e0::1"}, tailnet: good(), path: "tailscale", attempts: 1},
		{name: "public first", via: []string{Public, Tailscale}, path: "public", public: 1},
		{name: "no such device", via: both, devices: map[string]string{"acme-1-1": "100.64.0.1"}, tailnet: good(),
			path: "public (tailscale: no device of the tailnet is named acme-1)", public: 1},
		{name: "Tailscale is down", via: both, down: errors.New("it is stopped"), tailnet: good(), path: "public (tailscale: it is stopped)", public: 1},
		{name: "the port is closed", via: both, devices: map[string]string{"acme-1": "100.64.0.2"}, path: "public (tailscale: connection refused)", public: 1},
		{name: "silent", via: both, devices: map[string]string{"acme-1": "100.64.0.1"}, handle: untilClosed, deadlines: silence,
			path: "public (tailscale: no ssh answer)", public: 1},
		{name: "refused", via: both, devices: map[string]string{"acme-1": "100.64.0.1"}, tailnet: &server{key: key, refuse: true},
			code: "key-not-installed", text: "tried once", attempts: 1},
		{name: "another host key", via: both, devices: map[string]string{"acme-1": "100.64.0.1"}, tailnet: good(), pin: other.PublicKey(),
			code: "wrong-host-key", text: "pinned is " + ssh.FingerprintSHA256(other.PublicKey())},
		{name: "only tailscale", via: []string{Tailscale}, code: "unreachable", text: "acme-1: no device of the tailnet is named acme-1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := tt.tailnet
			if s == nil {
				s = good()
			}
			if tt.handle == nil {
				tt.handle = s.handle
			}
			if tt.deadlines == (Deadlines{}) {
				tt.deadlines = patient()
			}
			public := good()
			near, far := listen(t, tt.handle), listen(t, public.handle)
			dial := book(map[string]string{"100.64.0.1:22": near.listener.Addr().String(), "[fd7a:115c:a1e0::1]:22": near.listener.Addr().String(),
				"100.64.0.2:22": noServer, peerAddress + ":22": far.listener.Addr().String()})
			ask := devices(tt.devices)
			if tt.down != nil {
				ask = func(context.Context) (tailnet.Devices, error) { return nil, tt.down }
			}
			c := New(Options{User: "acme", Key: newKey(t), Dial: dial, Deadlines: tt.deadlines, Via: tt.via, Tailnet: ask})
			to := acme1()
			if tt.pin != nil {
				to = pinned(to, tt.pin)
			}
			conn, err := c.Connect(within(t), to)
			if tt.code != "" {
				e := asError(t, err)
				if e.Code.String() != tt.code || !strings.Contains(err.Error(), tt.text) || e.Remedy == "" {
					t.Errorf("error = %v (%s), want %s with %q", err, e.Code, tt.code, tt.text)
				}
			} else {
				must(t, err)
				if conn.path != tt.path {
					t.Errorf("path = %q, want %q", conn.path, tt.path)
				}
				conn.Close()
			}
			near.closed(t)
			far.closed(t)
			is(t, "keys offered over the tailnet", s.attempts.Load(), tt.attempts)
			is(t, "keys offered over the public address", public.attempts.Load(), tt.public)
		})
	}
}

// noServer is a loopback address where no server listens: the port of one that was closed may be the next test's.
const noServer = "127.0.0.1:1"

func TestNoPathWorks(t *testing.T) {
	t.Parallel()
	c := New(Options{User: "acme", Key: newKey(t), Dial: book(map[string]string{peerAddress + ":22": noServer}), Deadlines: patient(),
		Via: []string{Tailscale, Public}, Tailnet: func(context.Context) (tailnet.Devices, error) { return nil, errors.New("it is stopped") }})
	_, err := c.Connect(within(t), acme1())
	wantError(t, err, "unreachable", Dialing, "acme-1: tailscale: it is stopped; public: dial tcp")
}

// TestConfigFault: a host whose line cannot be understood is not dialled.
func TestConfigFault(t *testing.T) {
	t.Parallel()
	c := New(Options{User: "acme", Key: newKey(t), Dial: book(nil), Config: newHome(t).config(t, "Host acme-1\n ProxyCommand nc %h\n")})
	_, err := c.Connect(within(t), acme1())
	wantError(t, err, "ssh-config", Dialing, "ProxyCommand is not supported, to reach acme-1 (nc %h)")
}

// TestStarts counts, at the server, the connections that are not logged in yet.
// It accepts none before the limit of these is reached.
func TestStarts(t *testing.T) {
	t.Parallel()
	const limit, all = 3, 12
	var now, most, first atomic.Int32
	var standing sync.WaitGroup
	standing.Add(limit)
	s := &server{key: newKey(t), config: func(sc *ssh.ServerConfig) {
		sc.PublicKeyCallback = func(ssh.ConnMetadata, ssh.PublicKey) (*ssh.Permissions, error) {
			if first.Add(1) <= limit {
				standing.Done()
			}
			standing.Wait()
			now.Add(-1)
			return nil, nil
		}
	}}
	p := listen(t, func(c net.Conn) {
		n := now.Add(1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		s.handle(c)
	})
	c := New(Options{User: "acme", Key: newKey(t), Deadlines: patient(), Starts: limit, Dial: p.dial})
	var wg sync.WaitGroup
	for i := range all {
		wg.Go(func() {
			conn := connected(t, c, target("acme-"+string(rune('a'+i)), peerAddress))
			if conn == nil {
				return
			}
		})
	}
	wg.Wait()
	is(t, "at once", most.Load(), limit)
}
