package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/macfleet/macfleet/fleet/inventory"
)

var (
	codeKeyNotRegistered = NewCode("fleet-key-not-registered", NotDrift, "the provider's project lacks the fleet's SSH key, so a server that is installed would refuse macfleet")
	codeKeyDisabled      = NewCode("fleet-key-disabled", NotDrift, "someone disabled the fleet's SSH key in the provider's project, so a server that is installed would refuse macfleet",
		"enable the SSH key in the provider's console, or choose another private_key in the ssh block")
	codeKeyUnknown = NewCode("fleet-key-unknown", NotDrift, "macfleet does not know which SSH key the hosts must have",
		"set private_key in the ssh block")
	codeKeysUnread = NewCode("fleet-keys-unread", NotDrift, "the SSH keys of the provider's project could not be read, so it is unknown whether a server that is installed accepts macfleet",
		"give the API key the permission set SSHKeysFullAccess in the project; macfleet doctor account lists its rights")
)

// Keyring is the fleet's own SSH keys, and those that the provider installs on servers.
type Keyring struct {
	Ours    []FleetKey `json:"ours"`    // the one that is offered first, then the previous one; empty: not known
	Project string     `json:"project"` // whose keys were read; empty: the project of the API key
	// Registered are the keys of the project.
	Registered inventory.Seen[[]inventory.SSHKey] `json:"registered"`
}

// FleetKey is the public half of a key that macfleet logs in with.
type FleetKey struct {
	Public      string `json:"public_key"`  // type and base64
	Fingerprint string `json:"fingerprint"` // SHA256:…
}

// Find returns the project's keys with the same material, those that are enabled first. Names and comments are
// free text, and several keys may have the same.
func (k Keyring) Find(key FleetKey) []inventory.SSHKey {
	all, _ := k.Registered.Get()
	same := slices.DeleteFunc(slices.Clone(all), func(r inventory.SSHKey) bool {
		return material(r.Public) != material(key.Public) || k.Project != "" && r.Project != "" && r.Project != k.Project
	})
	slices.SortStableFunc(same, func(a, b inventory.SSHKey) int {
		return cmp.Or(boolean(a.Disabled)-boolean(b.Disabled), cmp.Compare(a.ID, b.ID))
	})
	return same
}

// material is a public key without its comment.
func material(public string) string {
	fields := strings.Fields(public)
	return strings.Join(fields[:min(2, len(fields))], " ")
}

func boolean(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Missing reports whether the key that is offered first is known not to be in the project.
func (k Keyring) Missing() bool { return len(k.Ours) > 0 && len(k.lacking(1)) > 0 }

// lacking returns which of the first n of our keys are known not to be in the project.
func (k Keyring) lacking(n int) (out []FleetKey) {
	for _, key := range k.Ours[:min(n, len(k.Ours))] {
		if !k.Registered.IsUnread() && len(k.Find(key)) == 0 {
			out = append(out, key)
		}
	}
	return out
}

// Trouble returns why no server may be installed; nil: the project has the key, or apply can register it.
func (k Keyring) Trouble() *Trouble {
	if len(k.Ours) == 0 {
		return codeKeyUnknown.Trouble("the configuration has no private_key, so macfleet cannot check that a server that is installed accepts it")
	}
	if k.Registered.IsUnread() {
		return codeKeysUnread.Trouble("the SSH keys of the project could not be read: " + k.Registered.Why())
	}
	if same := k.Find(k.Ours[0]); len(same) > 0 && same[0].Disabled {
		return codeKeyDisabled.Trouble(fmt.Sprintf("the SSH key %s (%s) of the project is disabled", same[0].Name, k.Ours[0].Fingerprint))
	}
	return nil
}

// Installs reports whether a plan has an action that installs a server, whether or not it is refused. Such a server then
// accepts only the SSH keys of the project.
func (p *Plan) Installs() bool {
	return slices.ContainsFunc(p.Actions, func(a Action) bool { return a.Kind == ReinstallServer })
}

// NeedsKeyring reports whether a plan depends on the SSH keys of the project: it installs a server, or the key is being
// rotated.
func (p *Plan) NeedsKeyring() bool { return p.KeyRotation != nil || p.Installs() }

// fleetKey makes sure that the project has the fleet's key before a server is installed: by an action, or by
// refusing what installs, with all else of that host. A snapshot without a keyring decides nothing here; apply
// checks again.
func (c *computation) fleetKey() {
	ring := c.snap.Keyring
	if ring == nil || !c.plan.NeedsKeyring() {
		return
	}
	if t := ring.Trouble(); t != nil {
		installed := make(map[string]bool)
		for _, a := range c.plan.Actions {
			installed[a.ServerID] = installed[a.ServerID] || a.Kind == ReinstallServer
		}
		for i := range c.plan.Actions {
			if a := &c.plan.Actions[i]; installed[a.ServerID] {
				a.Refusal = cmp.Or(a.Refusal, t)
			}
		}
		return
	}
	wanted := 0 // how many of our keys the project must have
	if slices.ContainsFunc(c.plan.Actions, func(a Action) bool { return a.Kind == ReinstallServer && a.Runs() }) {
		wanted = 1
	}
	if r := c.plan.KeyRotation; r != nil && !c.plan.Narrowed {
		wanted = 1
		if !r.Complete() {
			wanted = 2 // a reboot through the provider replaces what it has put on a host, which may have no other key
		}
	}
	if lacking := ring.lacking(wanted); len(lacking) > 0 {
		c.plan.Actions = slices.Insert(c.plan.Actions, 0, registering(lacking))
	}
}

// KeyNotRegistered is the trouble that the project lacks the fleet's key while nothing registers it.
func KeyNotRegistered(key FleetKey) *Trouble {
	return codeKeyNotRegistered.Trouble("the project does not have "+key.Fingerprint,
		"register it in the provider's console: "+key.Public+"; an apply that installs a server registers it, too")
}

// registering returns the action that registers keys.
func registering(keys []FleetKey) Action {
	a := Action{Kind: RegisterKey, Origin: pending,
		Reason: Reason{codeKeyNotRegistered, "servers are installed with the project's SSH keys, and the fleet's is not among them"}}
	for _, key := range keys {
		a.Fields = append(a.Fields, Field{"ssh key", "not registered", key.Fingerprint})
	}
	return a
}
