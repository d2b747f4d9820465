package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/plan/ledger"
	"github.com/macfleet/macfleet/plan/lists"
)

var (
	codeServerVanished = NewCode("server-vanished", Critical, "the server of a member is missing in the inventory",
		"if the machine is gone: macfleet hosts forget-key NAME")
	codeMovedProject = NewCode("moved-project", Critical, "someone moved the server of a member to another project",
		"move it back in the provider's console; if it left the fleet for good: macfleet hosts forget-key NAME")
	codeAdoptedServerMissing = NewCode("adopted-server-missing", Critical, "the server of a host block was never seen in the inventory",
		"correct server_id, zones or project_id; if the server was released, remove its host block")
	codeListedHostMissing = NewCode("listed-host-missing", Warning, "no server has the name of a host block",
		"correct the name of the host block, or remove it")
)

// CheckInventory returns an error when the inventory is foreign: it has none of the servers that pins or Nodes name. An API
// key without rights must not lead to "create everything". One that lacks many counts: each of them keeps its place.
func CheckInventory(cfg *fleet.Config, snap Snapshot) error {
	c := takeCensus(cfg, snap)
	var ids []string
	var said []lists.Said
	for i := range c.servers {
		p := &c.servers[i]
		if ids = append(ids, p.server.ID); p.believed() {
			said = append(said, lists.Said{Host: p.name, ID: p.server.ID})
		}
	}
	forget := "" // the command for the first one that is gone
	for i := range c.gone {
		if p := &c.gone[i]; p.why.Source != ledger.Block { // a block may be mistyped, and does not concern other servers
			said, forget = append(said, lists.Said{Host: p.name, ID: p.server.ID}), cmp.Or(forget, p.forget())
		}
	}
	v := lists.Judge("", ids, said)
	if v.State != lists.Foreign {
		return nil
	}
	where := ""
	if a := snap.Account; a != nil {
		where = "; searched: project " + a.Project + "; " + a.String()
	}
	return CodeWrongProject.Trouble(fmt.Sprintf("the inventory of zones %s has none of the %d servers known from earlier runs (%s)%s",
		strings.Join(c.vendor.Zones, ", "), v.Of, sampleOf(v.Missing), where),
		fmt.Sprintf("check the project and the permissions of the %s key; if a machine is gone: %s", c.vendor.Name, forget))
}

// ServersMissing reports whether servers are missing, so that zones or project may be wrong: known ones are
// gone, or the pool has too few.
func ServersMissing(cfg *fleet.Config, snap Snapshot, sel Selection) bool {
	c := takeCensus(cfg, snap)
	return len(c.gone) > 0 || slices.ContainsFunc(c.assign(sel), func(n need) bool { return n.missing() > 0 })
}

// searched says where servers were searched and what exists elsewhere, for a sentence about missing servers. It
// is empty if nothing else exists or was queried.
func (c *census) searched() string {
	a := c.snap.Account
	if a == nil || len(a.Holds) == 0 && len(c.snap.Servers) > 0 {
		return ""
	}
	return fmt.Sprintf(" (searched project %s, zones %s; %s)", a.Project, strings.Join(c.vendor.Zones, ", "), a)
}

// forget returns the command that makes the source forget the server.
func (p *placed) forget() string {
	if p.why.Source == ledger.Node {
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

// lost records the servers that are missing in the inventory. No other server is claimed instead until a
// person decides.
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

// vanished describes a server that is missing in the inventory.
func (c *census) vanished(p *placed) Trouble {
	x := Trouble{codeServerVanished, fmt.Sprintf("server %s is missing in the inventory (known by its %s)", p.server.ID, p.why.Source) + c.searched(),
		"if the machine is gone: " + p.forget()}
	if p.stage.Final() {
		x.Text = c.releaseStarted(p.server.ID) + ", and " + x.Text
	}
	if a := c.snap.Account; a != nil {
		if at, found := a.Holding(p.server.ID); found && at.Project != a.Project {
			x = Trouble{codeMovedProject, fmt.Sprintf("server %s is in project %s now (zone %s); the configuration uses project %s", p.server.ID, at.Project, at.Zone, a.Project),
				"move it back in " + c.vendor.Console() + "; if it left the fleet for good: " + p.forget()}
		}
	}
	if _, adopted := c.adopted[p.server.ID]; !adopted {
		return x
	}
	// While the block exists, forgetting the source would not help.
	x.Remedy = fmt.Sprintf("if the machine is gone, remove host %q from the configuration", p.name)
	if p.why.Source == ledger.Block {
		return Trouble{codeAdoptedServerMissing, fmt.Sprintf("server %s was never seen in the inventory of zones %s",
			p.server.ID, strings.Join(c.vendor.Zones, ", ")) + c.searched(), "correct server_id, zones or project_id"}
	}
	return x
}

// unmatched records host blocks without a host: a mistyped name must not look like a clean fleet.
func (c *computation) unmatched(enter func(*placed, Trouble)) {
	hosts := c.hosts(c.needs)
	names := make([]string, 0, len(hosts))
	there := make(map[string]bool, len(hosts))
	for _, p := range hosts {
		names = append(names, p.name)
		there[p.name] = true
	}
	slices.Sort(names) // of several equally near names, the first
	for name, l := range c.overrides {
		if there[name] {
			continue
		}
		remedy := "correct the block's name (macfleet hosts -o name lists all), or remove the block"
		if near := fleet.Nearest(name, names); near != "" {
			remedy = fmt.Sprintf("did you mean %q? Correct the block's name, or remove the block", near)
		}
		enter(&placed{role: gone, name: name, place: fleet.Place{Fleet: l.Fleet, Group: l.Group}},
			Trouble{codeListedHostMissing, "no server has the name of this host block", remedy})
	}
}
