package plan

import (
	"github.com/macfleet/macfleet/fleet/inventory"
)

// DeviceKeeper is the step that makes a host a device of the tailnet. What happens on the host is the step's; what
// happens at the control server is done by the engine.
type DeviceKeeper interface {
	Step
	// Joins reports whether the host should be a device.
	Joins() bool
	// Device returns the id of the device that the host's daemon says it is; ok is false if it is none.
	Device(Facts) (id string, ok bool)
	// Leave returns the changes that end the host's device: its daemon, its entry at the control server, its files. It is
	// Diff for a host that leaves, and has no changes if there is no device.
	Leave(View) Finding
}

// TailnetSeen is what a control server answered. A step gets only the devices and keys of its host: those that claim its
// name, and the one that its daemon says it is.
type TailnetSeen struct {
	// Trouble says why it could not be read; nil: it was, or Unlisted.
	Trouble *Trouble `json:"trouble,omitempty"`
	// Unlisted says that macfleet cannot list this control server's devices (control_url): nothing about them is compared.
	Unlisted bool `json:"unlisted,omitempty"`
	inventory.Tailnet
}

// DeviceVerb is what happens at a control server.
type DeviceVerb string

// The verbs.
const (
	DeleteDevice  DeviceVerb = "delete"     // the device; already gone: nothing to do
	RetagDevice   DeviceVerb = "retag"      // give it the configured tags
	RenameDevice  DeviceVerb = "rename"     // give it the host's name
	ApproveDevice DeviceVerb = "approve"    // it waits for an administrator
	KeepDevice    DeviceVerb = "keep"       // its node key never expires
	RevokeKey     DeviceVerb = "revoke-key" // an auth key that an earlier run left
)

// DeviceChange is a change at a control server instead of on the host.
type DeviceChange struct {
	Verb   DeviceVerb       `json:"verb"`
	Device inventory.Device `json:"device,omitzero"` // as it was listed
	Key    string           `json:"key,omitempty"`   // id of an auth key
	Tags   []string         `json:"tags,omitempty"`  // for RetagDevice
	Name   string           `json:"name,omitempty"`  // for RenameDevice
}
