package engine

import (
	"context"

	"github.com/macfleet/macfleet/plan"
)

// tell lets the host's Node know of an action that disturbs the work on it, before it
// begins. Whoever looks at the Node then finds who did so.
func (w *worker) tell(ctx context.Context, a plan.Action) {
	if n, known := w.host.Node.Get(); known && a.Disruption >= plan.Restart && w.engine.Tell != nil {
		w.engine.Tell(ctx, n, a)
	}
}
