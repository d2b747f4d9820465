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
	turn   chan struct{} // guards what follows: others wait for as long as a person or a service takes
	client *tailscale.Client
	key    secret.Value // made by hand; zero: macfleet makes keys
	opened bool

	checking chan struct{} // guards what follows
	checked  bool
	denied   error
}

var _ engine.Service = (*Devices)(nil)

// New returns the control server. It sends no request and reads no secret.
func New(o Options) *Devices {
	return &Devices{Options: o, turn: make(chan struct{}, 1), checking: make(chan struct{}, 1)}
}

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
func (d *Devices) Observe(ctx context.Context) map[string]plan.PeerSeen {
	return map[string]plan.PeerSeen{"": d.observe(ctx)}
}

func (d *Devices) observe(ctx context.Context) plan.PeerSeen {
	if !d.Tailnet.Listed() {
		return plan.PeerSeen{Unlisted: true} // the key is not needed to observe
	}
	c, _, err := d.open(ctx)
	if err != nil {
		return plan.PeerSeen{Trouble: Trouble(err)}
	}
	if c == nil {
		return plan.PeerSeen{Unlisted: true}
	}
	var out inventory.Tailnet
	// First, because credentials that are refused here would be refused for the rest, too.
	if out.Devices, out.Suffix, err = c.Devices(ctx); err != nil {
		return plan.PeerSeen{Trouble: Trouble(err)}
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
	return plan.PeerSeen{Listing: inventory.Listing{Tailnet: &out}}
}

func orUnread[T any](v inventory.Seen[T], err error) inventory.Seen[T] {
	if err != nil {
		return inventory.Unread[T](err.Error())
	}
	return v
}

// errUnlisted is returned for what needs the API of a control server that has none for macfleet.
var errUnlisted = errors.New("macfleet cannot list this control server's devices; fix: change the device with the control server's own program")

// Entry reads one device; absent: there is none with the id.
func (d *Devices) Entry(ctx context.Context, _, id string) (inventory.Seen[inventory.Listing], error) {
	c, _, err := d.open(ctx)
	if err != nil {
		return inventory.Seen[inventory.Listing]{}, err
	}
	if c == nil {
		return inventory.Unread[inventory.Listing](errUnlisted.Error()), nil
	}
	seen, err := c.Device(ctx, id)
	return inventory.Map(seen, func(v inventory.Device) inventory.Listing {
		return inventory.Listing{Tailnet: &inventory.Tailnet{Devices: []inventory.Device{v}}}
	}), err
}

// rightCheck is the name in the description of the key that is made to check the right.
const rightCheck = "right check"

// MayJoin makes a key with the configured tags and revokes it, once: nothing else shows that the credentials may do it.
func (d *Devices) MayJoin(ctx context.Context, _ string) error {
	select {
	case d.checking <- struct{}{}:
		defer func() { <-d.checking }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if d.checked {
		return d.denied
	}
	err := d.mayJoin(ctx)
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	d.checked, d.denied = true, coded(err)
	return d.denied
}

func (d *Devices) mayJoin(ctx context.Context) error {
	c, _, err := d.open(ctx)
	if err != nil || c == nil {
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
	return c.Revoke(ctx, k.ID)
}

// Admit makes a key with which one host joins once, within ten minutes, approved and not ephemeral; or returns the one that
// was made by hand.
func (d *Devices) Admit(ctx context.Context, _, host string) (engine.Admission, error) {
	c, byHand, err := d.open(ctx)
	if err != nil {
		return engine.Admission{}, coded(err)
	}
	if c == nil {
		return engine.Admission{Secret: byHand}, nil
	}
	k, err := c.Make(ctx, host, tailscale.KeyLives)
	return engine.Admission(k), coded(err)
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
func (d *Devices) Change(ctx context.Context, to plan.PeerChange) error {
	c, _, err := d.open(ctx)
	if err != nil {
		return coded(err)
	}
	if c == nil {
		return errUnlisted
	}
	return coded(change(ctx, c, to))
}

func change(ctx context.Context, c *tailscale.Client, to plan.PeerChange) error {
	switch id := to.Entry.ID; {
	case to.Verb == inventory.DeleteEntry:
		return c.DeleteDevice(ctx, id)
	case to.Verb == inventory.RetagDevice:
		return c.SetTags(ctx, id, to.To)
	case to.Verb == inventory.RenameDevice && len(to.To) == 1:
		return c.Rename(ctx, id, to.To[0])
	case to.Verb == inventory.ApproveDevice:
		return c.Approve(ctx, id)
	case to.Verb == inventory.KeepDevice:
		return c.Keep(ctx, id)
	case to.Verb == inventory.RevokeKey:
		return c.Revoke(ctx, to.Key)
	}
	return fmt.Errorf("unknown change of a device: %s", to.Verb)
}
