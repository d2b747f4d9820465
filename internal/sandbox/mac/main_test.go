package mac

import (
	"crypto/ed25519"
	"crypto/rand"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/macfleet/macfleet/internal/maintest"
)

// otherProcess makes the test binary a second process on a machine's folder.
const otherProcess = "MACFLEET_TEST_MACHINE"

func TestMain(m *testing.M) {
	if dir := os.Getenv(otherProcess); dir != "" {
		os.Exit(workOn(dir))
	}
	maintest.Main(m)
}

func factory() Factory {
	return Factory{Name: "pool-1", Serial: "HQ2X4Y7Z91", HardwareUUID: "5B1B6C30-0000-4000-8000-0123456789AB", OSVersion: "26.3",
		OSBuild: "25D125", User: "m1", Password: "swordfish", PasswordlessSudo: true}
}

func newMachine(t testing.TB, change ...func(*Factory)) *Machine {
	t.Helper()
	f := factory()
	for _, c := range change {
		c(&f)
	}
	m, err := Create(filepath.Join(t.TempDir(), "mac"), f)
	ok(t, err)
	return m
}

// run returns a script's output on both streams, and its exit status.
func run(t testing.TB, m *Machine, user, script string) (stdout, stderr string, exit int) {
	t.Helper()
	r, err := m.Run(t.Context(), user, script)
	ok(t, err)
	return string(r.Stdout), string(r.Stderr), r.Exit
}

// must runs a script that has to succeed and returns its output.
func must(t testing.TB, m *Machine, user, script string) string {
	t.Helper()
	stdout, stderr, exit := run(t, m, user, script)
	if exit != 0 {
		t.Fatalf("%q: exit %d, stdout %q, stderr %q", script, exit, stdout, stderr)
	}
	return stdout
}

// ok ends the test at the first error.
func ok(t testing.TB, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

func equal[T comparable](t testing.TB, got, want T, what ...any) {
	t.Helper()
	if got != want {
		t.Errorf("%v\n got %#v\nwant %#v", what, got, want)
	}
}

func has(t testing.TB, text, part string, what ...any) {
	t.Helper()
	if !strings.Contains(text, part) {
		t.Errorf("%v: %q is not in\n%s", what, part, text)
	}
}

func newKey(t testing.TB) ssh.Signer {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	ok(t, err)
	signer, err := ssh.NewSignerFromKey(key)
	ok(t, err)
	return signer
}

func authorized(key ssh.Signer) string {
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key.PublicKey())))
}

// pipe returns both ends of a loopback connection.
func pipe(t testing.TB) (near, far net.Conn) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	ok(t, err)
	defer listener.Close()
	if near, err = net.Dial("tcp", listener.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if far, err = listener.Accept(); err != nil {
		t.Fatal(err)
	}
	return near, far
}
