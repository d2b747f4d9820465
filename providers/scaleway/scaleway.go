// Package scaleway sees and renames Apple-silicon servers. It is the only
// package that knows Scaleway's SDK.
package scaleway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"

	applesilicon "github.com/scaleway/scaleway-sdk-go/api/applesilicon/v1alpha1"
	"github.com/scaleway/scaleway-sdk-go/scw"

	"github.com/macfleet/macfleet/fleet/inventory"
)

// Options say how the API is reached.
type Options struct {
	ProjectID string // empty = the default project of the credentials
	Zones     []string
	HTTP      *http.Client
	// URL, AccessKey and SecretKey stand in for the user's own configuration,
	// all three or none.
	URL, AccessKey, SecretKey string
}

// Client sees the servers of one project.
type Client struct {
	scw     *scw.Client
	api     *applesilicon.API
	project string
	zones   []scw.Zone
}

// pageSize is the largest that the API gives.
const pageSize = 100

// RequestsPerSecond is a little below what the API allows: its answers say 50 in
// a window of one second.
const RequestsPerSecond = 45

// ErrNoCredentials says that this machine has no credentials for Scaleway.
var ErrNoCredentials = errors.New("scaleway credentials: there are none; run scw init, or set SCW_ACCESS_KEY and SCW_SECRET_KEY")

// New returns a client with the credentials that scw's users know: SCW_*
// variables over the active profile of scw's configuration file.
func New(o Options) (*Client, error) {
	opts, err := credentials(o)
	if err != nil {
		return nil, err
	}
	client, err := scw.NewClient(append(opts, scw.WithHTTPClient(o.HTTP), scw.WithDefaultPageSize(pageSize))...)
	if err != nil {
		return nil, fmt.Errorf("scaleway credentials: %w; run scw init, or set SCW_ACCESS_KEY and SCW_SECRET_KEY", err)
	}
	if _, ok := client.GetSecretKey(); !ok {
		return nil, ErrNoCredentials
	}
	c := &Client{scw: client, api: applesilicon.NewAPI(client), project: o.ProjectID}
	if c.project == "" {
		c.project, _ = client.GetDefaultProjectID()
	}
	if c.project == "" {
		return nil, errors.New("scaleway project: none is named; set project_id of the environment, or SCW_DEFAULT_PROJECT_ID")
	}
	for _, z := range o.Zones {
		c.zones = append(c.zones, scw.Zone(z))
	}
	return c, nil
}

func credentials(o Options) ([]scw.ClientOption, error) {
	if o.URL != "" {
		return []scw.ClientOption{scw.WithAPIURL(o.URL), scw.WithAuth(o.AccessKey, o.SecretKey)}, nil
	}
	config, err := scw.LoadConfig()
	var missing *scw.ConfigFileNotFoundError
	if errors.As(err, &missing) {
		return []scw.ClientOption{scw.WithEnv()}, nil
	}
	var profile *scw.Profile
	if err == nil {
		profile, err = config.GetActiveProfile()
	}
	if err != nil {
		return nil, fmt.Errorf("read scw's configuration %s: %w", scw.GetConfigPath(), err)
	}
	return []scw.ClientOption{scw.WithProfile(profile), scw.WithEnv()}, nil
}

