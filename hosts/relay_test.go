package hosts

import (
	"bytes"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// relay is between a client and a server. Once gone is closed it copies
// nothing any more, in either direction, and keeps both sockets open until the
// client closes its own: a machine that lost its power, seen from afar.
type relay struct {
	gone  chan struct{}
	piece int           // bytes copied at once; 0 = as many as come
	pause time.Duration // after each piece from the server
}

func newRelay() *relay { return &relay{gone: make(chan struct{})} }

// between copies until the client closes its end.
func (r *relay) between(client, server net.Conn) {
	var both sync.WaitGroup
	both.Go(func() { r.copy(client, server, r.pause) })
	r.copy(server, client, 0)
	_ = server.Close() // both ends may have closed already
	_ = client.Close()
	both.Wait()
}

func (r *relay) copy(to, from net.Conn, pause time.Duration) {
	size := r.piece
	if size == 0 {
		size = 32 << 10
	}
	for buf := make([]byte, size); ; {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		select {
		case <-r.gone:
			continue
		default:
		}
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
		time.Sleep(pause) // this peer is slow, and the test does not wait for it
	}
}

// inFrontOf returns a handler that puts the relay before a server.
func (r *relay) inFrontOf(handle func(net.Conn)) func(net.Conn) {
	return func(client net.Conn) {
		near, far := net.Pipe()
		var serving sync.WaitGroup
		serving.Go(func() { handle(far); _ = far.Close() })
		r.between(client, near)
		serving.Wait()
	}
}

// inFrontOfAddress returns a handler that puts the relay before a daemon.
func (r *relay) inFrontOfAddress(t testing.TB, address string) func(net.Conn) {
	return func(client net.Conn) {
		server, err := net.Dial("tcp", address)
		if err != nil {
			t.Error(err)
			return
		}
		r.between(client, server)
	}
}

// muted loses all writes but the first few.
type muted struct {
	net.Conn
	left atomic.Int32
}

// mutedAfter returns a handler whose server says nothing after some writes: its
// version, its key exchange init, its part of the exchange, and so on.
func mutedAfter(writes int32, handle func(net.Conn)) func(net.Conn) {
	return func(c net.Conn) {
		m := &muted{Conn: c}
		m.left.Store(writes)
		handle(m)
	}
}

func (m *muted) Write(p []byte) (int, error) {
	if m.left.Add(-1) < 0 {
		return len(p), nil
	}
	return m.Conn.Write(p)
}

// garbled garbles what is written once it is switched on.
type garbled struct {
	net.Conn
	on atomic.Bool
}

func (g *garbled) Write(p []byte) (int, error) {
	if !g.on.Load() {
		return g.Conn.Write(p)
	}
	rubbish := bytes.Clone(p)
	for i := range rubbish {
		rubbish[i] ^= 0x55
	}
	return g.Conn.Write(rubbish)
}
