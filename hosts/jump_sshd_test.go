package hosts

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/macfleet/macfleet/plan"
)

// TestOpenSSHJumps goes to two hosts through a chain of two jump hosts, all of
// them OpenSSH's own sshd, with a key from another source for each.
func TestOpenSSHJumps(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	_, first := h.key(t, "id_first", "")
	ofAgent, fleet := edwards(t), newKey(t)
	keys := map[string]ed{"a": newEd(t), "b": newEd(t), "c": newEd(t)}
	a := startDaemon(t, daemonOptions{hostKeys: []any{keys["a"].private}, login: first})
	b := startDaemon(t, daemonOptions{hostKeys: []any{keys["b"].private, newRSAKey(t)}, login: signer(t, ofAgent).PublicKey()})
	c := startDaemon(t, daemonOptions{hostKeys: []any{keys["c"].private}, login: fleet.PublicKey()})
	h.know(t, map[string]ssh.PublicKey{a.address: keys["a"].public, b.address: keys["b"].public})
	config := h.config(t, fmt.Sprintf(`Host bastion
  HostName 127.0.0.1
  Port %s
  IdentityFile ~/.ssh/id_first
Host inner
  HostName 127.0.0.1
  ProxyJump none
Host acme-*
  HostName 127.0.0.1
  Port %s
  ProxyJump bastion,%s@inner:%s
`, portOf(t, a.address), portOf(t, c.address), me(t), portOf(t, b.address)))
	client := New(Options{User: me(t), Key: fleet, Dial: loopback(a.address), Deadlines: patient(),
		Config: config, Agent: startAgent(t, ofAgent)})
	var wg sync.WaitGroup
	for _, name := range []string{"acme-1", "acme-2"} {
		wg.Go(func() {
			conn := connected(t, client, pinned(target(name, "192.0.2.1"), keys["c"].public))
			if conn == nil {
				return
			}
			defer conn.Close()
			seen := conn.Observe(within(t), []plan.Probe{probe("a.b", echo, name)})
			if got, want := seen.Facts.Get("a.b"), said(0, "<"+name+">", ""); got != want || seen.Path != "public through bastion, inner" {
				t.Errorf("%s answers %+v over %q, trouble %+v", name, got, seen.Path, seen.Trouble)
			}
		})
	}
	wg.Wait()
	client.Close()
	if got := client.Stats(); got.Connections != 1 || got.Execs != 2 {
		t.Errorf("stats = %+v, want one connection from here and two execs", got)
	}
	for _, tt := range []struct {
		name string
		*daemon
		logins int
	}{{"bastion", a, 1}, {"inner", b, 1}, {"the hosts", c, 2}} {
		tt.stop()
		if got := containing(tt.lines, "Accepted publickey"); got != tt.logins || containing(tt.lines, "Failed") != 0 {
			t.Errorf("%s: %d logins, want %d:\n%s", tt.name, got, tt.logins, tt.log())
		}
	}
}

type ed struct {
	private any
	public  ssh.PublicKey
}

func newEd(t testing.TB) ed {
	t.Helper()
	private := edwards(t)
	return ed{private, signer(t, private).PublicKey()}
}

// TestOpenSSHJumpWithoutWay is a jump host that lets people in and forwards nothing, and one that reaches no host.
func TestOpenSSHJumpWithoutWay(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ sshd, ssh, text, remedy string }{
		"forbidden":      {"AllowTcpForwarding no\n", "", "the jump host 127.0.0.1 cannot connect to 192.0.2.1:22", "AllowTcpForwarding"},
		"nothing behind": {"", " HostName 127.0.0.1\n Port 1\n", "the jump host 127.0.0.1 cannot connect to 127.0.0.1:1: ssh: rejected: connect failed", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, key, host := newHome(t), newKey(t), newEd(t)
			a := startDaemon(t, daemonOptions{hostKeys: []any{host.private}, login: key.PublicKey(), config: tt.sshd})
			h.know(t, map[string]ssh.PublicKey{a.address: host.public})
			c := New(Options{User: me(t), Key: key, Dial: loopback(a.address), Deadlines: patient(),
				Config: h.config(t, "Host acme-1\n ProxyJump "+a.address+"\n"+tt.ssh)})
			t.Cleanup(c.Close)
			_, err := c.Connect(within(t), acme1())
			wantError(t, err, "unreachable", Dialing, tt.text)
			if e := asError(t, err); !strings.Contains(e.Remedy, tt.remedy) {
				t.Errorf("remedy = %q", e.Remedy)
			}
		})
	}
}

// TestOpenSSHOverIPv6 meets a host and a jump host on [::1], the latter named as
// in a URL.
func TestOpenSSHOverIPv6(t *testing.T) {
	t.Parallel()
	needIPv6(t)
	h, key, jumpKey, hostKey := newHome(t), newKey(t), newEd(t), newEd(t)
	a := startDaemon(t, daemonOptions{hostKeys: []any{jumpKey.private}, login: key.PublicKey(), loopback: "::1"})
	b := startDaemon(t, daemonOptions{hostKeys: []any{hostKey.private}, login: key.PublicKey(), loopback: "::1"})
	h.know(t, map[string]ssh.PublicKey{a.address: jumpKey.public})
	config := h.config(t, fmt.Sprintf("Host acme-1\n ProxyJump %s@%s\nHost acme-2\n HostName ::1\nHost *\n Port %s\n", me(t), a.address, portOf(t, b.address)))
	for _, to := range []Target{target("acme-1", "::1"), target("acme-2", "192.0.2.1"), target("acme-3", "::1")} {
		c := New(Options{User: me(t), Key: key, Dial: loopback(a.address, b.address), Deadlines: patient(), Config: config})
		t.Cleanup(c.Close)
		conn := connect(t, c, to)
		if seen := conn.Observe(within(t), nil); seen.Trouble != nil {
			t.Errorf("%s: %+v", to.Server.Name, seen.Trouble)
		}
	}
}
