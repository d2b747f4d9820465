package fleet

import "slices"

// What Scaleway offered when this version was made. It offers new ones without asking anybody, so a name that is
// missing here is doubtful and not wrong.
var (
	serverTypes = []string{"M1-M", "M2-M", "M2-L", "M4-S", "M4-SP", "M4-M", "M4-L", "M4-XL"}
	zones       = []string{"fr-par-1", "fr-par-3"}
	osFamilies  = []string{"Ventura", "Sonoma", "Sequoia", "Tahoe"}
)

// ServerTypes returns the types of Mac minis that Scaleway is known to offer.
func ServerTypes() []string { return slices.Clone(serverTypes) }

// Zones returns the zones in which it is known to offer them.
func Zones() []string { return slices.Clone(zones) }

// OSFamilies returns the families of macOS that it is known to offer.
func OSFamilies() []string { return slices.Clone(osFamilies) }
