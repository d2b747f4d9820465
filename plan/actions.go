package plan

import (
	"fmt"

	"github.com/macfleet/macfleet/fleet"
)

// mark returns the action that claims the host on the host.
func mark(h *Host) Action {
	a := h.action(CreateMarker)
	_, begun := h.Seen.Claim.Get()
	switch {
	case h.adopting:
		a.Reason = Reason{"adopted", "the configuration takes the server over under its present name"}
		a.Origin.Pending = true
	case begun && !h.Seen.Pinned:
		a.Reason = Reason{"claim-unfinished", "an earlier run claimed the host and did not finish"}
		a.Origin.Pending = true
	case h.Member:
		a.Reason = Reason{"marker-missing", "the server bears our name and the host has no marker"}
		a.Origin.Drift = true
	default:
		a.Reason = Reason{"too-few-replicas", "it says whose the host is and what was proven on it"}
		a.Origin.Pending = true
	}
	return a
}

func (h *Host) action(k Kind) Action {
	return Action{Kind: k, Host: h.Name, Fleet: h.Fleet, Group: h.Group, ServerID: h.Server.ID}
}

func rename(h *Host) Action {
	a := h.action(RenameServer)
	a.Reason = Reason{"renamed-by-hand", fmt.Sprintf("Scaleway calls the server %s; it is still a member", h.Server.Name)}
	a.Origin.Drift = true
	a.Fields = []Field{{"name", h.Server.Name, h.Name}}
	return a
}

func releaseRefused(h *Host, replicas int) Action {
	a := h.action(ReleaseServer)
	a.Reason = Reason{"too-many-replicas", fmt.Sprintf("%s.%s wants %d", h.Fleet, h.Group, replicas)}
	a.Origin.Pending = true
	a.Disruption = Wipe
	a.Refusal = &Trouble{Code: "release-not-possible",
		Text:   fmt.Sprintf("macfleet %s cannot drain and reinstall a host, so it gives no server back", fleet.Version),
		Remedy: "raise replicas again, or give the server back by hand: drain, reinstall, rename into the pool, then macfleet hosts trust " + h.Name}
	return a
}

// replaceRefused returns the action that a member of another type or OS family
// than its group wants would need.
func replaceRefused(h *Host, f fleet.Fleet, g fleet.Group) []Action {
	a := h.action(ReplaceServer)
	version, _ := h.Seen.OSVersion.Get()
	switch family := osFamily(version); {
	case h.Server.Type != g.Type:
		a.Reason = Reason{"wrong-type", fmt.Sprintf("the server is of type %s, %s.%s wants %s", h.Server.Type, f.Name, g.Name, g.Type)}
		a.Fields = []Field{{"type", h.Server.Type, g.Type}}
	case family != "" && family != f.OS:
		a.Reason = Reason{"wrong-os", fmt.Sprintf("the host runs macOS %s (%s), %s wants %s", version, family, f.Name, f.OS)}
		a.Fields = []Field{{"os", family, f.OS}}
	default:
		return nil
	}
	a.Origin.Pending = true
	a.Disruption = Wipe
	a.Refusal = &Trouble{Code: "replace-not-possible",
		Text:   fmt.Sprintf("macfleet %s cannot drain and reinstall a host, so it replaces no server", fleet.Version),
		Remedy: "set the group back, or replace the server by hand: give this one back to the pool and let macfleet claim another"}
	return []Action{a}
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
