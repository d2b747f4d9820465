package github

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	gh "github.com/google/go-github/v92/github"

	"github.com/macfleet/macfleet/fleet/inventory"
)

// ReadOnly reports whether the App may only read runners. It is known after the first request.
func (c *Client) ReadOnly() bool { return c.app != nil && !c.minted.write.Load() }

// installation looks up the App's installation for the scope.
func (c *Client) installation(ctx context.Context) (*gh.Installation, error) {
	var found gh.Installation
	if _, err := c.asApp(ctx, lookUp, http.MethodGet, c.scope.path("installation"), nil, &found); err != nil {
		return nil, fmt.Errorf("look up the installation of the App %s: %w", c.app.issuer, err)
	}
	return &found, nil
}

// Access returns what the credentials may do, and changes nothing. An App whose key is rejected, that is not installed or
// is suspended, and a token that cannot list runners, are errors.
func (c *Client) Access(ctx context.Context) (inventory.AgentAccess, error) {
	key, name := c.scope.permission()
	out := inventory.AgentAccess{Permission: name}
	if c.app == nil {
		resp, err := c.ask(ctx, runnersOf, http.MethodGet, c.scope.path("actions/runners?per_page=1"), nil, nil)
		if err != nil {
			return out, fmt.Errorf("list a runner of the %s: %w", c.scope.thing(), err)
		}
		// A classic token lists runners only with a scope that may change them, too. Of others GitHub does not say.
		if resp.Header.Get("X-Oauth-Scopes") != "" {
			out.Level = "write"
		}
		return out, nil
	}
	out.App = c.app.issuer
	var found gh.Installation
	of, path := lookUp, c.scope.path("installation")
	if c.app.installation != 0 {
		of, path = minting, fmt.Sprintf("app/installations/%d", c.app.installation)
	}
	var err error
	if out.Key, err = c.asApp(ctx, of, http.MethodGet, path, nil, &found); err != nil {
		return out, fmt.Errorf("read the installation of the App %s: %w", c.app.issuer, err)
	}
	out.Installation = strconv.FormatInt(found.GetID(), 10)
	if at := found.GetAccount().GetLogin(); at != "" && !strings.EqualFold(at, c.scope.Organization) {
		return out, &inventory.ProviderError{Class: inventory.NotFound, Text: fmt.Sprintf("installation %s of the App %s is on %s, not on %s; fix: correct installation_id, or leave it out so that it is looked up",
			out.Installation, c.app.issuer, at, c.scope.Organization)}
	}
	out.Level = levelOf(found.Permissions, key)
	if found.SuspendedAt != nil {
		return out, &inventory.ProviderError{Class: inventory.Denied, Text: "installation " + out.Installation + " of the App " + c.app.issuer + suspended}
	}
	if out.Level == "" {
		return out, &inventory.ProviderError{Class: inventory.Denied, Text: "the App " + c.app.issuer + " lacks the permission " + name +
			"; fix: grant it on the App's page, and let an owner of the organization accept the change"}
	}
	return out, nil
}

// levelOf returns the level of the permission that runners of a scope need; empty: none.
func levelOf(granted *gh.InstallationPermissions, key string) string {
	if key == orgPermission {
		return granted.GetOrganizationSelfHostedRunners()
	}
	return granted.GetAdministration()
}
