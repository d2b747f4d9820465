package load

import (
	"regexp"
	"slices"

	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/macfleet/macfleet/fleet"
)

var zonePattern = regexp.MustCompile(`^[a-z]{2}-[a-z]{3,7}-[0-9]{1,2}$`)

// scaleway reads where the servers are rented. The owners are those of all
// environments: they share the project and therefore the pool.
func (l *loader) scaleway(blocks []*hclsyntax.Block, sc *scope, owners []fleet.Owner) fleet.Scaleway {
	b := decodeOnly[scalewayBlock](l, blocks, sc)
	if b == nil {
		return fleet.Scaleway{}
	}
	if b.Place.good["zones"] {
		l.zones(b)
	}
	if b.Place.good["pool_prefix"] && !l.poolPrefix(b, owners) {
		b.PoolPrefix = "" // nothing is compared with a faulty one
	}
	return fleet.Scaleway{Zones: b.Zones, PoolPrefix: b.PoolPrefix}
}

func (l *loader) zones(b *scalewayBlock) {
	if len(b.Zones) == 0 {
		l.fault(b.Place.at("zones"), "Empty list", "The argument %q must name at least one zone, such as \"fr-par-1\".", "zones")
	}
	for i, zone := range b.Zones {
		at := b.Place.element("zones", i)
		switch {
		case !zonePattern.MatchString(zone):
			l.fault(at, "Invalid zone", "%s is not the name of a zone: it must look like \"fr-par-1\".", quoted(zone))
		case slices.Index(b.Zones, zone) < i:
			l.fault(at, "Duplicate zone", "The zone %q is listed twice. Remove one.", zone)
		}
	}
}

func (l *loader) poolPrefix(b *scalewayBlock, owners []fleet.Owner) bool {
	const summary = "Invalid pool prefix"
	at := b.Place.at("pool_prefix")
	if b.PoolPrefix == "" {
		l.fault(at, summary, "The argument %q must not be empty: every server of the project would count as one of the pool.", "pool_prefix")
		return false
	}
	for _, o := range owners {
		if why := o.PoolConflict(b.PoolPrefix); why != "" {
			l.fault(at, summary, "Servers whose name starts with %s are free to be claimed, and %s. Choose another prefix.", quoted(b.PoolPrefix), why)
			return false
		}
	}
	return true
}

// owners returns the owner of every environment, or the one that has none.
func owners(name string, environments []string) []fleet.Owner {
	if name == "" {
		return nil
	}
	if len(environments) == 0 {
		return []fleet.Owner{{Name: name}}
	}
	var all []fleet.Owner
	for _, env := range environments {
		all = append(all, fleet.Owner{Name: name, Environment: env})
	}
	return all
}
