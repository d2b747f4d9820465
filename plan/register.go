package plan

import (
	"fmt"
	"strings"

	"github.com/macfleet/macfleet/fleet"
)

var (
	codeForeignMarker = NewCode("foreign-marker", Critical, "the marker names another owner",
		"find out who manages the host; if it is yours, on the host: sudo rm -r /etc/macfleet; then macfleet apply")
	codeNewerMacfleet         = NewCode("newer-macfleet", Warning, "a newer macfleet changed the host last", "install that version of macfleet or a newer one")
	codeMarkerOfAnotherServer = NewCode("marker-of-another-server", Critical, "the marker names another server",
		"find out which machine answers at this address; if its marker is stale, on the host: sudo rm -r /etc/macfleet; then macfleet apply")
	codeSwappedHost = NewCode("swapped-host", Critical, "the Mac's serial number differs from the marker's",
		"compare the serial number with the provider's console; only if the machine was replaced on purpose, on the host: sudo rm -r /etc/macfleet; then macfleet apply")
)

// register knows the names that the configuration owns: those of the naming grammar for its groups, and those
// of adopted hosts.
type register struct {
	cfg       *fleet.Config
	vendor    fleet.Vendor
	places    map[string]fleet.Place        // of the groups, by their names' common part "acme-prod-macos-m2"
	adopted   map[string]*fleet.Listed      // by server id
	overrides map[string]*fleet.Listed      // by name
	elsewhere map[string]bool               // server ids: adopted in another environment
	movedFrom map[fleet.Place][]fleet.Place // by group: where moved blocks lead from
}

func newRegister(cfg *fleet.Config) *register {
	r := &register{cfg: cfg, vendor: cfg.Vendor(), places: make(map[string]fleet.Place),
		adopted: make(map[string]*fleet.Listed), overrides: make(map[string]*fleet.Listed),
		elsewhere: make(map[string]bool), movedFrom: make(map[fleet.Place][]fleet.Place)}
	for _, id := range cfg.Elsewhere {
		r.elsewhere[id] = true
	}
	for _, f := range cfg.Fleets {
		for _, g := range f.Groups {
			at := fleet.Place{Fleet: f.Name, Group: g.Name}
			r.places[cfg.Owner.String()+"-"+f.Name+"-"+g.Name] = at
			if len(cfg.Moves) > 0 {
				r.movedFrom[at] = cfg.MovedFrom(at)
			}
		}
	}
	for i := range cfg.Hosts {
		l := &cfg.Hosts[i]
		by, key := r.overrides, l.Name
		if l.ServerID != "" {
			by, key = r.adopted, l.ServerID
		}
		if _, twice := by[key]; !twice && r.has(l.Fleet, l.Group) {
			by[key] = l
		}
	}
	return r
}

// has reports whether the configuration has a group.
func (r *register) has(fleetName, group string) bool {
	_, ok := r.places[r.cfg.Owner.String()+"-"+fleetName+"-"+group]
	return ok
}

// place returns where a name puts a server. An adopted server has its listed name and no other. A name counts
// only if its suffix is the server's id and the configuration has its group: a deleted block makes strays.
func (r *register) place(name, serverID string) (fleet.Place, bool) {
	if l, ok := r.adopted[serverID]; ok {
		return fleet.Place{Fleet: l.Fleet, Group: l.Group}, name == l.Name
	}
	i := strings.LastIndexByte(name, '-')
	if i < 0 {
		return fleet.Place{}, false
	}
	// Looking up the group before the name is parsed is faster: a big fleet has four names for every server.
	at, ok := r.places[name[:i]]
	if !ok || name != r.cfg.HostName(at.Fleet, at.Group, serverID) || strings.Trim(name[i+1:], "0123456789abcdef") != "" {
		return fleet.Place{}, false
	}
	at.Suffix = name[i+1:] // like Parse, but without regular expressions
	return at, true
}

// spec returns the specification of a host: its own block adds to its group's.
func (r *register) spec(name, serverID string, g fleet.Group) fleet.Spec {
	if l, ok := r.adopted[serverID]; ok {
		return l.Spec
	}
	if l, ok := r.overrides[name]; ok {
		return l.Spec
	}
	return g.Spec
}

// MarkerForbids returns why the host's marker or claim forbids changing it, or nil. It is checked for the plan and
// again before the host is changed: hours may have passed in between.
func MarkerForbids(cfg *fleet.Config, h *Host) *Trouble {
	m, marked := h.Seen.Marker.Get()
	claim, claimed := h.Seen.Claim.Get()
	serial, _ := h.Seen.Serial.Get()
	pin := h.trust.Pin
	switch {
	case h.Seen.Marker.IsUnread():
		return markerUnreadable(h.Seen.Marker.Why())
	case !marked && pin != nil && pin.Serial != "" && serial != "" && pin.Serial != serial:
		return codeSwappedHost.Trouble(fmt.Sprintf("the machine has serial number %s and no marker, but its key was pinned on %s", serial, pin.Serial),
			"compare the serial number with "+cfg.Vendor().Console()+"; only if the machine was replaced on purpose: macfleet hosts forget-key "+h.Name+", then macfleet apply --on name="+h.Name)
	case !marked && h.Seen.Claim.IsUnread():
		return ClaimUnreadable(h.Seen.Claim.Why())
	case !marked && claimed && !claim.Same(ClaimOf(cfg.Owner, h.Name, h.Server.ID)) && !hadName(cfg, h, claim.Name):
		return codeClaimedByAnother.Trouble(fmt.Sprintf("it is claimed as %s of %s", claim.Name, fleet.Owner{Name: claim.Configuration, Environment: claim.Environment}))
	case !marked:
		return nil
	case m.Owner() != cfg.Owner:
		return codeForeignMarker.Trouble(fmt.Sprintf("its marker names %s of %s as the owner", m.Name, m.Owner()))
	case h.otherCluster(m) != nil:
		return h.otherCluster(m)
	case m.newer():
		return codeNewerMacfleet.Trouble(fmt.Sprintf("the newer macfleet %q changed it last; this is %s", m.Version, fleet.Version))
	case m.ServerID != h.Server.ID || m.Name != h.Name && !adoptedAs(cfg, h) && !hadName(cfg, h, m.Name):
		return codeMarkerOfAnotherServer.Trouble(fmt.Sprintf("its marker was written for %s (server %s)", m.Name, m.ServerID))
	case m.Serial != "" && serial != "" && m.Serial != serial:
		return codeSwappedHost.Trouble(fmt.Sprintf("the machine has serial number %s, but its marker was written on %s", serial, m.Serial),
			"compare the serial number with "+cfg.Vendor().Console()+"; only if the machine was replaced on purpose, on the host: sudo rm -r /etc/macfleet; then macfleet apply --on name="+h.Name)
	}
	return nil
}

// adoptedAs reports whether a host block gives this server its present name: it may be renamed at the
// provider and in its block at the same time, while its marker has the old name.
func adoptedAs(cfg *fleet.Config, h *Host) bool {
	l, ok := cfg.Listed(h.Name)
	return ok && l.ServerID == h.Server.ID && h.Server.Name == h.Name
}
