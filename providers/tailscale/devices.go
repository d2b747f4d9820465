package tailscale

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/macfleet/macfleet/fleet/inventory"
)

// device is a device as the API lists it.
type device struct {
	NodeID     string   `json:"nodeId"`
	Name       string   `json:"name"` // the whole MagicDNS name
	HostName   string   `json:"hostname"`
	Addresses  []string `json:"addresses"`
	Tags       []string `json:"tags"`
	Authorized bool     `json:"authorized"`
	External   bool     `json:"isExternal"`
	Ephemeral  bool     `json:"isEphemeral"`
	NeverKey   bool     `json:"keyExpiryDisabled"`
	Expires    moment   `json:"expires"`
	Connected  *bool    `json:"connectedToControl"` // some answers lack it
	LastSeen   moment   `json:"lastSeen"`
	Created    moment   `json:"created"`
	Version    string   `json:"clientVersion"`
	Multiple   bool     `json:"multipleConnections"`
}

// moment is a time that may be missing, null or empty.
type moment struct{ time.Time }

// UnmarshalJSON reads RFC 3339; what is not one is the zero time.
func (m *moment) UnmarshalJSON(text []byte) error {
	at, err := time.Parse(time.RFC3339, strings.Trim(string(text), `"`))
	if err == nil && at.Year() > 1 {
		m.Time = at.UTC()
	}
	return nil
}

// inventory returns a device in macfleet's words, and the tailnet's suffix.
func (d device) inventory() (inventory.Device, string) {
	name, suffix, _ := strings.Cut(strings.TrimSuffix(d.Name, "."), ".")
	connected := d.Connected == nil || *d.Connected // an unknown device must not look like one that may be deleted
	out := inventory.Device{ID: d.NodeID, Name: name, HostName: d.HostName, Tags: slices.Compact(slices.Sorted(slices.Values(d.Tags))), Approved: d.Authorized,
		Connected: connected, Shared: d.Multiple, Created: d.Created.Time, Version: d.Version, Ephemeral: d.Ephemeral}
	if !d.NeverKey {
		out.KeyExpires = d.Expires.Time
	}
	if !connected {
		out.Seen = d.LastSeen.Time
	}
	for _, text := range d.Addresses {
		host, _, _ := strings.Cut(text, "/")
		if a, err := netip.ParseAddr(host); err == nil {
			out.Addresses = append(out.Addresses, a.String())
		}
	}
	slices.SortStableFunc(out.Addresses, func(a, b string) int { return cmp.Compare(strings.Count(a, ":"), strings.Count(b, ":")) })
	return out, suffix
}

// Devices returns all devices of the tailnet itself by id, and the suffix of their names.
func (c *Client) Devices(ctx context.Context) ([]inventory.Device, string, error) {
	var answer struct {
		Devices *[]device `json:"devices"`
	}
	if err := c.ask(ctx, http.MethodGet, "/api/v2/tailnet/-/devices?fields=all", nil, &answer); err != nil {
		return nil, "", fmt.Errorf("list the tailnet's devices: %w", err)
	}
	if answer.Devices == nil {
		return nil, "", strange("an answer without a list of devices")
	}
	var out []inventory.Device
	suffix := ""
	for _, d := range *answer.Devices {
		if d.External {
			continue
		}
		if d.NodeID == "" {
			return nil, "", strange("a device without an id")
		}
		one, after := d.inventory()
		suffix = cmp.Or(suffix, after)
		out = append(out, one)
	}
	slices.SortFunc(out, func(a, b inventory.Device) int { return cmp.Compare(a.ID, b.ID) })
	for i := range out[:max(0, len(out)-1)] {
		if out[i].ID == out[i+1].ID {
			return nil, "", strange("device " + out[i].ID + " twice")
		}
	}
	return out, suffix, nil
}

// Device returns one device; absent: there is none with the id.
func (c *Client) Device(ctx context.Context, id string) (inventory.Seen[inventory.Device], error) {
	var d device
	err := c.ask(ctx, http.MethodGet, place(id)+"?fields=all", nil, &d)
	if inventory.ClassOf(err) == inventory.NotFound {
		return inventory.Absent[inventory.Device](), nil
	}
	if err != nil {
		return inventory.Seen[inventory.Device]{}, fmt.Errorf("read device %s: %w", id, err)
	}
	out, _ := d.inventory()
	if out.ID != id {
		return inventory.Seen[inventory.Device]{}, strange("a device with a different id")
	}
	return inventory.Present(out), nil
}

func place(id string) string { return "/api/v2/device/" + url.PathEscape(id) }

// DeleteDevice deletes a device; one that is already gone is deleted.
func (c *Client) DeleteDevice(ctx context.Context, id string) error {
	err := c.ask(ctx, http.MethodDelete, place(id), nil, nil)
	if err == nil || inventory.ClassOf(err) == inventory.NotFound {
		return nil
	}
	return fmt.Errorf("delete device %s: %w", id, err)
}

// SetTags gives a device tags instead of those that it has.
func (c *Client) SetTags(ctx context.Context, id string, tags []string) error {
	return c.set(ctx, id, "tags", map[string]any{"tags": append([]string{}, tags...)})
}

// Rename gives a device the name with which its MagicDNS name starts.
func (c *Client) Rename(ctx context.Context, id, name string) error {
	return c.set(ctx, id, "name", map[string]any{"name": name})
}

// Approve lets a device that waits for an administrator into the tailnet.
func (c *Client) Approve(ctx context.Context, id string) error {
	return c.set(ctx, id, "authorized", map[string]any{"authorized": true})
}

// Keep keeps a device's node key from expiring.
func (c *Client) Keep(ctx context.Context, id string) error {
	return c.set(ctx, id, "key", map[string]any{"keyExpiryDisabled": true})
}

func (c *Client) set(ctx context.Context, id, part string, body any) error {
	if err := c.ask(ctx, http.MethodPost, place(id)+"/"+part, body, nil); err != nil {
		return fmt.Errorf("set %s of device %s: %w", part, id, err)
	}
	return nil
}

// Approval reports whether new devices wait for an administrator.
func (c *Client) Approval(ctx context.Context) (inventory.Seen[bool], error) {
	var answer struct {
		On *bool `json:"devicesApprovalOn"`
	}
	if err := c.ask(ctx, http.MethodGet, "/api/v2/tailnet/-/settings", nil, &answer); err != nil {
		return inventory.Seen[bool]{}, fmt.Errorf("read the tailnet's settings: %w", err)
	}
	return inventory.Present(answer.On != nil && *answer.On), nil
}

// MagicDNS reports whether names of devices resolve.
func (c *Client) MagicDNS(ctx context.Context) (inventory.Seen[bool], error) {
	var answer struct {
		On *bool `json:"magicDNS"`
	}
	if err := c.ask(ctx, http.MethodGet, "/api/v2/tailnet/-/dns/preferences", nil, &answer); err != nil {
		return inventory.Seen[bool]{}, fmt.Errorf("read the tailnet's DNS preferences: %w", err)
	}
	if answer.On == nil {
		return inventory.Seen[bool]{}, strange("DNS preferences without magicDNS")
	}
	return inventory.Present(*answer.On), nil
}
