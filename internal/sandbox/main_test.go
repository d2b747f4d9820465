package sandbox_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	applesilicon "github.com/scaleway/scaleway-sdk-go/api/applesilicon/v1alpha1"
	"github.com/scaleway/scaleway-sdk-go/scw"
	"golang.org/x/crypto/ssh"

	"github.com/macfleet/macfleet/internal/maintest"
	"github.com/macfleet/macfleet/internal/sandbox"
)

func TestMain(m *testing.M) { maintest.Main(m) }

const (
	project = "22222222-2222-4222-8222-222222222222"
	cluster = "33333333-3333-4333-8333-333333333333"
	keyRef  = "k8s://macfleet/fleet-ssh/id_ed25519"
)

// seed returns a small world's seed, with Macs whose sudo needs no password.
func seed(hosts int) sandbox.Seed {
	return sandbox.Seed{
		ProjectID: project, ClusterUID: cluster, Zones: []string{"fr-par-1", "fr-par-3"},
		PoolPrefix: "acme-pool-", Hosts: hosts, SSHKeyRef: keyRef, PasswordlessSudo: true,
	}
}

// open opens the world in dir for the duration of the test.
func open(t testing.TB, dir string, with sandbox.Seed) *sandbox.World {
	t.Helper()
	w, err := sandbox.Open(dir, with)
	must(t, err)
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

// newWorld creates a world with that many hosts.
func newWorld(t testing.TB, hosts int) (w *sandbox.World, dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "sandbox")
	return open(t, dir, seed(hosts)), dir
}

// scaleway returns the vendor's client for a world.
func scaleway(t testing.TB, w *sandbox.World) *applesilicon.API {
	t.Helper()
	access, secret := w.ScalewayKeys()
	client, err := scw.NewClient(scw.WithAPIURL(w.ScalewayURL()), scw.WithAuth(access, secret), scw.WithDefaultProjectID(w.ProjectID()))
	must(t, err)
	if _, err := client.GetAPIMetadata(); err != nil {
		t.Fatal(err)
	}
	return applesilicon.NewAPI(client)
}

func hosts(t testing.TB, w *sandbox.World) []sandbox.Host {
	t.Helper()
	all, err := w.Hosts()
	must(t, err)
	return all
}

// host returns the host with an id.
func host(t testing.TB, w *sandbox.World, id string) sandbox.Host {
	t.Helper()
	all := hosts(t, w)
	i := slices.IndexFunc(all, func(h sandbox.Host) bool { return h.ID == id })
	if i < 0 {
		t.Fatalf("no host %s", id)
	}
	return all[i]
}

// signer returns the world's fleet key.
func signer(t testing.TB, w *sandbox.World) ssh.Signer {
	t.Helper()
	text, err := w.Secret(keyRef)
	must(t, err)
	key, err := ssh.ParsePrivateKey([]byte(text))
	must(t, err)
	return key
}

// exec runs one command over one SSH connection and returns its output and the host's key.
func exec(ctx context.Context, w *sandbox.World, key ssh.Signer, address, command string) (output, hostKey string, err error) {
	conn, err := w.DialContext(ctx, "tcp", address+":22")
	if err != nil {
		return "", "", err
	}
	config := &ssh.ClientConfig{
		User: "m1",
		Auth: []ssh.AuthMethod{ssh.PublicKeys(key)},
		HostKeyCallback: func(_ string, _ net.Addr, shown ssh.PublicKey) error {
			hostKey = ssh.FingerprintSHA256(shown)
			return nil
		},
	}
	connection, channels, requests, err := ssh.NewClientConn(conn, address+":22", config)
	if err != nil {
		_ = conn.Close()
		return "", hostKey, err
	}
	client := ssh.NewClient(connection, channels, requests)
	defer func() { _ = client.Close() }()
	session, err := client.NewSession()
	if err != nil {
		return "", hostKey, err
	}
	data, err := session.Output(command)
	return string(data), hostKey, err
}

// accessLog returns the log's lines that begin with prefix, without their times.
func accessLog(t testing.TB, dir, prefix string) []string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "access.log"))
	must(t, err)
	var found []string
	for line := range strings.Lines(string(data)) {
		_, text, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if strings.HasPrefix(text, prefix) {
			found = append(found, text)
		}
	}
	return found
}

// must ends the test at the first error.
func must(t testing.TB, errs ...error) {
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
