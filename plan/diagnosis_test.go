package plan_test

import (
	"strings"
	"testing"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
)

// TestDiagnosed: a host that is down is distinguished from one whose SSH port does not answer, by its Node and by the
// provider's diagnostic. Without either, or where they contradict each other, it is unreachable.
func TestDiagnosed(t *testing.T) {
	t.Parallel()
	of := fleet.Vendor{Name: "Scaleway"}
	server := inventory.Server{ID: "1", Zone: "fr-par-1", Status: "ready", Delivered: true}
	node := func(ready inventory.Readiness, provider string) inventory.Seen[inventory.Node] {
		return inventory.Present(inventory.Node{Ready: ready, ProviderID: provider})
	}
	for name, tc := range map[string]struct {
		code    string // of the conversation; empty: unreachable
		status  string // of the server; empty: ready
		node    inventory.Seen[inventory.Node]
		found   *inventory.Diagnosis
		unread  string
		want    string // code
		text    string
		remedy  string
		untried bool // the provider is worth asking
	}{
		"nothing is known":         {want: "unreachable", untried: true},
		"its Node is Ready":        {node: node(inventory.Ready, server.ProviderID()), want: "ssh-port-unreachable", text: "its Node is Ready", remedy: "ends the ban: macfleet reboot acme-runners-1"},
		"another server's Node":    {node: node(inventory.Ready, "other"), want: "unreachable", untried: true},
		"its Node is not Ready":    {node: node(inventory.NotReady, server.ProviderID()), want: "unreachable", untried: true},
		"a diagnostic of all well": {found: &inventory.Diagnosis{Healthy: true, Text: "no details"}, want: "ssh-port-unreachable", text: "Scaleway's diagnostic: no details"},
		"port 22 is open there":    {found: &inventory.Diagnosis{Detailed: true, Alive: true, SSH: true}, want: "ssh-port-unreachable", remedy: "allow the SSH port"},
		"port 22 is closed there":  {found: &inventory.Diagnosis{Detailed: true, Alive: true}, want: "ssh-port-unreachable", remedy: "Remote Login over VNC, or: macfleet reboot acme-runners-1"},
		"it does not run":          {found: &inventory.Diagnosis{Detailed: true, Actions: []string{"reboot"}}, want: "host-down", remedy: "macfleet reboot acme-runners-1"},
		"no reboot is offered":     {found: &inventory.Diagnosis{Detailed: true, Actions: []string{"reinstall"}}, want: "host-down", remedy: "offers: reinstall"},
		"unwell without details":   {found: &inventory.Diagnosis{Text: "no route"}, want: "unreachable", text: "diagnostic: no route"},
		"diagnostic unread":        {unread: "denied", want: "unreachable", text: "could not be read: denied"},
		"the provider restarts it": {status: "rebooting", found: &inventory.Diagnosis{Detailed: true}, want: "unreachable", text: "reports status rebooting"},
		"a refused key":            {code: "key-not-installed", found: &inventory.Diagnosis{Detailed: true}, want: "key-not-installed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code := plan.CodeUnreachable
			if tc.code != "" {
				_ = code.UnmarshalText([]byte(tc.code))
			}
			h := plan.Host{Server: server, Name: "acme-runners-1", Member: true, Node: tc.node, Seen: plan.HostSeen{Trouble: code.Trouble("dial: i/o timeout", "by hand"), Diagnosis: tc.found, DiagnosisUnread: tc.unread}}
			if tc.status != "" {
				h.Server.Status = tc.status
			}
			got := h.Diagnosed(of)
			if got.Code.String() != tc.want || !strings.Contains(got.Text, tc.text) || !strings.Contains(got.Remedy, tc.remedy) || !strings.HasPrefix(got.Text, "dial: i/o timeout") {
				t.Errorf("%s", got.Error())
			}
			h.Unknown = got
			if untried := len((&plan.Plan{Hosts: []plan.Host{h}}).Undiagnosed()) > 0; untried != tc.untried {
				t.Errorf("worth a diagnostic: %t", untried)
			}
		})
	}
}
