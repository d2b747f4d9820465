package hosts

import (
	"context"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/macfleet/macfleet/hosts/tailnet"
)

// TestResolverIsNotAsked: where the resolver has an address of the tailnet's range for every name, nothing is
// dialled there unless the local Tailscale gives it to the host.
func TestResolverIsNotAsked(t *testing.T) { // not parallel: it replaces the resolver and the PATH
	usual := net.DefaultResolver
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: invents(t)}
	t.Cleanup(func() { net.DefaultResolver = usual })
	got, err := net.DefaultResolver.LookupNetIP(within(t), "ip4", "acme-1.example")
	if err != nil || got[0].String() != "100.64.0.66" {
		t.Fatalf("the resolver of this test answers %v, %v", got, err)
	}
	tests := []struct{ name, program, dialled, text string }{
		{name: "no Tailscale", text: "has no Tailscale"},
		{name: "logged out", program: `echo '{"BackendState":"NeedsLogin"}'`, text: `(state "NeedsLogin")`},
		{name: "tailscaled is down", program: "echo 'failed to connect' >&2; exit 1", text: "failed to connect: exit status 1"},
		{name: "another device", program: knows("acme-2", "100.64.0.7"), text: "no device of the tailnet is named acme-1"},
		{name: "the device", program: knows("acme-1", "100.64.0.7"), dialled: "100.64.0.7:22", text: "not in the book of this test"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv("PATH", t.TempDir())
			if tt.program != "" {
				write(t, filepath.Join(os.Getenv("PATH"), "tailscale"), "#!/bin/sh\n"+tt.program+"\n", 0o700)
			}
			var dialled []string
			c := New(Options{User: "acme", Key: newKey(t), Deadlines: patient(), Via: []string{Tailscale},
				Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
					dialled = append(dialled, address)
					return book(nil)(ctx, network, address)
				}})
			_, err := c.Connect(within(t), acme1())
			wantError(t, err, "unreachable", Dialing, "acme-1: ")
			if got := strings.Join(dialled, " "); got != tt.dialled || !strings.Contains(err.Error(), tt.text) {
				t.Errorf("dialled %q, want %q; error = %v, want %q", got, tt.dialled, err, tt.text)
			}
		})
	}
}

// knows is a tailscale command that has one peer.
func knows(name, address string) string {
	peer := `{"DNSName":"` + name + `.tail1.ts.net.","TailscaleIPs":["` + address + `"]}`
	return `echo '{"BackendState":"Running","TUN":true,"MagicDNSSuffix":"tail1.ts.net","Peer":{"k":` + peer + `}}'`
}

// invents is a way to a name server that gives an address of the tailnet's range to every name.
func invents(t *testing.T) func(context.Context, string, string) (net.Conn, error) {
	server, err := net.ListenPacket("udp", "127.0.0.1:0")
	must(t, err)
	var serving sync.WaitGroup
	t.Cleanup(func() { server.Close(); serving.Wait() })
	serving.Go(func() {
		packet := make([]byte, 1500)
		for {
			n, from, err := server.ReadFrom(packet)
			if err != nil {
				return
			}
			_, _ = server.WriteTo(invented(packet[:n]), from) // who asked may be gone
		}
	})
	return func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", server.LocalAddr().String())
	}
}

// invented answers a query: 100.64.0.66 for a type A, nothing for others.
func invented(query []byte) []byte {
	end := 12
	for query[end] != 0 {
		end += int(query[end]) + 1
	}
	end += 5 // the root, type and class
	answer := slices.Clone(query[:end])
	copy(answer[2:12], []byte{0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0})
	if query[end-3] != 1 {
		return answer
	}
	answer[7] = 1
	return append(answer, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 9, 0, 4, 100, 64, 0, 66)
}

// TestTailnetIsAskedOnce: all hosts of a plan share one answer, also one that is an error, and a minute later it is
// called again. A host whose time is over leaves no answer behind.
func TestTailnetIsAskedOnce(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	all := tailnet.Devices{}
	c := New(Options{Deadlines: patient(), Tailnet: func(ctx context.Context) (tailnet.Devices, error) {
		asked.Add(1)
		return all, ctx.Err()
	}})
	clock := time.Now()
	c.now = func() time.Time { return clock }
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.tailnetAddress(over, "acme-1"); err == nil {
		t.Error("a host whose time is over got an answer")
	}
	asked.Store(0)
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			if _, err := c.tailnetAddress(within(t), "acme-1"); err == nil || !strings.Contains(err.Error(), "no device") {
				t.Errorf("error = %v", err)
			}
		})
	}
	wg.Wait()
	is(t, "asked for 50 hosts", asked.Load(), 1)
	all = tailnet.Devices{{Name: "acme-1", Address: netip.MustParseAddr("100.64.0.1")}}
	clock = clock.Add(tailnetAge + time.Second)
	if got, err := c.tailnetAddress(within(t), "acme-1"); got != "100.64.0.1" || err != nil || asked.Load() != 2 {
		t.Errorf("a minute later: %s, %v, asked %d times", got, err, asked.Load())
	}
}
