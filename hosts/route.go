package hosts

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/macfleet/macfleet/hosts/sshconfig"
	"github.com/macfleet/macfleet/hosts/tailnet"
	"github.com/macfleet/macfleet/plan"
)

// The paths to a host, as Options.Via names them.
const (
	Tailscale = "tailscale" // the address that this machine's Tailscale has for the server's name
	Public    = "public"    // the address of the inventory, or what the ssh configuration has instead
)

// route is one way to a host.
type route struct {
	path string // Tailscale or Public
	host string // name or address to dial
	port int
	hops []hop // to go through, in this order
}

func (r route) address() string {
	return net.JoinHostPort(r.host, strconv.Itoa(cmp.Or(r.port, 22)))
}

// String returns the path as people read it: "public through bastion".
func (r route) String() string {
	if len(r.hops) == 0 {
		return r.path
	}
	var names []string
	for _, h := range r.hops {
		names = append(names, h.Host)
	}
	return r.path + " through " + strings.Join(names, ", ")
}

// route finds one way to a host. What the ssh configuration says of HostName and
// ProxyJump belongs to the public path: to the tailnet this machine speaks itself.
func (c *Client) route(ctx context.Context, path string, t Target, s sshconfig.Settings) (r route, e *Error) {
	r = route{path: path, port: s.Port, host: cmp.Or(s.HostName, t.Server.Address)}
	var err error
	if path == Tailscale {
		if r.host, err = c.tailnetAddress(ctx, t.Server.Name); err != nil {
			e = t.fails(plan.CodeUnreachable, Dialing, err, "see whether this machine and the host are in the tailnet: tailscale status")
		}
	} else if r.host == "" {
		e = t.fails(plan.CodeUnreachable, Dialing, errors.New("the inventory names no address"), "look at the server in the Scaleway console")
	} else if r.hops, err = c.chain(s.Jumps); err != nil {
		e = configError(t, err)
	}
	return r, e
}

func configError(t Target, err error) *Error {
	e := t.fails(codeSSHConfig, Dialing, fmt.Errorf("the ssh configuration: %w", err))
	e.final = true
	return e
}

// localTailnet is what this machine's Tailscale said last of its devices.
type localTailnet struct {
	busy    chan struct{} // holds one while it is asked
	asked   time.Time
	devices tailnet.Devices
	err     error
}

// tailnetAge is how long an answer counts: one for all hosts of a plan, and a long apply
// notices that Tailscale was stopped or that a host has joined.
const tailnetAge = time.Minute

// tailnetAddress returns the address that the Tailscale of this machine has for the host's own name:
// server, Node and device have the same. A resolver is not asked, because outside
// the tailnet it may send the login, and the password for sudo after it, to any address.
func (c *Client) tailnetAddress(ctx context.Context, name string) (string, error) {
	t := &c.tailnet
	if err := acquire(ctx, t.busy); err != nil {
		return "", err
	}
	defer func() { <-t.busy }()
	if t.asked.IsZero() || c.now().Sub(t.asked) > tailnetAge {
		dctx, cancel := context.WithTimeout(ctx, c.opts.Deadlines.Dial)
		defer cancel()
		devices, err := c.opts.Tailnet(dctx)
		if ctx.Err() != nil { // this host's time is over, not that of the others
			return "", context.Cause(ctx)
		}
		t.devices, t.err, t.asked = devices, err, c.now()
	}
	if t.err != nil {
		return "", t.err
	}
	address, err := t.devices.Address(name)
	if err != nil {
		return "", err
	}
	return address.String(), nil
}

// try is a path that did not work.
type try struct {
	route route
	err   *Error
}

// why says in a few words what kept a path from working.
func (t try) why() string {
	var number syscall.Errno
	switch {
	case t.err.Code == codeJumpFailed:
		return "the jump host failed"
	case errors.As(t.err, &number):
		return number.Error()
	case errors.Is(t.err, context.DeadlineExceeded):
		return "no answer"
	case t.err.Phase == Handshaking:
		return "no ssh answer"
	}
	return t.err.text()
}

// taken describes the path that worked, and why those before it did not.
func taken(r route, failed []try) string {
	var notes []string
	for _, t := range failed {
		notes = append(notes, t.route.path+": "+t.why())
	}
	if len(notes) == 0 {
		return r.String()
	}
	return r.String() + " (" + strings.Join(notes, "; ") + ")"
}

// noPath joins the errors of all paths. The remedy is that of the last.
func noPath(failed []try) *Error {
	last := *failed[len(failed)-1].err
	if len(failed) == 1 || last.final {
		return &last
	}
	last.Phase, last.Err = Dialing, nil
	for _, t := range failed {
		last.Err = and(last.Err, fmt.Errorf("%s: %w", t.route, t.err.cause()))
	}
	return &last
}
