package load

import (
	"slices"

	"github.com/hashicorp/hcl/v2"

	"github.com/macfleet/macfleet/fleet"
)

// linuxType is the type of Mac mini that runs Linux.
const linuxType = "M2-L-ASAHI"

// offered warns of names that Scaleway did not offer when this version was built. It may offer them now, so these are
// warnings, not errors.
func (l *loader) offered(defaults defaultsBlock, fleets []fleetBlock) {
	l.offeredOS(defaults.Place, defaults.OS)
	for _, f := range fleets {
		l.offeredOS(f.Place, f.OS)
		for _, g := range f.Groups {
			if g.Place.good["type"] {
				l.offeredType(g.Place.at("type"), g.Type)
			}
			if g.Place.good["types"] {
				for i, t := range g.Types {
					l.offeredType(elementRange(g.Place.attrs["types"].Expr, i), t)
				}
			}
		}
	}
}

func (l *loader) offeredType(at hcl.Range, name string) {
	if name == linuxType {
		l.warn(at, "Type without macOS", "Servers of type %q run Linux; macfleet manages macOS. Choose another type.", name)
		return
	}
	l.doubt(at, "server type", name, fleet.ServerTypes())
}

func (l *loader) offeredOS(at place, os string) {
	if at.good["os"] {
		l.doubt(at.at("os"), "macOS family", os, fleet.OSFamilies())
	}
}

// offeredZones is the same for the zones of the scaleway block.
func (l *loader) offeredZones(b scalewayBlock) {
	if !b.Place.good["zones"] {
		return
	}
	for i, zone := range b.Zones {
		l.doubt(elementRange(b.Place.attrs["zones"].Expr, i), "zone", zone, fleet.Zones())
	}
}

func (l *loader) doubt(at hcl.Range, what, name string, known []string) {
	if !slices.Contains(known, name) {
		l.warn(at, "Unknown "+what, "This version of macfleet does not know the %s %s.%s Known: %s. If Scaleway offers it now, ignore this warning.",
			what, quoted(name), didYouMean(fleet.Nearest(name, known)), listed(known))
	}
}
