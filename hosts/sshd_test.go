package hosts

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/ssh"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/secret"
	"github.com/macfleet/macfleet/plan"
)

// mac is a stand-in for a Mac: an sshd, and tools that keep their state in a
// folder of this test.
type mac struct {
	*daemon
	target Target
	key    ssh.PublicKey // of the host
	bin    string
	state  string
}

// newMac starts a stand-in. Its login shell is noisy, as people's are.
func newMac(t testing.TB, n int, login ssh.PublicKey) mac {
	t.Helper()
	private := newRSAKey(t)
	dir := openDir(t)
	m := mac{bin: filepath.Join(dir, "bin"), state: filepath.Join(dir, "state"),
		target: target(fmt.Sprintf("acme-%d", n), fmt.Sprintf("192.0.2.%d", n)), key: signer(t, private).PublicKey()}
	m.daemon = startDaemon(t, daemonOptions{hostKeys: []any{private}, login: login, config: `ForceCommand printf 'Welcome to acme\n%%'; ` +
		`printf 'stty: no tty' >&2; /bin/sh -c "$SSH_ORIGINAL_COMMAND"; code=$?; printf bye; exit $code` + "\n"})
	tools := map[string]string{
		"sw_vers": `echo 26.%[2]d`,
		"ioreg":   `printf '    "IOPlatformSerialNumber" = "C07ACME00%[2]d"\n'`,
		"scutil": `case $1 in
--get) cat %[1]s/"$2" 2>/dev/null || { echo "$2: not set" >&2; exit 1; } ;;
--set) printf '%%s\n' "$3" >%[1]s/"$2" ;;
esac`,
		"pmset": `case $1 in
-g) cat %[1]s/pmset ;;
-a) printf ' %%s %%s\n' "$2" "$3" >%[1]s/pmset ;;
esac`,
		"defaults": `case $1 in
read) cat %[1]s/"$2.$3" 2>/dev/null || { echo "The domain/default pair of ($2, $3) does not exist" >&2; exit 1; } ;;
write) printf '%%s\n' "$5" >%[1]s/"$2.$3" ;;
esac`,
	}
	for name, text := range tools {
		// %[2]d is mentioned so that every text takes both values.
		write(t, filepath.Join(m.bin, name), "#!/bin/sh\n"+fmt.Sprintf(text+"\n: %[1]s %[2]d\n", m.state, n), 0o755)
	}
	write(t, filepath.Join(m.state, "pmset"), " sleep 10\n", 0o644)
	return m
}

func (m mac) client(t testing.TB, key ssh.Signer) *Client {
	t.Helper()
	return New(Options{User: me(t), Key: key, Dial: m.book(), Prologue: withStubs(m.bin), Deadlines: patient()})
}

func (m mac) book() Dial { return book(map[string]string{m.target.Server.Address + ":22": m.address}) }

