package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
)

// renameRight holds whether macfleet may rename servers: nil, or why not. A worker takes the
// value out while it tries a server, so none is tried after the first refusal.
type renameRight chan *plan.Trouble

func newRenameRight() renameRight {
	r := make(renameRight, 1)
	r <- nil
	return r
}

// checkRename checks that a server may be renamed. Without the right, the error is a plan.CodeMayNotRename.
func (e *Engine) checkRename(ctx context.Context, s inventory.Server) error {
	err := e.Servers.CheckRename(ctx, s.Zone, s.ID)
	if !errors.Is(err, inventory.ErrDenied) {
		return err
	}
	// Scaleway also denies access to a deleted server.
	if gone, gerr := e.Servers.Gone(ctx, s.Zone, s.ID); gerr == nil && gone {
		return fmt.Errorf("server %s is no longer in the inventory; plan again", s.Name)
	}
	return plan.CodeMayNotRename.Trouble(err.Error())
}

// readRenameRight adds to the snapshot whether the API key may rename servers, if the plan renames any. It is known
// before a person approves the plan, and is never requested after the run.
func (e *Engine) readRenameRight(ctx context.Context, snap *plan.Snapshot, p *plan.Plan) (denied bool, err error) {
	s, renames := p.Renamed()
	if snap.RenameRight != nil || !renames {
		return false, nil
	}
	err = e.checkRename(ctx, s)
	var t *plan.Trouble
	switch {
	case ctx.Err() != nil:
		return false, context.Cause(ctx)
	case inventory.ClassOf(err) == inventory.Unauthenticated:
		return false, &AwayError{Scaleway, e.scrubError(err)}
	case errors.As(err, &t):
		snap.RenameRight = &plan.RenameRight{Denied: e.scrubError(errors.New(t.Text)).Error()}
	case err != nil:
		snap.RenameRight = &plan.RenameRight{Unread: e.scrubError(err).Error()}
	default:
		snap.RenameRight = &plan.RenameRight{}
	}
	e.right = snap.RenameRight
	return snap.RenameRight.Denied != "", nil
}
