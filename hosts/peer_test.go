package hosts

import (
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unicode"

	"golang.org/x/crypto/ssh"
)

// peer is whatever answers on a host's port 22.
type peer struct {
	dial      Dial
	listener  net.Listener
	accepting sync.WaitGroup
	mu        sync.Mutex
	changed   *sync.Cond
	open      int // connections that the client has not closed yet
	conns     []net.Conn
}

const peerAddress = "192.0.2.1"

func acme1() Target { return target("acme-1", peerAddress) }

// listen serves each connection with handle, which must return once the client
// has closed it.
func listen(t testing.TB, handle func(net.Conn)) *peer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	p := &peer{dial: book(map[string]string{peerAddress + ":22": l.Addr().String()}), listener: l}
	p.changed = sync.NewCond(&p.mu)
	p.accepting.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			p.mu.Lock()
			p.conns = append(p.conns, c)
			p.open++
			p.mu.Unlock()
			go func() {
				handle(c)
				_ = c.Close() // it may be closed already
				p.mu.Lock()
				defer p.mu.Unlock()
				p.open--
				p.changed.Broadcast()
			}()
		}
	})
	t.Cleanup(func() { p.closed(t) })
	return p
}

// closed takes no more connections and fails when the client still holds one.
func (p *peer) closed(t testing.TB) {
	t.Helper()
	_ = p.listener.Close() // it may be closed already
	p.accepting.Wait()
	if t.Failed() {
		p.cut() // one failure is enough to wait for
	}
	p.hungUp(t)
}

// cut closes every connection from this side.
func (p *peer) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		_ = c.Close() // most are closed already
	}
}

// hungUp fails when the client still holds a connection.
func (p *peer) hungUp(t testing.TB) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		for p.open > 0 {
			p.changed.Wait()
		}
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(patience):
		p.cut()
		t.Fatal("the client left its connection open")
	}
}

// serving returns a peer that is a small SSH server, a client of it, and a connection.
func serving(t testing.TB, s *server) (*peer, *Client, *Conn) {
	t.Helper()
	if s.key == nil {
		s.key = newKey(t)
	}
	p := listen(t, s.handle)
	c := New(Options{User: "acme", Key: newKey(t), Dial: p.dial, Deadlines: patient()})
	return p, c, connect(t, c, acme1())
}

// untilClosed returns when the client has closed the connection.
func untilClosed(c net.Conn) { _, _ = io.Copy(io.Discard, c) }

// server is a small SSH server.
type server struct {
	key      ssh.Signer
	refuse   bool // every login
	attempts atomic.Int32
	silent   bool                      // answers no keepalive
	channel  func(ssh.NewChannel)      // instead of opening it
	command  func(ssh.Channel, string) // what an exec does; nil: the command is refused
	hang     bool                      // an exec ends when the connection does
	begin    func(ssh.Channel)         // what an exec that hangs does first
	config   func(*ssh.ServerConfig)   // more settings
}

func (s *server) handle(raw net.Conn) {
	config := &ssh.ServerConfig{PublicKeyCallback: func(ssh.ConnMetadata, ssh.PublicKey) (*ssh.Permissions, error) {
		s.attempts.Add(1)
		if s.refuse {
			return nil, errors.New("refused")
		}
		return nil, nil
	}}
	config.AddHostKey(s.key)
	if s.config != nil {
		s.config(config)
	}
	conn, channels, requests, err := ssh.NewServerConn(raw, config)
	if err != nil {
		return
	}
	defer conn.Close()
	var all sync.WaitGroup
	defer all.Wait()
	gone := make(chan struct{})
	defer close(gone)
	all.Go(func() {
		for r := range requests {
			if r.WantReply && !s.silent {
				_ = r.Reply(false, nil)
			}
		}
	})
	for n := range channels {
		if s.channel != nil {
			s.channel(n)
			continue
		}
		ch, in, err := n.Accept()
		if err != nil {
			return
		}
		all.Go(func() { s.session(ch, in, gone) })
	}
}

func (s *server) session(ch ssh.Channel, requests <-chan *ssh.Request, gone <-chan struct{}) {
	var all sync.WaitGroup
	defer all.Wait()
	for r := range requests {
		var exec struct{ Command string }
		ok := r.Type == "exec" && (s.command != nil || s.hang) && ssh.Unmarshal(r.Payload, &exec) == nil
		_ = r.Reply(ok, nil)
		if ok {
			all.Go(func() {
				defer ch.Close()
				if s.hang {
					if s.begin != nil {
						s.begin(ch)
					}
					<-gone
					return
				}
				s.command(ch, exec.Command)
			})
		}
	}
}

// exit ends a command.
func exit(ch ssh.Channel, code uint32) {
	_, _ = ch.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{code}))
}

// markOf reads the mark, which is the first line of an exchange's data.
func markOf(ch ssh.Channel) string {
	var line []byte
	for b := make([]byte, 1); ; {
		if _, err := ch.Read(b); err != nil || b[0] == '\n' {
			return string(line)
		}
		line = append(line, b[0])
	}
}

// patient are deadlines that no test reaches.
func patient() Deadlines {
	return Deadlines{Dial: patience, Handshake: patience, Question: patience, Change: patience,
		Exchange: 3 * patience, Silence: 3 * patience}
}

func impatient(change func(*Deadlines)) Deadlines {
	d := patient()
	change(&d)
	return d
}

func asError(t testing.TB, err error) *Error {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) {
		t.Fatalf("error = %v (%T), want an *Error", err, err)
	}
	return e
}

// wantError compares what a program and a person see of an error.
func wantError(t testing.TB, err error, code string, phase Phase, text string) {
	t.Helper()
	wantErrorOf(t, "acme-1", err, code, phase, text)
}

func wantErrorOf(t testing.TB, host string, err error, code string, phase Phase, text string) {
	t.Helper()
	e := asError(t, err)
	if e.Host != host || e.Code.String() != code || e.Phase != phase {
		t.Errorf("error of %q has code %q in phase %q, want %q, %q, %q (%v)", e.Host, e.Code, e.Phase, host, code, phase, err)
	}
	if e.Remedy == "" {
		t.Errorf("%v: no remedy", err)
	}
	if !strings.Contains(err.Error(), text) {
		t.Errorf("error = %q, want it to hold %q", err, text)
	}
	// Much of it is what the peer said, and it goes to a terminal.
	if len(err.Error()) > 1000 || strings.ContainsFunc(err.Error(), unicode.IsControl) {
		t.Errorf("error of %d bytes: %q", len(err.Error()), head(err.Error()))
	}
}
