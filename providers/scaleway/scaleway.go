// Package scaleway sees and changes Apple-silicon servers. It is the only
// package that knows Scaleway's SDK.
package scaleway

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	applesilicon "github.com/scaleway/scaleway-sdk-go/api/applesilicon/v1alpha1"
	iam "github.com/scaleway/scaleway-sdk-go/api/iam/v1alpha1"
	"github.com/scaleway/scaleway-sdk-go/scw"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/providers/transport"
)

// Options say how the API is reached.
type Options struct {
	ProjectID string // empty = the default project of the credentials
	Zones     []string
	Known     []string // zones in which servers may be as well
	HTTP      *http.Client
	Waiting   func(transport.Waiting) // called before a request is sent again, from many goroutines; nil: no call
	// URL, AccessKey and SecretKey stand in for the user's own configuration,
	// all three or none.
	URL, AccessKey, SecretKey string
}

// Client sees the servers of one project.
type Client struct {
	api          *applesilicon.API
	iam          *iam.API
	project      string
	accessKey    string
	organization string // empty: not configured
	zones        []scw.Zone
	known        []scw.Zone    // those, and others in which servers may be
	settleEvery  time.Duration // between two tries of what a passing state forbids
	askEvery     time.Duration // between two readings of a diagnostic
	goneEvery    time.Duration // between two lists that must both lack a server
	pauses       *transport.Pauses
	catalogue    catalogue
	listed       listed
}

// pageSize is the largest that the API gives.
const pageSize = 100

// RequestsPerSecond is a little below what the API allows: its answers say 50 in
// a window of one second.
const RequestsPerSecond = 45

// ErrNoCredentials says that this machine has no credentials for Scaleway.
var ErrNoCredentials = errors.New("no Scaleway credentials; fix: run scw init or set SCW_ACCESS_KEY and SCW_SECRET_KEY")

// New returns a client with the credentials that scw's users know: SCW_*
// variables over the active profile of scw's configuration file.
func New(o Options) (*Client, error) {
	opts, err := credentials(o)
	if err != nil {
		return nil, err
	}
	next := *o.HTTP
	// A redirect would carry the key to another host.
	next.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	limits := transport.NewPauses()
	client, err := scw.NewClient(append(opts, scw.WithHTTPClient(doer{transport.Patient{Next: &next, Waiting: o.Waiting, Pauses: limits, RequestID: "X-Request-Id", Judge: judge}}), scw.WithDefaultPageSize(pageSize))...)
	if err != nil {
		return nil, fmt.Errorf("scaleway credentials: %w; fix: run scw init or set SCW_ACCESS_KEY and SCW_SECRET_KEY", err)
	}
	if _, ok := client.GetSecretKey(); !ok {
		return nil, ErrNoCredentials
	}
	// The SDK keeps this answer without a lock: filled here, no two calls can race for it.
	if _, err := client.GetAPIMetadata(); err != nil {
		return nil, fmt.Errorf("scaleway client: %w", err)
	}
	c := &Client{api: applesilicon.NewAPI(client), iam: iam.NewAPI(client), project: o.ProjectID, pauses: limits,
		settleEvery: settleEvery, askEvery: diagnoseEvery, goneEvery: goneEvery}
	c.accessKey, _ = client.GetAccessKey()
	c.organization, _ = client.GetDefaultOrganizationID()
	if c.project == "" {
		c.project, _ = client.GetDefaultProjectID()
	}
	if c.project == "" {
		return nil, errors.New("no Scaleway project; fix: set project_id of the environment or SCW_DEFAULT_PROJECT_ID")
	}
	for _, z := range o.Zones {
		c.zones = append(c.zones, scw.Zone(z))
	}
	for _, z := range slices.Compact(slices.Sorted(slices.Values(slices.Concat(o.Zones, o.Known)))) {
		c.known = append(c.known, scw.Zone(z))
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
		return nil, fmt.Errorf("read the scw configuration %s: %w", scw.GetConfigPath(), err)
	}
	return []scw.ClientOption{scw.WithProfile(profile), scw.WithEnv()}, nil
}

