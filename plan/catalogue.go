package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
)

var codeOutOfStock = NewCode("out-of-stock", NotDrift, "the pool has too few servers, and the provider has none of that type in stock",
	"wait for stock, or lower replicas")

// Order is what a person can order for a group that lacks servers.
type Order struct {
	Count      int    `json:"count"` // servers
	Type       string `json:"type"`
	Zone       string `json:"zone"`
	OS         string `json:"os"`          // macOS family
	NamePrefix string `json:"name_prefix"` // their names must start with it
	// Stock is what the provider has of the type in that zone; unknown if the catalogue was not read.
	Stock inventory.Stock `json:"stock"`
	// MinLease is how many seconds a server is rented at least; 0: no lease, or unknown.
	MinLease   int64            `json:"minimum_lease_seconds,omitempty"`
	PriceClass fleet.PriceClass `json:"price_class,omitempty"` // empty: the type is not known
}

// String says what to order.
func (o Order) String() string {
	return fmt.Sprintf("order %d x %s in %s with %s, named %s…", o.Count, o.Type, o.Zone, o.OS, o.NamePrefix)
}

// Facts says what is known of the order: stock, minimum lease and price class.
func (o Order) Facts() string {
	facts := []string{o.stock()}
	if o.MinLease > 0 {
		facts = append(facts, "minimum lease "+leaseText(o.MinLease))
	}
	if o.PriceClass != "" {
		price := "price class " + string(o.PriceClass)
		if q := fleet.Quoted(o.Type); q != "" {
			price += ", about " + q
		}
		facts = append(facts, price)
	}
	return strings.Join(facts, "; ")
}

func (o Order) stock() string {
	switch o.Stock {
	case inventory.NoStock:
		return "out of stock"
	case inventory.LowStock:
		return "low stock"
	case inventory.HighStock:
		return "in stock"
	}
	return "stock unknown"
}

// leaseText says how long a lease is: whole days as hours up to two days, then as days.
func leaseText(seconds int64) string {
	d := time.Duration(seconds) * time.Second
	if day := 24 * time.Hour; d >= 2*day && d%day == 0 {
		return fmt.Sprintf("%d days", d/day)
	}
	if d%time.Hour == 0 {
		return fmt.Sprintf("%dh", d/time.Hour)
	}
	return d.String()
}

func leaseSeconds(o inventory.Offer) int64 { return int64(o.MinLease / time.Second) }

// NeedsCatalogue reports whether a plan uses the provider's catalogue: a selected group lacks servers that can be
// ordered, servers leave their groups and are reinstalled, or a person asks what other numbers of servers need.
func NeedsCatalogue(cfg *fleet.Config, snap Snapshot, sel Selection) bool {
	if len(sel.WhatIf) > 0 {
		return true
	}
	c := takeCensus(cfg, snap)
	return c.leavers(sel) && len(sel.Steps) == 0 || slices.ContainsFunc(c.assign(sel), func(n need) bool {
		return n.missing() > 0 && sel.matches(lackingIn(n.fleet, n.group))
	})
}

// toOrder returns what to order for a group: of the types that it accepts, the first that is in stock, in the zone
// with the fewest of its members. If none is in stock, it returns the first type there. It returns nil if the provider
// installs the fleet's macOS family on none of them.
func (c *census) toOrder(n need) *Order {
	zones := c.zonesByMembers(n)
	if len(zones) == 0 {
		zones = []string{""} // the loader requires one
	}
	var first *Order
	for _, serverType := range n.group.Types() {
		for _, zone := range zones {
			if c.familyGone(n.fleet.OS, serverType, zone) {
				continue
			}
			o := Order{Count: n.missing(), Type: serverType, Zone: zone, OS: n.fleet.OS, NamePrefix: c.vendor.PoolPrefix, Stock: inventory.UnknownStock,
				PriceClass: fleet.PriceOf(serverType)}
			if offer, known := c.offer(serverType, zone); known {
				o.Stock, o.MinLease = offer.Stock, leaseSeconds(offer)
			}
			if o.Stock != inventory.NoStock {
				return &o
			}
			if first == nil {
				first = &o
			}
		}
	}
	return first
}

