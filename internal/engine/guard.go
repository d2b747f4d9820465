package engine

import (
	"context"

	"github.com/macfleet/macfleet/plan"
)

var codeLockLost = plan.NewCode("lock-lost", plan.NotDrift, "the apply lost its lock, so it changes nothing more",
	"macfleet lock status says who has it; apply again when that run is over")

// Guard is asked before each action and each change whether the run may still
// change anything.
type Guard interface {
	// Check returns nil, or why nothing may be changed any more: the lock is lost, for
	// good. It asks nobody.
	Check() error
}

// may returns nil while the run may change something, and a *plan.Trouble with the
// code "lock-lost" afterwards.
func (e *Engine) may() error {
	if e.Guard == nil {
		return nil
	}
	if err := e.Guard.Check(); err != nil {
		return codeLockLost.Trouble("nothing more is changed: " + err.Error())
	}
	return nil
}

// stopped reports whether no action may be started any more.
func (e *Engine) stopped(ctx context.Context) bool {
	return e.Stop.Err() != nil || ctx.Err() != nil || e.may() != nil
}
