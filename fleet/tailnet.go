package fleet

import (
	"slices"

	"github.com/macfleet/macfleet/internal/secret"
)

// Tailnet is the Tailscale network that hosts join. Without it, or with Enabled false, no host has anything of it.
type Tailnet struct {
	Enabled bool `hcl:"enabled,optional"` // false: hosts leave it; the credentials are still needed for that
	// Auth is the secret of an OAuth client (tskey-client-…), or an auth key made by hand (tskey-auth-…, hskey-auth-…).
	Auth secret.Ref `hcl:"auth,optional"`
	// ClientID and IdentityToken are a federated identity instead of Auth: its client id, and the token (a JWT) of a CI job.
	ClientID      string     `hcl:"client_id,optional" is:"tailnet_client"`
	IdentityToken secret.Ref `hcl:"identity_token,optional"`
	Tags          []string   `hcl:"tags" is:"tailnet_tag" least:"1"` // of every host's device
	// ControlURL is another control server than Tailscale's own, for example Headscale; empty: Tailscale's. Its devices cannot
	// be listed, and Auth is then a key made by hand.
	ControlURL string `hcl:"control_url,optional" is:"control_url"`
	// DeviceBudget is how many tagged devices the tailnet's plan allows; 0: not limited. No API reports the number.
	DeviceBudget int `hcl:"device_budget,optional" least:"1"`
	// ReservedDevices are tagged devices to come besides hosts: the operator's, proxies, connectors.
	ReservedDevices int `hcl:"reserved_devices,optional"`
}

// OwnTags returns the tags sorted, each once.
func (t Tailnet) OwnTags() []string { return slices.Compact(slices.Sorted(slices.Values(t.Tags))) }

// Gives reports whether one of these tags is one that hosts get. A device without one belongs to someone else, whatever it is called.
func (t Tailnet) Gives(tags []string) bool {
	return slices.ContainsFunc(tags, func(tag string) bool { return slices.Contains(t.Tags, tag) })
}

// Listed reports whether the control server's devices and keys can be listed and changed.
func (t Tailnet) Listed() bool { return t.ControlURL == "" }

// Tailscale makes a host a device of the tailnet. It has an effect only with an enabled tailnet block.
type Tailscale struct {
	Artifact *Artifact `hcl:"artifact,optional" per:"fleet"` // an archive of tailscale and tailscaled
	Port     *int      `hcl:"port,optional" per:"fleet" default:"41641" least:"1" max:"65535"`
}

// NodeExporter serves a host's metrics in the tailnet only. It has an effect only with Tailscale.
type NodeExporter struct {
	Artifact *Artifact `hcl:"artifact,optional" per:"fleet"` // the vendor's archive for darwin
	Port     *int      `hcl:"port,optional" per:"fleet" default:"9100" least:"1" max:"65535"`
	// Collectors are those that are turned on; nil: the step's own choice. Others are off.
	Collectors []string `hcl:"collectors,optional" per:"fleet" is:"collector" least:"1"`
}

// JoinsTailnet reports whether the host becomes a device of the tailnet.
func (s Spec) JoinsTailnet() bool { return s.Tailscale != nil }

// WithoutTailnet returns s without the blocks that need a tailnet.
func (s Spec) WithoutTailnet() Spec {
	s.Tailscale, s.NodeExporter = nil, nil
	return s
}
