package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
)

// heldSince returns the trouble if someone set a hold on the host after the plan was made.
// The marker is read on the connection that carries the changes.
func (w *worker) heldSince() *plan.Trouble {
	m, _ := w.host.Seen.Marker.Get()
	if hold := w.standing(m.Hold); hold != nil {
		return plan.Held{Hold: *hold, In: []string{plan.InMarker}}.Trouble(w.host.Name)
	}
	return nil
}

// standing returns a marker's hold if it has not expired, so that a rewritten marker keeps it.
// A hold without an end never expires.
func (w *worker) standing(h *inventory.Hold) *inventory.Hold {
	if h == nil || !h.Until.IsZero() && !h.Until.After(w.engine.Now()) {
		return nil
	}
	return h
}

// SetNodeHold writes a hold onto a Node, or removes it if h is nil.
type SetNodeHold func(ctx context.Context, n inventory.Node, h *inventory.Hold) error

// Holding is the result of setting or removing a hold on one host.
type Holding struct {
	Host   plan.Host
	Marker error // nil: written to the marker, or removed from it
	Node   error // the same for the Node
}

// Done reports whether the host is held or, if hold is nil, released. One place is enough to
// hold a host; releasing it takes both.
func (h Holding) Done(hold *inventory.Hold) bool {
	if hold != nil {
		return h.Marker == nil || h.Node == nil
	}
	return (h.Marker == nil || errors.Is(h.Marker, ErrNoPlace)) && (h.Node == nil || errors.Is(h.Node, ErrNoPlace))
}

// ErrNoPlace reports that a hold cannot be stored there: no marker yet, no Node, no cluster.
var ErrNoPlace = errors.New("not stored")

// Hold writes a hold into the markers of hosts and onto their Nodes, or removes both if h is
// nil. node is nil without a cluster.
func (e *Engine) Hold(ctx context.Context, of []plan.Host, h *inventory.Hold, node SetNodeHold) []Holding {
	return each(of, e.Parallelism, func(host plan.Host) Holding {
		return Holding{host, e.scrubError(e.holdMarker(ctx, host, h)), e.scrubError(holdNode(ctx, host, h, node))}
	})
}

func (e *Engine) holdMarker(ctx context.Context, host plan.Host, h *inventory.Hold) error {
	return e.changeMarker(ctx, host, func(m *plan.Marker) bool {
		same := m.Hold == nil && h == nil
		m.Hold = h
		return !same
	})
}

// changeMarker changes the marker of a host, even of one that is held. change reports whether there is anything
// to write.
func (e *Engine) changeMarker(ctx context.Context, host plan.Host, change func(*plan.Marker) bool) error {
	m, marked := host.Seen.Marker.Get()
	switch {
	case host.Unknown != nil:
		return host.Unknown
	case host.Seen.Marker.IsAbsent():
		return fmt.Errorf("%w: the host has no marker yet", ErrNoPlace)
	case !marked:
		return fmt.Errorf("the marker cannot be read: %s", host.Seen.Marker.Why())
	case !change(&m):
		return nil
	}
	w := &worker{engine: e, host: host, holding: true}
	defer w.close(ctx)
	if err := w.connect(ctx); err != nil {
		return err
	}
	var err error
	for range markerTries {
		now, marked := w.host.Seen.Marker.Get()
		if !marked {
			return errors.New("the marker is missing")
		}
		change(&now)
		if _, err = w.conn.Do(ctx, WriteMarker{Marker: now}); !errors.Is(err, plan.ErrMarkerMoved) {
			return err
		}
		if t := w.reread(ctx); t != nil {
			return t
		}
	}
	return err
}

// markerTries limits retries when a run writes the marker at the same time.
const markerTries = 5

func holdNode(ctx context.Context, host plan.Host, h *inventory.Hold, node SetNodeHold) error {
	n, known := host.Node.Get()
	switch {
	case node == nil:
		return fmt.Errorf("%w: no cluster is configured", ErrNoPlace)
	case host.Node.IsUnread():
		return fmt.Errorf("the Node cannot be read: %s", host.Node.Why())
	case !known:
		return fmt.Errorf("%w: the host has no Node", ErrNoPlace)
	case h == nil && n.Hold == nil && n.HoldUnread == "":
		return nil
	}
	return node(ctx, n, h)
}
