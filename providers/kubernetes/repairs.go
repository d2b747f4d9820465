package kubernetes

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/macfleet/macfleet/fleet/inventory"
)

// repairsNote is the annotation with the failed repairs of a Node's host, as JSON.
const repairsNote = "repairs"

// SetRepairs writes the failed repairs of its host onto a Node, replacing any others; nil removes
// them. A Node that was recreated since it was read is not touched.
func (c *Client) SetRepairs(ctx context.Context, n inventory.Node, r *inventory.Repairs) error {
	var text []byte
	if r != nil {
		var err error
		if text, err = json.Marshal(r); err != nil {
			return fmt.Errorf("encode the repairs of node %s: %w", n.Name, err)
		}
	}
	return c.changeNode(ctx, "write the repairs to", n, func(have *corev1.Node) error {
		c.note(have, repairsNote, string(text))
		return nil
	})
}

// repairsIn reads the failed repairs on a Node. A record that cannot be read still counts: it may be of a
// quarantine.
func repairsIn(note string) *inventory.Repairs {
	if note == "" {
		return nil
	}
	var r inventory.Repairs
	if err := json.Unmarshal([]byte(note), &r); err != nil {
		return &inventory.Repairs{Unread: "invalid JSON: " + err.Error()}
	}
	return &r
}
