package plan

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
)

var (
	codeNotReleasable = NewCode("not-releasable", NotDrift, "macfleet release returns only orphaned members and servers without an owner",
		"macfleet explain NAME shows what is known of the server")
	codeNotReplaceable = NewCode("not-replaceable", NotDrift, "macfleet replace takes only members that macfleet claimed and that no run releases",
		"macfleet hosts lists the members")
)

// Departure is a server that a person asked to leave. A run is limited to it, and with Replace to the claims of its group.
type Departure struct {
	Name    string // as a person gave it; CheckLists puts the server's name there
	Replace bool   // another server joins first; otherwise it has no place in the configuration
	// ServerID is empty until CheckLists has found the server.
	ServerID string
	at       fleet.Place
	joined   []string // ids of the servers that this run claimed
}

// Asked is the stage that a person's request gives to servers, by their ids.
func (d *Departure) Asked() map[string]Stage {
	switch {
	case d == nil || d.ServerID == "":
		return nil
	case d.Replace:
		return map[string]Stage{d.ServerID: Replaced}
	}
	return map[string]Stage{d.ServerID: Leaving}
}

// Including returns d with the servers that a plan claims, so that the plan made afterwards shows them as well.
func (d *Departure) Including(p *Plan) *Departure {
	if d == nil {
		return nil
	}
	out := *d
	out.joined = slices.Clone(d.joined)
	for _, a := range p.Actions {
		if a.Kind == ClaimServer && a.Runs() {
			out.joined = append(out.joined, a.ServerID)
		}
	}
	return &out
}

func (d *Departure) matches(p *placed) bool {
	// One that is in the pool again may be chosen for a claim of any group.
	if p.role != pool && p.server.ID != "" && (p.server.ID == d.ServerID || slices.Contains(d.joined, p.server.ID)) {
		return true
	}
	return d.Replace && (p.role == pool || p.role == lacking) && groupOf(p.place) == d.at
}

// found returns d with the server that it means, or why that one must not leave. Only the lists decide: what the
// host says is checked for the plan.
func (d *Departure) found(cfg *fleet.Config, snap Snapshot) (*Departure, error) {
	if d.ServerID != "" {
		return d, nil
	}
	p, err := find(cfg, snap, d.Name)
	if err != nil {
		return nil, err
	}
	c := takeCensus(cfg, snap)
	t := c.notReplaceable(&p)
	if !d.Replace {
		t = c.notReleasable(&p, d.Name)
	}
	if t != nil {
		return nil, t
	}
	return &Departure{Name: p.name, Replace: d.Replace, ServerID: p.server.ID, at: groupOf(p.place)}, nil
}

// Kept is a server whose unfinished release a person cancels.
type Kept struct {
	Name, ServerID string
	Stage          Stage  // as it is stored now
	Group          string // FLEET.GROUP; empty: it has none in the configuration
	Replicas       int    // of the group
	Surplus        int    // how many hosts the group has too many once this one stays, as far as the lists show it
}

// Keep returns what is known of a server that should stay. name is any that Find takes.
func Keep(cfg *fleet.Config, snap Snapshot, name string) (Kept, error) {
	p, err := find(cfg, snap, name)
	if err != nil {
		return Kept{}, err
	}
	k := Kept{Name: cmp.Or(p.name, p.server.Name), ServerID: p.server.ID, Stage: snap.stages()[p.server.ID].Stage}
	snap.Pins = slices.Clone(snap.Pins)
	for i := range snap.Pins {
		if snap.Pins[i].ServerID == k.ServerID {
			snap.Pins[i].Stage = Stays
		}
	}
	at := groupOf(p.place)
	if _, g, known := cfg.Group(at.Fleet, at.Group); known {
		c := takeCensus(cfg, snap)
		leave, _, surplus := c.crowd(at, g, 0).Leave()
		k.Group, k.Replicas, k.Surplus = at.Fleet+"."+at.Group, g.Replicas, leave+surplus
	}
	return k, nil
}

