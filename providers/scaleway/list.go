package scaleway

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	applesilicon "github.com/scaleway/scaleway-sdk-go/api/applesilicon/v1alpha1"
	"github.com/scaleway/scaleway-sdk-go/scw"

	"github.com/macfleet/macfleet/fleet/inventory"
)

// reads is how often a zone is read before it counts as not whole: servers come and go while its pages are read.
const reads = 3

// List returns all servers of the project in all configured zones, ordered by
// name and id. The zones are asked one after the other: the SDK's own fan-out
// flattens errors to text. A server that moved between pages while they were
// read is listed once.
func (c *Client) List(ctx context.Context) ([]inventory.Server, error) {
	all := make(map[string]inventory.Server)
	for _, zone := range c.zones {
		servers, err := c.whole(ctx, zone)
		if err != nil {
			return nil, fmt.Errorf("list the servers of zone %s: %w", zone, err)
		}
		maps.Copy(all, servers)
	}
	out := slices.AppendSeq(make([]inventory.Server, 0, len(all)), maps.Values(all))
	slices.SortFunc(out, func(a, b inventory.Server) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
	return out, nil
}

// whole returns the servers of a zone by id. What the pages brought must be as many as the provider counts: those that
// are missing would look deleted.
func (c *Client) whole(ctx context.Context, zone scw.Zone) (map[string]inventory.Server, error) {
	var found map[string]inventory.Server
	var total int
	for range reads {
		var err error
		if found, total, err = c.pages(ctx, zone); err != nil {
			return nil, err
		}
		if len(found) == total {
			return found, nil
		}
	}
	return nil, fmt.Errorf("the list is not whole: Scaleway counts %d servers in project %s, and its pages brought %d, %d times; "+
		"nothing was concluded from it: run the command again", total, c.project, len(found), reads)
}

// pages reads a zone once: its servers by id, and how many the provider counted on the last page.
func (c *Client) pages(ctx context.Context, zone scw.Zone) (found map[string]inventory.Server, total int, err error) {
	found = make(map[string]inventory.Server)
	for page, brought := int32(1), 0; ; page++ {
		resp, err := ask(ctx, c, inventoryOf, func(o scw.RequestOption) (*applesilicon.ListServersResponse, error) {
			return c.api.ListServers(&applesilicon.ListServersRequest{Zone: zone, ProjectID: &c.project, Page: &page}, o)
		})
		if err != nil {
			return nil, 0, err
		}
		for _, s := range resp.Servers {
			found[s.ID] = toServer(s)
		}
		brought, total = brought+len(resp.Servers), int(resp.TotalCount)
		if len(resp.Servers) == 0 || brought >= total {
			return found, total, nil
		}
	}
}
