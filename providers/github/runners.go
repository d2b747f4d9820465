package github

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	gh "github.com/google/go-github/v92/github"

	"github.com/macfleet/macfleet/fleet/inventory"
)

// perPage is the largest page that GitHub gives.
const perPage = 100

// listings is how often a list is read that changed while it was read.
const listings = 3

// Runners returns the runners of the scope, ordered by id. A list that lacks some, because runners came or went between two pages, is read
// again. In a busy organization each of three readings may lack some; then churned is true, and out has what any of them had.
func (c *Client) Runners(ctx context.Context) (out []inventory.Agent, churned bool, err error) {
	return all(ctx, c, runnersOf, "runners", "runners", toAgent)
}

// Runner returns one runner; absent: there is none with the id.
func (c *Client) Runner(ctx context.Context, id string) (inventory.Seen[inventory.Agent], error) {
	var found gh.Runner
	_, err := c.ask(ctx, oneRunner, http.MethodGet, c.scope.path("actions/runners/%s", url.PathEscape(id)), nil, &found)
	switch {
	case inventory.ClassOf(err) == inventory.NotFound:
		return inventory.Absent[inventory.Agent](), nil
	case err != nil:
		return inventory.Seen[inventory.Agent]{}, fmt.Errorf("read runner %s: %w", id, err)
	case found.GetID() == 0:
		return inventory.Seen[inventory.Agent]{}, strange("a runner without an id")
	}
	return inventory.Present(toAgent(&found)), nil
}

// listed is a page of a list, whose key is that of what it lists.
type listed[T any] struct {
	Total        *int `json:"total_count"`
	Runners      []T  `json:"runners"`
	RunnerGroups []T  `json:"runner_groups"`
	Repositories []T  `json:"repositories"`
}

// identified is what a list has.
type identified interface{ GetID() int64 }

// whole is all for a list that hardly ever changes.
func whole[T identified, A any](ctx context.Context, c *Client, of subject, what, path string, convert func(T) A) ([]A, error) {
	out, churned, err := all(ctx, c, of, what, path, convert)
	if err == nil && churned {
		err = strange(fmt.Sprintf("a list of %s that lacks some, %d times", what, listings))
	}
	return out, err
}

// all reads every page of a list, ordered by id. churned says that entries came and went during each reading.
func all[T identified, A any](ctx context.Context, c *Client, of subject, what, path string, convert func(T) A) (out []A, churned bool, err error) {
	seen := make(map[int64]A) // in any reading
	for range listings {
		found := make(map[int64]A)
		total := 0
		for page := 1; page != 0; {
			var one listed[T]
			resp, err := c.ask(ctx, of, http.MethodGet, c.scope.path("actions/%s?per_page=%d&page=%d", path, perPage, page), nil, &one)
			if err != nil {
				return nil, false, fmt.Errorf("list the %s of the %s: %w", what, c.scope.thing(), err)
			}
			if one.Total == nil {
				return nil, false, strange("a list without total_count")
			}
			total = *one.Total
			for _, x := range slices.Concat(one.Runners, one.RunnerGroups, one.Repositories) {
				id := x.GetID()
				if id == 0 {
					return nil, false, strange("an entry without an id")
				}
				found[id] = convert(x)
			}
			page = resp.NextPage
		}
		if len(found) >= total {
			return byID(found), false, nil
		}
		maps.Copy(seen, found)
	}
	return byID(seen), true, nil
}

func byID[A any](all map[int64]A) []A {
	out := make([]A, 0, len(all))
	for _, id := range slices.Sorted(maps.Keys(all)) {
		out = append(out, all[id])
	}
	return out
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
		byGitHub := l.GetType() == "" && slices.Contains([]string{"self-hosted", "macos", "arm64", "x64"}, name) // an older server says no type
		if l.GetType() == "read-only" || byGitHub {
			out.Fixed = append(out.Fixed, name)
		} else {
			out.Labels = append(out.Labels, name)
		}
	}
	out.Labels, out.Fixed = sorted(out.Labels), sorted(out.Fixed)
	return out
}

// Remove deletes a runner's entry. A missing one is not an error. GitHub refuses only if it knows of a job, which
// it sometimes does not: that no job runs must be known from the host.
func (c *Client) Remove(ctx context.Context, id string) error {
	_, err := c.ask(ctx, oneRunner, http.MethodDelete, c.scope.path("actions/runners/%s", url.PathEscape(id)), nil, nil)
	if err == nil || inventory.ClassOf(err) == inventory.NotFound {
		return nil
	}
	return fmt.Errorf("delete runner %s: %w", id, err)
}

// Label replaces the labels of a runner that can be changed, and compares what GitHub answers.
func (c *Client) Label(ctx context.Context, id string, labels []string) error {
	body := struct {
		Labels []string `json:"labels"`
	}{append([]string{}, labels...)}
	var answer struct {
		Labels []*gh.RunnerLabels `json:"labels"`
	}
	if _, err := c.ask(ctx, oneRunner, http.MethodPut, c.scope.path("actions/runners/%s/labels", url.PathEscape(id)), body, &answer); err != nil {
		return fmt.Errorf("set the labels of runner %s: %w", id, err)
	}
	now := toAgent(&gh.Runner{Labels: answer.Labels})
	lacks := slices.ContainsFunc(labels, func(l string) bool { return !slices.Contains(slices.Concat(now.Labels, now.Fixed), strings.ToLower(l)) })
	keeps := slices.ContainsFunc(now.Labels, func(l string) bool { return !containsFold(labels, l) })
	if lacks || keeps {
		return fmt.Errorf("set the labels of runner %s to %q: %w", id, labels, strange(fmt.Sprintf("they are %q afterwards", now.Labels)))
	}
	return nil
}

func containsFold(all []string, name string) bool {
	return slices.ContainsFunc(all, func(one string) bool { return strings.EqualFold(one, name) })
}
