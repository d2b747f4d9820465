package github

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	gh "github.com/google/go-github/v92/github"

	"github.com/macfleet/macfleet/fleet/inventory"
)

// Groups returns all runner groups of the organization; absent: GitHub shows none, because a repository and some plans of
// organizations have no groups, or because the credentials may not see them.
func (c *Client) Groups(ctx context.Context) (inventory.Seen[[]inventory.AgentGroup], error) {
	if c.scope.Repository != "" {
		return inventory.Absent[[]inventory.AgentGroup](), nil
	}
	found, err := whole(ctx, c, groups, "runner groups", "runner-groups", func(g *gh.RunnerGroup) inventory.AgentGroup {
		// "private" is all private repositories; whether public ones may use the group is a separate setting.
		return inventory.AgentGroup{ID: strconv.FormatInt(g.GetID(), 10), Name: g.GetName(), Public: g.GetAllowsPublicRepositories(),
			All: g.GetVisibility() != "selected", Default: g.GetDefault()}
	})
	switch class := inventory.ClassOf(err); {
	case class == inventory.NotFound, class == inventory.Denied:
		return inventory.Absent[[]inventory.AgentGroup](), nil
	case err != nil:
		return inventory.Seen[[]inventory.AgentGroup]{}, err
	}
	return inventory.Present(found), nil
}

// Public reports whether the scope's repository can be read by everyone; absent: the scope is an organization.
func (c *Client) Public(ctx context.Context) (inventory.Seen[bool], error) {
	if c.scope.Repository == "" {
		return inventory.Absent[bool](), nil
	}
	var answer struct {
		Private *bool `json:"private"`
	}
	if _, err := c.ask(ctx, runnersOf, http.MethodGet, strings.TrimSuffix(c.scope.path(""), "/"), nil, &answer); err != nil {
		return inventory.Seen[bool]{}, fmt.Errorf("read whether the %s is public: %w", c.scope.thing(), err)
	}
	if answer.Private == nil {
		return inventory.Seen[bool]{}, strange("a repository without private")
	}
	return inventory.Present(!*answer.Private), nil
}

// Repositories returns the repositories that were selected for a group, as OWNER/NAME, sorted.
func (c *Client) Repositories(ctx context.Context, group string) ([]string, error) {
	names, err := whole(ctx, c, groups, "repositories of runner group "+group, "runner-groups/"+url.PathEscape(group)+"/repositories", (*gh.Repository).GetFullName)
	slices.Sort(names)
	return names, err
}

// Move moves a runner into a group, and reads where it is then. Only organizations have groups.
func (c *Client) Move(ctx context.Context, id, group string) error {
	if _, err := c.ask(ctx, moving, http.MethodPut, c.scope.path("actions/runner-groups/%s/runners/%s", url.PathEscape(group), url.PathEscape(id)), nil, nil); err != nil {
		return fmt.Errorf("move runner %s to group %s: %w", id, group, err)
	}
	seen, err := c.Runner(ctx, id)
	if err != nil {
		return fmt.Errorf("verify that runner %s is in group %s: %w", id, group, err)
	}
	now, ok := seen.Get()
	if !ok {
		return fmt.Errorf("move runner %s to group %s: GitHub has no such runner any more in the %s; fix: run macfleet plan again", id, group, c.scope.thing())
	}
	if now.Group != group && now.Group != "" { // an old Enterprise Server does not say
		return fmt.Errorf("move runner %s to group %s: %w", id, group, strange("it is in group "+now.Group+" afterwards"))
	}
	return nil
}
