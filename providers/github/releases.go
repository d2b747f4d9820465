package github

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"time"

	gh "github.com/google/go-github/v92/github"

	"github.com/macfleet/macfleet/fleet/inventory"
)

// archive is the name of a runner's archive for macOS on Apple silicon.
var archive = regexp.MustCompile(`^actions-runner-osx-arm64-([0-9]+\.[0-9]+\.[0-9]+)\.tar\.gz$`)

// Newest returns the newest runner for macOS on Apple silicon, or absent where GitHub offers none, as an old Enterprise
// Server may.
func (c *Client) Newest(ctx context.Context) (inventory.Seen[inventory.AgentRelease], error) {
	var offered []*gh.RunnerApplicationDownload
	if _, err := c.ask(ctx, runnersOf, http.MethodGet, c.scope.path("actions/runners/downloads"), nil, &offered); err != nil {
		return inventory.Seen[inventory.AgentRelease]{}, fmt.Errorf("list the runner programs that GitHub offers: %w", err)
	}
	for _, d := range offered {
		if m := archive.FindStringSubmatch(d.GetFilename()); m != nil && d.GetOS() == "osx" && d.GetArchitecture() == "arm64" {
			return inventory.Present(inventory.AgentRelease{Version: m[1], URL: d.GetDownloadURL(), SHA256: d.GetSHA256Checksum()}), nil
		}
	}
	return inventory.Absent[inventory.AgentRelease](), nil
}

// Sunset returns when GitHub stops accepting a version of the runner. It is absent where GitHub has no such rule, as on
// Enterprise Server, or does not know the version.
func (c *Client) Sunset(ctx context.Context, version string) (inventory.Seen[inventory.Sunset], error) {
	if c.scope.server() {
		return inventory.Absent[inventory.Sunset](), nil
	}
	var answer struct {
		Running     *time.Time `json:"runtime_deprecates_at"`
		Registering *time.Time `json:"registration_deprecates_at"`
	}
	_, err := c.ask(ctx, runnersOf, http.MethodGet, c.scope.path("actions/runners/deprecations/%s", url.PathEscape(version)), nil, &answer)
	if inventory.ClassOf(err) == inventory.NotFound {
		return inventory.Absent[inventory.Sunset](), nil
	}
	if err != nil {
		return inventory.Seen[inventory.Sunset]{}, fmt.Errorf("read until when GitHub accepts runner %s: %w", version, err)
	}
	return inventory.Present(inventory.Sunset{Running: *cmp.Or(answer.Running, &time.Time{}), Registering: *cmp.Or(answer.Registering, &time.Time{})}), nil
}
