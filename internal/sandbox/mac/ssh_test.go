package mac

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"golang.org/x/crypto/ssh"
)

// events counts what a server logs.
type events struct {
	mu  sync.Mutex
	all map[string]int
}

func (e *events) log(event string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.all == nil {
		e.all = map[string]int{}
	}
	e.all[event]++
}

// dial serves a machine and logs in.
func dial(t testing.TB, m *Machine, name string, key ssh.Signer, e *events) (*ssh.Client, error) {
	t.Helper()
	near, far := pipe(t)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = m.Serve(context.Background(), far, e.log)
	}()
	t.Cleanup(func() { <-ended })
	conn, channels, requests, err := ssh.NewClientConn(near, "mac:22", &ssh.ClientConfig{
		User: name, Auth: []ssh.AuthMethod{ssh.PublicKeys(key)}, HostKeyCallback: ssh.InsecureIgnoreHostKey(),
	})
	if err != nil {
		_ = near.Close()
		return nil, err
	}
	client := ssh.NewClient(conn, channels, requests)
	t.Cleanup(func() { _ = client.Close() })
	return client, nil
}

func login(t testing.TB, e *events, change ...func(*Factory)) (*Machine, *ssh.Client) {
	t.Helper()
	key := newKey(t)
	m := newMachine(t, append(change, func(f *Factory) { f.AuthorizedKeys = []string{"# comment", authorized(key)} })...)
	client, err := dial(t, m, "m1", key, e)
	ok(t, err)
	return m, client
}

func exec(t testing.TB, client *ssh.Client, line, stdin string) (stdout, stderr string, exit int) {
	t.Helper()
	session, err := client.NewSession()
	ok(t, err)
	defer session.Close()
	var out, errs bytes.Buffer
	session.Stdin, session.Stdout, session.Stderr = strings.NewReader(stdin), &out, &errs
	err = session.Run(line)
	var failed *ssh.ExitError
	if errors.As(err, &failed) {
		exit = failed.ExitStatus()
	} else if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	return out.String(), errs.String(), exit
}

const bootstrap = `[ "$(id -u)" = 0 ] || ! sudo -n true </dev/null 2>/dev/null || exec sudo -n /bin/sh -c "$1" sh; exec /bin/sh -c "$1" sh`

func bootstrapped(script string) string {
	return "/bin/sh -c " + quote(bootstrap) + " sh " + quote(script)
}

func TestExecSharesStdin(t *testing.T) {
	t.Parallel()
	script := `read -r mark; id -u; take() { read -r n; value=$(dd bs=1 count="$n" 2>/dev/null; printf x); value=${value%x}; }
take; printf '<%s>' "$value"; sh -c 'read -r a; echo "[$a]"'; cat; exit 5`
	for _, root := range []bool{true, false} {
		e := &events{}
		_, client := login(t, e, func(f *Factory) { f.PasswordlessSudo = root })
		stdout, stderr, exit := exec(t, client, bootstrapped(script), "mark\n7\na\n'b\"c\nnext\nrest\nof it")
		uid := "501"
		if root {
			uid = "0"
		}
		if want := uid + "\n<a\n'b\"c\n>[next]\nrest\nof it"; stdout != want || stderr != "" || exit != 5 {
			t.Errorf("root %v: stdout %q, want %q; stderr %q, exit %d", root, stdout, want, stderr, exit)
		}
		if e.all["connect"] != 1 || e.all["exec"] != 1 {
			t.Errorf("logged %v", e.all)
		}
	}
}

func TestUpload(t *testing.T) {
	t.Parallel()
	_, client := login(t, &events{})
	data := strings.Repeat("0123456789abcdef", 1<<19)
	line := bootstrapped("cat >/tmp/up && stat -f %z /tmp/up && cat /tmp/up | tee /tmp/copy | shasum -a 256 && cmp /tmp/up /tmp/copy && cat /tmp/copy")
	stdout, stderr, exit := exec(t, client, line, data)
	want := fmt.Sprintf("%d\n%x  -\n%s", len(data), sha256.Sum256([]byte(data)), data)
	if stdout != want || stderr != "" || exit != 0 {
		t.Errorf("%d bytes, want %d; stderr %q, exit %d", len(stdout), len(want), stderr, exit)
	}
}

func TestManyCommandsAtOnce(t *testing.T) {
	t.Parallel()
	_, client := login(t, &events{})
	var wg sync.WaitGroup
	for n := range maxSessions {
		wg.Go(func() {
			for range 5 {
				if stdout, _, exit := exec(t, client, bootstrapped("read -r a; ls -l /usr/bin | tee /tmp/$a | grep -c sudo; rm /tmp/$a"), fmt.Sprintln(n)); stdout != "1\n" || exit != 0 {
					t.Errorf("%q, exit %d", stdout, exit)
				}
			}
		})
	}
	wg.Wait()
}

func TestAuthentication(t *testing.T) {
	t.Parallel()
	key, stranger := newKey(t), newKey(t)
	m := newMachine(t, func(f *Factory) { f.AuthorizedKeys = []string{authorized(key)} })
	for _, c := range []struct {
		user string
		key  ssh.Signer
		ok   bool
	}{{"m1", key, true}, {"m1", stranger, false}, {"root", key, false}, {"ghost", key, false}} {
		e := &events{}
		client, err := dial(t, m, c.user, c.key, e)
		equal(t, err == nil, c.ok, c.user, err)
		if client != nil {
			_ = client.Close()
		} else if e.all["connect"] != 0 {
			t.Errorf("%s: logged %v", c.user, e.all)
		}
	}
	must(t, m, "m1", "echo '"+authorized(stranger)+"' >>.ssh/authorized_keys; rm .ssh/scw_authorized_keys")
	if _, err := dial(t, m, "m1", stranger, &events{}); err != nil {
		t.Errorf("an added key: %v", err)
	}
	if _, err := dial(t, m, "m1", key, &events{}); err == nil {
		t.Error("a removed key still works")
	}
}

