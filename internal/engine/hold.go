package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
)

// heldSince returns why the host must not be touched any more: somebody put a hold
// into its marker after the plan was made. That is asked on the connection over
// which the changes go.
func (w *worker) heldSince() *plan.Trouble {
	m, _ := w.host.Seen.Marker.Get()
	if hold := w.standing(m.Hold); hold != nil {
		return plan.Held{Hold: *hold, In: []string{plan.InMarker}}.Trouble(w.host.Name)
	}
	return nil
}

// standing returns a marker's hold while its time is not over: a marker that is
// written anew carries it on. One without an end is never over.
func (w *worker) standing(h *inventory.Hold) *inventory.Hold {
	if h == nil || !h.Until.IsZero() && !h.Until.After(w.engine.Now()) {
		return nil
	}
	return h
}

// SetNodeHold writes a hold onto a Node, or takes away what stands there where
// there is none to write.
type SetNodeHold func(ctx context.Context, n inventory.Node, h *inventory.Hold) error

// Holding says what became of a hold on one host.
type Holding struct {
	Host   plan.Host
	Marker error // nil: it stands in the marker, or is gone from it
	Node   error // so on the Node
}

// Done reports whether the host is held, or free where hold is nil: one place is
// enough to hold it, and as long as one is left it is not free.
func (h Holding) Done(hold *inventory.Hold) bool {
	if hold != nil {
		return h.Marker == nil || h.Node == nil
	}
	return (h.Marker == nil || errors.Is(h.Marker, ErrNoPlace)) && (h.Node == nil || errors.Is(h.Node, ErrNoPlace))
}

// ErrNoPlace says that a host has no place of that kind for a hold: no marker yet,
// no Node, no cluster.
var ErrNoPlace = errors.New("no place for a hold")

// Hold writes a hold into the markers of hosts and onto their Nodes, both for each,
// or takes both away where h is nil. What is written is read back by whoever plans
// next. node is nil without a cluster.
func (e *Engine) Hold(ctx context.Context, of []plan.Host, h *inventory.Hold, node SetNodeHold) []Holding {
	return each(of, e.Parallelism, func(host plan.Host) Holding {
		return Holding{host, e.scrubError(e.holdMarker(ctx, host, h)), e.scrubError(holdNode(ctx, host, h, node))}
	})
}

func (e *Engine) holdMarker(ctx context.Context, host plan.Host, h *inventory.Hold) error {
	m, marked := host.Seen.Marker.Get()
	switch {
	case host.Unknown != nil:
		return host.Unknown
	case host.Seen.Marker.IsAbsent():
		return fmt.Errorf("%w: the host has no marker yet", ErrNoPlace)
	case !marked:
		return fmt.Errorf("its marker cannot be read: %s", host.Seen.Marker.Why())
	case h == nil && m.Hold == nil:
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
			return errors.New("its marker is gone")
		}
		now.Hold = h
		if _, err = w.conn.Do(ctx, WriteMarker{Marker: now}); !errors.Is(err, plan.ErrMarkerMoved) {
			return err
		}
		if t := w.reread(ctx); t != nil {
			return t
		}
	}
	return err
}

// markerTries is how often a hold is written into a marker that a run writes too.
const markerTries = 5

func holdNode(ctx context.Context, host plan.Host, h *inventory.Hold, node SetNodeHold) error {
	n, known := host.Node.Get()
	switch {
	case node == nil:
		return fmt.Errorf("%w: the configuration has no cluster", ErrNoPlace)
	case host.Node.IsUnread():
		return fmt.Errorf("its Node cannot be read: %s", host.Node.Why())
	case !known:
		return fmt.Errorf("%w: it has no Node", ErrNoPlace)
	case h == nil && n.Hold == nil && n.HoldUnread == "":
		return nil
	}
	return node(ctx, n, h)
}
