package plan

import (
	"slices"
	"strings"
	"testing"

	"github.com/macfleet/macfleet/fleet/inventory"
)

// TestRenameRight: without the right to rename, every host whose server would be renamed is refused as a whole, and
// the others continue. An unknown right refuses nothing: apply asks again.
func TestRenameRight(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		right   *RenameRight
		refused string
	}{
		"not requested": {nil, ""},
		"granted":       {&RenameRight{}, ""},
		"unknown":       {&RenameRight{Unread: "503"}, ""},
		"denied":        {&RenameRight{Denied: "403"}, "claim 1, step 1, drain 2, reinstall 2, release 2, rename 3, replace 4"},
	} {
		c := computation{census: &census{snap: Snapshot{RenameRight: tc.right}}, plan: &Plan{Actions: []Action{{Kind: KeepObject}}}}
		for _, of := range []struct {
			id    string
			kinds []Kind
		}{{"1", []Kind{ClaimServer, RunStep}}, {"2", []Kind{DrainNode, ReinstallServer, ReleaseServer}}, {"3", []Kind{RenameServer}},
			{"4", []Kind{ReplaceServer}}, {"5", []Kind{RunStep, RebootServer}}} {
			c.plan.Hosts = append(c.plan.Hosts, Host{Server: inventory.Server{ID: of.id}})
			for _, k := range of.kinds {
				c.plan.Actions = append(c.plan.Actions, Action{Kind: k, ServerID: of.id})
			}
		}
		c.renameRight()
		var refused, blocked []string
		for _, a := range c.plan.Actions {
			if a.Refusal != nil && a.Refusal.Code == CodeMayNotRename {
				refused = append(refused, string(a.Kind)+" "+a.ServerID)
			}
		}
		for _, h := range c.plan.Hosts {
			if h.Refused != nil {
				blocked = append(blocked, h.Server.ID)
			}
		}
		if got := strings.Join(refused, ", "); got != tc.refused || len(blocked) > 0 && !slices.Equal(blocked, []string{"1", "2", "3", "4"}) {
			t.Errorf("%s: refused %q, want %q; hosts %q", name, got, tc.refused, blocked)
		}
		if _, renames := c.plan.Renamed(); renames != (tc.refused == "") {
			t.Errorf("%s: the plan renames a server: %t", name, renames)
		}
	}
}

// TestRenamedPrefersThePool: the server that the right is tested on is one that no host depends on.
func TestRenamedPrefersThePool(t *testing.T) {
	t.Parallel()
	p := Plan{Hosts: []Host{{Server: inventory.Server{ID: "member"}}, {Server: inventory.Server{ID: "pool"}}, {Server: inventory.Server{ID: "refused"}}},
		Actions: []Action{{Kind: ClaimServer, ServerID: "refused", Refusal: &Trouble{}}, {Kind: ReleaseServer, ServerID: "member"}, {Kind: ClaimServer, ServerID: "pool"}}}
	if s, renames := p.Renamed(); !renames || s.ID != "pool" {
		t.Errorf("the right is tested on %q", s.ID)
	}
	p.Actions = []Action{{Kind: RunStep, ServerID: "member"}, {Kind: KeepObject}}
	if s, renames := p.Renamed(); renames {
		t.Errorf("a plan that renames nothing tests the right on %q", s.ID)
	}
}
