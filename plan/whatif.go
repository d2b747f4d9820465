package plan

import (
	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
)

// WhatIf is a group for which a plan takes another number of servers than the configuration says.
type WhatIf struct {
	Fleet      string `json:"fleet"`
	Group      string `json:"group"`
	Configured int    `json:"configured"` // replicas as the configuration says
	Replicas   int    `json:"replicas"`   // as the plan takes them
	Members    int    `json:"members"`    // hosts now
	Claims     int    `json:"claims"`     // hosts that come from the pool
	ToOrder    int    `json:"to_order"`   // servers that the pool lacks
	Leaving    int    `json:"leaving"`    // hosts that would leave
	Free       int    `json:"free"`       // pool servers that fit and remain
	// Later are the claims that a limit leaves for a later run, and Limit is the first such limit; empty: none.
	Later  int           `json:"later"`
	Limit  string        `json:"limit,omitempty"`
	Offers []WhatIfOffer `json:"offers"` // of the group's types in the configured zones
}

// WhatIfOffer is what the provider offers of a server type in a zone.
type WhatIfOffer struct {
	Type       string           `json:"type"`
	Zone       string           `json:"zone"`
	Stock      inventory.Stock  `json:"stock"`
	MinLease   int64            `json:"minimum_lease_seconds,omitempty"` // 0: none, or unknown
	PriceClass fleet.PriceClass `json:"price_class,omitempty"`           // empty: the type is not known
}

// Facts says what is known of the offer.
func (o WhatIfOffer) Facts() string {
	return Order{Type: o.Type, Stock: o.Stock, MinLease: o.MinLease, PriceClass: o.PriceClass}.Facts()
}

// whatIf records what a plan with other numbers of servers needs.
func (c *computation) whatIf() {
	for _, s := range c.sel.WhatIf {
		f, g, known := c.cfg.Group(s.Fleet, s.Group)
		if !known {
			continue
		}
		w := WhatIf{Fleet: s.Fleet, Group: s.Group, Configured: s.From, Replicas: s.To,
			Members: len(c.members[fleet.Place{Fleet: s.Fleet, Group: s.Group}])}
		w.Leaving = max(0, w.Members-w.Replicas)
		for _, n := range c.needs {
			if n.fleet.Name == s.Fleet && n.group.Name == s.Group {
				w.Claims, w.ToOrder = len(n.chosen), n.missing()
			}
		}
		w.Free = c.freeFor(f, g)
		for _, serverType := range g.Types() {
			for _, zone := range c.vendor.Zones {
				w.Offers = append(w.Offers, c.offered(serverType, zone))
			}
		}
		c.plan.WhatIf = append(c.plan.WhatIf, w)
	}
}

// freeFor counts the pool servers that fit a group and that no group takes.
func (c *computation) freeFor(f fleet.Fleet, g fleet.Group) int {
	taken := make(map[string]bool)
	for _, n := range c.needs {
		for i := range n.chosen {
			taken[n.chosen[i].server.ID] = true
		}
		for _, r := range n.rejected {
			taken[r.Server.ID] = true
		}
	}
	free := 0
	for _, l := range c.queueFor(need{fleet: f, group: g}, taken).lines {
		for i := range l.waiting {
			free += ones(c.unready(l.waiting[i].server) == nil)
		}
	}
	return free
}

func (c *census) offered(serverType, zone string) WhatIfOffer {
	o := WhatIfOffer{Type: serverType, Zone: zone, Stock: inventory.UnknownStock, PriceClass: fleet.PriceOf(serverType)}
	if offer, known := c.offer(serverType, zone); known {
		o.Stock, o.MinLease = offer.Stock, leaseSeconds(offer)
	}
	return o
}

// limitWhatIf counts the claims that the run's limits leave for later runs.
func (p *Plan) limitWhatIf() {
	for i := range p.WhatIf {
		w := &p.WhatIf[i]
		w.Later, w.Limit = 0, ""
		for _, a := range p.Actions {
			if a.Kind == ClaimServer && a.Fleet == w.Fleet && a.Group == w.Group && a.Deferral != nil {
				w.Later++
				if w.Limit == "" {
					w.Limit = a.Deferral.Code.String()
				}
			}
		}
	}
}