// Get returns one server.
func (c *Client) Get(ctx context.Context, zone, id string) (inventory.Server, error) {
	s, err := c.get(ctx, zone, id)
	if err != nil {
		return inventory.Server{}, err
	}
	return toServer(s), nil
}

func (c *Client) get(ctx context.Context, zone, id string) (*applesilicon.Server, error) {
	s, err := ask(ctx, c, oneServer, func(o scw.RequestOption) (*applesilicon.Server, error) {
		return c.api.GetServer(&applesilicon.GetServerRequest{Zone: scw.Zone(zone), ServerID: id}, o)
	})
	if err != nil {
		return nil, fmt.Errorf("read server %s: %w", id, err)
	}
	if s.ID != id {
		return nil, fmt.Errorf("read server %s: %w", id, &inventory.ProviderError{Class: inventory.UnexpectedAnswer,
			Text: fmt.Sprintf("unexpected answer from Scaleway: it returned the server %q; fix: run the command again", s.ID)})
	}
	return s, nil
}

// update changes a server, with a name or without any field.
func (c *Client) update(ctx context.Context, zone, id string, name *string) error {
	_, err := ask(ctx, c, oneServer, func(o scw.RequestOption) (*applesilicon.Server, error) {
		return c.api.UpdateServer(&applesilicon.UpdateServerRequest{Zone: scw.Zone(zone), ServerID: id, Name: name}, o)
	})
	return err
}

// Rename changes a server's name and reads it back. The API takes the last of
// two writers and cannot compare, so the name is read right before and right
// after: one that is neither from nor to means that someone else wants the
// server too, a *RacedError. A server that is called to already stays as it is, and one in a
// passing state is waited for.
func (c *Client) Rename(ctx context.Context, zone, id, from, to string) error {
	return c.settled(ctx, func() error { return c.rename(ctx, zone, id, from, to) })
}

func (c *Client) rename(ctx context.Context, zone, id, from, to string) error {
	before, err := c.Get(ctx, zone, id)
	if err != nil {
		return fmt.Errorf("read the name of server %s: %w", id, err)
	}
	if before.Name == to {
		return nil
	}
	if before.Name != from {
		return &RacedError{ServerID: id, Wanted: to, Found: before.Name}
	}
	if err := c.update(ctx, zone, id, &to); err != nil {
		return fmt.Errorf("rename server %s to %s: %w", id, to, err)
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

// CheckRename verifies that a server may be renamed: an update without a field is answered as
// any other, and changes no more than the time of the last update. The error wraps
// inventory.ErrDenied where the credentials lack the right, or the server is gone.
func (c *Client) CheckRename(ctx context.Context, zone, id string) error {
	return c.settled(ctx, func() error {
		if err := c.update(ctx, zone, id, nil); err != nil {
			return fmt.Errorf("change server %s: %w", id, err)
		}
		return nil
	})
}

// RacedError says that a server has neither the name it had nor the one it was
// to get.
type RacedError struct{ ServerID, Wanted, Found string }

// Error names both names.
func (e *RacedError) Error() string {
	return fmt.Sprintf("server %s should be named %s but is now named %s: someone else renamed it; fix: run macfleet plan again", e.ServerID, e.Wanted, e.Found)
}

// toServer drops what only the SDK needs. Passwords stay behind: list and write
// answers hold a placeholder in their place.
func toServer(s *applesilicon.Server) inventory.Server {
	out := inventory.Server{ID: s.ID, Name: s.Name, Type: s.Type, Zone: string(s.Zone),
		Status: string(s.Status), Delivered: s.Delivered, DeletionScheduled: s.DeletionScheduled,
		ProjectID: s.ProjectID, RunnerConfigurations: strings.Join(slices.Sorted(slices.Values(s.AppliedRunnerConfigurationIDs)), ",")}
	if s.IP != nil {
		out.Address = s.IP.String()
	}
	if s.Os != nil {
		out.OSFamily, out.SystemID = s.Os.Family, s.Os.ID
	}
	if s.CreatedAt != nil {
		out.Created = *s.CreatedAt
	}
	if s.DeletableAt != nil {
		out.DeletableAt = *s.DeletableAt
	}
	return out
}
