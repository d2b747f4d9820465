package engine

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/hosts"
	"github.com/macfleet/macfleet/plan"
)

// Artifacts has the files that hosts get.
type Artifacts interface {
	// Open returns an artifact, whole and checked, and its size in bytes.
	Open(context.Context, fleet.Artifact) (io.ReadCloser, int64, error)
}

// deliver brings an artifact to the host before the change that installs it.
func (w *worker) deliver(ctx context.Context, d plan.Delivery) error {
	_, err := w.conn.Deliver(ctx, d, func() (io.ReadCloser, int64, error) {
		if w.engine.Artifacts == nil {
			return nil, 0, fmt.Errorf("nothing here has %s", d.Artifact)
		}
		return w.engine.Artifacts.Open(ctx, d.Artifact)
	})
	return err
}

// prune lets the host drop artifacts that nothing there names any more, after a
// step that brought one is proven. What cannot be dropped now the next one drops.
func (w *worker) prune(ctx context.Context, changes []plan.Change) {
	for _, c := range changes {
		if c.Delivery != nil {
			_ = w.conn.PruneArtifacts(ctx)
			return
		}
	}
}

// everySecond is how often an upload tells how far it is.
const everySecond = time.Second

// tellers remember when the uploads to hosts told of themselves last.
type tellers struct {
	mu   sync.Mutex
	last map[string]time.Time // by host
}

// Sent tells how far an upload is, now and then and when it is complete, and each
// time that it takes or gives up its place. It is what hosts.Options.Progress wants
// to call.
func (e *Engine) Sent(p hosts.Progress) {
	switch p.Edge {
	case hosts.Begins:
		e.emit(Event{Type: UploadBegins, Host: p.Host, Artifact: p.Artifact.Name})
		return
	case hosts.Ends:
		e.emit(Event{Type: UploadEnds, Host: p.Host, Artifact: p.Artifact.Name})
		return
	}
	now := e.Now()
	e.sending.mu.Lock()
	due := now.Sub(e.sending.last[p.Host]) >= everySecond || p.Done == p.Size
	if due {
		if e.sending.last == nil {
			e.sending.last = make(map[string]time.Time)
		}
		e.sending.last[p.Host] = now
	}
	e.sending.mu.Unlock()
	if due {
		e.emit(Event{Type: Sending, Host: p.Host, Artifact: p.Artifact.Name, Bytes: p.Done, Size: p.Size})
	}
}
