package hosts

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/hosts/sshconfig"
)

// jumps are the connections to jump hosts, one each, shared by all hosts behind them and closed
// with the Client. A failed jump host is retried only after a while.
type jumps struct {
	ctx     context.Context // ends with the Client
	end     context.CancelFunc
	mu      sync.Mutex
	all     map[string]*jump // by the whole chain up to it
	running sync.WaitGroup
}

// jump is a jump host.
type jump struct {
	name  string
	ready chan struct{} // closed: conn or err is set
	conn  *Conn
	err   *Error
	since time.Time // of err
}

// Close closes the connections to jump hosts, and with them those of all hosts behind. It may
// be called more than once.
func (c *Client) Close() {
	c.jumps.end()
	c.jumps.mu.Lock()
	all := slices.Collect(maps.Values(c.jumps.all))
	c.jumps.mu.Unlock()
	for _, j := range all {
		if <-j.ready; j.conn != nil {
			j.conn.Close()
		}
	}
	c.jumps.running.Wait()
}

// maxHops limits a chain of jump hosts.
const maxHops = 8

// hop is a jump host with its settings in the ssh configuration.
type hop struct {
	sshconfig.Hop
	sshconfig.Settings
}

// address returns its address with the port.
func (h hop) address() string {
	return route{host: cmp.Or(h.HostName, h.Host), port: cmp.Or(h.Hop.Port, h.Settings.Port)}.address()
}

// chain returns all hops. Only the first of a ProxyJump may have a ProxyJump itself, as in ssh.
func (c *Client) chain(named []sshconfig.Hop) ([]hop, error) {
	var hops []hop
	for _, h := range named {
		s, err := c.opts.Config(h.User, h.Host)
		if err != nil {
			return nil, err
		}
		hops = append(hops, hop{h, s})
	}
	if len(hops) == 0 || len(hops[0].Jumps) == 0 {
		return hops, nil
	}
	named = append(slices.Clone(hops[0].Jumps), named...)
	first := named[0]
	back := slices.ContainsFunc(named[1:], func(h sshconfig.Hop) bool { return h.Host == first.Host && h.Port == first.Port })
	if back || len(named) > maxHops {
		return nil, fmt.Errorf(`the ProxyJump of %s is circular or longer than %d hosts; set "ProxyJump none" under "Host %s"`, first.Host, maxHops, first.Host)
	}
	return c.chain(named)
}

// jump returns the shared connection to the last of a chain of jump hosts. The first caller
// opens it, others wait. The error is the *Error of the failed jump host, or the cause of ctx's
// end.
func (c *Client) jump(ctx context.Context, hops []hop) (*jump, error) {
	// Two names of one machine with the same keys share a connection, and a refusal of the key.
	var id strings.Builder
	for _, h := range hops {
		fmt.Fprintf(&id, "%s@%s %v %v\n", h.Settings.User, h.address(), h.Own, h.Shared)
	}
	c.jumps.mu.Lock()
	j := c.jumps.all[id.String()]
	if c.jumps.ctx.Err() != nil {
		c.jumps.mu.Unlock()
		return nil, errors.New("the run is over")
	}
	if j == nil || j.over(c.opts.Deadlines.Silence) {
		j = &jump{name: hops[len(hops)-1].Host, ready: make(chan struct{})}
		c.jumps.all[id.String()] = j
		c.jumps.running.Go(func() { c.open(j, hops) })
	}
	c.jumps.mu.Unlock()
	select {
	case <-j.ready:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if j.err != nil {
		return nil, j.err
	}
	return j, nil
}

// over reports whether another connection may be opened: this one is closed, or failed long
// enough ago. It is never retried after a key was offered or with a wrong host key.
func (j *jump) over(after time.Duration) bool {
	switch {
	case !closed(j.ready):
		return false
	case j.err != nil:
		return !j.err.final && time.Since(j.since) > after
	}
	return closed(j.conn.ended)
}

func closed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

// open connects to a jump host and waits for the end of the connection. It uses the Client's
// context, so that no waiting host can cancel it for the others.
func (c *Client) open(j *jump, hops []hop) {
	j.conn, j.err = c.openJump(c.jumps.ctx, hops)
	j.since = time.Now()
	close(j.ready)
	if j.conn != nil {
		<-j.conn.ended
		j.conn.Close()
	}
}

func (c *Client) openJump(ctx context.Context, hops []hop) (_ *Conn, e *Error) {
	last := len(hops) - 1
	h := hops[last]
	t := Target{Server: inventory.Server{Name: h.Host}}
	to := endpoint{target: t, address: h.address(), user: h.Settings.User, byHand: byHand(h.Hop)}
	if e = known(&to, h.Settings); e != nil {
		return nil, e
	}
	if to.key, e = c.keyFor(t, h.Settings, true); e != nil {
		return nil, e
	}
	if last > 0 {
		var err error
		if to.through, err = c.jump(ctx, hops[:last]); err != nil {
			return nil, behind(t, err)
		}
	}
	return c.login(ctx, to)
}

// byHand returns the command to log in to a jump host.
func byHand(h sshconfig.Hop) string {
	port, user := "", ""
	if h.Port != 0 {
		port = fmt.Sprintf("-p %d ", h.Port)
	}
	if h.User != "" {
		user = h.User + "@"
	}
	return "ssh " + port + user + h.Host
}

// behind returns the error of a machine whose jump host failed.
func behind(t Target, err error) *Error {
	var e *Error
	if !errors.As(err, &e) {
		return t.unreached(err)
	}
	out := t.fails(codeJumpFailed, Dialing, fmt.Errorf("jump host %w", e), e.Remedy)
	if e.Code == codeJumpFailed || e.Code == codeJumpLost { // the failed jump host is an earlier one
		out.Err = e.Err
	}
	out.final = e.final
	return out
}

// dial opens a connection from the jump host, through a pipe, because SSH channels have no
// deadlines.
func (j *jump) dial(ctx context.Context, network, address string) (net.Conn, error) {
	far, err := j.conn.ssh.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	near, middle := net.Pipe()
	carry := func(to, from net.Conn) {
		_, _ = io.Copy(to, from) // errors show at the other end
		_ = to.Close()
	}
	go carry(middle, far)
	go carry(far, middle)
	return near, nil
}

// lost checks whether a jump host still answers, and if not returns the error of a machine
// behind it: such machines fail slightly before the jump host's own end is known. A nil jump is
// never lost.
func (j *jump) lost(ctx context.Context, t Target) *Error {
	if j == nil || ctx.Err() != nil {
		return nil
	}
	// Keepalives are sent four times per silence limit, so a dead one is detected within it.
	patient, cancel := context.WithTimeout(ctx, j.conn.client.opts.Deadlines.Silence/2)
	defer cancel()
	answer := make(chan error, 1)
	go func() {
		_, _, err := j.conn.ssh.SendRequest(keepalive, true, nil)
		answer <- err
	}()
	select {
	case err := <-answer:
		if err == nil {
			return j.conn.through.lost(ctx, t)
		}
	case <-patient.Done():
		return nil
	}
	// Callers must not get the same connection again.
	select {
	case <-j.conn.ended:
	case <-patient.Done():
	}
	if further := j.conn.through.lost(ctx, t); further != nil {
		return further
	}
	why := "connection lost"
	if j.conn.wire.silent.Load() {
		why = fmt.Sprintf("no data for %s", j.conn.wire.silence)
	}
	return t.fails(codeJumpLost, Talking, fmt.Errorf("jump host %s: %s", j.name, why), "check that it runs (ssh "+j.name+"), then run the command again")
}
