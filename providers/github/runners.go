package github

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	gh "github.com/google/go-github/v92/github"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/secret"
)

// perPage is the largest page that GitHub gives.
const perPage = 100

// listings is how often a list is read that changed while it was read.
const listings = 3

// Runners returns all runners of the scope, ordered by id. A list that lacks some, because runners came or went between
// two pages, is read again; it is never returned in part.
func (c *Client) Runners(ctx context.Context) ([]inventory.Agent, error) {
	return all(ctx, c, runnersOf, "runners", toAgent)
}

// Groups returns all runner groups of the organization.
func (c *Client) Groups(ctx context.Context) ([]inventory.AgentGroup, error) {
	return all(ctx, c, groups, "runner-groups", func(g *gh.RunnerGroup) inventory.AgentGroup {
		return inventory.AgentGroup{ID: strconv.FormatInt(g.GetID(), 10), Name: g.GetName(), Public: g.GetAllowsPublicRepositories(), All: g.GetVisibility() == "all"}
	})
}

// listed is a page of a list, whose key is that of what it lists.
type listed[T any] struct {
	Total        *int `json:"total_count"`
	Runners      []T  `json:"runners"`
	RunnerGroups []T  `json:"runner_groups"`
}

// identified is what a list has.
type identified interface{ GetID() int64 }

// all reads every page of a list.
func all[T identified, A any](ctx context.Context, c *Client, of subject, name string, convert func(T) A) ([]A, error) {
	for try := 1; ; try++ {
		found := make(map[int64]A)
		total := 0
		for page := 1; page != 0; {
			var one listed[T]
			resp, err := c.ask(ctx, of, http.MethodGet, c.scope.path("actions/%s?per_page=%d&page=%d", name, perPage, page), nil, &one)
			if err != nil {
				return nil, fmt.Errorf("list the %s of the %s: %w", strings.ReplaceAll(name, "-", " "), c.scope.thing(), err)
			}
			if one.Total == nil {
				return nil, strange("a list without total_count")
			}
			total = *one.Total
			for _, x := range append(one.Runners, one.RunnerGroups...) {
				id := x.GetID()
				if id == 0 {
					return nil, strange("an entry without an id")
				}
				found[id] = convert(x)
			}
			page = resp.NextPage
		}
		if len(found) >= total {
			out := make([]A, 0, len(found))
			for _, id := range slices.Sorted(maps.Keys(found)) {
				out = append(out, found[id])
			}
			return out, nil
		}
		if try == listings {
			return nil, strange(fmt.Sprintf("a list of %d with %d entries, %d times", total, len(found), listings))
		}
	}
}

func strange(what string) error {
	return &inventory.ProviderError{Class: inventory.UnexpectedAnswer, Text: "unexpected answer from GitHub: " + what + "; fix: run the command again"}
}

func toAgent(r *gh.Runner) inventory.Agent {
	out := inventory.Agent{ID: strconv.FormatInt(r.GetID(), 10), Name: r.GetName(), Online: r.GetStatus() == "online", Busy: r.GetBusy(),
		Version: r.GetVersion(), Ephemeral: r.GetEphemeral()}
	if g := r.GetRunnerGroupID(); g != 0 {
		out.Group = strconv.FormatInt(g, 10)
	}
	for _, l := range r.Labels {
		name := strings.ToLower(l.GetName())
		if l.GetType() == "custom" {
			out.Labels = append(out.Labels, name)
		} else {
			out.Fixed = append(out.Fixed, name)
		}
	}
	out.Labels, out.Fixed = sorted(out.Labels), sorted(out.Fixed)
	return out
}

// Registration is what a runner registers with.
type Registration struct {
	URL     string       // the scope's web address
	Token   secret.Value // for as many runners as register until it expires
	Expires time.Time
}

// Register returns what runners of the scope register with. It serves many runners for an hour, so one per run is enough.
func (c *Client) Register(ctx context.Context) (Registration, error) {
	var answer struct {
		Token   string    `json:"token"`
		Expires time.Time `json:"expires_at"`
	}
	if _, err := c.ask(ctx, runnersOf, http.MethodPost, c.scope.path("actions/runners/registration-token"), nil, &answer); err != nil {
		return Registration{}, fmt.Errorf("get a registration token for the %s: %w", c.scope.thing(), err)
	}
	token, err := secret.New(answer.Token)
	if err != nil {
		return Registration{}, strange("a registration token that is empty")
	}
	return Registration{URL: c.scope.Web(), Token: token, Expires: answer.Expires}, nil
}

// Remove deletes a runner's entry. A missing one is not an error. GitHub refuses only if it knows of a job, which
// it sometimes does not: that no job runs must be known from the host.
func (c *Client) Remove(ctx context.Context, id string) error {
	_, err := c.ask(ctx, oneRunner, http.MethodDelete, c.scope.path("actions/runners/%s", id), nil, nil)
	if err == nil || inventory.ClassOf(err) == inventory.NotFound {
		return nil
	}
	return fmt.Errorf("delete runner %s: %w", id, err)
}

// Label replaces the labels of a runner that can be changed.
func (c *Client) Label(ctx context.Context, id string, labels []string) error {
	body := struct {
		Labels []string `json:"labels"`
	}{append([]string{}, labels...)}
	if _, err := c.ask(ctx, oneRunner, http.MethodPut, c.scope.path("actions/runners/%s/labels", id), body, nil); err != nil {
		return fmt.Errorf("set the labels of runner %s: %w", id, err)
	}
	return nil
}

// Move moves a runner into a group. Only organizations have groups.
func (c *Client) Move(ctx context.Context, id, group string) error {
	if _, err := c.ask(ctx, groups, http.MethodPut, c.scope.path("actions/runner-groups/%s/runners/%s", group, id), nil, nil); err != nil {
		return fmt.Errorf("move runner %s to group %s: %w", id, group, err)
	}
	return nil
}
