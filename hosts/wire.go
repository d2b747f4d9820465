package hosts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
	"unicode"

	"golang.org/x/crypto/ssh"
)

// dial opens a connection, directly or from the jump host.
func (c *Client) dial(ctx context.Context, to endpoint) (*watched, error) {
	dctx, cancel := context.WithTimeout(ctx, c.opts.Deadlines.Dial)
	defer cancel()
	dial, counts := c.opts.Dial, &c.stats
	if to.through != nil {
		dial, counts = to.through.dial, &stats{} // its bytes are counted at the first hop
	}
	raw, err := dial(dctx, "tcp", to.address)
	if err != nil {
		return nil, err
	}
	counts.connections.Add(1)
	return &watched{Conn: raw, silence: c.opts.Deadlines.Silence, stats: counts}, nil
}

// keepalive is OpenSSH's no-op request.
const keepalive = "keepalive@openssh.com"

// keepAlive sends requests that every server answers, so that a dead peer is detected by its
// silence.
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

// watched is a connection that fails after a time of silence and counts its traffic.
type watched struct {
	net.Conn
	silence time.Duration
	silent  atomic.Bool // it failed because of silence
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

// hungUpError reports that the host closed the connection.
type hungUpError struct{ cause error }

func (e *hungUpError) Error() string { return "the host closed the connection: " + e.cause.Error() }
func (e *hungUpError) Unwrap() error { return e.cause }

func hungUp(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// note keeps the first error of the connection: after a failed write the SSH library only
// reports that the connection was closed.
func (w *watched) note(err error) {
	switch {
	case err == nil || errors.Is(err, net.ErrClosed):
	case errors.Is(err, os.ErrDeadlineExceeded):
		w.silent.Store(true)
	default:
		w.broke.CompareAndSwap(nil, &err)
	}
}

// why returns the cause of an error that only says that the connection is gone.
func (w *watched) why(err error) error {
	first := w.broke.Load()
	switch {
	case err == nil:
		return nil
	case w.silent.Load():
		return fmt.Errorf("no data from the host for %s", w.silence)
	case hungUp(err):
		return &hungUpError{err}
	case errors.Is(err, net.ErrClosed) && first != nil && hungUp(*first):
		return &hungUpError{*first}
	}
	return err
}

// ending returns why a command has no exit status: a keepalive request shows whether the
// connection broke or only this command ended.
func (c *Conn) ending() error {
	if _, _, err := c.ssh.SendRequest(keepalive, true, nil); err == nil {
		return errors.New("the command ended without an exit status")
	}
	return c.ssh.Wait()
}

// maxText is the maximum length of an error text in bytes.
const maxText = 600

// printable makes a text safe for a terminal: a peer may have written parts of it.
func printable(text string) string {
	var b strings.Builder
	for _, r := range text {
		if b.Len() > maxText {
			return b.String() + "…"
		}
		if unicode.IsPrint(r) {
			b.WriteRune(r)
			continue
		}
		quoted := strconv.QuoteRune(r)
		b.WriteString(quoted[1 : len(quoted)-1])
	}
	return b.String()
}

// endOf returns a channel that is closed when a connection is gone.
func endOf(conn ssh.Conn) <-chan struct{} {
	ended := make(chan struct{})
	go func() {
		_ = conn.Wait() // the cause is read elsewhere
		close(ended)
	}()
	return ended
}

// session opens a session on the connection.
//
// The library can block forever if the connection ends just before the request: the new
// channel is never closed and its failed write is not reported. So no session is requested
// after the end; if the end comes in between, the goroutine is abandoned.
func (c *Conn) session() (*ssh.Session, error) {
	type opened struct {
		session *ssh.Session
		err     error
	}
	answer := make(chan opened, 1)
	if !c.wire.over.Load() {
		go func() {
			s, err := c.ssh.NewSession()
			answer <- opened{s, err}
		}()
	}
	select {
	case a := <-answer:
		if a.err != nil {
			return nil, fmt.Errorf("open a session: %w", a.err)
		}
		return a.session, nil
	case <-c.ended:
		return nil, fmt.Errorf("open a session: %w", c.ssh.Wait())
	}
}