// TestOpenSSH reads a host, changes it, and reads it again. TestFleet has many hosts at once.
func TestOpenSSH(t *testing.T) {
	t.Parallel()
	key := newKey(t)
	probes := []plan.Probe{
		probe("power.settings", "pmset -g"),
		probe("name.computer", "scutil --get ComputerName"),
		probe("login.user", `defaults read "$1" "$2"`, "com.acme.login", "user"),
		probe("host.user", "id -un"),
		probe("arguments", echo, hostile()...),
		{ID: "host.root", Command: plan.Command{Name: "root", Script: "id -u", As: plan.Root}},
	}
	root := unread("needs root")
	if hasRoot() {
		root = said(0, "0\n", "")
	}
	m := newMac(t, 1, key.PublicKey())
	c := m.client(t, key)
	conn := connect(t, c, m.target)
	want := plan.Facts{
		"power.settings": said(0, " sleep 10\n", ""),
		"name.computer":  said(1, "", "ComputerName: not set\n"),
		"login.user":     said(1, "", "The domain/default pair of (com.acme.login, user) does not exist\n"),
		"host.user":      said(0, me(t)+"\n", ""),
		"arguments":      said(0, echoed(hostile()), ""),
		"host.root":      root,
	}
	seen := conn.Observe(within(t), probes)
	if seen.Trouble != nil {
		t.Fatalf("trouble: %+v\n%s", seen.Trouble, m.log())
	}
	if seen.Key != keyText(m.key) || seen.Fingerprint != ssh.FingerprintSHA256(m.key) || seen.Pinned {
		t.Errorf("the unpinned key is shown as %q, %q, pinned %t", seen.Key, seen.Fingerprint, seen.Pinned)
	}
	if seen.Root != hasRoot() {
		t.Errorf("root = %t, want %t", seen.Root, hasRoot())
	}
	if diff := cmp.Diff([]inventory.Seen[string]{inventory.Present("C07ACME001"), inventory.Present("26.1")},
		[]inventory.Seen[string]{seen.Serial, seen.OSVersion}, whole); diff != "" {
		t.Errorf("serial and version (-want +got):\n%s", diff)
	}
	for _, q := range identity() {
		delete(seen.Facts, q.id)
	}
	is(t, "facts", seen.Facts, want)

	for _, change := range []plan.Command{
		{Name: "sleep", Script: `pmset -a sleep "$1"`, Args: []string{"0"}, As: plan.Login},
		{Name: "name", Script: `scutil --set ComputerName "$1"`, Args: []string{"acme's 1\n$(no)"}, As: plan.Login},
		{Name: "user", Script: `defaults write "$1" "$2" -string "$3"`, Args: []string{"com.acme.login", "user", "ci"}, As: plan.Login},
	} {
		a, err := conn.Run(within(t), change, secret.Value{})
		if err != nil || a != (plan.Answer{}) {
			t.Errorf("%s = %+v, %v", change.Name, a, err)
		}
	}
	if a, err := conn.Run(within(t), plan.Command{Name: "fails", Script: "echo oh >&2; exit 6", As: plan.Login}, secret.Value{}); !scriptFailed(err) || a.Exit != 6 || a.Stderr != "oh\n" {
		t.Errorf("a script that fails has an answer: %+v, %v", a, err)
	}
	want["power.settings"] = said(0, " sleep 0\n", "")
	want["name.computer"] = said(0, "acme's 1\n$(no)\n", "")
	want["login.user"] = said(0, "ci\n", "")
	facts, _, err := conn.Probe(within(t), probes)
	must(t, err)
	is(t, "facts after the changes", facts, want)
	stats := c.Stats()
	if stats.Sent == 0 || stats.Received == 0 || stats.Turns == 0 {
		t.Errorf("stats = %+v, want the bytes and the turns", stats)
	}
	stats.Sent, stats.Received, stats.Turns = 0, 0, 0
	if want := (Stats{Connections: 1, Execs: 6}); stats != want {
		t.Errorf("stats = %+v, want %+v", stats, want)
	}
}

// TestOpenSSHKeys reads sshd's own log as well: the provider bans an address after failed logins.
func TestOpenSSHKeys(t *testing.T) {
	t.Parallel()
	key, stranger := newKey(t), newKey(t)
	curve, rsa := edwards(t), newRSAKey(t)
	both := []any{curve, rsa}
	const forget = "macfleet hosts forget-key acme-1"
	tests := []struct {
		name         string
		hostKeys     []any
		offered      ssh.Signer
		pin          ssh.PublicKey
		code         string // "": connects
		phase        Phase
		text, remedy string
		refused      int
	}{
		{"no pin", both, key, nil, "", "", "", "", 0},
		{"two host keys, the one is pinned", both, key, signer(t, curve).PublicKey(), "", "", "", "", 0},
		{"two host keys, the other is pinned", both, key, signer(t, rsa).PublicKey(), "", "", "", "", 0},
		{"wrong key of the same type", both, key, stranger.PublicKey(), "wrong-host-key", HostKey,
			"the host shows " + ssh.FingerprintSHA256(signer(t, curve).PublicKey()), forget, 0},
		{"no key of the pinned type", []any{rsa}, key, stranger.PublicKey(), "wrong-host-key", HostKey, "no common algorithm", forget, 0},
		{"login key refused", both, stranger, nil, "key-not-installed", Authorising, "tried once, not again", "authorized_keys", 1},
		{"login key of another type refused", both, signer(t, rsa), nil, "key-not-installed", Authorising, "tried once, not again", "authorized_keys", 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d := startDaemon(t, daemonOptions{hostKeys: tt.hostKeys, login: key.PublicKey()})
			to := acme1()
			if tt.pin != nil {
				to = pinned(to, tt.pin)
			}
			c := New(Options{User: me(t), Key: tt.offered, Deadlines: patient(), Dial: book(map[string]string{peerAddress + ":22": d.address})})
			conn, err := c.Connect(within(t), to)
			accepted := 0
			if tt.code != "" {
				wantError(t, err, tt.code, tt.phase, tt.text)
				if e := asError(t, err); !strings.Contains(e.Remedy, tt.remedy) {
					t.Errorf("remedy = %q, want one with %q", e.Remedy, tt.remedy)
				}
			} else {
				must(t, err)
				if tt.pin != nil {
					is(t, "the pinned key", keyText(conn.key), keyText(tt.pin))
				}
				conn.Close()
				accepted = 1
			}
			d.stop() // now its log is whole
			got := []int{containing(d.lines, "Failed publickey"), containing(d.lines, "Accepted publickey"), containing(d.lines, "Connection from")}
			is(t, "refused and accepted keys and connections in "+d.log(), got, []int{tt.refused, accepted, 1})
		})
	}
}

