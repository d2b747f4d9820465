package plan

import (
	"fmt"

	"github.com/macfleet/macfleet/fleet"
)

// The codes that are raised here.
var (
	codeForeignMarker = NewCode("foreign-marker", Critical, "the marker says that the host is another owner's",
		"find out whose host it is; if it is yours, remove /etc/macfleet on it and apply again")
	codeNewerMacfleet         = NewCode("newer-macfleet", Warning, "a newer version of macfleet wrote the marker", "use that version or a later one")
	codeMarkerOfAnotherServer = NewCode("marker-of-another-server", Critical, "the marker names another server",
		"find out which machine answers at this address; if the marker is stale, remove /etc/macfleet on it and apply again")
	codeSwappedHost = NewCode("swapped-host", Critical, "the serial number of the Mac is not the marker's",
		"ask the provider whether the machine was exchanged; then remove /etc/macfleet on it and apply again")
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
		return codeForeignMarker.Trouble(fmt.Sprintf("its marker says that it is %s of %s", m.Name, m.Owner()))
	case m.newer():
		return codeNewerMacfleet.Trouble(fmt.Sprintf("macfleet %q worked on it last, this is %s", m.Version, fleet.Version))
	case m.ServerID != h.Server.ID || m.Name != h.Name && !adoptedAs(cfg, h):
		return codeMarkerOfAnotherServer.Trouble(fmt.Sprintf("its marker was written for %s (server %s)", m.Name, m.ServerID))
	case m.Serial != "" && serial != "" && m.Serial != serial:
		return &Trouble{Code: codeSwappedHost,
			Text:   fmt.Sprintf("the machine has serial number %s, its marker was written on %s", serial, m.Serial),
			Remedy: "ask " + cfg.Vendor().Name + " whether the machine was exchanged; then remove /etc/macfleet on it and apply again"}
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
		return ClaimUnreadable(h.Seen.Claim.Why())
	}
	claim, ok := h.Seen.Claim.Get()
	if !ok || claim.Same(ClaimOf(cfg.Owner, h.Name, h.Server.ID)) {
		return nil
	}
	return codeClaimedByAnother.Trouble(fmt.Sprintf("it is claimed as %s of %s", claim.Name, fleet.Owner{Name: claim.Configuration, Environment: claim.Environment}))
}
