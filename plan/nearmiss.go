package plan

import (
	"strings"

	"github.com/macfleet/macfleet/fleet/inventory"
)

var codeNearMiss = NewCode("pool-near-miss", NotDrift, "the name of a server resembles the pool's prefix, and is not in the pool")

// alike are letters that look like others, as a person types them.
var alike = strings.NewReplacer("0", "o", "1", "l", "i", "l", "_", "-", ".", "-", " ", "-", "–", "-", "о", "o", "р", "p", "а", "a", "с", "c")

// resembles reports whether a name begins with a prefix as a person reads it, and not as written.
func resembles(name, prefix string) bool {
	if prefix == "" || strings.HasPrefix(name, prefix) {
		return false
	}
	read := func(s string) string {
		return strings.TrimSuffix(alike.Replace(strings.ToLower(strings.TrimSpace(s))), "-")
	}
	return strings.HasPrefix(read(name), read(prefix))
}

// nearMisses warns in one line of servers that are in no pool because of how their names are written.
func (c *computation) nearMisses(strays []inventory.Server) {
	var names []string
	for _, s := range strays {
		if resembles(s.Name, c.vendor.PoolPrefix) {
			names = append(names, s.Name)
		}
	}
	if len(names) > 0 {
		c.plan.Warnings = append(c.plan.Warnings, *codeNearMiss.Trouble(count(len(names), "server")+" outside the pool: "+sampleOf(names),
			"to let them be claimed, begin their names with "+c.vendor.PoolPrefix+" in "+c.vendor.Console()))
	}
}
