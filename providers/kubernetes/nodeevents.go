package kubernetes

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
)

// NodeEvent is what people who look at a Node should know: what is done to it, and in
// which run.
type NodeEvent struct {
	Reason string // one word in CamelCase
	Text   string
	Run    plan.Run
	At     time.Time
}

// TellNode adds an event to a Node, where kubectl describe shows it. The cluster
// forgets it after an hour or so. Events of what is in no namespace stand in the
// default one.
func (c *Client) TellNode(ctx context.Context, n inventory.Node, e NodeEvent) error {
	at := metav1.NewTime(e.At)
	event := corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Name: fmt.Sprintf("%s.%x", n.Name, e.At.UnixNano()), Namespace: metav1.NamespaceDefault},
		InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: n.Name, UID: types.UID(n.UID)},
		Reason:         e.Reason,
		Message:        fmt.Sprintf("%s (macfleet run %s of %s)", e.Text, e.Run.ID, e.Run.Who),
		Source:         corev1.EventSource{Component: manager},
		FirstTimestamp: at, LastTimestamp: at, Count: 1, Type: corev1.EventTypeNormal,
	}
	if _, err := c.api.CoreV1().Events(event.Namespace).Create(ctx, &event, metav1.CreateOptions{FieldManager: manager}); err != nil {
		return fmt.Errorf("tell of node %s: %w", n.Name, explain(err))
	}
	return nil
}
