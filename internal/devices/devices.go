// Package devices is the engine's way to the control server of the hosts' tailnet.
package devices

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/secret"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/providers/tailscale"
	"github.com/macfleet/macfleet/providers/transport"
)

// Options say how the control server is reached.
type Options struct {
	Tailnet fleet.Tailnet
	// Resolve returns the value of an attribute that refers to a secret.
	Resolve func(ctx context.Context, attribute string, ref secret.Ref) (secret.Value, error)
	Learn   func(value string) // called with each secret that the API returns, before it is used
	HTTP    *http.Client
	Waiting func(transport.Waiting) // called before a request is sent again, from many goroutines; nil: no call
	URL     string                  // of Tailscale's API; empty: the vendor's
	Now     func() time.Time
}

// The attributes that refer to secrets.
const (
	Auth          = "auth"
	IdentityToken = "identity_token"
)

// Devices is the control server of one tailnet. It is safe for concurrent use.
type Devices struct {
	Options
	turn    chan struct{} // guards what follows: others wait for as long as a person or a service takes
	client  *tailscale.Client
	key     secret.Value // made by hand; zero: macfleet makes keys
	opened  bool
	checked bool
}

var _ engine.Tailnet = (*Devices)(nil)

// New returns the control server. It sends no request and reads no secret.
func New(o Options) *Devices { return &Devices{Options: o, turn: make(chan struct{}, 1)} }

// credentialsError says that the credentials could not be read, or are not valid. No request was sent.
type credentialsError struct{ error }

// Unwrap returns the fault.
func (e *credentialsError) Unwrap() error { return e.error }

// open returns the client, or the key that was made by hand. Credentials are read when they are needed first.
func (d *Devices) open(ctx context.Context) (*tailscale.Client, secret.Value, error) {
	select {
	case d.turn <- struct{}{}:
		defer func() { <-d.turn }()
	case <-ctx.Done():
		return nil, secret.Value{}, context.Cause(ctx)
	}
	if d.opened {
		return d.client, d.key, nil
	}
	credentials := tailscale.Credentials{ClientID: d.Tailnet.ClientID}
	var err error
	if d.Tailnet.ClientID != "" {
		credentials.Token, err = d.Resolve(ctx, IdentityToken, d.Tailnet.IdentityToken)
	} else {
		credentials.Secret, err = d.Resolve(ctx, Auth, d.Tailnet.Auth)
	}
	if err != nil {
		if ctx.Err() != nil {
			return nil, secret.Value{}, context.Cause(ctx)
		}
		return nil, secret.Value{}, &credentialsError{fmt.Errorf("credentials for the tailnet: %w", err)}
	}
	if !d.Tailnet.Listed() || tailscale.IsAuthKey(credentials.Secret) {
		d.key, d.opened = credentials.Secret, true
		return nil, d.key, nil
	}
	c, err := tailscale.New(tailscale.Options{Credentials: credentials, Tags: d.Tailnet.OwnTags(), HTTP: d.HTTP, Learn: d.Learn, Waiting: d.Waiting, URL: d.URL, Now: d.Now})
	if err != nil {
		return nil, secret.Value{}, &credentialsError{err}
	}
	d.client, d.opened = c, true
	return c, secret.Value{}, nil
}

// Observe reads devices, keys and settings, each once. What else than the devices cannot be read is unread.
func (d *Devices) Observe(ctx context.Context) plan.TailnetSeen {
	if !d.Tailnet.Listed() {
		return plan.TailnetSeen{Unlisted: true} // the key is not needed to observe
	}
	c, _, err := d.open(ctx)
	if err != nil {
		return plan.TailnetSeen{Trouble: Trouble(err)}
	}
	if c == nil {
		return plan.TailnetSeen{Unlisted: true}
	}
	var out plan.TailnetSeen
	// First, because credentials that are refused here would be refused for the rest, too.
	if out.Devices, out.Suffix, err = c.Devices(ctx); err != nil {
		return plan.TailnetSeen{Trouble: Trouble(err)}
	}
	var g errgroup.Group
	g.Go(func() error {
		keys, err := c.Keys(ctx)
		out.Keys = orUnread(inventory.Present(keys), err)
		return nil
	})
	g.Go(func() error { out.Approval = orUnread(c.Approval(ctx)); return nil })
	g.Go(func() error { out.MagicDNS = orUnread(c.MagicDNS(ctx)); return nil })
	_ = g.Wait() // none fails: what cannot be read is unread
	return out
}

