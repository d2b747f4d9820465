package plan

import (
	"fmt"

	"github.com/macfleet/macfleet/fleet"
)

// NotOurs returns why the host's marker or claim forbids to touch it, or nil. The
// plan asks, and so does whoever is about to change the host: between the two a
// person may have thought for hours.
func NotOurs(cfg *fleet.Config, h Host) *Trouble { return notOurs(cfg, &h) }

func notOurs(cfg *fleet.Config, h *Host) *Trouble {
	if h.Seen.Marker.IsUnread() {
		return markerUnreadable(h.Seen.Marker.Why())
	}
	m, marked := h.Seen.Marker.Get()
	if !marked {
		return claimedByAnother(cfg, h)
	}
	serial, _ := h.Seen.Serial.Get()
	switch {
	case m.Owner() != cfg.Owner:
		return &Trouble{Code: "foreign-marker",
			Text:   fmt.Sprintf("its marker says that it is %s of %s", m.Name, m.Owner()),
			Remedy: "find out whose host it is; if it is yours, remove /etc/macfleet on it and apply again"}
	case m.newer():
		return &Trouble{Code: "newer-macfleet",
			Text:   fmt.Sprintf("macfleet %q worked on it last, this is %s", m.Version, fleet.Version),
			Remedy: "use that version or a later one"}
	case m.ServerID != h.Server.ID || m.Name != h.Name && !adoptedAs(cfg, h):
		return &Trouble{Code: "marker-of-another-server",
			Text:   fmt.Sprintf("its marker was written for %s (server %s)", m.Name, m.ServerID),
			Remedy: "find out which machine answers at this address; if the marker is stale, remove /etc/macfleet on it and apply again"}
	case m.Serial != "" && serial != "" && m.Serial != serial:
		return &Trouble{Code: "swapped-host",
			Text:   fmt.Sprintf("the machine has serial number %s, its marker was written on %s", serial, m.Serial),
			Remedy: "ask Scaleway whether the machine was exchanged; then remove /etc/macfleet on it and apply again"}
	}
	return nil
}

// adoptedAs reports whether a host block gives this very server the name it has:
// an adopted server may be renamed at the provider and in its block at once, and
// its marker then still says the old name.
func adoptedAs(cfg *fleet.Config, h *Host) bool {
	l, ok := cfg.Listed(h.Name)
	return ok && l.ServerID == h.Server.ID && h.Server.Name == h.Name
}

func claimedByAnother(cfg *fleet.Config, h *Host) *Trouble {
	if h.Seen.Claim.IsUnread() {
		return claimUnreadable(h.Seen.Claim.Why())
	}
	claim, ok := h.Seen.Claim.Get()
	if !ok || claim.Same(ClaimOf(cfg.Owner, h.Name, h.Server.ID)) {
		return nil
	}
	return &Trouble{Code: "claimed-by-another",
		Text:   fmt.Sprintf("it is claimed as %s of %s", claim.Name, fleet.Owner{Name: claim.Configuration, Environment: claim.Environment}),
		Remedy: "let the other run finish; if that claim is dead, remove /etc/macfleet on the host and apply again"}
}
