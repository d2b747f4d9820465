// Package hosts is the only way to a Mac: it dials, checks host keys, asks all
// questions of a host in one exec, and runs changes. Nothing else speaks SSH.
package hosts

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
)

// Dial opens a TCP connection; it is net.Dialer.DialContext outside tests and
// the sandbox.
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

// Deadlines bound every phase of a conversation. A zero field means the value
// of DefaultDeadlines.
type Deadlines struct {
	Dial      time.Duration // until the TCP connection stands
	Handshake time.Duration // from there until the authentication is done
	Question  time.Duration // one probe, on the host; whole seconds, at least one
	Change    time.Duration // one change, on the host; whole seconds, at least one
	Exchange  time.Duration // one exec with all its questions, beyond the changes' own time
	Silence   time.Duration // without a byte from the host, keepalive answers included
}

// DefaultDeadlines are made for hosts on another continent.
func DefaultDeadlines() Deadlines {
	return Deadlines{Dial: 10 * time.Second, Handshake: 20 * time.Second, Question: 10 * time.Second,
		Change: 60 * time.Second, Exchange: 60 * time.Second, Silence: 20 * time.Second}
}

// Options are what a Client needs.
type Options struct {
	User      string     // login user
	Key       ssh.Signer // the one key that is offered
	Dial      Dial
	Deadlines Deadlines
	Prologue  string // in front of every script; empty = DefaultPrologue
}

// Client connects to hosts. It is safe for concurrent use.
type Client struct {
	opts  Options
	stats stats
}

// Stats counts what a Client has done.
type Stats struct {
	Connections int64 // TCP connections that stood
	Execs       int64
	Sent        int64 // bytes on the wire
	Received    int64
}

type stats struct{ connections, execs, sent, received atomic.Int64 }

// New returns a Client.
func New(o Options) *Client {
	d := DefaultDeadlines()
	fill := func(v *time.Duration, def time.Duration) {
		if *v == 0 {
			*v = def
		}
	}
	fill(&o.Deadlines.Dial, d.Dial)
	fill(&o.Deadlines.Handshake, d.Handshake)
	fill(&o.Deadlines.Question, d.Question)
	fill(&o.Deadlines.Change, d.Change)
	fill(&o.Deadlines.Exchange, d.Exchange)
	fill(&o.Deadlines.Silence, d.Silence)
	if o.Prologue == "" {
		o.Prologue = DefaultPrologue
	}
	if o.Dial == nil {
		o.Dial = (&net.Dialer{}).DialContext
	}
	return &Client{opts: o}
}

// Stats returns the counts so far.
func (c *Client) Stats() Stats {
	return Stats{Connections: c.stats.connections.Load(), Execs: c.stats.execs.Load(),
		Sent: c.stats.sent.Load(), Received: c.stats.received.Load()}
}

// Target is a host to connect to.
type Target struct {
	Server inventory.Server
	Pin    *plan.Pin // nil: no key is known yet, and any is taken
}

// Conn is one connection to a host. It is used by one goroutine at a time.
type Conn struct {
	client *Client
	target Target
	ssh    *ssh.Client
	key    ssh.PublicKey
	stop   context.CancelFunc // ends the keepalives
}

// Connect opens a connection: one key is offered, once, because the provider
// bans an address after failed logins. The error is an *Error.
func (c *Client) Connect(ctx context.Context, t Target) (*Conn, error) {
	raw, err := c.dial(ctx, t)
	if err != nil {
		return nil, err
	}
	conn := &Conn{client: c, target: t}
	config := &ssh.ClientConfig{
		User:              c.opts.User,
		Auth:              []ssh.AuthMethod{ssh.PublicKeys(c.opts.Key)},
		HostKeyAlgorithms: algorithms(t.Pin),
		HostKeyCallback: func(_ string, _ net.Addr, key ssh.PublicKey) error {
			// A server shows its key again whenever session keys are renewed: it
			// must stay the one that was reported, and pinned, at the start.
			if conn.key != nil {
				return same(conn.key, key)
			}
			conn.key = key
			return check(t.Pin, key)
		},
	}
	// The handshake has no context of its own: closing the connection under it
	// is what ends it.
	hctx, cancel := context.WithTimeoutCause(ctx, c.opts.Deadlines.Handshake, errHandshake)
	defer cancel()
	release := context.AfterFunc(hctx, func() { _ = raw.Close() })
	client, channels, requests, err := ssh.NewClientConn(raw, raw.RemoteAddr().String(), config)
	if !release() && err == nil {
		err = context.Cause(hctx)
		_ = client.Close()
	}
	if err != nil {
		_ = raw.Close()
		if cause := context.Cause(hctx); cause != nil {
			err = cause
		}
		return nil, c.handshakeError(t, conn.key, err)
	}
	conn.ssh = ssh.NewClient(client, channels, requests)
	alive, stop := context.WithCancel(context.WithoutCancel(ctx))
	conn.stop = stop
	go conn.keepAlive(alive)
	return conn, nil
}

