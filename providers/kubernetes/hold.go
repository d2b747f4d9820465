package kubernetes

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/macfleet/macfleet/fleet/inventory"
)

// holdNote is the annotation by which a person keeps macfleet off a host: a hold as
// JSON.
const holdNote = "hold"

// SetHold writes a hold onto a Node, in place of whatever stands there; nil takes it
// away. A Node that was made anew since it was seen is left alone.
func (c *Client) SetHold(ctx context.Context, n inventory.Node, h *inventory.Hold) error {
	var note any
	if h != nil {
		text, err := json.Marshal(h)
		if err != nil {
			return fmt.Errorf("encode the hold of node %s: %w", n.Name, err)
		}
		note = string(text)
	}
	return c.changeNode(ctx, "note the hold on", n, func(have *corev1.Node) (map[string]any, error) {
		if now, there := have.Annotations[c.label(holdNote)]; note == nil && !there || note == now {
			return nil, nil
		}
		return map[string]any{"metadata": map[string]any{"annotations": map[string]any{c.label(holdNote): note}}}, nil
	})
}

// holdOf reads the hold on a Node. One that cannot be read is said to be there:
// somebody meant something by it.
func holdOf(note string) (hold *inventory.Hold, unread string) {
	if note == "" {
		return nil, ""
	}
	var h inventory.Hold
	if err := json.Unmarshal([]byte(note), &h); err != nil {
		return nil, "it is not JSON as macfleet writes it: " + err.Error()
	}
	if h.Who == "" {
		h.Who = "somebody"
	}
	return &h, ""
}
