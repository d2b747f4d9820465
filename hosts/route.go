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

// The paths to a host, as in Options.Via.
const (
	Tailscale = "tailscale" // the address of the server's name in this machine's tailnet
	Public    = "public"    // the address in the inventory or in the ssh configuration
)

// route is one path to a host.
type route struct {
	path string // Tailscale or Public
	host string // name or address to dial
	port int
	hops []hop // jump hosts in this order
}

func (r route) address() string {
	return net.JoinHostPort(r.host, strconv.Itoa(cmp.Or(r.port, 22)))
}

// String formats the route: "public through bastion".
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

// route finds one path to a host. HostName and ProxyJump of the ssh configuration apply only to
// the public path.
func (c *Client) route(ctx context.Context, path string, t Target, s sshconfig.Settings) (r route, e *Error) {
	r = route{path: path, port: s.Port, host: cmp.Or(s.HostName, t.Server.Address)}
	var err error
	if path == Tailscale {
		if r.host, err = c.tailnetAddress(ctx, t.Server.Name); err != nil {
			e = t.fails(plan.CodeUnreachable, Dialing, err, "check that this machine and the host are in the tailnet: tailscale status")
		}
	} else if r.host == "" {
		e = t.fails(plan.CodeUnreachable, Dialing, errors.New("the inventory has no address of the server"), "check the server in the Scaleway console")
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

// localTailnet caches the devices of this machine's tailnet.
type localTailnet struct {
	busy    chan struct{} // holds a value during a lookup
	asked   time.Time
	devices tailnet.Devices
	err     error
}

// tailnetAge is how long an answer is cached: long enough for one plan, short enough for a long
// apply to notice changes.
const tailnetAge = time.Minute

// tailnetAddress returns the tailnet address of the device with the server's name. It does not
// use DNS, which outside the tailnet could direct the login, and then the sudo password, to any
// address.
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
		if ctx.Err() != nil { // only this host's time is up
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

// try is a failed path.
type try struct {
	route route
	err   *Error
}

// why says briefly why a path failed.
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

// taken describes the path that worked, and why earlier ones failed.
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
