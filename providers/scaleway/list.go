package scaleway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	applesilicon "github.com/scaleway/scaleway-sdk-go/api/applesilicon/v1alpha1"
	"github.com/scaleway/scaleway-sdk-go/scw"

	"github.com/macfleet/macfleet/fleet/inventory"
)

// reads is how often a zone is read before it counts as not whole: servers come and go while its pages are read.
const reads = 3

// List returns all servers of the project in all configured zones, ordered by
// name and id. The zones are read one after the other: the SDK's own fan-out
// flattens errors to text. A server that moved between pages while they were
// read is listed once.
func (c *Client) List(ctx context.Context) ([]inventory.Server, error) {
	all := make(map[string]inventory.Server)
	for _, zone := range c.zones {
		servers, err := c.whole(ctx, zone)
		if misplaced(err) {
			return nil, fmt.Errorf("list the servers of zone %s: %w; %s", zone, err, c.Elsewhere(ctx))
		}
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
	var found map[string]*applesilicon.Server
	var total int
	for range reads {
		var err error
		if found, total, err = c.pages(ctx, zone, &c.project); err != nil {
			return nil, err
		}
		if len(found) == total {
			out := make(map[string]inventory.Server, len(found))
			for id, s := range found {
				if s.ProjectID != "" && s.ProjectID != c.project {
					//lint:ignore ST1005 it begins with a name
					return nil, fmt.Errorf("Scaleway listed server %s of project %s, but project %s was requested; fix: check project_id in the configuration", id, s.ProjectID, c.project)
				}
				out[id] = toServer(s)
			}
			c.listed.note(zone, out)
			return out, nil
		}
	}
	return nil, fmt.Errorf("incomplete server list: Scaleway counts %d servers in project %s but listed %d (%d attempts); "+
		"fix: run the command again", total, c.project, len(found), reads)
}

// pages reads a zone once: its servers by id, of one project or of all that the key may see, and how many the provider
// counted on the last page.
func (c *Client) pages(ctx context.Context, zone scw.Zone, project *string) (found map[string]*applesilicon.Server, total int, err error) {
	found = make(map[string]*applesilicon.Server)
	for page, brought := int32(1), 0; ; page++ {
		resp, err := ask(ctx, c, inventoryOf, func(o scw.RequestOption) (*applesilicon.ListServersResponse, error) {
			return c.api.ListServers(&applesilicon.ListServersRequest{Zone: zone, ProjectID: project, Page: &page}, o)
		})
		if err != nil {
			return nil, 0, err
		}
		for _, s := range resp.Servers {
			if s != nil && s.ID != "" {
				found[s.ID] = s
			}
		}
		brought, total = brought+len(resp.Servers), int(resp.TotalCount)
		if len(resp.Servers) == 0 || brought >= total {
			return found, total, nil
		}
	}
}

// Elsewhere returns how many servers the key sees where List does not look: in other zones, and of other projects. A
// key of one project may not look beyond it.
func (c *Client) Elsewhere(ctx context.Context) inventory.Account {
	account := inventory.Account{Project: c.project}
	type place struct{ zone, project string }
	held := make(map[place][]string)
	var unread []string
	for _, zone := range c.known {
		ours := slices.Contains(c.zones, zone)
		found, _, err := c.pages(ctx, zone, nil)
		if errors.Is(err, inventory.ErrDenied) && !ours {
			found, _, err = c.pages(ctx, zone, &c.project)
		}
		switch {
		case err != nil && ours && misplaced(err): // List has said what there is to say
		case errors.Is(err, inventory.ErrDenied):
			unread = append(unread, "zone "+string(zone)+": denied")
		case err != nil:
			unread = append(unread, "zone "+string(zone)+": "+firstLine(err))
		}
		for _, s := range found {
			if !ours || s.ProjectID != c.project {
				at := place{string(zone), s.ProjectID}
				held[at] = append(held[at], s.ID)
			}
		}
	}
	for at, ids := range held {
		slices.Sort(ids)
		account.Holds = append(account.Holds, inventory.Holding{Zone: at.zone, Project: at.project, Servers: len(ids), IDs: ids})
	}
	slices.SortFunc(account.Holds, func(a, b inventory.Holding) int {
		return cmp.Or(cmp.Compare(a.Zone, b.Zone), cmp.Compare(a.Project, b.Project))
	})
	account.Unread = strings.Join(unread, "; ")
	return account
}

// misplaced reports whether an error may come of a wrong zone or project, and of no fault on the way.
func misplaced(err error) bool {
	var e *inventory.ProviderError
	if !errors.As(err, &e) {
		return false
	}
	switch e.Class {
	case inventory.Denied, inventory.InvalidRequest, inventory.NotFound:
		return true
	}
	return e.Status == http.StatusBadRequest || e.Status == http.StatusForbidden || e.Status == http.StatusNotFound
}

// firstLine is the part of an error that fits into a line with others.
func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}
