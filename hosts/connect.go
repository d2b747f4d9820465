package hosts

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"

	"golang.org/x/crypto/ssh"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
)

// Target is a host to connect to. The ssh configuration and the tailnet are looked up by the
// server's current name and address.
type Target struct {
	Server inventory.Server
	Name   string // for messages, if it is not the server's
	// Trust is what is known about its key. If nothing is known, any key is accepted.
	Trust plan.Trust
	// Run is the run whose changes go over the connection. The host refuses them once a newer
	// run has entered it. nil: the connection only reads.
	Run *plan.Run
	// From is the id of a run whose lock on the host is taken over; empty: none.
	From string

	offer offer   // which of the fleet's keys the login offers
	shown *string // receives the shown key and stops the login; nil: the key is compared
	any   bool    // request all key types
}

func (t Target) name() string { return cmp.Or(t.Name, t.Server.Name) }

// id stays the same if the host is renamed.
func (t Target) id() string { return cmp.Or(t.Server.ID, t.Server.Name) }

// Conn is one connection to a host. It must not be used concurrently.
type Conn struct {
	client  *Client
	target  Target
	wire    *watched
	through *jump  // the jump host before it; nil: none
	via     string // the path's name
	path    string // for display, with why earlier paths failed
	ssh     *ssh.Client
	key     ssh.PublicKey      // the host's
	used    ssh.PublicKey      // the person's or the fleet's, which the host accepted
	stop    context.CancelFunc // ends the keepalives
	ended   <-chan struct{}    // closed: the connection is gone
	marker  string             // the host's marker as last read or written; empty: unknown
}

// Connect opens a connection over the first path that works. It offers one key once, because
// hosts ban addresses after failed logins, and never retries a host that refused it. The error
// is an *Error.
func (c *Client) Connect(ctx context.Context, t Target) (*Conn, error) {
	return c.along(ctx, t, c.opts.Via...)
}

// along opens a connection over the first of these paths that works: one at a time per host,
// and none to a host that refused the key. The error is an *Error.
func (c *Client) along(ctx context.Context, t Target, paths ...string) (*Conn, error) {
	if _, err := t.pinned(); err != nil && t.shown == nil {
		return nil, err
	}
	turn, err := c.turns.take(ctx, t.id())
	if err != nil {
		return nil, t.unreached(err)
	}
	defer turn.give()
	if turn.refused != nil {
		again := *turn.refused
		again.Host = t.name()
		return nil, &again
	}
	if t.offer == anyKey {
		t.offer = turn.offer
	}
	conn, failed := c.connect(ctx, t, paths)
	switch {
	case failed == nil:
		if p := c.opts.Previous; p != nil && t.offer == anyKey && same(p.PublicKey(), conn.used) == nil {
			turn.offer = previousKey // a key that is refused at each login would get this address banned
		}
		return conn, nil
	case failed.Code == codeKeyNotInstalled && t.offer != currentKey: // the previous key may still work
		turn.refused = failed
	}
	return nil, failed
}

// connect tries one path after the other until a key was offered.
func (c *Client) connect(ctx context.Context, t Target, paths []string) (*Conn, *Error) {
	said, err := c.opts.Config(c.opts.User, t.Server.Name, t.Server.Address)
	if err != nil {
		return nil, configError(t, err)
	}
	key, keyless := c.keyFor(t, said, false)
	if keyless != nil {
		return nil, keyless
	}
	var failed []try
	for _, path := range paths {
		r, e := c.route(ctx, path, t, said)
		var conn *Conn
		if e == nil {
			conn, e = c.over(ctx, r, t, key)
		}
		if e == nil {
			conn.via, conn.path = path, taken(r, failed)
			return conn, nil
		}
		failed = append(failed, try{r, e})
		if e.final || ctx.Err() != nil {
			break
		}
	}
	return nil, noPath(failed)
}

// over connects to a host over one path.
func (c *Client) over(ctx context.Context, r route, t Target, key loginKey) (*Conn, *Error) {
	to := endpoint{target: t, address: r.address(), user: c.opts.User, key: key, algorithms: t.algorithms(), accept: t.accept}
	if len(r.hops) > 0 {
		j, err := c.jump(ctx, r.hops)
		if err != nil {
			return nil, behind(t, err)
		}
		to.through = j
	}
	return c.login(ctx, to)
}

