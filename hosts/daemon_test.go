package hosts

import (
	"bufio"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/macfleet/macfleet/internal/maintest"
)

// daemon is OpenSSH's own sshd on a loopback port.
type daemon struct {
	address string
	mu      sync.Mutex
	changed *sync.Cond
	lines   []string
	ended   bool
	process *os.Process
	stop    func() // ends the daemon, and returns when its sessions have ended too
}

// daemonOptions are what differs between the daemons of the tests.
type daemonOptions struct {
	hostKeys []any // private keys
	login    ssh.PublicKey
	config   string // more lines of sshd_config
	loopback string // empty: 127.0.0.1
}

// startDaemon runs an sshd for the time of the test.
func startDaemon(t testing.TB, o daemonOptions) *daemon {
	t.Helper()
	path := sshdPath(t)
	dir := t.TempDir()
	if o.loopback == "" {
		o.loopback = "127.0.0.1"
	}
	write(t, filepath.Join(dir, "authorized_keys"), string(ssh.MarshalAuthorizedKey(o.login)), 0o600)
	config := "PidFile none\nUsePAM no\nStrictModes no\nPermitRootLogin yes\nPasswordAuthentication no\n" +
		"KbdInteractiveAuthentication no\nLogLevel VERBOSE\nMaxStartups 100\nPrintMotd no\n" +
		"SetEnv SHLVL=2\n" + // else Debian's bash reads the .bashrc of anyone who runs the tests
		"AuthorizedKeysFile " + filepath.Join(dir, "authorized_keys") + "\n"
	for i, private := range o.hostKeys {
		block, err := ssh.MarshalPrivateKey(private, "")
		must(t, err)
		name := filepath.Join(dir, fmt.Sprintf("host_key_%d", i))
		write(t, name, string(pem.EncodeToMemory(block)), 0o600)
		config += "HostKey " + name + "\n"
	}
	config += o.config
	ports, err := maintest.Ports(1)
	must(t, err)
	file := filepath.Join(dir, "sshd_config")
	write(t, file, fmt.Sprintf("ListenAddress %s\nPort %s\n%s", o.loopback, ports[0], config), 0o600)
	d := &daemon{address: net.JoinHostPort(o.loopback, ports[0])}
	d.changed = sync.NewCond(&d.mu)
	// The log goes through a pipe of our own: exec's would wait for sessions too.
	r, w, err := os.Pipe()
	must(t, err)
	cmd := exec.Command(path, "-D", "-e", "-f", file)
	cmd.Stderr = w
	must(t, cmd.Start())
	_ = w.Close()
	d.process = cmd.Process
	read := make(chan struct{})
	go func() {
		defer close(read)
		if err := d.read(r); err != nil {
			t.Errorf("a session of sshd does not end: %v\n%s", err, d.log())
		}
	}()
	d.stop = sync.OnceFunc(func() {
		_ = cmd.Process.Kill() // it may have ended by itself
		_ = cmd.Wait()
		// Sessions write to the log until they have ended.
		if err := r.SetReadDeadline(time.Now().Add(patience)); err != nil {
			t.Error(err)
		}
		<-read
		_ = r.Close()
	})
	if !d.listening() {
		d.stop()
		t.Fatalf("sshd ended at once:\n%s", d.log())
	}
	t.Cleanup(d.stop)
	return d
}

func sshdPath(t testing.TB) string {
	t.Helper()
	path, err := exec.LookPath("sshd")
	if err != nil {
		// A user's PATH often lacks the folder of daemons.
		path = "/usr/sbin/sshd"
		if _, err := os.Stat(path); err != nil {
			need(t, "sshd")
		}
	}
	need(t, "dash", "perl", "sudo")
	if isRoot() {
		// sshd of root insists on its folder for privilege separation, which a
		// machine that never started the service lacks.
		must(t, os.MkdirAll("/run/sshd", 0o755))
	}
	return path
}

func (d *daemon) read(r io.Reader) error {
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		d.mu.Lock()
		d.lines = append(d.lines, lines.Text())
		d.changed.Broadcast()
		d.mu.Unlock()
	}
	d.mu.Lock()
	d.ended = true
	d.changed.Broadcast()
	d.mu.Unlock()
	return lines.Err()
}

// listening waits until sshd listens; it is false when sshd ends before.
func (d *daemon) listening() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for containing(d.lines, "Server listening on") == 0 && !d.ended {
		d.changed.Wait()
	}
	return !d.ended
}

// wait returns when the log holds a text, or has ended.
func (d *daemon) wait(part string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for containing(d.lines, part) == 0 && !d.ended {
		d.changed.Wait()
	}
}

func (d *daemon) log() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return strings.Join(d.lines, "\n")
}

func containing(lines []string, part string) int {
	n := 0
	for _, l := range lines {
		if strings.Contains(l, part) {
			n++
		}
	}
	return n
}