// notReplaceable returns why another server must not take the place of a server, or nil.
func (c *census) notReplaceable(p *placed) *Trouble {
	no := func(text, remedy string) *Trouble {
		return codeNotReplaceable.Trouble(p.name+" "+text+", so it is not replaced", remedy)
	}
	pin := c.pinOf(p.server.ID)
	switch {
	case p.adopted:
		return no("was adopted: a host block names its server", "claim a server in its place, then remove its host block and run macfleet release "+p.name)
	case p.role == orphan, p.role == stray:
		return no("is not a member of the configuration", "macfleet release "+p.server.Name)
	case p.role != member:
		return no("is in the pool", "macfleet hosts lists the members")
	case p.stage == Leaving, p.stage.Final():
		return no("is already being released by an earlier run", "macfleet apply, which continues that release")
	case pin == nil || pin.Key == "" || pin.Unfinished:
		return no("has no pinned host key yet", "macfleet apply --on name="+p.name+", then run macfleet replace again")
	}
	return nil
}

// notReleasable returns why a server must not be returned to the pool, or nil. The name must be the whole one.
func (c *census) notReleasable(p *placed, name string) *Trouble {
	s := p.server
	no := func(text, remedy string) *Trouble {
		return codeNotReleasable.Trouble(s.Name+" "+text+", so it is not released", remedy)
	}
	same := 0
	for _, o := range c.snap.Servers {
		same += ones(o.Name == s.Name)
	}
	owner, _, named := fleet.Split(s.Name, s.ID)
	switch {
	case name != s.Name && name != s.ID && name != p.name:
		return no("is only similar to "+name, "macfleet release "+s.Name)
	case same > 1 && name != s.ID:
		return no(fmt.Sprintf("is the name of %d servers", same), "macfleet release ID, with the id of the server")
	case p.role == member && p.stage.Final():
		return nil // an earlier run erases it already
	case p.adopted:
		return no("is a member of "+p.place.Fleet+"."+p.place.Group+" with a host block", "remove its host block first")
	case p.role == member:
		return no("is a member of "+p.place.Fleet+"."+p.place.Group, "lower replicas, or put another server in its place: macfleet replace "+p.name)
	case c.pooled(s):
		return no("is in the pool already", "macfleet explain "+s.Name)
	case c.elsewhere[s.ID], ofAnotherEnvironment(c.cfg, s):
		return no("belongs to another environment of this configuration", "release it there: macfleet -e ENVIRONMENT release "+s.Name)
	case p.role == stray && named:
		return no("has the name of a host of "+owner, "release it with that configuration; if that configuration is gone, rename the server in "+c.vendor.Console())
	}
	return nil
}

// pinOf returns the latest pin of a server, or nil.
func (c *census) pinOf(id string) *Pin {
	var out *Pin
	for _, p := range byAge(c.snap.Pins) {
		if p.ServerID == id {
			out = &p
		}
	}
	return out
}

// keeps returns why a server that a person asked to leave stays in this plan, or nil. Nothing else is done to it then.
func (c *computation) keeps(h *Host) *Trouble {
	d := c.sel.Departs
	switch {
	case d == nil || h.Server.ID != d.ServerID:
		return nil
	case !d.Replace:
		return codeNotReleasable.Trouble(fmt.Sprintf("its host says that it is a member of %s.%s, so it is not released", h.Fleet, h.Group),
			"lower replicas, or put another server in its place: macfleet replace "+h.Name)
	case h.Stage == Stays:
		return codeNotReplaceable.Trouble("it is no longer known as a member that can be replaced", "macfleet explain "+h.Name)
	}
	return c.waitsForAnother(h)
}