func TestSessionLimits(t *testing.T) {
	t.Parallel()
	_, client := login(t, &events{})
	var sessions []*ssh.Session
	for range maxSessions {
		s, err := client.NewSession()
		ok(t, err)
		sessions = append(sessions, s)
	}
	var refused *ssh.OpenChannelError
	if _, err := client.NewSession(); !errors.As(err, &refused) || refused.Message != "open failed" {
		t.Errorf("one too many: %v", err)
	}
	s := sessions[0]
	if err := s.RequestPty("xterm", 24, 80, nil); err == nil {
		t.Error("a terminal was granted")
	}
	if err := s.RequestSubsystem("sftp"); err == nil {
		t.Error("a subsystem was started")
	}
	if err := s.Shell(); err == nil {
		t.Error("a shell was started")
	}
	if err := s.Setenv("A", "b"); err == nil {
		t.Error("the environment was accepted")
	}
	for _, s := range sessions {
		_ = s.Close()
	}
	if _, _, err := client.SendRequest("keepalive@openssh.com", true, nil); err != nil {
		t.Errorf("keepalive: %v", err)
	}
	if _, err := client.Dial("tcp", "127.0.0.1:1"); err == nil {
		t.Error("a tunnel was opened")
	}
}

func TestOutputStreams(t *testing.T) {
	t.Parallel()
	_, client := login(t, &events{})
	session, err := client.NewSession()
	ok(t, err)
	stdout, err := session.StdoutPipe()
	ok(t, err)
	ok(t, session.Start("echo first; sleep 600"))
	first := make([]byte, 6)
	if _, err := stdout.Read(first); err != nil || string(first) != "first\n" {
		t.Errorf("read %q, %v", first, err)
	}
	// The connection breaks during the command; the cleanup waits for the server's end.
	_ = client.Close()
}

func TestContextEndsServer(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	near, far := pipe(t)
	defer near.Close()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- m.Serve(ctx, far, func(string) {}) }()
	cancel()
	if err := <-ended; err == nil {
		t.Error("an interrupted handshake is not an error")
	}
}

func TestHostKey(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	fingerprint := func() string {
		key, err := m.hostKey()
		ok(t, err)
		return ssh.FingerprintSHA256(key.PublicKey())
	}
	first := fingerprint()
	for range 2 {
		if err := m.RotateHostKey(); err != nil || fingerprint() == first {
			t.Fatalf("rotated: %v", err)
		}
	}
	for range 2 {
		if err := m.RestoreHostKey(); err != nil || fingerprint() != first {
			t.Fatalf("restored: %v", err)
		}
	}
}

// Not parallel: other tests open descriptors too.
func TestDescriptors(t *testing.T) {
	if _, err := os.Stat("/proc/self/fd"); err != nil {
		t.Skip("no /proc")
	}
	_, client := login(t, &events{})
	count := func() int {
		entries, err := os.ReadDir("/proc/self/fd")
		ok(t, err)
		return len(entries)
	}
	script := "read -r a; exec </etc/sudoers; exec 2>/dev/null; echo x | cat | cat >/dev/null; cat <<EOF >/tmp/f\n$a\nEOF\nwhile read -r l </tmp/f; do echo $l; break; done; exec sh -c 'exec >/dev/null; echo y'"
	exec(t, client, script, "line\n")
	before := count()
	for range 200 {
		if stdout, _, exit := exec(t, client, script, "line\n"); exit != 0 || stdout != "line\n" {
			t.Fatalf("exit %d, %q", exit, stdout)
		}
	}
	if after := count(); after > before {
		t.Errorf("%d descriptors before, %d after", before, after)
	}
}

func BenchmarkExec(b *testing.B) {
	_, client := login(b, &events{})
	line, stdin := benchmarkScript()
	for b.Loop() {
		if out, errs, exit := exec(b, client, line, stdin); exit != 0 {
			b.Fatal(out, errs)
		}
	}
}

func BenchmarkConnectAndExec(b *testing.B) {
	key := newKey(b)
	m := newMachine(b, func(f *Factory) { f.AuthorizedKeys = []string{authorized(key)} })
	line, stdin := benchmarkScript()
	for b.Loop() {
		client, err := dial(b, m, "m1", key, &events{})
		ok(b, err)
		if out, errs, exit := exec(b, client, line, stdin); exit != 0 {
			b.Fatal(out, errs)
		}
		_ = client.Close()
	}
}

// benchmarkScript asks the questions of a fleet's observation, each in a separate shell.
func benchmarkScript() (line, stdin string) {
	var b strings.Builder
	fmt.Fprintf(&b, "exec perl -e %s ''", quote(strings.TrimSpace(watchdog)))
	stdin = "mark\nm1\n10\n"
	for i, q := range []string{"ioreg -rd1 -c IOPlatformExpertDevice", "sw_vers -productVersion", "pmset -g custom", "scutil --get $1", "[ -e /etc/x ] || exit 4; cat /etc/x"} {
		fmt.Fprintf(&b, " q%d user 1 0 %s", i, quote(q))
		stdin += "12\nComputerName"
	}
	return bootstrapped(b.String()), stdin
}