// TestOpenSSHClaimRace lets two runs claim one host at the same time, several
// times over: one wins, and both know which.
func TestOpenSSHClaimRace(t *testing.T) {
	t.Parallel()
	needRoot(t)
	key := newKey(t)
	m := newMac(t, 1, key.PublicKey())
	c := m.client(t, key)
	conns := []*Conn{connect(t, c, m.target), connect(t, c, m.target)}
	for round := range 4 {
		// This folder stands for /etc/macfleet, where no test may write. It is
		// macfleet's, so that the test can remove what root leaves in it.
		dir := filepath.Join(m.state, fmt.Sprintf("etc-%d", round))
		must(t, os.Mkdir(dir, 0o755))
		at := func(cmd plan.Command) plan.Command {
			if !strings.Contains(cmd.Script, "/etc/macfleet") {
				t.Errorf("%s does not name /etc/macfleet", cmd.Name)
			}
			cmd.Script = strings.ReplaceAll(cmd.Script, "/etc/macfleet", dir)
			return cmd
		}
		claims, stand := make([]plan.Claim, 2), make([]plan.Claim, 2)
		var wg sync.WaitGroup
		for i, conn := range conns {
			claims[i] = acmeClaim()
			claims[i].Nonce = fmt.Sprintf("%d-%d", round, i)
			wg.Go(func() {
				text := fmt.Sprintf(`{"configuration":"acme","environment":"prod","name":%q,"server_id":"id-1","nonce":%q}`, claims[i].Name, claims[i].Nonce)
				a, err := conn.Run(within(t), at(own("claim-create", plan.Root, text+"\n")), secret.Value{})
				if err != nil || a.Exit != 0 {
					t.Errorf("claim %d = %+v, %v", i, a, err)
					return
				}
				if stand[i], err = parseClaim(a.Stdout); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if stand[0] != stand[1] || stand[0] != claims[0] && stand[0] != claims[1] {
			t.Errorf("round %d: the runs read %+v and %+v, want one of the two claims twice", round, stand[0], stand[1])
		}
		a, err := conns[0].Run(within(t), at(own("marker-write", plan.Root, markerText)), secret.Value{})
		if err != nil || a != (plan.Answer{}) {
			t.Errorf("marker = %+v, %v", a, err)
		}
		facts, _, err := conns[1].Probe(within(t), []plan.Probe{
			{ID: "host.marker", Command: at(own("file", plan.Login, "host.json"))}, {ID: "host.claim", Command: at(own("file", plan.Login, "claim.json"))}})
		must(t, err)
		seen := plan.HostSeen{Facts: facts}
		identify(&seen)
		is(t, "marker", seen.Marker, inventory.Present(acmeMarker()))
		is(t, "claim", seen.Claim, inventory.Present(stand[0]))
		left, err := os.ReadDir(dir)
		must(t, err)
		if len(left) != 2 {
			t.Errorf("the scripts left %v behind", left)
		}
	}
}

// TestOpenSSHHang: a question that hangs costs its own answer and no other.
func TestOpenSSHHang(t *testing.T) {
	t.Parallel()
	key := newKey(t)
	m := newMac(t, 1, key.PublicKey())
	w, f := newWitness(t, openDir(t))
	c := New(Options{User: me(t), Key: key, Dial: m.book(), Prologue: withStubs(m.bin),
		Deadlines: impatient(func(d *Deadlines) { d.Question = time.Second })})
	conn := connect(t, c, m.target)
	seen := conn.Observe(within(t), []plan.Probe{
		probe("bad.0", `exec 3>"$1"; printf up >&3; sleep 1000 & sleep 1000`, w.path), probe("good.0", "printf good")})
	if seen.Trouble != nil {
		t.Fatalf("trouble: %+v", seen.Trouble)
	}
	is(t, "the question that hangs", seen.Facts.Get("bad.0"), unread(stoppedByWatchdog))
	is(t, "the question after it", seen.Facts.Get("good.0"), said(0, "good", ""))
	is(t, "version", seen.OSVersion, inventory.Present("26.1"))
	allDead(t, f, "up")
}
