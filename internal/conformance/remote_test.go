package conformance_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/hosts"
	"github.com/macfleet/macfleet/internal/conformance"
	"github.com/macfleet/macfleet/internal/sandbox/mac"
	"github.com/macfleet/macfleet/internal/scripttest"
)

func newKey(t *testing.T) (ed25519.PrivateKey, ssh.Signer) {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	signer, odd := ssh.NewSignerFromKey(private)
	if err = errors.Join(err, odd); err != nil {
		t.Fatal(err)
	}
	return private, signer
}

// serveOnce returns a dialer whose only connection is served by answer.
func serveOnce(t *testing.T, answer func(*net.TCPConn)) hosts.Dial {
	t.Helper()
	var served sync.WaitGroup
	t.Cleanup(served.Wait)
	return func(ctx context.Context, _, _ string) (net.Conn, error) {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer listener.Close()
		near, err := (&net.Dialer{}).DialContext(ctx, "tcp", listener.Addr().String())
		if err != nil {
			return nil, err
		}
		far, err := listener.Accept()
		if err != nil {
			return nil, err
		}
		served.Go(func() { answer(far.(*net.TCPConn)) })
		return near, nil
	}
}

var acme = hosts.Target{Server: inventory.Server{ID: "-", Name: "acme-1", Address: "192.0.2.1"}}

// TestMacRunner runs the rows on a simulated Mac as on a real one.
func TestMacRunner(t *testing.T) {
	t.Parallel()
	_, key := newKey(t)
	for _, files := range []bool{false, true} {
		t.Run(fmt.Sprint("files ", files), func(t *testing.T) {
			t.Parallel()
			m := newMac(t, func(f *mac.Factory) { f.AuthorizedKeys = []string{string(ssh.MarshalAuthorizedKey(key.PublicKey()))} })
			dial := serveOnce(t, func(conn *net.TCPConn) { _ = m.Serve(context.Background(), conn, func(string) {}) })
			unchanged := listed(t, m)
			about, all, err := ask(t.Context(), hosts.Options{User: "m1", Key: key, Dial: dial}, acme, table(t), files)
			if err != nil {
				t.Fatal(err)
			}
			if want := `macOS "26.3", root without a password: true`; about != want {
				t.Errorf("about = %s, want %s", about, want)
			}
			checkReport(t, about, all, table(t), files)
			unchanged()
		})
	}
}

func checkReport(t *testing.T, about string, all []conformance.Outcome, rows []conformance.Row, files bool) {
	t.Helper()
	if len(all) != len(rows) {
		t.Errorf("%d outcomes of %d rows", len(all), len(rows))
	}
	run := 0
	for _, o := range all {
		if o.NotRun != "" {
			continue
		}
		run++
		switch {
		case o.Row.Changes == conformance.Settings, o.Row.Changes == conformance.Files && !files:
			t.Errorf("%s was run", o.Row.ID())
		case !o.Same && o.Row.Gap == "":
			t.Errorf("differs:\n%s", o)
		}
	}
	if least := len(rows) / 3; run < least {
		t.Errorf("%d rows were run, want at least %d\n%s", run, least, conformance.Report(about, all))
	}
}

// listing returns every file below a folder with its checksum.
func listing(t *testing.T, root string) string {
	t.Helper()
	var out strings.Builder
	err := filepath.WalkDir(root, func(name string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(name)
		fmt.Fprintf(&out, "%s %x\n", name, text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestMacRunnerOpenSSH runs the rows on this machine through its own sshd. Rows that need macOS are skipped, because it reports no version.
func TestMacRunnerOpenSSH(t *testing.T) {
	t.Parallel()
	private, key := newKey(t)
	dial := serveOnce(t, openSSH(t, private, key))
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	// TestShells runs all rows on this machine. Here each costs ten processes, so only every fourth is run.
	var rows []conformance.Row
	for i, row := range table(t) {
		if i%4 == 0 {
			rows = append(rows, row)
		}
	}
	about, all, err := ask(t.Context(), hosts.Options{User: me.Username, Key: key, Dial: dial}, acme, rows, true)
	if err != nil {
		t.Fatal(err)
	}
	checkReport(t, about, all, rows, true)
	for _, o := range all {
		if o.NotRun == "" && o.Row.Needs == conformance.MacOS {
			t.Errorf("%s was run here", o.Row.ID())
		}
	}
}

// openSSH serves a connection with OpenSSH's sshd, as inetd does.
func openSSH(t *testing.T, private ed25519.PrivateKey, key ssh.Signer) func(*net.TCPConn) {
	t.Helper()
	sshd := "/usr/sbin/sshd"
	if _, err := os.Stat(sshd); err != nil {
		scripttest.Need(t, "sshd")
		sshd, _ = exec.LookPath("sshd")
	}
	scripttest.Need(t, "perl", "sudo")
	if os.Getuid() == 0 {
		// As root, sshd requires its folder for privilege separation.
		if err := os.MkdirAll("/run/sshd", 0o755); err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{
		"host_key": pem.EncodeToMemory(block), "authorized_keys": ssh.MarshalAuthorizedKey(key.PublicKey()),
		"sshd_config": fmt.Appendf(nil, "PidFile none\nUsePAM no\nStrictModes no\nPermitRootLogin yes\nPasswordAuthentication no\n"+
			"KbdInteractiveAuthentication no\nPrintMotd no\nSetEnv SHLVL=2\nHostKey %s/host_key\nAuthorizedKeysFile %[1]s/authorized_keys\n", dir),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return func(conn *net.TCPConn) {
		file, err := conn.File()
		_ = conn.Close() // file is a copy
		if err != nil {
			t.Error(err)
			return
		}
		cmd := exec.Command(sshd, "-i", "-e", "-f", filepath.Join(dir, "sshd_config"))
		cmd.Stdin, cmd.Stdout = file, file
		if err := cmd.Start(); err != nil {
			t.Error(err)
		}
		_ = file.Close()
		_ = cmd.Wait() // it exits with the connection
	}
}

// TestTrusted checks that an unknown host key is reported and not accepted.
func TestTrusted(t *testing.T) {
	t.Parallel()
	_, key := newKey(t)
	fingerprint := ssh.FingerprintSHA256(key.PublicKey())
	for _, c := range []struct{ given, wanted string }{
		{"", "FINGERPRINT=" + fingerprint},
		{"SHA256:other", "not SHA256:other"},
		{fingerprint, ""},
	} {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		var served sync.WaitGroup
		served.Go(func() {
			conn, err := listener.Accept()
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			config := &ssh.ServerConfig{NoClientAuth: true}
			config.AddHostKey(key)
			if _, _, _, err := ssh.NewServerConn(conn, config); err == nil {
				t.Error("there was a login")
			}
		})
		pin, err := trusted(t.Context(), listener.Addr().String(), c.given)
		served.Wait()
		_ = listener.Close()
		switch {
		case c.wanted == "" && (err != nil || !strings.HasPrefix(pin.Key, "ssh-ed25519 ")):
			t.Errorf("trusted(%q) = %+v, %v", c.given, pin, err)
		case c.wanted != "" && (err == nil || !strings.Contains(err.Error(), c.wanted)):
			t.Errorf("trusted(%q) = %v, want %s", c.given, err, c.wanted)
		}
	}
}
