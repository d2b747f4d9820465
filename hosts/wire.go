package hosts

import (
	"context"
	"net"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/ssh"
)

// dial opens a connection, from here or from the jump host before the machine.
func (c *Client) dial(ctx context.Context, to endpoint) (*watched, error) {
	dctx, cancel := context.WithTimeout(ctx, c.opts.Deadlines.Dial)
	defer cancel()
	if to.through != nil {
		raw, err := to.through.dial(dctx, to.address)
		if err != nil {
			return nil, err
		}
		// Its bytes are counted where they leave this machine.
		return &watched{Conn: raw, silence: c.opts.Deadlines.Silence, stats: &stats{}}, nil
	}
	raw, err := c.opts.Dial(dctx, "tcp", to.address)
	if err != nil {
		return nil, err
	}
	c.stats.connections.Add(1)
	return &watched{Conn: raw, silence: c.opts.Deadlines.Silence, stats: &c.stats}, nil
}

// keepalive is OpenSSH's own name for a request that does nothing.
const keepalive = "keepalive@openssh.com"

// keepAlive sends a request that every server answers, so that a dead peer
// shows as silence and not as a command that never ends.
func keepAlive(ctx context.Context, conn ssh.Conn, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if _, _, err := conn.SendRequest(keepalive, true, nil); err != nil {
				return
			}
		}
	}
}

// watched is a connection that breaks after a time of silence and counts its
// bytes and turns.
type watched struct {
	net.Conn
	silence time.Duration
	silent  atomic.Bool // it broke for this reason
	broke   atomic.Pointer[error]
	over    atomic.Bool // nothing more can be read
	asked   atomic.Bool // bytes went out since the last ones came in
	stats   *stats
}

func (w *watched) Read(p []byte) (int, error) {
	if err := w.SetReadDeadline(time.Now().Add(w.silence)); err != nil {
		w.over.Store(true)
		return 0, err
	}
	n, err := w.Conn.Read(p)
	if err != nil {
		w.over.Store(true)
	}
	w.stats.received.Add(int64(n))
	if n > 0 && w.asked.Swap(false) {
		w.stats.turns.Add(1)
	}
	w.note(err)
	return n, err
}

func (w *watched) Write(p []byte) (int, error) {
	if err := w.SetWriteDeadline(time.Now().Add(w.silence)); err != nil {
		return 0, err
	}
	w.asked.Store(true) // before the answer can come
	n, err := w.Conn.Write(p)
	w.stats.sent.Add(int64(n))
	w.note(err)
	return n, err
}
