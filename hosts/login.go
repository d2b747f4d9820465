package hosts

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/macfleet/macfleet/plan"
)

// endpoint is a machine to log in to: a host or a jump host.
type endpoint struct {
	target     Target // of a jump host: only its name
	address    string // with the port
	through    *jump  // nil: dialled directly
	user       string
	key        loginKey
	algorithms []string                  // of the host key, in order of preference
	accept     func(ssh.PublicKey) error // checks the host key
	byHand     string                    // of a jump host: the command to log in to it
}

// spend adds the time of a phase. Connections to jump hosts count for no host.
func (to endpoint) spend(c *Client, in Phase, began time.Time) {
	if to.byHand == "" {
		c.spend(to.target, in, began)
	}
}

// login logs in to a machine and logs that, without keys or output. It holds a login slot until
// it is done.
func (c *Client) login(ctx context.Context, to endpoint) (_ *Conn, failed *Error) {
	first := time.Now()
	defer func() {
		log := c.opts.Log.With("host", to.target.name(), "address", to.address, "user", to.user, "ms", time.Since(first).Milliseconds())
		if failed != nil {
			log.Warn("connect", "code", failed.Code, "error", failed.text())
		} else {
			log.Debug("connect")
		}
	}()
	if err := acquire(ctx, c.starts); err != nil {
		return nil, to.target.unreached(err)
	}
	defer func() { <-c.starts }()
	began := time.Now()
	raw, err := c.dial(ctx, to)
	to.spend(c, Dialing, began)
	if err != nil {
		return nil, c.dialError(ctx, to, err)
	}
	conn := &Conn{client: c, target: to.target, wire: raw, through: to.through}
	var offered bool
	if err := conn.handshake(ctx, to, &offered); err != nil {
		_ = raw.Close() // it may be closed already
		if lost := to.through.lost(ctx, to.target); lost != nil {
			return nil, lost
		}
		return nil, c.loginError(to, conn.key, offered, err)
	}
	alive, stop := context.WithCancel(context.WithoutCancel(ctx))
	conn.stop, conn.ended = stop, endOf(conn.ssh)
	go keepAlive(alive, conn.ssh, c.opts.Deadlines.Silence/4)
	return conn, nil
}

// handshake logs in over an open connection.
func (c *Conn) handshake(ctx context.Context, to endpoint, offered *bool) error {
	config := &ssh.ClientConfig{
		User: to.user,
		Auth: []ssh.AuthMethod{ssh.PublicKeysCallback(func() ([]ssh.Signer, error) {
			*offered = true
			return to.key.signers(to.target.offer, &c.used), nil
		})},
		HostKeyAlgorithms: to.algorithms,
		HostKeyCallback: func(_ string, _ net.Addr, key ssh.PublicKey) error {
			// A server shows its key again whenever session keys are renewed: it
			// must stay the one that was reported, and pinned, at the start.
			if c.key != nil {
				return same(c.key, key)
			}
			c.key = key
			return to.accept(key)
		},
	}
	// The handshake has no context: closing the connection cancels it.
	limit := c.client.opts.Deadlines.Handshake
	hctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("login timed out after %s", limit))
	defer cancel()
	release := context.AfterFunc(hctx, func() { _ = c.wire.Close() })
	began := time.Now()
	client, channels, requests, err := ssh.NewClientConn(c.wire, to.address, config)
	to.spend(c.client, Handshaking, began)
	if !release() && err == nil {
		_ = client.Close()
		return context.Cause(hctx)
	}
	if err != nil {
		if cause := context.Cause(hctx); cause != nil {
			return cause
		}
		return c.wire.why(err)
	}
	c.ssh = ssh.NewClient(client, channels, requests)
	return nil
}

// install says how a machine that refuses the key gets it.
func (to endpoint) install() string {
	if to.byHand != "" {
		return "add the public key to ~/.ssh/authorized_keys of " + to.user + " on the host, or " + to.key.other
	}
	return "reboot the server, which installs the project's SSH keys (a member: macfleet reboot " + to.target.name() + "); or add the key with the login password: " +
		to.seed() + "; or " + to.key.other
}

