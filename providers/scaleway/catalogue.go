package scaleway

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	applesilicon "github.com/scaleway/scaleway-sdk-go/api/applesilicon/v1alpha1"
	"github.com/scaleway/scaleway-sdk-go/scw"

	"github.com/macfleet/macfleet/fleet/inventory"
)

// catalogue is what a client has read of the catalogue.
type catalogue struct {
	lock sync.Mutex
	read *inventory.Catalogue // nil: not yet
}

// Catalogue returns the server types and operating systems of all configured zones, or an error, never a part. It is
// read once per client. Callers must not change it.
func (c *Client) Catalogue(ctx context.Context) (inventory.Catalogue, error) {
	c.catalogue.lock.Lock()
	defer c.catalogue.lock.Unlock()
	if c.catalogue.read != nil {
		return *c.catalogue.read, nil
	}
	var out inventory.Catalogue
	for _, zone := range c.zones {
		offers, err := c.offers(ctx, zone)
		if err != nil {
			return inventory.Catalogue{}, fmt.Errorf("list the server types of zone %s: %w", zone, err)
		}
		systems, err := c.systems(ctx, zone)
		if err != nil {
			return inventory.Catalogue{}, fmt.Errorf("list the operating systems of zone %s: %w", zone, err)
		}
		out.Offers, out.Systems = append(out.Offers, offers...), append(out.Systems, systems...)
	}
	c.catalogue.read = &out
	return out, nil
}

// offers returns the server types of a zone, by name.
func (c *Client) offers(ctx context.Context, zone scw.Zone) ([]inventory.Offer, error) {
	resp, err := ask(ctx, c, inventoryOf, func(o scw.RequestOption) (*applesilicon.ListServerTypesResponse, error) {
		return c.api.ListServerTypes(&applesilicon.ListServerTypesRequest{Zone: zone}, o)
	})
	if err != nil {
		return nil, err
	}
	var out []inventory.Offer
	for _, t := range resp.ServerTypes {
		if t == nil || t.Name == "" {
			continue
		}
		offer := inventory.Offer{Type: t.Name, Zone: string(zone), Stock: inventory.Stock(t.Stock)}
		if d := t.MinimumLeaseDuration.ToTimeDuration(); d != nil {
			offer.MinLease = *d
		}
		out = append(out, offer)
	}
	slices.SortFunc(out, func(a, b inventory.Offer) int { return cmp.Compare(a.Type, b.Type) })
	return out, nil
}

// systems returns the operating systems of a zone, by name and id.
func (c *Client) systems(ctx context.Context, zone scw.Zone) ([]inventory.System, error) {
	found, err := paged(func(page int32) ([]*applesilicon.OS, int, error) {
		resp, err := ask(ctx, c, inventoryOf, func(o scw.RequestOption) (*applesilicon.ListOSResponse, error) {
			return c.api.ListOS(&applesilicon.ListOSRequest{Zone: zone, Page: &page}, o)
		})
		if err != nil {
			return nil, 0, err
		}
		return resp.Os, int(resp.TotalCount), nil
	}, func(s *applesilicon.OS) string { return s.ID })
	if err != nil {
		return nil, err
	}
	out := make([]inventory.System, 0, len(found))
	for _, s := range found {
		out = append(out, toSystem(s, zone))
	}
	slices.SortFunc(out, func(a, b inventory.System) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID)) })
	return out, nil
}

// toSystem drops what only the SDK needs. The deprecated list of server types counts where the present one is missing.
func toSystem(s *applesilicon.OS, zone scw.Zone) inventory.System {
	out := inventory.System{ID: s.ID, Name: s.Name, Family: s.Family, Version: s.Version, Zone: string(zone), Beta: s.IsBeta}
	for _, t := range s.SupportedServerTypes {
		if t == nil || t.ServerType == "" {
			continue
		}
		out.Types = append(out.Types, t.ServerType)
		if t.FastDeliveryAvailable {
			out.Fast = append(out.Fast, t.ServerType)
		}
	}
	//lint:ignore SA1019 an older answer has only this list
	if len(s.SupportedServerTypes) == 0 && s.CompatibleServerTypes != nil {
		//lint:ignore SA1019 likewise
		out.Types = slices.Clone(*s.CompatibleServerTypes)
	}
	slices.Sort(out.Types)
	slices.Sort(out.Fast)
	return out
}

// paged reads a whole list, page by page. What the pages brought must be as many as the provider counts.
func paged[T any](read func(page int32) (part []*T, total int, err error), id func(*T) string) ([]*T, error) {
	var out []*T
	var total int
	for range reads {
		out = nil
		seen := make(map[string]bool)
		for page, brought := int32(1), 0; ; page++ {
			part, count, err := read(page)
			if err != nil {
				return nil, err
			}
			for _, item := range part {
				if item != nil && id(item) != "" && !seen[id(item)] {
					seen[id(item)] = true
					out = append(out, item)
				}
			}
			brought, total = brought+len(part), count
			if len(part) == 0 || brought >= total {
				break
			}
		}
		if len(out) == total {
			return out, nil
		}
	}
	return nil, fmt.Errorf("incomplete list: Scaleway counts %d entries but listed %d (%d attempts); fix: run the command again", total, len(out), reads)
}
