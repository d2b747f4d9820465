package hosts

import (
	"bufio"
	"crypto/ed25519"
	"encoding/pem"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
	xknownhosts "golang.org/x/crypto/ssh/knownhosts"

	"github.com/macfleet/macfleet/hosts/sshconfig"
)

// home is a person's home, with a .ssh folder.
type home struct{ dir string }

func newHome(t testing.TB) home {
	t.Helper()
	return home{t.TempDir()}
}

func (h home) path(name string) string { return filepath.Join(h.dir, ".ssh", name) }

// own writes out the home in a text: ssh takes ~ for that of the user who runs it.
func (h home) own(text string) string { return strings.ReplaceAll(text, "~", h.dir) }

// config writes a file, has ssh read it as the command does, and returns its Lookup.
func (h home) config(t testing.TB, text string) func(user string, names ...string) (sshconfig.Settings, error) {
	t.Helper()
	need(t, "ssh")
	file := filepath.Join(t.TempDir(), "config")
	write(t, file, h.own(text)+"\nHost *\n UserKnownHostsFile "+h.path("known_hosts")+"\n", 0o600)
	c, err := sshconfig.Read(file)
	must(t, err)
	return c.Lookup
}

// know enters the host keys of addresses ("127.0.0.1:2222") into known_hosts,
// hashed as Debian's ssh does.
func (h home) know(t testing.TB, keys map[string]ssh.PublicKey) {
	t.Helper()
	var b strings.Builder
	for address, key := range keys {
		b.WriteString(xknownhosts.HashHostname(xknownhosts.Normalize(address)) + " " + keyText(key) + "\n")
	}
	write(t, h.path("known_hosts"), b.String(), 0o600)
}

// key writes a new key into a file, locked where a passphrase is given, and its
// public half next to it.
func (h home) key(t testing.TB, name, passphrase string) (ed25519.PrivateKey, ssh.PublicKey) {
	t.Helper()
	private := edwards(t)
	block, err := ssh.MarshalPrivateKey(private, name)
	if passphrase != "" {
		block, err = ssh.MarshalPrivateKeyWithPassphrase(private, name, []byte(passphrase))
	}
	must(t, err)
	public := signer(t, private).PublicKey()
	write(t, h.path(name), string(pem.EncodeToMemory(block)), 0o600)
	write(t, h.path(name+".pub"), keyText(public)+" "+name+"\n", 0o644)
	return private, public
}

// startAgent runs OpenSSH's own ssh-agent with some keys, whose comments are
// acme-1, acme-2 and so on, and returns its socket.
func startAgent(t testing.TB, keys ...ed25519.PrivateKey) string {
	t.Helper()
	need(t, "ssh-agent")
	// A test's own folder may have too long a name for a socket.
	dir, err := os.MkdirTemp("", "a")
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := filepath.Join(dir, "s")
	cmd := exec.Command("ssh-agent", "-D", "-a", socket)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended by itself
		_ = cmd.Wait()
	})
	// It prints the socket's name when it listens.
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || !strings.Contains(line, socket) {
		t.Fatalf("ssh-agent says %q, %v", line, err)
	}
	for i, k := range keys {
		addKey(t, socket, k, "acme-"+string(rune('1'+i)))
	}
	return socket
}

// loopback dials addresses on loopback as they are, and no others.
func loopback(addresses ...string) Dial {
	entries := make(map[string]string)
	for _, a := range addresses {
		entries[a] = a
	}
	return book(entries)
}

func portOf(t testing.TB, address string) string {
	t.Helper()
	_, number, err := net.SplitHostPort(address)
	must(t, err)
	return number
}

func addKey(t testing.TB, socket string, private any, comment string) {
	t.Helper()
	conn, err := net.Dial("unix", socket)
	must(t, err)
	defer conn.Close()
	must(t, agent.NewClient(conn).Add(agent.AddedKey{PrivateKey: private, Comment: comment}))
}
