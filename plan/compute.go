package plan

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
)

// StepsFor returns all steps of a host, those that the configuration lacks with
// a nil wish. It is steps.For; plan does not know which steps exist.
type StepsFor func(fleet.Host) []Step

// Compute returns the difference between what is wanted and what was seen, for
// the selected hosts. It is pure and total: a host that could not be asked is
// unknown, and the rest goes on. The same input gives the same plan.
func Compute(cfg *fleet.Config, stepsFor StepsFor, snap Snapshot, sel Selection) *Plan {
	c := computation{cfg: cfg, stepsFor: stepsFor, snap: snap, sel: sel, plan: &Plan{Owner: cfg.Owner, Narrowed: !sel.IsAll()},
		rejected: make(map[Rejected]bool)}
	_, c.plan.Cluster = snap.Nodes.Get()
	servers := place(cfg, snap)
	needs := assign(cfg, snap, servers)
	c.plan.Hosts = make([]Host, 0, len(servers))
	for _, f := range cfg.Fleets {
		c.plan.Fleets = append(c.plan.Fleets, f.Name)
		for _, g := range f.Groups {
			c.members(f, g, servers)
			c.claims(needs, f, g)
		}
	}
	for _, p := range servers {
		if p.role == stray {
			c.plan.Strays = append(c.plan.Strays, p.server)
		}
	}
	c.lost()
	return c.plan
}

// computation carries the inputs and the plan being built.
type computation struct {
	cfg      *fleet.Config
	stepsFor StepsFor
	snap     Snapshot
	sel      Selection
	plan     *Plan
	rejected map[Rejected]bool // named once, whatever number of groups looked at them
}

// members plans the members of a group, and refuses the releases of those that
// are too many.
func (c *computation) members(f fleet.Fleet, g fleet.Group, servers []placed) {
	var all []placed
	for _, p := range servers {
		if p.role == member && p.place.Fleet == f.Name && p.place.Group == g.Name {
			all = append(all, p)
		}
	}
	leaving := c.leaving(all, len(all)-g.Replicas)
	for _, p := range all {
		if !c.sel.matches(p.subject()) {
			continue
		}
		h := c.host(g, p)
		h.Member = true
		var actions []Action
		if leaving[p.server.ID] {
			actions = append(actions, releaseRefused(h, g.Replicas))
		}
		if p.renamed() {
			actions = append(actions, rename(h))
		}
		actions = append(actions, replaceRefused(h, f, g)...)
		c.add(h, append(actions, c.work(&h)...))
	}
}

