package app

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/runlog"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/providers/kubernetes"
)

// tellWithin bounds how long an action waits until its Node's event is written.
const tellWithin = 5 * time.Second

// tellNode writes an event onto the Node of a host that is about to be disturbed. One
// that cannot be written, as in a cluster that an older macfleet prepared, holds
// nothing up.
func (s *session) tellNode(ctx context.Context, n inventory.Node, a plan.Action) {
	ctx, cancel := context.WithTimeout(ctx, tellWithin)
	defer cancel()
	x := runlog.ActionOf(a)
	err := s.kubernetes.TellNode(ctx, n, kubernetes.NodeEvent{Reason: "Macfleet", Run: s.env.this, At: time.Now(),
		Text: fmt.Sprintf("%s (%s) begins: %s", x.Label(), x.Reason, x.Disruption)})
	if err != nil {
		s.env.logged(slog.LevelWarn, "the Node was not told", "host", n.Name, "error", err)
	}
}
