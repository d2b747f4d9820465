package engine

import (
	"context"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
)

// Catalogues is what Servers may also be: a provider that says what it rents and installs.
type Catalogues interface {
	// Catalogue returns the server types and operating systems of all configured zones.
	Catalogue(context.Context) (inventory.Catalogue, error)
}

// consult reads the provider's catalogue once if the plan needs it. If it cannot be read, the plan says why and is
// made without it.
func (e *Engine) consult(ctx context.Context, snap *plan.Snapshot, sel plan.Selection) (read bool, err error) {
	provider, has := e.Servers.(Catalogues)
	if !has || snap.Catalogue != nil || snap.CatalogueUnread != "" || !plan.NeedsCatalogue(e.Config, *snap, sel) {
		return false, nil
	}
	catalogue, err := provider.Catalogue(ctx)
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
