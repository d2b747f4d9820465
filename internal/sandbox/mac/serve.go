package mac

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"

	"golang.org/x/crypto/ssh"
)

// maxSessions is how many commands may run on one connection, sshd's default.
const maxSessions = 10

// serverVersion is the version of macOS's sshd.
const serverVersion = "SSH-2.0-OpenSSH_10.0"

var errUnauthorized = errors.New("the key is not authorized")

// Serve is the Mac's SSH server on one connection, which it closes when it returns. The login user
// authenticates with a key from the user's files on the machine. log receives "connect" after the
// authentication and "exec" at each command.
func (m *Machine) Serve(ctx context.Context, conn net.Conn, log func(event string)) error {
	return m.ServeWith(ctx, conn, log, healthy)
}

// ServeWith is Serve for a machine with faults; faults is called at each command.
func (m *Machine) ServeWith(ctx context.Context, conn net.Conn, log func(event string), faults func() Faults) error {
	// The end of the context does not wait for a client that sends nothing.
	hangUp := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer hangUp()
	goDown := context.AfterFunc(m.power.up(), func() { _ = conn.Close() })
	defer goDown()
	defer conn.Close() // usually already closed
	s, err := m.session()
	if err != nil {
		return err
	}
	defer s.close()
	key, err := m.hostKey()
	if err != nil {
		return fmt.Errorf("serve SSH for the machine in %s: %w", m.dir, err)
	}
	config := &ssh.ServerConfig{ServerVersion: serverVersion, PublicKeyCallback: s.authorize}
	config.AddHostKey(key)
	server, channels, requests, err := ssh.NewServerConn(conn, config)
	if err != nil {
		return fmt.Errorf("serve SSH for the machine in %s: %w", m.dir, err)
	}
	log("connect")
	link := &link{session: s, log: log, slots: make(chan struct{}, maxSessions), faults: faults, cut: server.Close}
	defer m.lines.add(link, link.sever)()
	// Rules may have been loaded between the dial and the line above.
	if err := s.severIfCut(); err != nil {
		return err
	}
	link.serve(ctx, channels, requests)
	if err := server.Wait(); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("serve SSH for the machine in %s: %w", m.dir, err)
	}
	return nil
}

// authorize accepts a key from one of the login user's files.
func (s *session) authorize(meta ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
	who, ok := s.user(meta.User())
	if !ok || who.uid != loginUID {
		return nil, errUnauthorized
	}
	root := &proc{session: s, user: s.users()[0], dir: who.home}
	for _, name := range []string{".ssh/authorized_keys", ".ssh/scw_authorized_keys"} {
		var text []byte
		err := s.visit(func(v *visit) (err error) {
			text, err = v.read(root, name)
			return err
		})
		if err == nil && lists(text, key) {
			return nil, nil
		}
	}
	return nil, errors.Join(errUnauthorized, s.refused())
}

// lists reports whether a file of authorized keys contains a key. Unreadable files are skipped.
func lists(text []byte, key ssh.PublicKey) bool {
	for len(text) > 0 {
		listed, _, _, rest, err := ssh.ParseAuthorizedKey(text)
		if err != nil {
			return false
		}
		if string(listed.Marshal()) == string(key.Marshal()) {
			return true
		}
		text = rest
	}
	return false
}

// link is one authenticated connection.
type link struct {
	session *session
	log     func(event string)
	slots   chan struct{}
	faults  func() Faults
	cut     func() error // breaks the connection
	severed atomic.Bool  // the connection was cut, not closed
}

// sever breaks the connection and lets its commands finish: their output is lost without an error.
func (l *link) sever() {
	l.severed.Store(true)
	_ = l.cut() // possibly broken already
}

// serve answers until the connection ends, and leaves no command running. It waits for the commands of
// a severed connection.
func (l *link) serve(ctx context.Context, channels <-chan ssh.NewChannel, requests <-chan *ssh.Request) {
	ctx, cancel := context.WithCancel(ctx)
	var commands sync.WaitGroup
	commands.Go(func() { ssh.DiscardRequests(requests) }) // sshd too answers keepalives with a failure
	for offered := range channels {
		if offered.ChannelType() != "session" {
			refuseChannel(offered, ssh.UnknownChannelType, "unsupported channel type")
			continue
		}
		select {
		case l.slots <- struct{}{}:
		default:
			refuseChannel(offered, ssh.ConnectionFailed, "open failed")
			continue
		}
		channel, requests, err := offered.Accept()
		if err != nil {
			<-l.slots
			continue // the connection is gone; the range ends
		}
		commands.Go(func() {
			free := sync.OnceFunc(func() { <-l.slots })
			defer free()
			l.command(ctx, channel, requests, free)
		})
	}
	if l.severed.Load() {
		commands.Wait()
	}
	cancel()
	commands.Wait()
}

// refuseChannel refuses a channel. An error means that the connection is gone.
func refuseChannel(offered ssh.NewChannel, reason ssh.RejectionReason, text string) {
	_ = offered.Reject(reason, text)
}

// severable is the destination of a command's output. Writes to a severed connection are lost without
// an error.
type severable struct {
	to   io.Writer
	link *link
}

// Write sends data while the connection is up.
func (s severable) Write(data []byte) (int, error) {
	n, err := s.to.Write(data)
	if err != nil && s.link.severed.Load() {
		return len(data), nil
	}
	return n, err
}
