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
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/hosts/sshconfig"
)

// jumps are the connections to jump hosts, one each, shared by all hosts behind
// them and closed with the Client. What went wrong with one is remembered: it is
// not tried again for the next host, only a while later.
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

// Close ends the connections to jump hosts and with them those of all hosts
// behind. After it no jump host can be reached. It may be called more than once.
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

// maxHops bounds a chain of jump hosts; each is a connection within another.
const maxHops = 8

// chain returns all hops to go through. The first of a ProxyJump may have one
// itself; those after it are reached through their neighbour, as ssh does.
func (c *Client) chain(hops []sshconfig.Hop) ([]sshconfig.Hop, error) {
	for len(hops) > 0 {
		s, err := c.opts.Config(hops[0].User, hops[0].Host)
		if err != nil {
			return nil, err
		}
		if len(s.Jumps) == 0 {
			break
		}
		hops = append(slices.Clone(s.Jumps), hops...)
		first := hops[0]
		back := slices.ContainsFunc(hops[1:], func(h sshconfig.Hop) bool { return h.Host == first.Host && h.Port == first.Port })
		if back || len(hops) > maxHops {
			return nil, fmt.Errorf(`ProxyJump leads back to %s or over more than %d hosts; write "ProxyJump none" under "Host %s"`, first.Host, maxHops, first.Host)
		}
	}
	return hops, nil
}

// jump returns the shared connection to the last of a chain of jump hosts. Who
// comes first opens it and the others wait. The error is the *Error of the jump
// host that failed, or why ctx ended.
func (c *Client) jump(ctx context.Context, hops []sshconfig.Hop) (*jump, error) {
	id, err := c.chainID(hops)
	if err != nil {
		return nil, configError(Target{Server: inventory.Server{Name: hops[len(hops)-1].Host}}, err)
	}
	c.jumps.mu.Lock()
	j := c.jumps.all[id]
	if c.jumps.ctx.Err() != nil {
		c.jumps.mu.Unlock()
		return nil, errors.New("the run is over")
	}
	if j == nil || j.gone() || j.forgiven(c.opts.Deadlines.Silence) {
		j = &jump{name: hops[len(hops)-1].Host, ready: make(chan struct{})}
		c.jumps.all[id] = j
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

// chainID is the same for chains that lead to the same machines with the same
// keys, under whatever names: two names of one jump host are one connection, and
// one refusal of its key.
func (c *Client) chainID(hops []sshconfig.Hop) (string, error) {
	var id strings.Builder
	for _, hop := range hops {
		s, err := c.opts.Config(hop.User, hop.Host)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&id, "%s@%s %v %v\n", s.User, jumpRoute(hop, s).address(), s.Own, s.Shared)
	}
	return id.String(), nil
}

// jumpRoute is where a jump host listens.
func jumpRoute(hop sshconfig.Hop, s sshconfig.Settings) route {
	return route{host: cmp.Or(s.HostName, hop.Host), port: cmp.Or(hop.Port, s.Port)}
}

func closed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

// gone reports whether a connection stood and is no more: then another may be
// opened.
func (j *jump) gone() bool { return closed(j.ready) && j.conn != nil && closed(j.conn.ended) }

// forgiven reports whether a failure is so long ago that another try is worth
// it. One after which a key was offered, or with a wrong host key, never is.
func (j *jump) forgiven(after time.Duration) bool {
	return closed(j.ready) && j.err != nil && !j.err.final && time.Since(j.since) > after
}

// open connects to a jump host and waits for the end of the connection. It runs
// with the Client's context: no host that waits may spoil it for the others.
func (c *Client) open(j *jump, hops []sshconfig.Hop) {
	j.conn, j.err = c.openJump(c.jumps.ctx, hops)
	j.since = time.Now()
	close(j.ready)
	if j.conn != nil {
		<-j.conn.ended
		j.conn.Close()
	}
}

func (c *Client) openJump(ctx context.Context, hops []sshconfig.Hop) (*Conn, *Error) {
	last := len(hops) - 1
	hop := hops[last]
	t := Target{Server: inventory.Server{Name: hop.Host}}
	s, err := c.opts.Config(hop.User, hop.Host)
	if err != nil {
		return nil, configError(t, err)
	}
	to := endpoint{target: t, address: jumpRoute(hop, s).address(), user: s.User, byHand: byHand(hop)}
	if e := known(&to, s); e != nil {
		return nil, e
	}
	var keyless *Error
	if to.key, keyless = c.keyFor(t, s, true); keyless != nil {
		return nil, keyless
	}
	if last > 0 {
		if to.through, err = c.jump(ctx, hops[:last]); err != nil {
			return nil, behind(t, err)
		}
	}
	return c.login(ctx, to)
}

// byHand is the command with which a person logs in to a jump host.
func byHand(hop sshconfig.Hop) string {
	words := []string{"ssh"}
	if hop.Port != 0 {
		words = append(words, "-p", strconv.Itoa(hop.Port))
	}
	to := hop.Host
	if hop.User != "" {
		to = hop.User + "@" + to
	}
	return strings.Join(append(words, to), " ")
}

// behind says of a machine that the jump host before it failed.
func behind(t Target, err error) *Error {
	var e *Error
	if !errors.As(err, &e) {
		return t.unreached(err)
	}
	out := t.fails(CodeJumpFailed, Dialing, fmt.Errorf("jump host %w", e), e.Remedy)
	if e.Code == CodeJumpFailed || e.Code == CodeJumpLost { // the jump host is itself behind the one that failed
		out.Err = e.Err
	}
	out.final = e.final
	return out
}

// dial opens a connection from the jump host. A channel of SSH knows no
// deadlines, so a pipe that does stands before it.
func (j *jump) dial(ctx context.Context, address string) (net.Conn, error) {
	far, err := j.conn.ssh.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	near, middle := net.Pipe()
	carry := func(to, from net.Conn) {
		_, _ = io.Copy(to, from) // how it ended shows at the near end
		_ = to.Close()
	}
	go carry(middle, far)
	go carry(far, middle)
	return near, nil
}

// lost asks a jump host whether it still answers, and if not says so of a machine behind
// it. What breaks there breaks a little before the news of the jump host's own end
// arrives. A nil jump is never lost.
func (j *jump) lost(ctx context.Context, t Target) *Error {
	if j == nil || ctx.Err() != nil {
		return nil
	}
	// Its keepalives come every quarter of the silence that is borne, so a dead
	// one is known to be dead within that time.
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
	// Whoever hears of it must not be given the same connection again.
	select {
	case <-j.conn.ended:
	case <-patient.Done():
	}
	if further := j.conn.through.lost(ctx, t); further != nil {
		return further
	}
	why := "the connection to it broke"
	if j.conn.wire.silent.Load() {
		why = fmt.Sprintf("no byte from it for %s", j.conn.wire.silence)
	}
	return t.fails(CodeJumpLost, Talking, fmt.Errorf("jump host %s: %s", j.name, why), "see whether it runs: ssh "+j.name+"; then run the command again")
}
