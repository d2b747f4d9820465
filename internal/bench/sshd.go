package main

import (
	"bufio"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
)

// sshFleet is a number of OpenSSH servers on loopback, and how to log in. All
// have one host key.
type sshFleet struct {
	Addresses   []string // host:port
	User        string
	Key         string  // private key, PEM
	HostKey     string  // "type base64"
	Tools       standIn // whose stub tools answer
	Parallelism int
}

// ErrNoServer says that the machine has no OpenSSH server.
var ErrNoServer = errors.New("no sshd on this machine; install openssh-server, or leave out the rows ssh and ansible")

// startFleet starts n servers; stop ends them and waits for their sessions. The
// home folder of every session is an empty one: OpenSSH runs commands through
// the login shell, and its start-up files would cost more than all the rest.
func startFleet(ctx context.Context, dir string, n int, more string) (fleet *sshFleet, stop func() error, err error) {
	path, err := findServer()
	if err != nil {
		return nil, nil, err
	}
	me, err := user.Current()
	if err != nil {
		return nil, nil, err
	}
	if err := os.MkdirAll(filepath.Join(dir, "home"), 0o755); err != nil {
		return nil, nil, err
	}
	fleet = &sshFleet{User: me.Username}
	if fleet.Tools, err = writeStandIn(filepath.Join(dir, "mac")); err != nil {
		return nil, nil, err
	}
	config, err := writeKeys(dir, fleet)
	if err != nil {
		return nil, nil, err
	}
	config += more
	var all []*daemon
	stop = func() error {
		var failed []error
		for _, d := range all {
			failed = append(failed, d.stop())
		}
		return errors.Join(failed...)
	}
	for i := range n {
		d, err := startDaemon(ctx, path, filepath.Join(dir, fmt.Sprintf("sshd-%d.conf", i)), config)
		if err != nil {
			return nil, nil, errors.Join(err, stop())
		}
		all = append(all, d)
		fleet.Addresses = append(fleet.Addresses, d.address)
	}
	return fleet, stop, nil
}

// findServer returns sshd's path: it must be started by an absolute one.
func findServer() (string, error) {
	path, err := exec.LookPath("sshd")
	if err != nil {
		path = "/usr/sbin/sshd" // a user's PATH often lacks the folder of daemons
		if _, err := os.Stat(path); err != nil {
			return "", ErrNoServer
		}
	}
	if os.Geteuid() == 0 {
		// sshd of root insists on its folder for privilege separation.
		if err := os.MkdirAll("/run/sshd", 0o755); err != nil {
			return "", err
		}
	}
	return path, nil
}

// writeKeys makes host and login key and returns sshd's configuration.
func writeKeys(dir string, fleet *sshFleet) (config string, err error) {
	hostPublic, hostPrivate, err := newKey()
	if err != nil {
		return "", err
	}
	public, private, err := newKey()
	if err != nil {
		return "", err
	}
	fleet.HostKey, fleet.Key = strings.TrimSpace(string(hostPublic)), string(private)
	for name, text := range map[string][]byte{"host_key": hostPrivate, "authorized_keys": public, "login_key": private} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			return "", err
		}
	}
	return "PidFile none\nUsePAM no\nStrictModes no\nPermitRootLogin yes\nPasswordAuthentication no\nKbdInteractiveAuthentication no\n" +
		"LogLevel INFO\nMaxStartups 100\nPrintMotd no\nHostKey " + filepath.Join(dir, "host_key") + "\n" +
		"AuthorizedKeysFile " + filepath.Join(dir, "authorized_keys") + "\nSetEnv HOME=" + filepath.Join(dir, "home") + "\n", nil
}

// newKey returns a key as an authorized_keys line and as PEM.
func newKey() (public, private []byte, err error) {
	pub, priv, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	block, err := ssh.MarshalPrivateKey(priv, "")
	if err != nil {
		return nil, nil, err
	}
	key, err := ssh.NewPublicKey(pub)
	if err != nil {
		return nil, nil, err
	}
	return ssh.MarshalAuthorizedKey(key), pem.EncodeToMemory(block), nil
}

// daemon is one server.
type daemon struct {
	address string
	cmd     *exec.Cmd
	log     *os.File
	ended   chan error // closed when nobody holds the log any more
}

// startDaemon starts a server on a free port. Another process may take the port
// between its choice and sshd's start; then another port is tried.
func startDaemon(ctx context.Context, path, file, config string) (*daemon, error) {
	var last error
	for range 5 {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		d, err := tryDaemon(path, file, config)
		if err == nil {
			return d, nil
		}
		last = err
	}
	return nil, last
}

func tryDaemon(path, file, config string) (*daemon, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	address := l.Addr().(*net.TCPAddr)
	if err := l.Close(); err != nil {
		return nil, err
	}
	text := fmt.Sprintf("ListenAddress 127.0.0.1\nPort %d\n%s", address.Port, config)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return nil, err
	}
	// The log is a pipe of our own, that sessions hold too: its end is theirs.
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	d := &daemon{address: address.String(), cmd: exec.Command(path, "-D", "-e", "-f", file), log: r, ended: make(chan error, 1)}
	d.cmd.Stderr = w
	err = d.cmd.Start()
	_ = w.Close() // sshd has its own
	if err != nil {
		_ = r.Close()
		return nil, err
	}
	listens := make(chan string)
	go d.read(listens)
	if said, ok := <-listens; !ok || said != "" {
		return nil, errors.Join(fmt.Errorf("%s ended at once: %s", path, said), d.stop())
	}
	return d, nil
}

// read passes over the log until nobody can write to it any more. It sends ""
// once the server listens, or what was said when it ended before.
func (d *daemon) read(listens chan<- string) {
	lines := bufio.NewScanner(d.log)
	var said []string
	listening := false
	for lines.Scan() {
		if listening {
			continue
		}
		said = append(said, lines.Text())
		if strings.Contains(lines.Text(), "Server listening on") {
			listening = true
			listens <- ""
		}
	}
	if !listening {
		listens <- "it said: " + strings.Join(said, "; ")
	}
	d.ended <- lines.Err()
}

// sessionsEnd is how long sessions get to see that their client is gone.
const sessionsEnd = 20 * time.Second

// stop ends the server and waits for its sessions, which end with their
// connections.
func (d *daemon) stop() error {
	_ = d.cmd.Process.Kill() // it may have ended by itself
	_ = d.cmd.Wait()
	err := d.log.SetReadDeadline(time.Now().Add(sessionsEnd))
	if read := <-d.ended; read != nil && !errors.Is(read, io.EOF) {
		err = errors.Join(err, fmt.Errorf("a session of the sshd at %s does not end: %w", d.address, read))
	}
	return errors.Join(err, d.log.Close())
}
