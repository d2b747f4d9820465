package plan

import (
	"cmp"
	"slices"

	"github.com/macfleet/macfleet/fleet/inventory"
)

// CodeMayNotRename is raised before any server or host is touched.
var CodeMayNotRename = NewCode("may-not-rename", NotDrift,
	"the API key may not rename servers, so none is claimed, renamed or released; no host was touched",
	"give the API key the permission set AppleSiliconFullAccess in the project, then run the command again; macfleet doctor account lists its rights")

// RenameRight is the answer to a request that needs the right to rename servers and changes nothing. With neither
// text the right is granted.
type RenameRight struct {
	Denied string `json:"denied,omitempty"` // why the provider denies it
	Unread string `json:"unread,omitempty"` // why it is unknown; apply asks again before it touches a host
}

// renames reports whether an action changes a server's name, or leads to that.
func (k Kind) renames() bool {
	switch k {
	case ClaimServer, RenameServer, ReinstallServer, ReleaseServer, ReplaceServer:
		return true
	}
	return false
}

// Renamed returns a server that the plan renames: one of the pool if possible, because no host depends on the time of
// its last update. false: there is none.
func (p *Plan) Renamed() (inventory.Server, bool) {
	hosts := p.hostsByServer()
	all := slices.DeleteFunc(slices.Clone(p.Actions), func(a Action) bool { return !a.Kind.renames() || !a.Runs() || hosts[a.ServerID] == nil })
	if len(all) == 0 {
		return inventory.Server{}, false
	}
	first := slices.MinFunc(all, func(a, b Action) int { return boolean(a.Kind != ClaimServer) - boolean(b.Kind != ClaimServer) })
	return hosts[first.ServerID].Server, true
}

// renameRight refuses the hosts whose servers would be renamed if the API key may not do that. Otherwise a claim or a
// release would stop halfway.
func (c *computation) renameRight() {
	r := c.snap.RenameRight
	if r == nil || r.Denied == "" {
		return
	}
	t, refused := CodeMayNotRename.Trouble(r.Denied), make(map[string]bool)
	for _, a := range c.plan.Actions {
		refused[a.ServerID] = refused[a.ServerID] || a.Kind.renames() && a.Runs()
	}
	for i := range c.plan.Hosts {
		if h := &c.plan.Hosts[i]; refused[h.Server.ID] && h.Unknown == nil {
			h.Refused = cmp.Or(h.Refused, t)
		}
	}
	for i := range c.plan.Actions {
		if a := &c.plan.Actions[i]; refused[a.ServerID] {
			a.Refusal = cmp.Or(a.Refusal, t)
		}
	}
}
