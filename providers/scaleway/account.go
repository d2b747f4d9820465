package scaleway

import (
	"context"
	"fmt"
	"slices"
	"strings"

	iam "github.com/scaleway/scaleway-sdk-go/api/iam/v1alpha1"
	"github.com/scaleway/scaleway-sdk-go/scw"

	"github.com/macfleet/macfleet/fleet/inventory"
)

// AccessKey returns the public half of the API key, for messages.
func (c *Client) AccessKey() string { return c.accessKey }

// Zones returns the zones in which the client looks for servers.
func (c *Client) Zones() []string {
	var out []string
	for _, z := range c.zones {
		out = append(out, string(z))
	}
	return out
}

// APIKey returns what the provider says about the API key. The permission sets of a fleet's key do not include that, so
// the error is often inventory.ErrDenied.
func (c *Client) APIKey(ctx context.Context) (inventory.APIKey, error) {
	k, err := ask(ctx, c, account, func(o scw.RequestOption) (*iam.APIKey, error) {
		return c.iam.GetAPIKey(&iam.GetAPIKeyRequest{AccessKey: c.accessKey}, o)
	})
	if err != nil {
		return inventory.APIKey{}, fmt.Errorf("read the API key %s: %w", c.accessKey, err)
	}
	out := inventory.APIKey{AccessKey: k.AccessKey, Description: k.Description, DefaultProject: k.DefaultProjectID}
	switch {
	case k.ApplicationID != nil:
		out.Bearer = "application " + *k.ApplicationID
	case k.UserID != nil:
		out.Bearer = "user " + *k.UserID
	}
	if k.CreatedAt != nil {
		out.Created = *k.CreatedAt
	}
	if k.ExpiresAt != nil {
		out.Expires = *k.ExpiresAt
	}
	return out, nil
}

// Quotas returns the account's limits of Apple silicon servers, as far as the provider names them.
func (c *Client) Quotas(ctx context.Context) ([]inventory.Quota, error) {
	resp, err := ask(ctx, c, account, func(o scw.RequestOption) (*iam.ListQuotaResponse, error) {
		return c.iam.ListQuota(&iam.ListQuotaRequest{OrganizationID: c.owner(ctx)}, o, scw.WithAllPages())
	})
	if err != nil {
		return nil, fmt.Errorf("list the quotas: %w", err)
	}
	var out []inventory.Quota
	for _, q := range resp.Quota {
		if !strings.Contains(q.Name, "apple") {
			continue
		}
		if len(q.Limits) == 0 {
			//lint:ignore SA1019 an older answer has no limits per zone
			out = append(out, inventory.Quota{Name: q.Name, Limit: limitOf(q.Limit)})
		}
		for _, l := range q.Limits {
			quota := inventory.Quota{Name: q.Name, Limit: limitOf(l.Limit)}
			switch {
			case l.Zone != nil:
				quota.Where = string(*l.Zone)
			case l.Region != nil:
				quota.Where = string(*l.Region)
			}
			out = append(out, quota)
		}
	}
	slices.SortFunc(out, func(a, b inventory.Quota) int { return strings.Compare(a.Name+a.Where, b.Name+b.Where) })
	return out, nil
}

// owner returns the organization of the account: the configured one, or that of any server. It is empty if neither is
// known.
func (c *Client) owner(ctx context.Context) string {
	if c.organization != "" {
		return c.organization
	}
	for _, zone := range c.zones {
		found, _, err := c.pages(ctx, zone, &c.project)
		for _, s := range found {
			return s.OrganizationID
		}
		if err != nil {
			break
		}
	}
	return ""
}

// limitOf returns a limit; -1: there is none.
func limitOf(limit *uint64) int64 {
	if limit == nil {
		return -1
	}
	return int64(*limit)
}
