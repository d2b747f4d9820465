package fleet

import (
	"slices"
	"strings"
)

// What Scaleway offered when this version was made. Scaleway may offer more since, so an unknown name is a
// warning and not an error.
var (
	serverTypes = []string{"M1-M", "M2-M", "M2-L", "M4-S", "M4-SP", "M4-M", "M4-L", "M4-XL"}
	zones       = []string{"fr-par-1", "fr-par-3"}
)

// releases are the families of macOS by Apple's version numbers, oldest first.
var releases = []struct{ major, family string }{{"13", "Ventura"}, {"14", "Sonoma"}, {"15", "Sequoia"}, {"26", "Tahoe"}}

// PriceClass is a rough guide to what a server type costs: Scaleway's API names no prices.
type PriceClass string

// The classes, from the cheapest. Only two prices were ever quoted to us: see Quoted.
const (
	SmallPrice  PriceClass = "small"
	MediumPrice PriceClass = "medium"
	LargePrice  PriceClass = "large"
)

// prices has the class of each known type, and its quoted price where there is one.
var prices = map[string]struct {
	class  PriceClass
	quoted string
}{
	"M1-M":  {SmallPrice, ""},
	"M2-M":  {SmallPrice, ""},
	"M4-S":  {SmallPrice, ""},
	"M2-L":  {MediumPrice, "0.21 EUR/h"},
	"M4-SP": {MediumPrice, ""},
	"M4-M":  {MediumPrice, ""},
	"M4-L":  {LargePrice, ""},
	"M4-XL": {LargePrice, "0.49 EUR/h"},
}

// PriceOf returns the price class of a server type; "" for an unknown type.
func PriceOf(serverType string) PriceClass { return prices[serverType].class }

// Quoted returns the price of a type as it was quoted in September 2026, or "". The provider's console has the
// present one.
func Quoted(serverType string) string { return prices[serverType].quoted }

// ServerTypes returns the known types of Mac minis.
func ServerTypes() []string { return slices.Clone(serverTypes) }

// Zones returns the zones known to offer them.
func Zones() []string { return slices.Clone(zones) }

// OSFamilies returns the known families of macOS.
func OSFamilies() []string {
	out := make([]string, 0, len(releases))
	for _, r := range releases {
		out = append(out, r.family)
	}
	return out
}

// OSFamily returns the family of a macOS version, or "" for one that this version does not know.
func OSFamily(version string) string {
	major, _, _ := strings.Cut(version, ".")
	for _, r := range releases {
		if r.major == major {
			return r.family
		}
	}
	return ""
}
