package engine_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/hosts"
	"github.com/macfleet/macfleet/internal/overssh"
	"github.com/macfleet/macfleet/providers/kubernetes"
	"github.com/macfleet/macfleet/providers/scaleway"
)

// place is where a fault falls: at the nth of what happens there.
type place int

const (
	nowhere    place = iota
	atWord           // that is sent to the host, a write of the SSH connection
	atCloud          // a request to Scaleway
	atCluster        // a request to the Kubernetes API
	atEvent          // of the run, before it is recorded
	afterEvent       // so here, behind that
)

// arena is a Mac that is a Node, with all lines to it and to the providers cut open.
type arena struct {
	*victim
	dead     atomic.Bool  // the process has died: nothing leaves it any more
	ahead    atomic.Int64 // of the clock here, in nanoseconds
	name     string
	epoch    int64
	halt     context.CancelCauseFunc
	die      context.CancelCauseFunc
	hasty    overssh.Hosts // for which a silent host is gone soon
	idle     []func()
	mu       sync.Mutex
	fault    fault
	seen     map[place]int // how often each place was reached; nil: not counted
	places   map[place]int // the same in a roll without a fault
	left     int           // places before the one where the fault falls; -1: it fell
	problems []error
}

// arenaIn opens a world for the matrix.
func arenaIn(t *testing.T, dir string) *arena {
	t.Helper()
	a := &arena{victim: victimIn(t, dir), left: -1}
	c := a.engine.Config
	o := clusterOptions(a.world, c)
	o.Wrap = func(next http.RoundTripper) http.RoundTripper { return faultyHTTP{a, atCluster, next} }
	o.Now = a.now
	cluster, err := kubernetes.New(o)
	must(t, err)
	base := &http.Transport{}
	access, key := a.world.ScalewayKeys()
	// Without the transport that asks again: each fault reaches anyone who asked.
	servers, err := scaleway.New(scaleway.Options{ProjectID: project, Zones: c.Scaleway.Zones, URL: a.world.ScalewayURL(),
		AccessKey: access, SecretKey: key, HTTP: &http.Client{Transport: faultyHTTP{a, atCloud, base}}})
	must(t, err)
	a.engine.Cluster, a.engine.Servers, a.engine.Passwords = cluster, servers, scalewayPasswords{servers}
	list, err := servers.List(t.Context())
	must(t, err)
	a.name = member(t, a.world)
	address := list[slices.IndexFunc(list, func(s inventory.Server) bool { return s.Name == a.name })].Address + ":"
	dial := func(ctx context.Context, network, to string) (net.Conn, error) {
		if a.dead.Load() {
			return nil, errDied
		}
		conn, err := a.world.DialContext(ctx, network, to)
		if err != nil || !strings.HasPrefix(to, address) {
			return conn, err
		}
		return &faultyConn{Conn: conn, arena: a}, nil
	}
	o2 := hosts.Options{User: "m1", Key: fleetKey(t, a.world), Dial: dial, Poll: time.Millisecond}
	patient := overssh.New(o2)
	a.patient = patient
	o2.Deadlines.Silence, o2.Deadlines.Handshake = 400*time.Millisecond, 600*time.Millisecond
	a.hasty = overssh.New(o2)
	a.idle = []func(){patient.Close, a.hasty.Close, cluster.Close, base.CloseIdleConnections}
	t.Cleanup(a.close)
	return a
}

// close closes what the arena has opened; again, nothing.
func (a *arena) close() {
	for _, f := range a.idle {
		f()
	}
	a.idle = nil
}

// arm lets a fault fall at the nth place from now on.
func (a *arena) arm(n int, f fault, die context.CancelCauseFunc) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.fault, a.left, a.die, a.problems = f, n, die, nil
	if f.hasty {
		a.engine.Hosts = a.hasty
	}
	if f.before != nil {
		f.before(a)
	}
}

// disarm ends a fault, and reports whether it fell.
func (a *arena) disarm(t *testing.T) bool {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	fell := a.left < 0
	a.left, a.fault = -1, fault{}
	a.dead.Store(false)
	for _, err := range a.problems {
		t.Error(err)
	}
	return fell
}