func orUnread[T any](v inventory.Seen[T], err error) inventory.Seen[T] {
	if err != nil {
		return inventory.Unread[T](err.Error())
	}
	return v
}

// Trouble returns why the control server could not be read or used.
func Trouble(err error) *plan.Trouble {
	var own *credentialsError
	return plan.TailnetTrouble(err, errors.As(err, &own))
}

// errUnlisted is returned for what needs the API of a control server that has none for macfleet.
var errUnlisted = errors.New("macfleet cannot list this control server's devices; fix: change the device with the control server's own program")

// Device reads one device; absent: there is none with the id.
func (d *Devices) Device(ctx context.Context, id string) (inventory.Seen[inventory.Device], error) {
	c, _, err := d.open(ctx)
	if err != nil {
		return inventory.Seen[inventory.Device]{}, err
	}
	if c == nil {
		return inventory.Unread[inventory.Device](errUnlisted.Error()), nil
	}
	return c.Device(ctx, id)
}

// rightCheck is the name in the description of the key that is made to check the right.
const rightCheck = "right check"

// MayJoin makes a key with the configured tags and revokes it, once: nothing else shows that the credentials may do it.
func (d *Devices) MayJoin(ctx context.Context) error {
	c, _, err := d.open(ctx)
	if err != nil || c == nil || d.checked {
		return err
	}
	left, _ := c.Keys(ctx) // those that cannot be listed expire within a minute
	for _, k := range left {
		if k.For == rightCheck { // of a run that was killed in between
			if err := c.Revoke(ctx, k.ID); err != nil {
				return err
			}
		}
	}
	k, err := c.Make(ctx, rightCheck, time.Minute)
	if err != nil {
		return err
	}
	if err := c.Revoke(ctx, k.ID); err != nil {
		return err
	}
	d.checked = true
	return nil
}

// Key makes a key with which one host joins once, within ten minutes, approved and not ephemeral; or returns the one that
// was made by hand.
func (d *Devices) Key(ctx context.Context, host string) (engine.AuthKey, error) {
	c, byHand, err := d.open(ctx)
	if err != nil {
		return engine.AuthKey{}, err
	}
	if c == nil {
		return engine.AuthKey{Secret: byHand}, nil
	}
	k, err := c.Make(ctx, host, tailscale.KeyLives)
	return engine.AuthKey(k), err
}

// Revoke ends a key. Already used, expired or revoked: nothing to do.
func (d *Devices) Revoke(ctx context.Context, id string) error {
	c, _, err := d.open(ctx)
	if err != nil || c == nil || id == "" {
		return err
	}
	return c.Revoke(ctx, id)
}

// Change performs a change of a device.
func (d *Devices) Change(ctx context.Context, to plan.DeviceChange) error {
	c, _, err := d.open(ctx)
	if err != nil {
		return err
	}
	if c == nil {
		return errUnlisted
	}
	switch to.Verb {
	case plan.DeleteDevice:
		return c.DeleteDevice(ctx, to.Device.ID)
	case plan.RetagDevice:
		return c.SetTags(ctx, to.Device.ID, to.Tags)
	case plan.RenameDevice:
		return c.Rename(ctx, to.Device.ID, to.Name)
	case plan.ApproveDevice:
		return c.Approve(ctx, to.Device.ID)
	case plan.KeepDevice:
		return c.Keep(ctx, to.Device.ID)
	case plan.RevokeKey:
		return c.Revoke(ctx, to.Key)
	}
	return fmt.Errorf("unknown change of a device: %s", to.Verb)
}
