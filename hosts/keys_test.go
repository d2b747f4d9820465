package hosts

import (
	"net"
	"os"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/macfleet/macfleet/internal/scripttest"
)

// needIPv6 fails in CI, and skips elsewhere, when this machine has no IPv6.
func needIPv6(t testing.TB) {
	t.Helper()
	l, err := net.Listen("tcp", "[::1]:0")
	if err == nil {
		_ = l.Close()
		return
	}
	scripttest.Lacking(t, "this test needs IPv6 on the loopback interface: %v", err)
}

// TestKeyChoice compares the order in which keys are looked for.
func TestKeyChoice(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	own, ownKey := h.key(t, "own", "")
	_, sharedKey := h.key(t, "shared", "")
	locked, lockedKey := h.key(t, "locked", "secret")
	write(t, h.path("rubbish"), "rubbish\n", 0o600)
	must(t, os.Remove(h.path("locked.pub")))
	fleet := newKey(t)
	one, two := startAgent(t, locked), startAgent(t, own, locked)
	const jump, noFleet = true, true
	tests := []struct {
		name    string
		config  string
		agent   string
		jump    bool
		noFleet bool
		want    ssh.PublicKey
		text    string // of the source, or of the error
		remedy  string
	}{
		{name: "the fleet's", want: fleet.PublicKey(), text: "secret env://KEY"},
		{name: "own before the fleet's", config: "Host acme-1\n IdentityFile ~/.ssh/own\n", want: ownKey, text: "~/.ssh/own (IdentityFile)"},
		{name: "by address", config: "Host 192.0.2.*\n IdentityFile ~/.ssh/own\n", want: ownKey, text: "~/.ssh/own (IdentityFile)"},
		{name: "the fleet's before one of all", config: "Host *\n IdentityFile ~/.ssh/shared\n", agent: one, want: fleet.PublicKey(), text: "secret env://KEY"},
		{name: "one of all before the agent's", config: "Host *\n IdentityFile ~/.ssh/shared\n", agent: one, noFleet: noFleet, want: sharedKey, text: "~/.ssh/shared"},
		{name: "own after one of all", config: "IdentityFile ~/.ssh/shared\nHost acme-1\n IdentityFile ~/.ssh/own\n", want: ownKey, text: "~/.ssh/own"},
		{name: "of all, not there", config: "Host *\n IdentityFile ~/.ssh/none\n", agent: one, noFleet: noFleet, want: lockedKey, text: `agent key "acme-1"`},
		{name: "the agent's only key", agent: one, noFleet: noFleet, want: lockedKey, text: `agent key "acme-1"`},
		{name: "the first that exists", config: "Host acme-1\n IdentityFile ~/.ssh/none\n IdentityFile ~/.ssh/own\n", want: ownKey, text: "~/.ssh/own"},
		{name: "locked, in the agent", config: "Host acme-1\n IdentityFile ~/.ssh/locked\n", agent: two, want: lockedKey, text: "~/.ssh/locked (IdentityFile, held by the agent)"},
		{name: "public, in the agent", config: "Host acme-1\n IdentityFile ~/.ssh/own.pub\n", agent: two, want: ownKey, text: "~/.ssh/own.pub (IdentityFile, held by the agent)"},
		{name: "its own agent", config: "Host acme-1\n IdentityAgent " + one + "\n", noFleet: noFleet, want: lockedKey, text: "agent key"},

		{name: "several in the agent", agent: two, noFleet: noFleet,
			text: "holds 2 keys, and macfleet offers only one: " + ssh.FingerprintSHA256(ownKey) + ` "acme-1", ` + ssh.FingerprintSHA256(lockedKey) + ` "acme-2"`, remedy: "with its .pub file"},
		{name: "no agent", noFleet: noFleet, text: "no ssh agent is running", remedy: "private_key"},
		{name: "the agent is not used", config: "IdentityAgent none\n", agent: one, noFleet: noFleet, text: "no ssh agent is running", remedy: "private_key"},
		{name: "an agent that is gone", agent: h.path("gone"), noFleet: noFleet, text: "gone", remedy: "private_key"},
		{name: "locked, not in the agent", config: "Host acme-1\n IdentityFile ~/.ssh/locked\n", text: "has a passphrase", remedy: "ssh-add ~/.ssh/locked"},
		{name: "public, not in the agent", config: "Host acme-1\n IdentityFile ~/.ssh/shared.pub\n", agent: one, text: "does not hold " + ssh.FingerprintSHA256(sharedKey), remedy: "ssh-add ~/.ssh/shared"},
		{name: "own key is missing", config: "Host acme-1\n IdentityFile ~/.ssh/none\n", text: "~/.ssh/none does not exist", remedy: "correct the path"},
		{name: "no key", config: "Host acme-1\n IdentityFile ~/.ssh/rubbish\n", text: "neither a private nor a public key", remedy: "private key"},

		{name: "jump: one of all", jump: jump, config: "Host *\n IdentityFile ~/.ssh/shared\n", want: sharedKey, text: "~/.ssh/shared"},
		{name: "jump: the agent's before the fleet's", jump: jump, agent: one, want: lockedKey, text: "agent key"},
		{name: "jump: the fleet's", jump: jump, want: fleet.PublicKey(), text: "secret env://KEY"},
		{name: "jump: several in the agent and the fleet's", jump: jump, agent: two, want: fleet.PublicKey(), text: "secret env://KEY"},
		{name: "jump: several in the agent", jump: jump, agent: two, noFleet: noFleet, text: "holds 2 keys", remedy: ".pub"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			config := h.config(t, tt.config)
			o := Options{User: "acme", Key: fleet, KeySource: "secret env://KEY", Agent: tt.agent, Deadlines: patient()}
			if tt.noFleet {
				o.Key = nil
			}
			c := New(o)
			said, err := config("acme", "acme-1", "192.0.2.1")
			must(t, err)
			k, e := c.keyFor(acme1(), said, tt.jump)
			if tt.want == nil {
				if e == nil || !strings.Contains(e.Error(), h.own(tt.text)) || !strings.Contains(e.Remedy, h.own(tt.remedy)) || e.Code.String() != "no-key" {
					t.Errorf("error = %v, remedy %q", e, e.Remedy)
				}
				return
			}
			if e != nil {
				t.Fatal(e)
			}
			if k.fingerprint() != ssh.FingerprintSHA256(tt.want) || !strings.Contains(k.source, h.own(tt.text)) {
				t.Errorf("key = %s, %s", k.fingerprint(), k.source)
			}
		})
	}
}

