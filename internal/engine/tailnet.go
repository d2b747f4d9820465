package engine

import (
	"context"
	"time"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/secret"
	"github.com/macfleet/macfleet/plan"
)

// Tailnet is the control server of the hosts' tailnet.
type Tailnet interface {
	// Observe reads devices, keys and settings, each once. A server that cannot be read has a Trouble.
	Observe(context.Context) plan.TailnetSeen
	// Device reads one device; absent: there is none with the id.
	Device(ctx context.Context, id string) (inventory.Seen[inventory.Device], error)
	// Prove fails unless the credentials may make a key with the configured tags. It leaves no key.
	Prove(context.Context) error
	// Key makes a key with which one host joins once, within ten minutes, approved and not ephemeral.
	Key(ctx context.Context, host string) (AuthKey, error)
	// Revoke ends a key. Already used, expired or revoked: nothing to do.
	Revoke(ctx context.Context, id string) error
	// Change performs a change of a device.
	Change(context.Context, plan.DeviceChange) error
}

// AuthKey is a key with which a host joins a tailnet.
type AuthKey struct {
	ID      string // for Revoke; empty: it was made by hand, so macfleet does not revoke it
	Secret  secret.Value
	Expires time.Time // zero: unknown
}
