package hosts

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"golang.org/x/crypto/ssh"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
)

// Target is a host to connect to.
type Target struct {
	Server inventory.Server
	Pin    *plan.Pin // nil: no key is known yet, and any is taken
}

// Conn is one connection to a host. It is used by one goroutine at a time.
type Conn struct {
	client *Client
	target Target
	wire   *watched
	ssh    *ssh.Client
	key    ssh.PublicKey
	stop   context.CancelFunc // ends the keepalives
}

// Connect opens a connection: one key is offered, once, because the provider
// bans an address after failed logins. The error is an *Error.
func (c *Client) Connect(ctx context.Context, t Target) (*Conn, error) {
	if err := checkPin(t); err != nil {
		return nil, err
	}
	raw, err := c.dial(ctx, t)
	if err != nil {
		return nil, err
	}
	conn := &Conn{client: c, target: t, wire: raw}
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
	hctx, cancel := context.WithTimeoutCause(ctx, c.opts.Deadlines.Handshake, noLogin(c.opts.Deadlines.Handshake))
	defer cancel()
	release := context.AfterFunc(hctx, func() { _ = raw.Close() })
	client, channels, requests, err := ssh.NewClientConn(raw, raw.RemoteAddr().String(), config)
	if !release() && err == nil {
		err = context.Cause(hctx)
		_ = client.Close()
	}
	if err != nil {
		_ = raw.Close()
		err = raw.why(err)
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

// checkPin returns an *Error for a pin that cannot be read: without it nobody
// knows which key the host should show.
func checkPin(t Target) error {
	if t.Pin == nil {
		return nil
	}
	if _, err := parseKey(t.Pin.Key); err != nil {
		return &Error{Host: t.Server.Name, Code: "damaged-pin", Phase: HostKey, Err: fmt.Errorf("the pin of %s cannot be read: %w", t.Pin.Name, err),
			Remedy: "compare the host's key by another way, then: macfleet hosts trust " + t.Pin.Name}
	}
	return nil
}

func (c *Client) handshakeError(t Target, key ssh.PublicKey, err error) error {
	e := &Error{Host: t.Server.Name, Code: "no-ssh-answer", Phase: Handshaking, Err: err,
		Remedy: "something other than a healthy sshd answers on port 22: look at the machine through VNC"}
	var changed *keyChangedError
	var gone *hungUpError
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
	case errors.As(err, &gone):
		e.Remedy = "run the command again in a minute: sshd hangs up on newcomers while too many logins are under way (MaxStartups); " +
			"if it stays, look at the machine through VNC"
	}
	return e
}

// Close ends the connection. It is safe to call on a broken one.
func (c *Conn) Close() {
	c.stop()
	_ = c.ssh.Close() // a connection that broke is closed already
}
