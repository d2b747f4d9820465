package engine

import (
	"context"

	"github.com/macfleet/macfleet/plan"
)

// consult reads the provider's catalogue once if the plan needs it. If it cannot be read, the plan says why and is
// made without it.
func (e *Engine) consult(ctx context.Context, snap *plan.Snapshot, sel plan.Selection) (read bool, err error) {
	if snap.Catalogue != nil || snap.CatalogueUnread != "" || !plan.NeedsCatalogue(e.Config, *snap, sel) {
		return false, nil
	}
	catalogue, err := e.Servers.Catalogue(ctx)
	switch {
	case ctx.Err() != nil:
		return false, context.Cause(ctx)
	case err != nil:
		snap.CatalogueUnread = e.scrubError(err).Error()
	default:
		snap.Catalogue = &catalogue
	}
	return true, nil
}
