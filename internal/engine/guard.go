package engine

import (
	"context"

	"github.com/macfleet/macfleet/plan"
)

var codeLockLost = plan.NewCode("lock-lost", plan.NotDrift, "the apply lost its lock and stopped",
	"macfleet lock status shows the holder; apply again when that run has ended")

// Guard checks before each action and each change that the run still holds its lock.
type Guard interface {
	// Check returns nil, or why the lock is lost for good. It does no I/O.
	Check() error
}

// checkLock returns nil while the run holds its lock, and a *plan.Trouble with the code "lock-lost"
// afterwards.
func (e *Engine) checkLock() error {
	if e.Guard == nil {
		return nil
	}
	if err := e.Guard.Check(); err != nil {
		return codeLockLost.Trouble("the run stopped: " + err.Error())
	}
	return nil
}

// stopped reports whether no further action may start.
func (e *Engine) stopped(ctx context.Context) bool {
	return e.Stop.Err() != nil || ctx.Err() != nil || e.checkLock() != nil
}
