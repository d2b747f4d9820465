package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/macfleet/macfleet/fleet"
)

var (
	codeServerVanished = NewCode("server-vanished", Critical, "a server that was a member is in no inventory",
		"if it is really gone, forget it: macfleet hosts forget-key NAME")
	codeAdoptedServerMissing = NewCode("adopted-server-missing", Critical, "the inventory lacks a server that has a host block",
		"find out where it is; if it was given back, remove its host block")
	codeListedHostMissing = NewCode("listed-host-missing", Warning, "the configuration has a host block of that name, and no server bears it",
		"correct the name of the host block, or remove it")
)

// CheckInventory returns an error when the inventory holds none of the servers that pins or
// Nodes know: a key that lost its rights must never become "create everything".
func CheckInventory(cfg *fleet.Config, snap Snapshot) error {
	c := takeCensus(cfg, snap)
	var names []string
	forget := "" // the command for the first of them
	for i := range c.gone {
		if p := &c.gone[i]; p.by != byBlock { // a block may be mistyped, and says nothing about other servers
			names, forget = append(names, p.name), cmp.Or(forget, p.forget())
		}
	}
	if len(names) == 0 || len(names) < len(c.known) {
		return nil
	}
	where := ""
	if a := snap.Account; a != nil {
		where = " of project " + a.Project + "; " + a.String()
	}
	return fmt.Errorf("the inventory of zones %s holds none of the %d servers known from earlier runs (%s): "+
		"check the project and the rights of the %s key%s; if a server is really gone, forget it with: %s",
		strings.Join(c.vendor.Zones, ", "), len(names), sampleOf(names), c.vendor.Name, where, forget)
}

// LooksElsewhere reports whether servers are missing, so that the zones or the project may be
// wrong: some that were known are gone, or the pool has too few, as far as the inventory shows.
func LooksElsewhere(cfg *fleet.Config, snap Snapshot, sel Selection) bool {
	c := takeCensus(cfg, snap)
	return len(c.gone) > 0 || slices.ContainsFunc(c.assign(sel), func(n need) bool { return n.missing() > 0 })
}

// looked says where servers were looked for and what there is elsewhere, for a sentence that
// says that some are missing. Where nobody asked, and where all that there is was seen, it is empty.
func (c *census) looked() string {
	a := c.snap.Account
	if a == nil || len(a.Holds) == 0 && len(c.snap.Servers) > 0 {
		return ""
	}
	return fmt.Sprintf(" (looked in project %s, zones %s; %s)", a.Project, strings.Join(c.vendor.Zones, ", "), a)
}

// forget returns the command that makes the witness forget.
func (p *placed) forget() string {
	if p.by == byNode {
		return "kubectl delete node " + p.name
	}
	return "macfleet hosts forget-key " + p.name
}

// sampleOf joins at most three names.
func sampleOf(names []string) string {
	if len(names) > 3 {
		return strings.Join(names[:3], ", ") + ", …"
	}
	return strings.Join(names, ", ")
}

// lost enters the servers that the inventory lacks. No other one is claimed in their place
// until a person says so.
func (c *computation) lost() {
	enter := func(p *placed, why Trouble) {
		if !c.sel.matches(p) {
			c.plan.LeftOut++
			return
		}
		c.plan.Lost = append(c.plan.Lost, Lost{Name: p.name, Fleet: p.place.Fleet, ServerID: p.server.ID, Trouble: why})
	}
	for i := range c.gone {
		enter(&c.gone[i], c.vanished(&c.gone[i]))
	}
	if len(c.overrides) > 0 {
		c.unmatched(enter)
	}
	slices.SortFunc(c.plan.Lost, func(a, b Lost) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ServerID, b.ServerID))
	})
}

// vanished says what is known of a server that the inventory lacks.
func (c *census) vanished(p *placed) Trouble {
	x := Trouble{codeServerVanished, fmt.Sprintf("server %s is known by its %s and is not in the inventory", p.server.ID, p.by) + c.looked(),
		"if it is really gone, forget it with: " + p.forget()}
	if _, adopted := c.adopted[p.server.ID]; !adopted {
		return x
	}
	// As long as the block stands, forgetting the witness would not help.
	x.Remedy = fmt.Sprintf("if it is really gone, remove host %q from the configuration", p.name)
	if p.by == byBlock {
		return Trouble{codeAdoptedServerMissing, fmt.Sprintf("server %s is not in the inventory of zones %s, and nothing shows that it ever was",
			p.server.ID, strings.Join(c.vendor.Zones, ", ")) + c.looked(), "check its server_id, the zones and the project"}
	}
	return x
}

// unmatched enters the blocks that change a host which does not exist: a mistyped
// name must not look like a clean fleet.
func (c *computation) unmatched(enter func(*placed, Trouble)) {
	hosts := c.hosts(c.needs)
	names := make([]string, 0, len(hosts))
	there := make(map[string]bool, len(hosts))
	for _, p := range hosts {
		names = append(names, p.name)
		there[p.name] = true
	}
	slices.Sort(names) // of names that are as near, the first
	for name, l := range c.overrides {
		if there[name] {
			continue
		}
		remedy := "macfleet hosts -o name lists the names that there are; correct the block's name, or remove the block"
		if near := fleet.Nearest(name, names); near != "" {
			remedy = fmt.Sprintf("did you mean %q? Correct the block's name, or remove the block", near)
		}
		enter(&placed{role: gone, name: name, place: fleet.Place{Fleet: l.Fleet, Group: l.Group}},
			Trouble{codeListedHostMissing, "the configuration has a host block of that name, and no server bears it", remedy})
	}
}
