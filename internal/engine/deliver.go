package engine

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/plan"
)

// Artifacts has the files that hosts get.
type Artifacts interface {
	// Open returns an artifact, whole and checked, and its size in bytes.
	Open(context.Context, fleet.Artifact) (io.ReadCloser, int64, error)
}

// deliver brings an artifact to the host before the change that installs it.
func (w *worker) deliver(ctx context.Context, d plan.Delivery) error {
	if w.engine.Artifacts == nil {
		return fmt.Errorf("nothing here has %s", d.Artifact)
	}
	return fmt.Errorf("%s cannot be brought to %s", d.Artifact, w.host.Name)
}

// everySecond is how often an upload tells how far it is.
const everySecond = time.Second

// told is a file on its way to a host, which says how far it is.
type told struct {
	io.ReadCloser
	worker *worker
	action *plan.Action
	size   int64
	sent   int64
	last   time.Time
}

// Read reads on, and tells of it now and then.
func (t *told) Read(p []byte) (int, error) {
	n, err := t.ReadCloser.Read(p)
	t.sent += int64(n)
	if now := t.worker.engine.Now(); now.Sub(t.last) >= everySecond || t.sent == t.size {
		t.last = now
		t.worker.engine.emit(Event{Type: Sending, Host: t.worker.host.Name, Action: t.action, Bytes: t.sent, Size: t.size})
	}
	return n, err
}
