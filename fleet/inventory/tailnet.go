package inventory

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"time"
)

// Device is a machine of a tailnet, as its control server lists it.
type Device struct {
	ID        string   `json:"id"`                  // stable; the same as the daemon's own Self.ID
	Name      string   `json:"name"`                // first label of its MagicDNS name, unique in the tailnet
	HostName  string   `json:"host_name,omitempty"` // what the machine calls itself; not unique
	Addresses []string `json:"addresses,omitempty"` // without prefix length, IPv4 first
	Tags      []string `json:"tags,omitempty"`      // sorted, each with "tag:"
	Approved  bool     `json:"approved"`            // false: it waits for an administrator
	// KeyExpires is when its node key expires; zero: never.
	KeyExpires time.Time `json:"key_expires,omitzero"`
	Connected  bool      `json:"connected"`           // the control server has a connection to it
	Seen       time.Time `json:"seen,omitzero"`       // when it was connected last; zero: it is connected, or this is unknown
	Shared     bool      `json:"shared,omitempty"`    // two machines use its node key at the same time
	Created    time.Time `json:"created,omitzero"`    // when it joined
	Version    string    `json:"version,omitempty"`   // of its client, as the control server knows it
	Ephemeral  bool      `json:"ephemeral,omitempty"` // it is deleted when it disconnects
}

// DeviceKey is an auth key that macfleet made and that can still be used. Its secret is not known any more.
type DeviceKey struct {
	ID      string    `json:"id"`
	For     string    `json:"for"` // what its description says after macfleet's own words: KeyName of a host
	Created time.Time `json:"created,omitzero"`
	Expires time.Time `json:"expires,omitzero"`
}

// Tailnet is what a control server lists.
type Tailnet struct {
	Devices []Device `json:"devices,omitempty"` // all of the tailnet itself, by id; none that other tailnets share
	// Keys are macfleet's own keys that were not used; unread: the credentials cannot list them.
	Keys Seen[[]DeviceKey] `json:"keys,omitzero"`
	// Approval says that new devices wait for an administrator; unread: the credentials cannot read the settings.
	Approval Seen[bool] `json:"approval,omitzero"`
	// MagicDNS says that names of devices resolve in the tailnet.
	MagicDNS Seen[bool] `json:"magic_dns,omitzero"`
	// Suffix is what follows the names of devices, for example tail1234.ts.net; empty: no device has shown it.
	Suffix string `json:"suffix,omitempty"`
}

// Device returns the device with an id.
func (t Tailnet) Device(id string) (Device, bool) {
	i := slices.IndexFunc(t.Devices, func(d Device) bool { return d.ID == id })
	if i < 0 || id == "" {
		return Device{}, false
	}
	return t.Devices[i], true
}

// Claims reports whether its name or host name is name, without regard to case, or its name is name with a number that the control server
// added.
func (d Device) Claims(name string) bool {
	return slices.Contains(d.names(), strings.ToLower(name))
}

// Has reports whether a device has an address.
func (d Device) Has(address string) bool { return slices.Contains(d.Addresses, address) }

// KeyName is how the description of a host's auth key names the host: at most 41 characters, because a description has at
// most 50.
func KeyName(host string) string {
	const longest, kept = 41, 30
	if len(host) <= longest {
		return host
	}
	sum := sha256.Sum256([]byte(host))
	return host[:kept] + "-" + hex.EncodeToString(sum[:])[:longest-kept-1]
}
