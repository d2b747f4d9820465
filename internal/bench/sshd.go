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

// sshFleet is a number of hosts at one loopback address, and how to log in.
type sshFleet struct {
	Hosts       int
	Address     string // host:port
	User        string
	Key         string  // private key, PEM
	HostKey     string  // "type base64"
	Tools       standIn // its stub tools answer
	Parallelism int
	Folder      string // of uploaded files
}

// ErrNoServer is returned on a machine without an OpenSSH server.
var ErrNoServer = errors.New("no sshd on this machine; install openssh-server, or skip the rows host, ssh and upload")

// startFleet serves n hosts, each connection by a separate sshd process, as inetd does. stop waits for
// the sessions, which end with their connections. Every session has an empty home folder: OpenSSH runs
// commands through the login shell, whose start-up files would cost more than everything else.
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
	for name, text := range map[string]string{filepath.Join(dir, "key"): f.Key, filepath.Join(dir, "authorized_keys"): f.HostKey + "\n", // both sides use one key pair
		config: "UsePAM no\nStrictModes no\nPermitRootLogin yes\nPasswordAuthentication no\nKbdInteractiveAuthentication no\nPrintMotd no\n" +
			"HostKey " + filepath.Join(dir, "key") + "\nAuthorizedKeysFile " + filepath.Join(dir, "authorized_keys") + "\n" +
			"SetEnv HOME=" + filepath.Join(dir, "home") + "\n" + more} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			return nil, nil, err
		}
	}
	f.Address, stop, err = serveEach(func(conn *net.TCPConn) {
		socket, err := conn.File()
		_ = conn.Close() // sshd has its duplicate
		if err != nil {
			return // the client sees the connection end
		}
		defer socket.Close()
		sshd := exec.CommandContext(ctx, path, "-i", "-f", config)
		sshd.Stdin, sshd.Stdout = socket, socket
		_ = sshd.Run() // the client reports what it misses
	})
	return f, stop, err
}

// serveEach serves every connection to a free loopback port until stop is called. stop waits for open
// connections.
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

// findServer returns sshd's path. sshd must be started by an absolute path.
func findServer() (string, error) {
	path, err := exec.LookPath("sshd")
	if err != nil {
		path = "/usr/sbin/sshd" // a user's PATH often lacks the folder of daemons
		if _, err := os.Stat(path); err != nil {
			return "", ErrNoServer
		}
	}
	if os.Geteuid() == 0 {
		// As root, sshd requires its folder for privilege separation.
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