// unowned returns why a server must not be erased although nothing shows that it is this configuration's, or nil: a
// person named it, and it must have no owner. What is unknown counts as owned.
func (c *computation) unowned(h *Host) *Trouble {
	unsafe := func(why string) *Trouble { return c.unsafe(h, "%s", why) }
	_, marked := h.Seen.Marker.Get()
	_, isNode := c.cluster.nodes[h.Server.Name]
	switch {
	case marked:
		return unsafe("its host has a marker")
	case !h.Seen.Claim.IsAbsent():
		return unsafe("its host has a claim of macfleet")
	case isNode:
		return unsafe("a Node has its name")
	case c.cfg.Kubernetes != nil && !c.cluster.read:
		return unsafe("it is unknown whether it is a Node, because the cluster was not read")
	case len(c.cluster.named[h.Server.ProviderID()]) > 0:
		return unsafe("Node " + c.cluster.named[h.Server.ProviderID()][0] + " runs on it")
	case len(c.cluster.machines[h.Server.ProviderID()]) > 0:
		return unsafe("a Machine of the Cluster API owns it")
	case h.Server.DeletionScheduled:
		return unsafe(c.deletion(h.Server))
	}
	return nil
}

// keepUntilJoined refuses to release a replaced host as long as a member of its group is not Ready and has no action in
// this plan that makes it so: the new server joins before the old one leaves.
func (c *computation) keepUntilJoined() {
	runs := make(map[string]bool)
	for _, a := range c.plan.Actions {
		runs[a.ServerID] = runs[a.ServerID] || a.Runs()
	}
	for i := range c.plan.Hosts {
		h := &c.plan.Hosts[i]
		if !h.Leaves || h.Stage != Replaced {
			continue
		}
		if name := c.notJoined(fleet.Place{Fleet: h.Fleet, Group: h.Group}, runs); name != "" {
			c.plan.keep(h, noReplacement(h.Name, name+" is not Ready yet: the host stays until another one has joined"))
		}
	}
}

// notJoined returns the name of a member that neither works nor gets to work by this plan; empty: there is none.
func (c *computation) notJoined(at fleet.Place, runs map[string]bool) string {
	for i := range c.gone {
		if groupOf(c.gone[i].place) == at {
			return c.gone[i].name
		}
	}
	_, g, _ := c.cfg.Group(at.Fleet, at.Group)
	for _, p := range c.members[at] {
		seen, asked := c.snap.Hosts[p.server.ID]
		works := asked && seen.Trouble == nil
		if c.spec(p.name, p.server.ID, g).JoinsCluster() {
			works = readyAs(p.server, p.node)
		}
		if !works && !runs[p.server.ID] && !c.quarantined(p) && !c.leaves[p.server.ID] {
			return p.name
		}
	}
	return ""
}

// keep refuses all actions of a host.
func (p *Plan) keep(h *Host, t *Trouble) {
	h.Refused = t
	for i := range p.Actions {
		if p.Actions[i].ServerID == h.Server.ID {
			p.Actions[i].Refusal = t
		}
	}
}

// deferReplaced defers the release of a replaced host if the run does not claim the server that takes its place.
func (p *Plan) deferReplaced() {
	for i := range p.Hosts {
		h := &p.Hosts[i]
		if !h.Leaves || h.Stage != Replaced {
			continue
		}
		why := p.claimWaits(h)
		for j := range p.Actions {
			if a := &p.Actions[j]; why != nil && a.ServerID == h.Server.ID && a.Runs() {
				a.Deferral = why
			}
		}
	}
}

// claimWaits returns why a claim for a host's group does not run, or nil.
func (p *Plan) claimWaits(h *Host) *Trouble {
	for _, a := range p.Actions {
		if a.Kind != ClaimServer || a.Fleet != h.Fleet || a.Group != h.Group || a.Runs() {
			continue
		}
		if a.Deferral != nil {
			return a.Deferral
		}
		return noReplacement(h.Name, a.Host+" is not claimed by this run: the host stays until another one has joined")
	}
	return nil
}

// NodeOn returns the name of a Node that has a server's name or its provider id.
func NodeOn(nodes []inventory.Node, s inventory.Server) (name string, is bool) {
	for _, n := range nodes {
		if n.Name == s.Name || n.ProviderID == s.ProviderID() {
			return n.Name, true
		}
	}
	return "", false
}
