package plan

import (
	"fmt"
	"math"
	"strings"

	"github.com/macfleet/macfleet/fleet/inventory"
)

var (
	codeOnTheWay = NewCode("server-on-the-way", NotDrift, "a server was ordered and is not delivered yet",
		"macfleet apply when it is delivered")
	codeOrderNotApproved = NewCode("order-not-approved", NotDrift, "a server may be ordered, and the run may not do it: orders cost money, so --auto-approve does not approve them",
		"macfleet apply in a terminal, which asks for the name; elsewhere: macfleet apply --allow-order N")
)

// AnyOrders is a number of orders that no run reaches.
const AnyOrders = math.MaxInt

// Purchase is a server that an action orders.
type Purchase struct {
	Order           // of one server
	Name     string `json:"name"`    // a name of the pool that no other server has
	SystemID string `json:"os_id"`   // the provider's id of the operating system
	System   string `json:"os_name"` // its name
}

// orders plans the orders of the servers that a group lacks, as far as the configuration allows them. A pool server that
// someone could repair is not replaced by an order: a person decides about that.
func (c *computation) orders(n need) {
	if !c.vendor.Orders || c.sel.Departs != nil || c.snap.Catalogue == nil {
		return
	}
	inZone := make(map[string]int)
	for range n.missing() - len(n.rejected) + n.foreign {
		o := c.nextOrder(n, 1, inZone)
		if o == nil || o.Stock == inventory.NoStock {
			return
		}
		system, offered := c.snap.Catalogue.System(o.OS, o.Type, o.Zone)
		if !offered {
			return
		}
		inZone[o.Zone]++
		b := Purchase{Order: *o, Name: c.orderName(), SystemID: system.ID, System: system.Name}
		c.plan.Actions = append(c.plan.Actions, Action{Kind: OrderServer, Host: b.Name, Fleet: n.fleet.Name, Group: n.group.Name, Purchase: &b, Refusal: c.doubt,
			Reason: Reason{codeTooFewReplicas, fmt.Sprintf("%s.%s has replicas = %d, and the pool has too few servers", n.fleet.Name, n.group.Name, n.group.Replicas)},
			Fields: []Field{{"server", "", b.Name}, {"type", "", b.Type}, {"zone", "", b.Zone}, {"os", "", b.OS}}})
	}
}

// orderPrefix begins the names of the servers that this configuration orders. No other configuration orders under it.
func (c *census) orderPrefix() string { return c.vendor.PoolPrefix + c.cfg.Owner.String() + "-" }

// orderName returns the first free name for a server that is ordered. A run that died while it ordered leaves a server
// of the name that the next run would use, so that one finds it.
func (c *computation) orderName() string {
	used := make(map[string]bool)
	for _, s := range c.snap.Servers {
		used[s.Name] = true
	}
	for _, pin := range c.snap.Pins { // a release gives a server the name back that it had in the pool
		used[pin.Pooled] = true
	}
	for _, a := range c.plan.Actions {
		used[a.Host] = true
	}
	for i := 1; ; i++ {
		if name := fmt.Sprint(c.orderPrefix(), i); !used[name] {
			return name
		}
	}
}

// await finds the pool servers that are not delivered yet and will fill the group. While the provider prepares a server
// that this configuration ordered, it may report another system.
func (n *need) await(c *census, taken map[string]bool) {
	for i := range c.servers {
		p := &c.servers[i]
		s := p.server
		fits := s.OSFamily == n.fleet.OS || s.OSFamily == "" || strings.HasPrefix(s.Name, c.orderPrefix())
		if n.missing() < 1 || p.role != pool || s.Delivered || s.DeletionScheduled || c.elsewhere[s.ID] || taken[s.ID] || !n.group.Accepts(s.Type) || !fits {
			continue
		}
		taken[s.ID] = true
		n.coming = append(n.coming, *p)
		n.rejected = without(n.rejected, s.ID)
	}
}

// without returns the rejected servers but one.
func without(all []Rejected, id string) []Rejected {
	out := all[:0:0]
	for _, r := range all {
		if r.Server.ID != id {
			out = append(out, r)
		}
	}
	return out
}

// onTheWay says which servers of a group are not delivered yet.
func (c *census) onTheWay(n need) Trouble {
	var all []string
	for _, p := range n.coming {
		all = append(all, fmt.Sprintf("%s (%s, ordered %s)", p.server.Name, condition(c.vendor, p.server), clockTime(p.server.Created)))
	}
	return *codeOnTheWay.Trouble("not delivered yet: " + strings.Join(all, ", ") + "; a delivery takes up to an hour")
}

// PermitOrders refuses the orders beyond those that a run may make. started is the plan that the run has performed
// already, or nil: its orders count.
func (p *Plan) PermitOrders(most int, started *Plan) {
	made := 0
	if started != nil {
		made = started.Tally().ToOrder
	}
	for i := range p.Actions {
		a := &p.Actions[i]
		if a.Kind != OrderServer || !a.Runs() {
			continue
		}
		if made++; made > most {
			a.Refusal = codeOrderNotApproved.Trouble(fmt.Sprintf("this run may order %s", count(most, "server")))
		}
	}
}

// Purchases returns the servers that the run orders.
func (p *Plan) Purchases() []Purchase {
	var out []Purchase
	for _, a := range p.Actions {
		if a.Kind == OrderServer && a.Runs() {
			out = append(out, *a.Purchase)
		}
	}
	return out
}

// Uncovered returns how many servers of a shortage this run does not order.
func (p *Plan) Uncovered(s Shortage) int {
	left := s.Missing
	for _, a := range p.Actions {
		if a.Kind == OrderServer && a.Runs() && s.Order != nil && a.Fleet == s.Fleet && a.Group == s.Group {
			left--
		}
	}
	return left
}