// List returns all servers of the project in all configured zones, ordered by
// name and id. The zones are asked one after the other: the SDK's own fan-out
// flattens errors to text. A server that moved between pages while they were
// read is listed once.
func (c *Client) List(ctx context.Context) ([]inventory.Server, error) {
	if err := c.fillCache(ctx); err != nil {
		return nil, err
	}
	byID := make(map[string]inventory.Server)
	for _, zone := range c.zones {
		resp, err := c.api.ListServers(&applesilicon.ListServersRequest{Zone: zone, ProjectID: &c.project},
			scw.WithContext(ctx), scw.WithAllPages())
		if err != nil {
			return nil, fmt.Errorf("list the servers of zone %s: %w", zone, explain(err))
		}
		for _, s := range resp.Servers {
			byID[s.ID] = toServer(s)
		}
	}
	out := slices.AppendSeq(make([]inventory.Server, 0, len(byID)), maps.Values(byID))
	slices.SortFunc(out, func(a, b inventory.Server) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
	return out, nil
}

// fillCache lets the SDK fill a cache, which it does on its first call without a lock; alone and early it can't race.
// That call takes no context and repeats itself while the API is away, so it is left when ctx ends.
func (c *Client) fillCache(ctx context.Context) error {
	filled := make(chan struct{})
	go func() {
		defer close(filled)
		_, _ = c.scw.GetAPIMetadata() // the list says what is wrong
	}()
	select {
	case <-filled:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Get returns one server.
func (c *Client) Get(ctx context.Context, zone, id string) (inventory.Server, error) {
	s, err := c.api.GetServer(&applesilicon.GetServerRequest{Zone: scw.Zone(zone), ServerID: id}, scw.WithContext(ctx))
	if err != nil {
		return inventory.Server{}, fmt.Errorf("read server %s: %w", id, explain(err))
	}
	return toServer(s), nil
}

// Rename changes a server's name and reads it back. The API takes the last of
// two writers and cannot compare, so the name is looked at right before and right
// after: one that is neither from nor to means that somebody else wants the
// server too, a *RacedError. A server that is called to already stays as it is.
func (c *Client) Rename(ctx context.Context, zone, id, from, to string) error {
	before, err := c.Get(ctx, zone, id)
	if err != nil {
		return fmt.Errorf("look at the name of server %s: %w", id, err)
	}
	if before.Name == to {
		return nil
	}
	if before.Name != from {
		return &RacedError{ServerID: id, Wanted: to, Found: before.Name}
	}
	_, err = c.api.UpdateServer(&applesilicon.UpdateServerRequest{Zone: scw.Zone(zone), ServerID: id, Name: &to}, scw.WithContext(ctx))
	if err != nil {
		return fmt.Errorf("rename server %s to %s: %w", id, to, explain(err))
	}
	now, err := c.Get(ctx, zone, id)
	if err != nil {
		return fmt.Errorf("read back the name of server %s: %w", id, err)
	}
	if now.Name != to {
		return &RacedError{ServerID: id, Wanted: to, Found: now.Name}
	}
	return nil
}

// CheckRename proves that a server may be renamed: an update without a field is answered as
// any other, and changes no more than the time of the last update. The error wraps
// inventory.ErrDenied where the credentials lack the right, or the server is gone.
func (c *Client) CheckRename(ctx context.Context, zone, id string) error {
	_, err := c.api.UpdateServer(&applesilicon.UpdateServerRequest{Zone: scw.Zone(zone), ServerID: id}, scw.WithContext(ctx))
	var denied *scw.PermissionsDeniedError
	switch {
	case errors.As(err, &denied):
		return fmt.Errorf("change server %s: %w: %w", id, inventory.ErrDenied, explain(err))
	case err != nil:
		return fmt.Errorf("change server %s: %w", id, explain(err))
	}
	return nil
}

// RacedError says that a server bears neither the name it had nor the one it was
// to get.
type RacedError struct{ ServerID, Wanted, Found string }

// Error names both names.
func (e *RacedError) Error() string {
	return fmt.Sprintf("server %s was to be called %s and is called %s now: somebody else renamed it; plan again", e.ServerID, e.Wanted, e.Found)
}

// toServer drops what only the SDK needs. Passwords stay behind: list and write
// answers hold a placeholder in their place.
func toServer(s *applesilicon.Server) inventory.Server {
	out := inventory.Server{ID: s.ID, Name: s.Name, Type: s.Type, Zone: string(s.Zone),
		Status: string(s.Status), Delivered: s.Delivered, DeletionScheduled: s.DeletionScheduled}
	if s.IP != nil {
		out.Address = s.IP.String()
	}
	if s.Os != nil {
		out.OSFamily = s.Os.Family
	}
	if s.CreatedAt != nil {
		out.Created = *s.CreatedAt
	}
	if s.DeletableAt != nil {
		out.DeletableAt = *s.DeletableAt
	}
	return out
}

// explain adds what a person can do to the errors whose cause is known.
func explain(err error) error {
	var denied *scw.PermissionsDeniedError
	var auth *scw.DeniedAuthenticationError
	switch {
	case errors.As(err, &denied):
		return fmt.Errorf("%w; the key needs AppleSiliconFullAccess in this project", err)
	case errors.As(err, &auth):
		return fmt.Errorf("%w; the key is unknown or expired: run scw init, or set SCW_ACCESS_KEY and SCW_SECRET_KEY", err)
	}
	return err
}
