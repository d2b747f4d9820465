package sandbox

import (
	"context"
	"io"
	"net"
	"time"

	"github.com/macfleet/macfleet/internal/sandbox/cloud"
	"github.com/macfleet/macfleet/internal/sandbox/mac"
)

// answer returns what serves a host's end of a connection, with the incidents that affect connections.
// It returns when the connection is closed or ctx ends.
func (w *World) answer(server cloud.Server, machine *mac.Machine, open history) func(ctx context.Context, far net.Conn) {
	if open.find(silentName) != nil {
		return hold
	}
	log := func(event string) {
		// The log has both the connection and the login, so that a refused key shows as a connection
		// without a login.
		if event == "connect" {
			event = "login"
		}
		w.log.ssh(server.Name, event)
	}
	return func(ctx context.Context, far net.Conn) {
		if open.find(slowName) != nil {
			far = slow{far}
		}
		// The caller sees how a connection ends, as with a real host.
		_ = machine.ServeWith(ctx, far, log, func() mac.Faults { return w.faults(server.ID) })
	}
}

// faults returns the current faults of a Mac: an incident may start while a connection is open. An
// unreadable record counts as none here; the next dial reports it.
func (w *World) faults(id string) mac.Faults {
	open, err := w.incidentsOf(id)
	if err != nil {
		return mac.Faults{}
	}
	return mac.Faults{CutOutput: open.find(diesName) != nil, Garbled: open.find(garbledName) != nil}
}

// hold keeps a connection open and sends nothing.
func hold(ctx context.Context, far net.Conn) {
	hangUp := context.AfterFunc(ctx, func() { _ = far.Close() })
	defer hangUp()
	defer far.Close() // usually already closed
	_, _ = io.Copy(io.Discard, far)
}

// On a slow line, each pause adds up to half a second for work that otherwise takes no time.
const (
	slowPiece = 512
	slowPause = 25 * time.Millisecond
)

// slow writes a host's output slowly.
type slow struct{ net.Conn }

// Write sends p in pieces, each after a pause.
func (s slow) Write(p []byte) (n int, err error) {
	for n < len(p) {
		time.Sleep(slowPause)
		piece, err := s.Conn.Write(p[n:min(n+slowPiece, len(p))])
		n += piece
		if err != nil {
			return n, err
		}
	}
	return n, nil
}
