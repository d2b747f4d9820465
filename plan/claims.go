package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/macfleet/macfleet/fleet"
)

// The codes that are raised here.
var (
	codePoolTooSmall = NewCode("pool-too-small", NotDrift, "the pool has fewer free servers than are wanted",
		"order servers under names that begin with the pool's prefix, or lower replicas")
	codeHostBlockRemoved = NewCode("host-block-removed", Notice, "an adopted server no longer has its host block",
		"write its host block again, or lower replicas")
)

// claims plans the claims of a group, and names what the pool lacks.
func (c *computation) claims(f fleet.Fleet, g fleet.Group) {
	i := slices.IndexFunc(c.needs, func(n need) bool { return n.fleet.Name == f.Name && n.group.Name == g.Name })
	if i < 0 {
		return // the run is limited to steps
	}
	n := &c.needs[i]
	for i := range n.chosen {
		p := &n.chosen[i]
		if !c.sel.matches(p.subject()) {
			continue
		}
		h := c.host(g, p)
		claim := h.action(ClaimServer, pending, codeTooFewReplicas, fmt.Sprintf("%s.%s wants %d", f.Name, g.Name, g.Replicas))
		claim.Fields = []Field{{"name", p.server.Name, h.Name}}
		c.drafts = append(c.drafts, draft{actions: []Action{claim}})
	}
	if !c.sel.matches(n.subject()) {
		return
	}
	for _, r := range n.rejected {
		if !c.rejected[r] {
			c.rejected[r] = true
			c.plan.Rejected = append(c.plan.Rejected, r)
		}
	}
	lacks := func(missing int, why Trouble) {
		if missing > 0 {
			c.plan.Shortages = append(c.plan.Shortages, Shortage{Fleet: n.fleet.Name, Group: n.group.Name, Type: n.group.Type, OS: n.fleet.OS, Missing: missing, Trouble: why})
		}
	}
	lacks(len(n.former), n.unlisted())
	lacks(len(n.unsure), n.silent())
	lacks(n.missing(), n.poolTooSmall(c.vendor))
}

func (n *need) poolTooSmall(vendor fleet.Vendor) Trouble {
	t := Trouble{Code: codePoolTooSmall,
		Text: fmt.Sprintf("%s.%s wants %d, and the pool %s… has no more %s with %s",
			n.fleet.Name, n.group.Name, n.group.Replicas, vendor.PoolPrefix, n.group.Type, n.fleet.OS),
		Remedy: fmt.Sprintf("order %s in %s under names that begin with %s, or lower replicas",
			count(n.missing(), n.group.Type+" server"), vendor.Console(), vendor.PoolPrefix)}
	if len(n.rejected) > 0 { // an order costs a day's rent at least, and may not be needed
		t.Text += fmt.Sprintf("; not taken, though there: %d", len(n.rejected))
		t.Remedy = "see why, under what was not taken from the pool; if it stays so, " + t.Remedy
	}
	return t
}

// unlisted says that servers which were adopted hold their places without a host
// block: another one claimed for each would be one too many once a person writes
// the block again.
func (n *need) unlisted() Trouble {
	return Trouble{Code: codeHostBlockRemoved,
		Text: fmt.Sprintf("%s.%s wants %d, and %s still says in its marker that it belongs there, but has no host block any more",
			n.fleet.Name, n.group.Name, n.group.Replicas, serverNames(n.former)),
		Remedy: "write its host block again, or lower replicas; to claim another server in its place, remove /etc/macfleet on it first"}
}

// silent says that servers which were adopted once cannot be asked where they
// belong: a reboot must not cost another claim.
func (n *need) silent() Trouble {
	return Trouble{Code: codeHostBlockRemoved,
		Text: fmt.Sprintf("%s.%s wants %d, and %s, which was adopted once and has no host block any more, cannot be asked whether it belongs there",
			n.fleet.Name, n.group.Name, n.group.Replicas, serverNames(n.unsure)),
		Remedy: "write its host block again, or wait until it answers; if it was given up: macfleet hosts trust with the name under which it was adopted"}
}

func serverNames(all []placed) string {
	var names []string
	for _, p := range all {
		names = append(names, p.server.Name)
	}
	return strings.Join(names, ", ")
}