// familyGone reports whether the provider certainly does not install a macOS family on a type in a zone. A catalogue
// without any operating system says nothing.
func (c *census) familyGone(family, serverType, zone string) bool {
	if c.snap.Catalogue == nil || len(c.snap.Catalogue.Systems) == 0 {
		return false
	}
	_, offered := c.snap.Catalogue.System(family, serverType, zone)
	return !offered
}

// familiesFor returns the macOS families that the provider installs on any of a group's types, sorted.
func (c *census) familiesFor(g fleet.Group) []string {
	var all []string
	for _, serverType := range g.Types() {
		for _, zone := range c.vendor.Zones {
			all = append(all, c.snap.Catalogue.Families(serverType, zone)...)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// offer returns the provider's offer of a type in a zone, as far as it was read. A type that a zone does not list
// is out of stock there.
func (c *census) offer(serverType, zone string) (inventory.Offer, bool) {
	if c.snap.Catalogue == nil {
		return inventory.Offer{}, false
	}
	o, listed := c.snap.Catalogue.Offer(serverType, zone)
	if !listed {
		o = inventory.Offer{Type: serverType, Zone: zone, Stock: inventory.NoStock}
	}
	return o, true
}

// zonesByMembers returns the configured zones, those with the fewest members, claims and coming servers of a group first.
func (c *census) zonesByMembers(n need) []string {
	in := make(map[string]int)
	for _, p := range c.members[fleet.Place{Fleet: n.fleet.Name, Group: n.group.Name}] {
		in[p.server.Zone]++
	}
	for _, p := range slices.Concat(n.chosen, n.coming) {
		in[p.server.Zone]++
	}
	zones := slices.Clone(c.vendor.Zones)
	slices.SortStableFunc(zones, func(a, b string) int { return cmp.Compare(in[a], in[b]) })
	return zones
}

// tooFew returns why a group gets too few servers and what to order; nil if an order would not help.
func (c *census) tooFew(n need) (*Order, Trouble) {
	order := c.toOrder(n)
	t := Trouble{Code: codePoolTooSmall, Text: fmt.Sprintf("the pool %s… has no more %s with %s", c.vendor.PoolPrefix, n.group.TypeText(), n.fleet.OS) + c.searched()}
	remedy := ""
	if order != nil {
		remedy = fmt.Sprintf("%s, in %s (%s)", order, c.vendor.Console(), order.Facts())
	}
	switch {
	case order == nil:
		t.Code, remedy = codeOSFamilyGone, codeOSFamilyGone.Remedy()
		t.Text += fmt.Sprintf(", and %s no longer installs macOS %s on %s; it offers %s", c.vendor.Name, n.fleet.OS, n.group.TypeText(),
			cmp.Or(strings.Join(c.familiesFor(n.group), ", "), "nothing"))
	case order.Stock == inventory.NoStock:
		t.Code = codeOutOfStock
		t.Text += fmt.Sprintf(", and %s has none in stock", c.vendor.Name)
		remedy = "wait for stock, then " + remedy
	}
	if why := c.snap.CatalogueUnread; why != "" {
		t.Text += "; the catalogue could not be read: " + why
	}
	if len(n.rejected) > 0 { // an order costs at least a day's rent and may turn out unnecessary
		t.Text += fmt.Sprintf("; not usable: %s", count(len(n.rejected), "server"))
		remedy = "fix the servers listed as skipped; otherwise " + remedy
	}
	if a := c.snap.Account; a != nil && len(a.Holds) > 0 {
		remedy = "correct zones or project_id in the configuration; if they are right, " + remedy
	}
	t.Remedy = remedy + ", or lower replicas"
	return order, t
}