// pinned returns the key that the host must show; nil: any. The error is an *Error for a
// malformed pin.
func (t Target) pinned() (ssh.PublicKey, error) {
	if t.Trust.Pin == nil {
		return nil, nil
	}
	key, err := parseKey(t.Trust.Pin.Key)
	if err != nil {
		return nil, t.fails(codeDamagedPin, HostKey, fmt.Errorf("the pinned key of %s is malformed: %w", t.Trust.Pin.Name, err),
			"verify the host's key, over VNC for example, then: macfleet hosts forget-key "+t.Trust.Pin.Name)
	}
	return key, nil
}

// accept compares a host's key with what is known about it. A new host may show any key: plan
// displays it, and apply pins it before it sends anything.
func (t Target) accept(key ssh.PublicKey) error {
	if t.shown != nil {
		*t.shown = keyText(key)
		return t.fails(plan.CodeHostKeyUnknown, HostKey, errShown).asFinal()
	}
	pinned, err := t.pinned()
	if err != nil {
		return err
	}
	shown := ssh.FingerprintSHA256(key)
	if pinned != nil {
		if err := same(pinned, key); err != nil {
			return t.strange(err, plan.WrongKeyRemedy(t.Trust.Pin.Name))
		}
	}
	if why := t.Trust.Disagrees(shown); why != "" {
		return t.strange(errors.New(why), t.Trust.WrongKeyRemedy(t.name(), shown))
	}
	if t.Trust.Unknown() {
		unknown := plan.HostKeyUnknown(t.name(), t.Trust.Known, plan.KeyNote(keyText(key), shown))
		return t.fails(unknown.Code, HostKey, errors.New(unknown.Text), unknown.Remedy).asFinal()
	}
	return nil
}

const orAnotherMachine = "; otherwise another machine answers at this address: do not continue"

// strange returns the error for a machine that shows an unexpected key.
func (t Target) strange(err error, remedy string) *Error {
	return t.fails(plan.CodeWrongHostKey, HostKey, err, remedy).asFinal()
}

// errShown stops a handshake that only reads the host's key.
var errShown = errors.New("the host key was read")

// Key returns the key that a host shows, "type base64", without logging in. It prefers the known
// key's type.
func (c *Client) Key(ctx context.Context, t Target) (string, error) {
	var shown string
	t.shown = &shown
	_, err := c.Connect(ctx, t)
	if shown == "" && ctx.Err() == nil {
		t.any = true
		_, err = c.Connect(ctx, t)
	}
	if shown != "" {
		return shown, nil
	}
	return "", err
}

// Close closes the connection. It is safe to call on a broken one.
func (c *Conn) Close() {
	c.stop()
	_ = c.ssh.Close() // a broken connection is closed already
}

// turns allows one connection attempt at a time per host, and remembers which hosts refused a
// key: fail2ban on the Macs bans an address after a few refusals, on all ports and until a
// reboot.
type turns struct{ all sync.Map } // a *turn by the host's id

type turn struct {
	busy    chan struct{} // held during a connection attempt
	refused *Error        // guarded by busy
	offer   offer         // what later logins offer; guarded by busy
}

// take waits for the host's turn, or returns an error if ctx ends first.
func (t *turns) take(ctx context.Context, id string) (*turn, error) {
	found, _ := t.all.LoadOrStore(id, &turn{busy: make(chan struct{}, 1)})
	it := found.(*turn)
	return it, acquire(ctx, it.busy)
}

// forgive forgets a refusal of the key, because the change that caused it was undone.
func (t *turns) forgive(ctx context.Context, id string) {
	if turn, err := t.take(ctx, id); err == nil {
		turn.refused = nil
		turn.give()
	}
}

// prefer sets what later logins to a host offer.
func (t *turns) prefer(ctx context.Context, id string, o offer) {
	if turn, err := t.take(ctx, id); err == nil {
		turn.offer = o
		turn.give()
	}
}

// Restarted forgets that a host refused the key: a restart through the provider installs the project's keys and ends
// bans.
func (c *Client) Restarted(ctx context.Context, t Target) { c.turns.forgive(ctx, t.id()) }

func (t *turn) give() { <-t.busy }

// acquire takes a slot of a semaphore, or returns the cause of ctx's end.
func acquire(ctx context.Context, semaphore chan struct{}) error {
	select {
	case semaphore <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