// TestOpenSSHAgent logs in with keys that only an agent holds.
func TestOpenSSHAgent(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	first, firstKey := h.key(t, "first", "")
	second, _ := h.key(t, "second", "")
	must(t, os.Remove(h.path("first")))
	both, one := startAgent(t, second, first), startAgent(t, first)
	d := startDaemon(t, daemonOptions{hostKeys: []any{newRSAKey(t)}, login: firstKey})
	for name, o := range map[string]Options{
		"one key":                   {Agent: one},
		"a public key, of several":  {Agent: both, Config: h.config(t, "Host acme-*\n IdentityFile ~/.ssh/first.pub\n")},
		"its other half is missing": {Agent: both, Config: h.config(t, "Host acme-*\n IdentityFile ~/.ssh/first\n")},
	} {
		o.User, o.Deadlines, o.Dial = me(t), patient(), book(map[string]string{peerAddress + ":22": d.address})
		conn, err := New(o).Connect(within(t), acme1())
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		conn.Close()
	}
	c := New(Options{User: me(t), Agent: both, Deadlines: patient(), Dial: book(nil)})
	_, err := c.Connect(within(t), acme1())
	wantError(t, err, "no-key", Authorising, "holds 2 keys")
	d.stop()
	if got := containing(d.lines, "Accepted publickey"); got != 3 || containing(d.lines, "Failed") != 0 || containing(d.lines, "Connection from") != 3 {
		t.Errorf("%d logins, want 3:\n%s", got, d.log())
	}
}

// TestOpenSSHAgentRSA signs with a kind of key whose hash is agreed on.
func TestOpenSSHAgentRSA(t *testing.T) {
	t.Parallel()
	private := newRSAKey(t)
	d := startDaemon(t, daemonOptions{hostKeys: []any{edwards(t)}, login: signer(t, private).PublicKey()})
	socket := startAgent(t)
	addKey(t, socket, private, "")
	c := New(Options{User: me(t), Agent: socket, Deadlines: patient(), Dial: book(map[string]string{peerAddress + ":22": d.address})})
	connect(t, c, acme1())
}

// TestOpenSSHRefusedOnce looks into sshd's log: a refused key is offered once,
// however often a run connects.
func TestOpenSSHRefusedOnce(t *testing.T) {
	t.Parallel()
	h, key := newHome(t), newKey(t)
	_, wrong := h.key(t, "id_wrong", "")
	d := startDaemon(t, daemonOptions{hostKeys: []any{edwards(t)}, login: key.PublicKey()})
	c := New(Options{User: me(t), Key: key, Deadlines: patient(), Dial: book(map[string]string{peerAddress + ":22": d.address}),
		Config: h.config(t, "Host acme-1\n IdentityFile ~/.ssh/id_wrong\n"), Agent: startAgent(t, edwards(t)), Via: []string{Public, Tailscale}})
	want := "the host refused the key " + ssh.FingerprintSHA256(wrong) + " (" + h.path("id_wrong") + " (IdentityFile)) for user " + me(t) + " (tried once, not again)"
	for _, name := range []string{"acme-1", "acme-1", "renamed"} {
		to := acme1()
		to.Name = name
		_, err := c.Connect(within(t), to)
		e := asError(t, err)
		if e.Host != name || e.Code.String() != "key-not-installed" || !strings.Contains(err.Error(), want) || !strings.Contains(e.Remedy, "IdentityFile") {
			t.Errorf("error = %v, remedy %q, want %q", err, e.Remedy, want)
		}
	}
	d.stop()
	if got := containing(d.lines, "Failed publickey"); got != 1 || containing(d.lines, "Connection from") != 1 {
		t.Errorf("sshd refused %d keys, want one of one connection:\n%s", got, d.log())
	}
}