// seed is the command that adds the public key to the user's authorized keys. ssh asks for the password itself.
func (to endpoint) seed() string {
	host, port, _ := net.SplitHostPort(to.address)
	options := "-o PubkeyAuthentication=no"
	if to.through != nil {
		options += " -J " + to.through.name
	}
	if port != "22" {
		options += " -p " + port
	}
	return fmt.Sprintf("echo '%s' | ssh %s %s@%s 'umask 077; mkdir -p .ssh; cat >> .ssh/authorized_keys'", keyText(to.key.signer.PublicKey()), options, to.user, host)
}

// dialError returns why a machine could not be dialled.
func (c *Client) dialError(ctx context.Context, to endpoint, err error) *Error {
	e := to.target.fails(plan.CodeUnreachable, Dialing, err,
		"check the server in the Scaleway console; as a last resort, for a member: macfleet reboot "+to.target.name())
	if to.byHand != "" {
		e.Remedy = "check that it runs: " + to.byHand
	}
	var refused *ssh.OpenChannelError
	switch {
	case to.through != nil && errors.As(err, &refused):
		e.Err = fmt.Errorf("the jump host %s cannot connect to %s: %w", to.through.name, to.address, err)
		if refused.Reason == ssh.Prohibited {
			e.Remedy = "enable AllowTcpForwarding and PermitOpen in the jump host's sshd_config"
		}
	case to.through != nil:
		if lost := to.through.lost(ctx, to.target); lost != nil {
			return lost
		}
		e.Err = fmt.Errorf("through the jump host %s to %s: %w", to.through.name, to.address, err)
	case errors.Is(err, syscall.ECONNREFUSED) && to.byHand == "":
		_, number, _ := net.SplitHostPort(to.address)
		e.Remedy = "the machine is up, but nothing listens on port " + number + ": enable Remote Login over VNC"
	}
	return e
}

// loginError returns why a login failed. After a key was offered, or with a wrong host key, no
// other path may be tried.
func (c *Client) loginError(to endpoint, shown ssh.PublicKey, offered bool, err error) *Error {
	if refused := (*Error)(nil); errors.As(err, &refused) { // because of its host key
		return refused
	}
	_, number, _ := net.SplitHostPort(to.address)
	e := to.target.fails(codeNoSSHAnswer, Handshaking, err,
		"sshd does not respond properly on port "+number+": check the machine over VNC")
	e.final = offered
	if to.byHand != "" {
		e.Remedy = "check what responds there: " + to.byHand
	}
	var unsigned signError
	var gone *hungUpError
	switch {
	case shown == nil && strings.Contains(err.Error(), "no common algorithm for host key"):
		remedy := "the host no longer has a key of the known type; if it was reinstalled on purpose, remove the old key and log in once by hand"
		if trust := to.target.Trust; trust.Pin != nil || len(trust.Vouchers) > 0 {
			remedy = "the host no longer has a key of the known type; if it was reinstalled on purpose: macfleet hosts forget-key " + to.target.name()
		}
		return to.target.strange(err, remedy)
	case errors.As(err, &unsigned):
		e.Code, e.Phase, e.Err = codeNoKey, Authorising, fmt.Errorf("%s: %w", to.key.source, unsigned)
		e.Remedy = "unlock the ssh agent and confirm the signature, then run the command again"
	case strings.Contains(err.Error(), "unable to authenticate"):
		e.Code, e.Phase = codeKeyNotInstalled, Authorising
		e.Err = fmt.Errorf("the host refused the key %s for user %s (tried once, not again)", to.key.offered(to.target.offer), to.user)
		e.Remedy = to.install()
	case errors.As(err, &gone):
		e.Remedy = "run the command again in a minute: sshd rejects new connections while too many logins are in progress (MaxStartups)"
		if to.byHand == "" {
			e.Remedy += "; if it persists, check the machine over VNC"
		}
	}
	return e
}