var errHandshake = errors.New("no answer within the deadline")

func (c *Client) dial(ctx context.Context, t Target) (net.Conn, error) {
	dctx, cancel := context.WithTimeout(ctx, c.opts.Deadlines.Dial)
	defer cancel()
	if t.Server.Address == "" {
		return nil, &Error{Host: t.Server.Name, Code: "unreachable", Phase: Dialing,
			Err: errors.New("the inventory names no address"), Remedy: "look at the server in the Scaleway console"}
	}
	raw, err := c.opts.Dial(dctx, "tcp", net.JoinHostPort(t.Server.Address, "22"))
	if err != nil {
		e := &Error{Host: t.Server.Name, Code: "unreachable", Phase: Dialing, Err: err,
			Remedy: "see whether the machine runs: its state in the Scaleway console, a reboot from there as the last resort"}
		if errors.Is(err, syscall.ECONNREFUSED) {
			e.Remedy = "the machine is up and nothing listens on port 22: switch on Remote Login through VNC"
		}
		return nil, e
	}
	c.stats.connections.Add(1)
	return &watched{Conn: raw, silence: c.opts.Deadlines.Silence, stats: &c.stats}, nil
}

func (c *Client) handshakeError(t Target, key ssh.PublicKey, err error) error {
	e := &Error{Host: t.Server.Name, Code: "no-ssh-answer", Phase: Handshaking, Err: err,
		Remedy: "something other than a healthy sshd answers on port 22: look at the machine through VNC"}
	var changed *keyChangedError
	switch {
	case errors.As(err, &changed):
		e.Code, e.Phase, e.Err = "wrong-host-key", HostKey, changed
		e.Remedy = "if the machine was reinstalled on purpose: macfleet hosts trust " + t.Pin.Name +
			"; otherwise somebody else answers at this address: do not go on"
	case t.Pin != nil && key == nil && strings.Contains(err.Error(), "no common algorithm for host key"):
		e.Code, e.Phase = "wrong-host-key", HostKey
		e.Remedy = "the host has no key of the pinned type any more; if it was reinstalled on purpose: macfleet hosts trust " + t.Pin.Name
	case strings.Contains(err.Error(), "unable to authenticate"):
		e.Code, e.Phase = "key-refused", Authorising
		e.Err = fmt.Errorf("the host refused the key %s for user %s (tried once, not again)",
			ssh.FingerprintSHA256(c.opts.Key.PublicKey()), c.opts.User)
		e.Remedy = "put the public key into ~/.ssh/authorized_keys on the host; Scaleway installs project keys only at the first boot"
	}
	return e
}

// Close ends the connection. It is safe to call on a broken one.
func (c *Conn) Close() {
	c.stop()
	_ = c.ssh.Close() // a connection that broke is closed already
}

// keepAlive sends a request that every server answers, so that a dead peer
// shows as silence and not as a command that never ends.
func (c *Conn) keepAlive(ctx context.Context) {
	tick := time.NewTicker(c.client.opts.Deadlines.Silence / 4)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if _, _, err := c.ssh.SendRequest("keepalive@openssh.com", true, nil); err != nil {
				return
			}
		}
	}
}

// watched is a connection that breaks after a time of silence and counts its
// bytes.
type watched struct {
	net.Conn
	silence time.Duration
	stats   *stats
}

func (w *watched) Read(p []byte) (int, error) {
	if err := w.SetReadDeadline(time.Now().Add(w.silence)); err != nil {
		return 0, err
	}
	n, err := w.Conn.Read(p)
	w.stats.received.Add(int64(n))
	return n, err
}

func (w *watched) Write(p []byte) (int, error) {
	if err := w.SetWriteDeadline(time.Now().Add(w.silence)); err != nil {
		return 0, err
	}
	n, err := w.Conn.Write(p)
	w.stats.sent.Add(int64(n))
	return n, err
}
