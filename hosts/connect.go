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

// Target is a host to connect to. The server's present name and address are what
// the ssh configuration and the tailnet are asked for.
type Target struct {
	Server inventory.Server
	Name   string // for messages, where it is not the server's
	// Trust is what is known of its key. Where that is nothing at all, any key is taken.
	Trust plan.Trust
	// Run is whose changes go over the connection: the host is entered, and refuses
	// whatever this run sends once a newer one entered. nil: nothing is changed.
	Run *plan.Run
	// From is the id of a run that this one takes the host from, though the host keeps
	// its lock; empty: none.
	From string

	shown *string // takes the key that is shown, and the login goes no further; nil: it is compared
	any   bool    // all types of keys are asked for
}

func (t Target) name() string { return cmp.Or(t.Name, t.Server.Name) }

// id stays the same when the host gets another name.
func (t Target) id() string { return cmp.Or(t.Server.ID, t.Server.Name) }

// Conn is one connection to a host. It is used by one goroutine at a time.
type Conn struct {
	client  *Client
	target  Target
	wire    *watched
	through *jump  // the jump host before it; nil: none
	via     string // the path's name
	path    string // as people read it, with what kept those before it from working
	ssh     *ssh.Client
	key     ssh.PublicKey
	stop    context.CancelFunc // ends the keepalives
	ended   <-chan struct{}    // closed: the connection is gone
	marker  string             // the host's marker as it was seen or written last; empty: nobody knows
}

// Connect opens a connection over the first path that works. One key is offered,
// once, because the provider bans an address after failed logins: a host that
// refused it is not asked again by this Client. The error is an *Error.
func (c *Client) Connect(ctx context.Context, t Target) (*Conn, error) {
	return c.along(ctx, t, c.opts.Via...)
}

// along opens a connection over the first of these paths that works: one at a time to
// a host, and none to one that refused the key. The error is an *Error.
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
	conn, failed := c.connect(ctx, t, paths)
	if failed == nil {
		return conn, nil
	}
	if failed.Code == codeKeyRefused {
		turn.refused = failed
	}
	return nil, failed
}

// connect tries the paths in their order, as long as no key was offered.
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
// pin that cannot be read: without it nobody knows which key that is.
func (t Target) pinned() (ssh.PublicKey, error) {
	if t.Trust.Pin == nil {
		return nil, nil
	}
	key, err := parseKey(t.Trust.Pin.Key)
	if err != nil {
		return nil, t.fails(codeDamagedPin, HostKey, fmt.Errorf("the pin of %s cannot be read: %w", t.Trust.Pin.Name, err),
			"compare the host's key by another way, then: macfleet hosts forget-key "+t.Trust.Pin.Name)
	}
	return key, nil
}

// accept compares a host's key with all that is known of it. A host that is met for the first
// time may show any key: plan shows it, and apply pins it before it sends anything.
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
		return t.strange(errors.New(why), plan.WrongKeyRemedy(t.name()))
	}
	if t.Trust.Unknown() {
		unknown := plan.HostKeyUnknown(t.name(), t.Trust.Known, plan.KeyNote(keyText(key), shown))
		return t.fails(unknown.Code, HostKey, errors.New(unknown.Text), unknown.Remedy).asFinal()
	}
	return nil
}

const somebodyElse = "; otherwise somebody else answers at this address: do not go on"

// strange says that a machine shows another key than the one that is known.
func (t Target) strange(err error, remedy string) *Error {
	return t.fails(plan.CodeWrongHostKey, HostKey, err, remedy).asFinal()
}

// errShown ends a handshake that was made for the host's key alone.
var errShown = errors.New("the host has shown its key")

// Key returns the key that a host offers, "type base64", and does not log in. Of several keys it
// is the one of the type that is known, where the host still has one.
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

// Close ends the connection. It is safe to call on a broken one.
func (c *Conn) Close() {
	c.stop()
	_ = c.ssh.Close() // a connection that broke is closed already
}

// turns lets one connection at a time be made to a host, and remembers for the
// life of the Client who refused a key: fail2ban on the Macs bans an address
// after a few refusals, on all its ports and until a reboot.
type turns struct{ all sync.Map } // a *turn by the host's id

type turn struct {
	busy    chan struct{} // holds one while a connection is made
	refused *Error        // touched by who holds busy
}

// take waits for the host's turn. It returns an error when ctx ends before.
func (t *turns) take(ctx context.Context, id string) (*turn, error) {
	found, _ := t.all.LoadOrStore(id, &turn{busy: make(chan struct{}, 1)})
	it := found.(*turn)
	return it, acquire(ctx, it.busy)
}

// forgive forgets a refusal of the key: what refused it was taken back.
func (t *turns) forgive(ctx context.Context, id string) {
	if turn, err := t.take(ctx, id); err == nil {
		turn.refused = nil
		turn.give()
	}
}

func (t *turn) give() { <-t.busy }

// acquire takes a place in a semaphore, or returns why ctx ended.
func acquire(ctx context.Context, semaphore chan struct{}) error {
	select {
	case semaphore <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
