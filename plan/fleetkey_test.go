package plan

import (
	"strings"
	"testing"

	"github.com/macfleet/macfleet/fleet/inventory"
)

// TestFleetKeyBeforeInstalling: what installs a server runs only if the project has the fleet's key, by material, or
// if the plan registers it first.
func TestFleetKeyBeforeInstalling(t *testing.T) {
	t.Parallel()
	ours := []FleetKey{{Public: "ssh-ed25519 AAAAours", Fingerprint: "SHA256:ours"}}
	key := func(name, public, project string, disabled bool) inventory.SSHKey {
		return inventory.SSHKey{ID: "id-" + name, Name: name, Public: public, Project: project, Disabled: disabled}
	}
	ring := func(keys ...inventory.SSHKey) *Keyring {
		return &Keyring{Ours: ours, Project: "p", Registered: inventory.Present(keys)}
	}
	for name, tc := range map[string]struct {
		ring      *Keyring
		registers bool
		refused   string // code
	}{
		"registered":                   {ring(key("fleet", "ssh-ed25519 AAAAours", "p", false)), false, ""},
		"with a comment":               {ring(key("fleet", "ssh-ed25519  AAAAours sam@laptop", "p", false)), false, ""},
		"none":                         {ring(), true, ""},
		"another key of that name":     {ring(key("macfleet acme", "ssh-ed25519 AAAAother", "p", false)), true, ""},
		"of another project":           {ring(key("fleet", "ssh-ed25519 AAAAours", "q", false)), true, ""},
		"disabled":                     {ring(key("fleet", "ssh-ed25519 AAAAours", "p", true)), false, "fleet-key-disabled"},
		"disabled and enabled":         {ring(key("a", "ssh-ed25519 AAAAours", "p", true), key("b", "ssh-ed25519 AAAAours", "p", false)), false, ""},
		"unread":                       {&Keyring{Ours: ours, Registered: inventory.Unread[[]inventory.SSHKey]("denied")}, false, "fleet-keys-unread"},
		"macfleet has no key":          {&Keyring{Registered: inventory.Present[[]inventory.SSHKey](nil)}, false, "fleet-key-unknown"},
		"a snapshot without a keyring": {nil, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := computation{census: &census{snap: Snapshot{Keyring: tc.ring}}, plan: &Plan{Actions: []Action{
				{Kind: DrainNode, Host: "one", ServerID: "1"}, {Kind: "reinstall", Host: "one", ServerID: "1"},
				{Kind: RunStep, Host: "two", ServerID: "2"},
			}}}
			c.fleetKey()
			if registers := c.plan.Actions[0].Kind == RegisterKey; registers != tc.registers {
				t.Errorf("registers the key: %t", registers)
			}
			var refused []string
			for _, a := range c.plan.Actions {
				if a.Refusal != nil {
					refused = append(refused, string(a.Kind)+" "+a.Refusal.Code.String())
				}
			}
			want := ""
			if tc.refused != "" {
				want = strings.Join([]string{"drain " + tc.refused, "reinstall " + tc.refused}, ", ")
			}
			if got := strings.Join(refused, ", "); got != want {
				t.Errorf("refused %q, want %q", got, want)
			}
		})
	}
	idle := computation{census: &census{snap: Snapshot{Keyring: ring()}}, plan: &Plan{Actions: []Action{{Kind: RunStep, ServerID: "2"}}}}
	if idle.fleetKey(); len(idle.plan.Actions) != 1 {
		t.Error("a plan that installs nothing registers a key")
	}
}