// claims plans the claims of a group, and names what the pool lacks.
func (c *computation) claims(needs []need, f fleet.Fleet, g fleet.Group) {
	i := slices.IndexFunc(needs, func(n need) bool { return n.fleet.Name == f.Name && n.group.Name == g.Name })
	n := needs[i]
	for _, p := range n.chosen {
		if !c.sel.matches(p.subject()) {
			continue
		}
		h := c.host(g, p)
		claim := h.action(ClaimServer)
		claim.Reason = Reason{"too-few-replicas", fmt.Sprintf("%s.%s wants %d", f.Name, g.Name, g.Replicas)}
		claim.Origin.Pending = true
		claim.Fields = []Field{{"name", p.server.Name, h.Name}}
		c.add(h, append([]Action{claim}, c.work(&h)...))
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
	if n.missing() > 0 {
		c.plan.Shortages = append(c.plan.Shortages, Shortage{
			Fleet: f.Name, Group: g.Name, Type: g.Type, OS: f.OS, Missing: n.missing(),
			Trouble: Trouble{Code: "pool-too-small",
				Text: fmt.Sprintf("%s.%s wants %d, and the pool %s… has no more %s with %s",
					f.Name, g.Name, g.Replicas, c.cfg.Scaleway.PoolPrefix, g.Type, f.OS),
				Remedy: fmt.Sprintf("order %s in the Scaleway console under names that begin with %s, or lower replicas",
					count(n.missing(), g.Type+" server"), c.cfg.Scaleway.PoolPrefix)},
		})
	}
}

// host gathers what is known of one server under the name it should bear.
func (c *computation) host(g fleet.Group, p placed) Host {
	h := Host{Name: p.name, Fleet: p.place.Fleet, Group: p.place.Group, Server: p.server, Node: p.node,
		Spec: fleet.Host{Name: p.name, Fleet: p.place.Fleet, Group: p.place.Group, User: c.cfg.SSH.User, Spec: g.Spec}}
	seen, asked := c.snap.Hosts[p.server.ID]
	if !asked {
		seen.Trouble = &Trouble{Code: "not-asked", Text: "the host was not asked", Remedy: "run the command again"}
	}
	h.Seen = seen
	return h
}

// add enters a host with its actions. What the host must not suffer refuses all
// of its actions.
func (c *computation) add(h Host, actions []Action) {
	blocked := h.Refused
	if h.Unknown != nil {
		blocked = h.Unknown
	}
	for i := range actions {
		if actions[i].Refusal == nil {
			actions[i].Refusal = blocked
		}
	}
	switch {
	case h.Unknown == nil && len(actions) > 0:
		h.Converged = Differs
	case h.Unknown != nil, len(h.Unread) > 0, h.Refused != nil && !h.compared:
		h.Converged = NotCompared
	default:
		h.Converged = Converged
	}
	c.plan.Hosts = append(c.plan.Hosts, h)
	c.plan.Actions = append(c.plan.Actions, actions...)
}

// work returns the actions that the host itself needs, and enters into h what
// stands against them.
func (c *computation) work(h *Host) []Action {
	if h.Seen.Trouble != nil {
		h.Unknown = diagnosed(*h.Seen.Trouble, h.Server)
		return nil
	}
	if h.Refused = NotOurs(c.cfg, *h); h.Refused != nil {
		return nil
	}
	h.compared = true
	if !h.Seen.Root {
		h.Refused = missingSudo()
	}
	var actions []Action
	marker, marked := h.Seen.Marker.Get()
	if !marked {
		actions = append(actions, mark(*h))
	}
	for _, step := range c.stepsFor(h.Spec) {
		finding := step.Diff(View{Host: h.Spec, Server: h.Server, Node: h.Node, Facts: h.Seen.Facts})
		actions = append(actions, h.enter(step.ID(), finding, marker)...)
	}
	return actions
}

// diagnosed adds what the provider says of a server whose host is silent.
func diagnosed(t Trouble, s inventory.Server) *Trouble {
	if !s.Usable() {
		t.Text += fmt.Sprintf("; Scaleway says status %s, delivered %t", s.Status, s.Delivered)
	}
	return &t
}

// enter records a step's finding on the host and returns its action, if there
// is one.
func (h *Host) enter(id StepID, f Finding, marker Marker) []Action {
	for _, u := range f.Unread {
		h.Unread = append(h.Unread, StepUnread{id, u})
	}
	if len(f.Unread) > 0 {
		return nil
	}
	if f.Wanted == "" && f.Facts == "" && len(f.Changes) == 0 {
		return nil // nothing was compared: a proof of it would later look like drift
	}
	if len(f.Changes) == 0 {
		if h.Proven == nil {
			h.Proven = make(map[StepID]Digest)
		}
		h.Proven[id] = DigestOf(f)
		return nil
	}
	a := h.action(RunStep)
	a.Step, a.Changes = id, f.Changes
	for _, ch := range f.Changes {
		a.Fields = append(a.Fields, ch.Fields...)
	}
	a.Origin, a.Reason = explain(f, marker, id)
	return []Action{a}
}

// explain says where a difference comes from, by the digests of the last proof.
func explain(f Finding, marker Marker, id StepID) (Origin, Reason) {
	first := f.Changes[0].Reason
	last, proven := marker.Steps[id]
	if !proven {
		return Origin{Pending: true}, Reason{"first-setup", first.Text}
	}
	now := DigestOf(f)
	o := Origin{Drift: now.Facts != last.Facts, Pending: now.Wanted != last.Wanted}
	if o.Drift {
		return o, first
	}
	// The wish moved; or this version renders the same wish otherwise.
	o.Pending = true
	return o, Reason{"config-changed", first.Text}
}

// NotOurs returns why the host's marker or claim forbids to touch it, or nil. The
// plan asks, and so does whoever is about to change the host: between the two a
// person may have thought for hours.
func NotOurs(cfg *fleet.Config, h Host) *Trouble {
	if h.Seen.Marker.IsUnread() {
		return markerUnreadable(h.Seen.Marker.Why())
	}
	m, marked := h.Seen.Marker.Get()
	if !marked {
		return claimedByAnother(cfg, h)
	}
	serial, _ := h.Seen.Serial.Get()
	switch {
	case m.Owner() != cfg.Owner:
		return &Trouble{Code: "foreign-marker",
			Text:   fmt.Sprintf("its marker says that it is %s of %s", m.Name, m.Owner()),
			Remedy: "find out whose host it is; if it is yours, remove /etc/macfleet on it and apply again"}
	case m.newer():
		return &Trouble{Code: "newer-macfleet",
			Text:   fmt.Sprintf("macfleet %q worked on it last, this is %s", m.Version, fleet.Version),
			Remedy: "use that version or a later one"}
	case m.ServerID != h.Server.ID || m.Name != h.Name:
		return &Trouble{Code: "marker-of-another-server",
			Text:   fmt.Sprintf("its marker was written for %s (server %s)", m.Name, m.ServerID),
			Remedy: "find out which machine answers at this address; if the marker is stale, remove /etc/macfleet on it and apply again"}
	case m.Serial != "" && serial != "" && m.Serial != serial:
		return &Trouble{Code: "swapped-host",
			Text:   fmt.Sprintf("the machine has serial number %s, its marker was written on %s", serial, m.Serial),
			Remedy: "ask Scaleway whether the machine was exchanged; then remove /etc/macfleet on it and apply again"}
	}
	return nil
}

func claimedByAnother(cfg *fleet.Config, h Host) *Trouble {
	if h.Seen.Claim.IsUnread() {
		return claimUnreadable(h.Seen.Claim.Why())
	}
	claim, ok := h.Seen.Claim.Get()
	if !ok || claim.Same(ClaimOf(cfg.Owner, h.Name, h.Server.ID)) {
		return nil
	}
	return &Trouble{Code: "claimed-by-another",
		Text:   fmt.Sprintf("it is claimed as %s of %s", claim.Name, fleet.Owner{Name: claim.Configuration, Environment: claim.Environment}),
		Remedy: "let the other run finish; if that claim is dead, remove /etc/macfleet on the host and apply again"}
}

// mark returns the action that claims the host on the host.
func mark(h Host) Action {
	a := h.action(CreateMarker)
	_, begun := h.Seen.Claim.Get()
	switch {
	case begun && !h.Seen.Pinned:
		a.Reason = Reason{"claim-unfinished", "an earlier run claimed the host and did not finish"}
		a.Origin.Pending = true
	case h.Member:
		a.Reason = Reason{"marker-missing", "the server bears our name and the host has no marker"}
		a.Origin.Drift = true
	default:
		a.Reason = Reason{"too-few-replicas", "it says whose the host is and what was proven on it"}
		a.Origin.Pending = true
	}
	return a
}

func (h Host) action(k Kind) Action {
	return Action{Kind: k, Host: h.Name, Fleet: h.Fleet, Group: h.Group, Server: h.Server}
}

func rename(h Host) Action {
	a := h.action(RenameServer)
	a.Reason = Reason{"renamed-by-hand", fmt.Sprintf("Scaleway calls the server %s; it is still a member", h.Server.Name)}
	a.Origin.Drift = true
	a.Fields = []Field{{"name", h.Server.Name, h.Name}}
	return a
}

func releaseRefused(h Host, replicas int) Action {
	a := h.action(ReleaseServer)
	a.Reason = Reason{"too-many-replicas", fmt.Sprintf("%s.%s wants %d", h.Fleet, h.Group, replicas)}
	a.Origin.Pending = true
	a.Disruption = Wipe
	a.Refusal = &Trouble{Code: "release-not-possible",
		Text:   fmt.Sprintf("macfleet %s cannot drain and reinstall a host, so it gives no server back", fleet.Version),
		Remedy: "raise replicas again, or give the server back by hand: drain, reinstall, rename into the pool, then macfleet hosts trust " + h.Name}
	return a
}

// replaceRefused returns the action that a member of another type or OS family
// than its group wants would need.
func replaceRefused(h Host, f fleet.Fleet, g fleet.Group) []Action {
	a := h.action(ReplaceServer)
	version, _ := h.Seen.OSVersion.Get()
	switch family := osFamily(version); {
	case h.Server.Type != g.Type:
		a.Reason = Reason{"wrong-type", fmt.Sprintf("the server is of type %s, %s.%s wants %s", h.Server.Type, f.Name, g.Name, g.Type)}
		a.Fields = []Field{{"type", h.Server.Type, g.Type}}
	case family != "" && family != f.OS:
		a.Reason = Reason{"wrong-os", fmt.Sprintf("the host runs macOS %s (%s), %s wants %s", version, family, f.Name, f.OS)}
		a.Fields = []Field{{"os", family, f.OS}}
	default:
		return nil
	}
	a.Origin.Pending = true
	a.Disruption = Wipe
	a.Refusal = &Trouble{Code: "replace-not-possible",
		Text:   fmt.Sprintf("macfleet %s cannot drain and reinstall a host, so it replaces no server", fleet.Version),
		Remedy: "set the group back, or replace the server by hand: give this one back to the pool and let macfleet claim another"}
	return []Action{a}
}

// leaving returns the ids of the n members that a scale-down takes: not Ready
// first, then the newest.
func (c *computation) leaving(members []placed, n int) map[string]bool {
	if n <= 0 {
		return nil
	}
	order := slices.Clone(members)
	slices.SortStableFunc(order, func(a, b placed) int {
		return cmp.Or(
			cmp.Compare(c.workable(a), c.workable(b)),
			b.server.Created.Compare(a.server.Created),
			cmp.Compare(a.name, b.name))
	})
	out := make(map[string]bool, n)
	for _, p := range order[:n] {
		out[p.server.ID] = true
	}
	return out
}

// workable returns 0 for a member that is not Ready or cannot be reached, and 1
// for others, those without a Node among them.
func (c *computation) workable(p placed) int {
	if c.snap.Hosts[p.server.ID].Trouble != nil || p.notReady() {
		return 0
	}
	return 1
}

// lost enters the servers that earlier runs knew and the inventory lacks. No
// other server is claimed in their place until a person says so.
func (c *computation) lost() {
	gone := lost(c.cfg, c.snap)
	for id, t := range gone {
		at, _ := ownedPlace(c.cfg, t.name, id)
		if !c.sel.matches(subject{name: t.name, fleet: at.Fleet, group: at.Group, anywhere: true}) {
			continue
		}
		c.plan.Lost = append(c.plan.Lost, Lost{Name: t.name, Fleet: at.Fleet, ServerID: id, Trouble: Trouble{Code: "server-vanished",
			Text:   fmt.Sprintf("server %s is known by its %s and is not in the inventory", id, t.by),
			Remedy: "if it is really gone, forget it with: " + t.forget()}})
	}
	slices.SortFunc(c.plan.Lost, func(a, b Lost) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ServerID, b.ServerID))
	})
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