// hits counts a place, and lets the fault happen where it falls there. It returns the fault that fell.
func (a *arena) hits(at place) (f fault, falls bool) {
	a.mu.Lock()
	if a.seen != nil {
		a.seen[at]++
	}
	if f = a.fault; a.left < 0 || f.at != at {
		a.mu.Unlock()
		return fault{}, false
	}
	a.left--
	falls = a.left < 0
	a.mu.Unlock()
	if !falls || f.happens == nil {
		return f, falls
	}
	if err := f.happens(a); err != nil {
		a.mu.Lock()
		a.problems = append(a.problems, err)
		a.mu.Unlock()
	}
	return f, true
}

// faultyConn is a connection to the host.
type faultyConn struct {
	net.Conn
	arena *arena
	deaf  atomic.Bool  // what is sent vanishes, and nothing comes
	slow  atomic.Int64 // words that still go slowly
}

// Write passes a word on, unless the fault falls on it.
func (c *faultyConn) Write(p []byte) (int, error) {
	if c.arena.dead.Load() {
		_ = c.Conn.Close()
		return 0, errDied
	}
	if f, falls := c.arena.hits(atWord); falls {
		switch f.line {
		case dropped:
			_ = c.Conn.Close()
			return 0, io.ErrClosedPipe
		case droppedBehind:
			n, err := c.Conn.Write(p)
			_ = c.Conn.Close()
			return n, err
		case halfOpen:
			c.deaf.Store(true)
		case slow:
			c.slow.Store(10)
		}
	}
	switch {
	case c.deaf.Load():
		return len(p), nil
	case c.slow.Add(-1) >= 0 && len(p) > 1:
		half := len(p) / 2
		n, err := c.Conn.Write(p[:half])
		if err != nil {
			return n, err
		}
		time.Sleep(5 * time.Millisecond) // the line is slow; nothing waits for it
		more, err := c.Conn.Write(p[half:])
		return n + more, err
	}
	return c.Conn.Write(p)
}

// Read reads on, on a half-open connection until someone closes it.
func (c *faultyConn) Read(p []byte) (int, error) {
	for {
		n, err := c.Conn.Read(p)
		if err != nil || !c.deaf.Load() {
			return n, err
		}
	}
}

// faultyHTTP is a line to a provider.
type faultyHTTP struct {
	arena *arena
	at    place
	next  http.RoundTripper
}

// RoundTrip passes a request on, unless the fault falls on it.
func (h faultyHTTP) RoundTrip(r *http.Request) (*http.Response, error) {
	if h.arena.dead.Load() {
		return nil, errDied
	}
	f, falls := h.arena.hits(h.at)
	if !falls {
		return h.next.RoundTrip(r)
	}
	if f.unheard {
		if f.status == 0 {
			return nil, f.err
		}
		return &http.Response{StatusCode: f.status, Status: http.StatusText(f.status), Request: r, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
			Header: http.Header{"Content-Type": {"text/plain"}}, Body: io.NopCloser(strings.NewReader("not now"))}, nil
	}
	answer, err := h.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if f.line == cut {
		answer.Body = &cutBody{answer.Body, 20}
		return answer, nil
	}
	_ = answer.Body.Close()
	return nil, f.err
}

// cutBody is a body whose end is missing.
type cutBody struct {
	io.ReadCloser
	left int
}

// Read returns what has come.
func (c *cutBody) Read(p []byte) (int, error) {
	if c.left == 0 {
		return 0, io.ErrUnexpectedEOF
	}
	n, err := c.ReadCloser.Read(p[:min(len(p), c.left)])
	if c.left -= n; errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// takeOver lets another run take the lock in the middle of this one, and finish.
func (a *arena) takeOver() error {
	other := runOf(a)
	p, err := other.Plan(context.Background())
	if err != nil {
		return err
	}
	_, err = other.Apply(context.Background(), p)
	return err
}
