package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
)

var (
	codeOrderRefused = plan.NewCode("order-refused", plan.NotDrift, "the provider refused an order, so no server was rented",
		"order a server by hand, or change the type or the zone")
	codeOrderUnknown = plan.NewCode("order-unknown", plan.Warning, "the answer to an order was lost, and no server has its name yet",
		"macfleet apply, which looks for the server by its name before it orders again")
	codeOrderedTwice = plan.NewCode("ordered-twice", plan.Critical, "two servers have the name of one order",
		"delete one of them in the provider's console")
)

// Orders is what Servers may also be: a provider that rents servers.
type Orders interface {
	// Order rents a server of a type with an operating system, by its id. It is sent once: after an error that
	// may hide a success, the list of servers decides.
	Order(ctx context.Context, zone, serverType, systemID, name string) (inventory.Server, error)
}

// order rents a server, unless one with its name exists: then a run that died, or whose answer was lost, has ordered it.
func (e *Engine) order(ctx context.Context, b plan.Purchase) error {
	provider, rents := e.Servers.(Orders)
	switch {
	case !rents:
		return errors.New("the provider rents no servers")
	case e.Guard == nil:
		return errors.New("nothing is ordered without a lock, because another run could order the same; run macfleet init cluster first")
	}
	if err := e.checkKey(ctx); err != nil {
		return err
	}
	if ids, err := e.named(ctx, b.Name); err != nil || len(ids) > 0 {
		return err
	}
	if err := e.checkLock(); err != nil { // reading the list may have taken long
		return err
	}
	_, err := provider.Order(ctx, b.Zone, b.Type, b.SystemID, b.Name)
	if err != nil && !inventory.Unsure(err) {
		return codeOrderRefused.Trouble(err.Error(), fmt.Sprintf("order it by hand when that is possible: %s (%s)", b.Order, b.Facts()))
	}
	ids, lerr := e.named(ctx, b.Name)
	switch {
	case len(ids) > 1:
		return codeOrderedTwice.Trouble(fmt.Sprintf("%d servers are named %s: %s", len(ids), b.Name, strings.Join(ids, " and ")))
	case err == nil || len(ids) == 1:
		return nil
	case lerr != nil:
		return codeOrderUnknown.Trouble(fmt.Sprintf("%s; and the list of servers cannot be read: %s", err, lerr))
	}
	return codeOrderUnknown.Trouble(fmt.Sprintf("%s; no server has that name at present", err))
}

// named returns the ids of the servers of a name.
func (e *Engine) named(ctx context.Context, name string) ([]string, error) {
	all, err := e.Servers.List(ctx)
	if err != nil {
		return nil, fmt.Errorf("look for a server named %s: %w", name, err)
	}
	var ids []string
	for _, s := range all {
		if s.Name == name {
			ids = append(ids, s.ID)
		}
	}
	slices.Sort(ids)
	return ids, nil
}
