package main

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/crypto/ssh"
)

// sshFleet is a number of hosts at one address on loopback, and how to log in.
type sshFleet struct {
	Hosts       int
	Address     string // host:port
	User        string
	Key         string  // private key, PEM
	HostKey     string  // "type base64"
	Tools       standIn // whose stub tools answer
	Parallelism int
	Folder      string // of what is uploaded
}

// ErrNoServer says that the machine has no OpenSSH server.
var ErrNoServer = errors.New("no sshd on this machine; install openssh-server, or leave out the rows host, ssh and upload")

// startFleet serves n hosts, each connection by an sshd process of its own, as inetd
// starts it; stop waits for the sessions, which end with their connections. The
// home folder of every session is an empty one: OpenSSH runs commands through
// the login shell, and its start-up files would cost more than all the rest.
func startFleet(ctx context.Context, dir string, n int, more string) (f *sshFleet, stop func() error, err error) {
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
	f = &sshFleet{Hosts: n, User: me.Username}
	if f.Tools, err = writeStandIn(filepath.Join(dir, "mac")); err != nil {
		return nil, nil, err
	}
	if f.HostKey, f.Key, err = newKey(); err != nil {
		return nil, nil, err
	}
	config := filepath.Join(dir, "sshd.conf")
	for name, text := range map[string]string{filepath.Join(dir, "key"): f.Key, filepath.Join(dir, "authorized_keys"): f.HostKey + "\n", // one key pair serves both sides
		config: "UsePAM no\nStrictModes no\nPermitRootLogin yes\nPasswordAuthentication no\nKbdInteractiveAuthentication no\nPrintMotd no\n" +
			"HostKey " + filepath.Join(dir, "key") + "\nAuthorizedKeysFile " + filepath.Join(dir, "authorized_keys") + "\n" +
			"SetEnv HOME=" + filepath.Join(dir, "home") + "\n" + more} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			return nil, nil, err
		}
	}
	f.Address, stop, err = serveEach(func(conn *net.TCPConn) {
		socket, err := conn.File()
		_ = conn.Close() // sshd gets its duplicate
		if err != nil {
			return // the client sees the connection end
		}
		defer socket.Close()
		sshd := exec.CommandContext(ctx, path, "-i", "-f", config)
		sshd.Stdin, sshd.Stdout = socket, socket
		_ = sshd.Run() // what the client lacks by that is an error there
	})
	return f, stop, err
}

// serveEach serves every connection to a free port of loopback until it is stopped; stop
// waits for those that are still open.
func serveEach(one func(*net.TCPConn)) (address string, stop func() error, err error) {
	listener, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return "", nil, err
	}
	var open sync.WaitGroup
	open.Go(func() {
		for {
			conn, err := listener.AcceptTCP()
			if err != nil {
				return
			}
			open.Go(func() { one(conn) })
		}
	})
	return listener.Addr().String(), func() error {
		err := listener.Close()
		open.Wait()
		return err
	}, nil
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
		return path, os.MkdirAll("/run/sshd", 0o755)
	}
	return path, nil
}

// newKey returns a key as "type base64" and as PEM.
func newKey() (public, private string, err error) {
	_, priv, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return "", "", err
	}
	block, err := ssh.MarshalPrivateKey(priv, "")
	if err != nil {
		return "", "", err
	}
	signer, err := ssh.NewSignerFromKey(priv)
	if err != nil {
		return "", "", err
	}
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(signer.PublicKey()))), string(pem.EncodeToMemory(block)), nil
}
