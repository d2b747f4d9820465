package plan

import (
	"cmp"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan/lists"
)

// DeviceKeeper is the step that makes a host a device of the tailnet. What happens on the host is the step's; what
// happens at the control server is done by the engine.
type DeviceKeeper interface {
	Step
	// Joins reports whether the host should be a device.
	Joins() bool
	// Device returns the device that the host's daemon says it is, and the suffix of its tailnet; ok is false if it is none.
	Device(Facts) (said lists.Said, ok bool)
	// Leave returns the changes that end the host's device: its daemon, its entry at the control server, its files. It is
	// Diff for a host that leaves, and has no changes if there is no device.
	Leave(View) Finding
}

// TailnetName is how a person accepts the control server's list.
const TailnetName = "tailnet"

// TailnetList names the control server's list where a probe is named.
const TailnetList = "the tailnet's list"

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

// The codes of what keeps macfleet from using the tailnet.
var (
	codeTailnetUnread = NewCode("tailnet-credentials-unread", NotDrift, "the credentials for the tailnet could not be read, or are not valid",
		"correct the references in the tailnet block, or what they refer to")
	codeTailnetRefused = NewCode("tailnet-credentials-refused", NotDrift, "the control server refuses the credentials: they are unknown or were revoked",
		"create an OAuth client with the scopes devices:core and auth_keys, and give its secret in the tailnet block")
	codeTailnetRight = NewCode("tailnet-right-missing", NotDrift, "the credentials lack a scope that macfleet needs in the tailnet",
		"give the OAuth client the scopes devices:core and auth_keys")
	codeTagsDenied = NewCode("tags-not-permitted", NotDrift, "the credentials may not give hosts the configured tags",
		"give the OAuth client exactly these tags, or let its tag own them in tagOwners of the policy")
	codeTailnetDown = NewCode("tailnet-down", NotDrift, "the tailnet's control server does not answer, so devices are not compared",
		"check the control server's status page and the network of this machine, then run the command again")
)

// TailnetTrouble returns an error of the control server as a trouble; unread says that no request was sent, because of the
// credentials. The text and the fix of the error count.
func TailnetTrouble(err error, unread bool) *Trouble {
	code := codeTailnetDown
	switch class := inventory.ClassOf(err); {
	case unread:
		code = codeTailnetUnread
	case class == inventory.Unauthenticated:
		code = codeTailnetRefused
	case class == inventory.Denied:
		code = codeTailnetRight
	case class == inventory.TagsDenied:
		code = codeTagsDenied
	case class == inventory.RateLimited:
		code = codeRateLimited
	}
	text, fix := SplitFix(err)
	return code.Trouble(text, cmp.Or(fix, code.Remedy()))
}
