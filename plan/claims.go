package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan/ledger"
)

// The codes that are raised here.
var (
	codeServerNotReady = NewCode("server-not-ready", NotDrift, "a pool server is not delivered or not ready", "wait until it is ready")
	codeDirtyPoolHost  = NewCode("dirty-pool-host", NotDrift, "a server has a name of the pool, and its marker, its pin or a Node shows a host of someone",
		"find out who uses it; keep it out of the pool with another name or another pool_prefix, or let its owner return it with macfleet release")
	codeClaimedByAnother = NewCode("claimed-by-another", Critical, "another run or configuration is claiming the host",
		"wait for that run to end; if it crashed, on the host: sudo rm -r /etc/macfleet; then macfleet apply")
	CodeMissingSudoPassword = NewCode("missing-sudo-password", Warning, "the login password is needed but not known",
		"macfleet apply --on name=NAME --ask-password NAME")
	codeMarkerUnreadable = NewCode("marker-unreadable", Warning, "the marker /etc/macfleet/host.json cannot be read",
		"check the file on the host; if the host belongs to this configuration, delete it and run macfleet apply")
	codeClaimUnreadable = NewCode("claim-unreadable", Warning, "the claim /etc/macfleet/claim.json cannot be read",
		"check the file on the host; if the host belongs to this configuration, delete it and run macfleet apply")
	codePoolTooSmall = NewCode("pool-too-small", NotDrift, "the pool has fewer free servers than needed",
		"order servers whose names start with pool_prefix, or lower replicas")
	codeHostBlockRemoved = NewCode("host-block-removed", Notice, "the host block of an adopted server is missing",
		"restore its host block, or lower replicas")
)

// need is how many servers one group lacks, and the pool servers that could fill it.
type need struct {
	fleet    fleet.Fleet
	group    fleet.Group
	short    int      // servers needed beyond the members
	chosen   []placed // under the names they will get
	former   []placed // orphans adopted as members: each keeps its place
	unsure   []placed // strays that may be such orphans and could not be read
	held     int      // servers not claimed because orphans may belong there
	coming   []placed // ordered and not delivered yet: they will fill the group
	rejected []Rejected
}

// lackingIn returns what the pool lacks for a group, as selectors see it.
func lackingIn(f fleet.Fleet, g fleet.Group) *placed {
	return &placed{role: lacking, place: fleet.Place{Fleet: f.Name, Group: g.Name}, types: g.Types()}
}

// missing returns how many servers the pool lacks, with those that are on their way to it.
func (n need) missing() int { return n.short - len(n.chosen) - len(n.coming) }

// assign gives pool servers to groups that lack members, in the order of the configuration and of the
// servers' names. A server that was not contacted yet counts as usable, so that as many are contacted as are
// needed. A run limited to steps claims nothing.
func (c *census) assign(sel Selection) []need {
	if len(sel.Steps) > 0 {
		return nil
	}
	taken := make(map[string]bool)           // server ids
	names := make(map[string]bool)           // of all servers, present and planned
	lost := make(map[fleet.Place]int)        // by fleet and group
	former := make(map[fleet.Place][]placed) // by fleet and group
	var unsure []placed                      // they may belong to any group
	for i := range c.servers {
		p := &c.servers[i]
		names[p.server.Name], names[p.name] = true, true
		if c.holdsPlace(p) {
			former[p.place] = append(former[p.place], *p)
		}
		if c.mayHold(p) {
			unsure = append(unsure, *p)
		}
	}
	for i := range c.gone {
		lost[groupOf(c.gone[i].place)]++
		names[c.gone[i].name] = true
	}
	hold := !sel.AllowOrphans && c.holdsClaims()
	if sel.AllowOrphans {
		former, unsure = nil, nil
	}
	var needs []need
	for _, f := range c.cfg.Fleets {
		for _, g := range f.Groups {
			at := fleet.Place{Fleet: f.Name, Group: g.Name}
			n := need{fleet: f, group: g, short: max(0, g.Replicas-c.serving(c.members[at])-lost[at])}
			n.former = former[at][:min(n.short, len(former[at]))]
			n.short -= len(n.former)
			n.unsure, unsure = unsure[:min(n.short, len(unsure))], unsure[min(n.short, len(unsure)):]
			n.short -= len(n.unsure)
			if hold {
				n.held, n.short = n.short, 0
			}
			n.choose(c, taken, names)
			n.await(c, taken)
			n.rejectUnread(c, taken)
			needs = append(needs, n)
		}
	}
	return needs
}

// groupOf drops a place's suffix.
func groupOf(p fleet.Place) fleet.Place { return fleet.Place{Fleet: p.Fleet, Group: p.Group} }

// choose takes servers of the pool: those whose claim an earlier run started, then by the group's preference of types,
// in the zone where the group has the fewest members, and by name.
func (n *need) choose(c *census, taken, names map[string]bool) {
	if n.short == 0 {
		return
	}
	for q := c.queueFor(*n, taken); len(n.chosen) < n.short; {
		p, more := q.next()
		if !more {
			return
		}
		s := p.server
		name := c.cfg.HostName(n.fleet.Name, n.group.Name, s.ID)
		seen, asked := c.snap.Hosts[s.ID]
		var trouble *Trouble
		switch {
		case c.stages[s.ID].Stage == Wiping:
			trouble = codeDirtyPoolHost.Trouble("an earlier run was erasing it when someone renamed it",
				"rename it to "+c.stages[s.ID].Name+" in "+c.vendor.Console()+"; then macfleet apply finishes its release")
		case p.foreign || p.against != nil:
			trouble = c.notFree(p)
		case c.unready(s) != nil:
			trouble = c.unready(s)
		case names[name]:
			trouble = codeNameTaken.Trouble("another server already has the name "+name, "rename the other server in "+c.vendor.Console())
		case asked:
			trouble = unfit(c.cfg, seen, s, name, *n)
		}
		if trouble != nil {
			n.rejected = append(n.rejected, Rejected{Server: s, Trouble: *trouble})
			continue
		}
		taken[s.ID], names[name] = true, true
		p.name, p.place = name, fleet.Place{Fleet: n.fleet.Name, Group: n.group.Name}
		n.chosen = append(n.chosen, p)
		q.inZone[s.Zone]++
	}
}

// notFree is the trouble of a server with a pool name that is shown as a host of someone. A second configuration whose pool_prefix covers
// other names once called working hosts dirty, and its remedy was to reinstall them.
func (c *census) notFree(p placed) *Trouble {
	if p.foreign {
		return codeDirtyPoolHost.Trouble(fmt.Sprintf("its %s shows %s, a host of %s", p.why.Source, p.why.Name, p.why.By))
	}
	forget := "macfleet hosts forget-key " + p.against.Name
	if p.against.Source == ledger.Node {
		forget = "kubectl delete node " + p.against.Name
	}
	return codeDirtyPoolHost.Trouble(fmt.Sprintf("its %s shows the adopted host %s", p.against.Source, p.against.Name),
		"if it was released on purpose: "+forget+"; otherwise rename it in "+c.vendor.Console())
}

// runs reports whether a server's host reports a macOS of the family. After an update, the image that the
// server was installed with no longer shows it.
func (c *census) runs(s inventory.Server, family string) bool {
	version, read := c.snap.Hosts[s.ID].OSVersion.Get()
	return read && fleet.OSFamily(version) == family
}

// mayRun reports whether only the host of a pool server can say that it was updated to another macOS. Images
// that are not a macOS family are used for other things.
func mayRun(s inventory.Server) bool {
	return s.Usable() && !s.DeletionScheduled && slices.Contains(fleet.OSFamilies(), s.OSFamily)
}

// rejectUnread names the servers installed with another macOS whose present version could not be read, as long as
// a group lacks servers.
func (n *need) rejectUnread(c *census, taken map[string]bool) {
	for _, p := range c.servers {
		s, t := p.server, c.snap.Hosts[p.server.ID].Trouble
		if t != nil && n.missing() > 0 && p.role == pool && !c.elsewhere[s.ID] && !taken[s.ID] && n.group.Accepts(s.Type) && s.OSFamily != n.fleet.OS {
			n.rejected = append(n.rejected, Rejected{Server: s, Trouble: *t})
		}
	}
}

// unfit returns why a pool server cannot be claimed, judging by its host, or nil.
func unfit(cfg *fleet.Config, seen HostSeen, s inventory.Server, name string, n need) *Trouble {
	m, marked := seen.Marker.Get()
	claim, claimed := seen.Claim.Get()
	version, _ := seen.OSVersion.Get()
	switch {
	case seen.Trouble != nil:
		return seen.Trouble
	case seen.Marker.IsUnread():
		return markerUnreadable(seen.Marker.Why())
	case marked:
		return codeDirtyPoolHost.Trouble(fmt.Sprintf("it has the marker of %s (%s), written for server %s", m.Name, m.Owner(), m.ServerID))
	case seen.Claim.IsUnread():
		return ClaimUnreadable(seen.Claim.Why())
	case claimed && !claim.Same(ClaimOf(cfg.Owner, name, s.ID)):
		return codeClaimedByAnother.Trouble(fmt.Sprintf("%s is being claimed as %s", s.Name, claim.Name),
			"wait for that run to end; if it crashed, reinstall the server")
	case ForeignJob(cfg, seen.Jobs, n.group.Spec, "") != nil:
		return ForeignJob(cfg, seen.Jobs, n.group.Spec, "")
	case isOther(version, n.fleet.OS):
		return codeWrongOS.Trouble(fmt.Sprintf("it runs macOS %s; the fleet needs %s", withFamily(version), n.fleet.OS))
	case !seen.Root && !n.group.Spec.GrantsRoot():
		return MissingSudo()
	case !seen.Root && seen.Password != nil:
		return seen.Password.Trouble
	}
	return nil
}

// ClaimOf returns the claim of a server under a name, without a nonce.
func ClaimOf(owner fleet.Owner, name, serverID string) Claim {
	return Claim{Configuration: owner.Name, Environment: owner.Environment, Name: name, ServerID: serverID}
}

// isOther reports whether a macOS version is certainly of another family, including later ones that are
// known.
func isOther(version, family string) bool {
	if got := fleet.OSFamily(version); version == "" || got != "" {
		return version != "" && got != family
	}
	return slices.Contains(fleet.OSFamilies(), family)
}

// withFamily adds the family to a macOS version where it is known.
func withFamily(version string) string {
	if family := fleet.OSFamily(version); family != "" {
		return version + " (" + family + ")"
	}
	return version
}

// MissingSudo is the trouble of a host without passwordless sudo.
func MissingSudo() *Trouble {
	return CodeMissingSudoPassword.Trouble("passwordless sudo is missing, and no step of this run sets it up",
		"remove --step from the command and \"sudo\" from disable, so that macfleet sets it up; or set it up on the host: a file in /etc/sudoers.d, checked with visudo -cf")
}

func markerUnreadable(why string) *Trouble {
	return codeMarkerUnreadable.Trouble("its marker /etc/macfleet/host.json cannot be read: " + why)
}

// ClaimUnreadable is the trouble of a host whose claim cannot be read.
func ClaimUnreadable(why string) *Trouble {
	return codeClaimUnreadable.Trouble("its claim /etc/macfleet/claim.json cannot be read: " + why)
}

// reject records once that a pool server is not used.
func (c *computation) reject(r Rejected) {
	if pin := c.keys.pins[r.Server.ID]; pin != nil && pin.Unfinished && r.Code == CodeWrongHostKey {
		r.ClaimStarted = true
		r.Text = "an earlier run started to claim it, and now " + r.Text
	}
	if !c.rejected[r] {
		c.rejected[r] = true
		c.plan.Rejected = append(c.plan.Rejected, r)
	}
}

// exchanged records pool servers that an earlier run started to claim and that show a different key now, even
// where no group needs them any more.
func (c *computation) exchanged() {
	for i := range c.servers {
		p := &c.servers[i]
		if pin := c.keys.pins[p.server.ID]; p.role != pool || pin == nil || !pin.Unfinished || c.plan.Narrowed {
			continue
		}
		if t := c.snap.Hosts[p.server.ID].Trouble; t != nil && t.Code == CodeWrongHostKey {
			c.reject(Rejected{Server: p.server, Trouble: *t})
		}
	}
}

// claims plans the claims of a group and records what the pool lacks.
func (c *computation) claims(f fleet.Fleet, g fleet.Group) {
	i := slices.IndexFunc(c.needs, func(n need) bool { return n.fleet.Name == f.Name && n.group.Name == g.Name })
	if i < 0 {
		return // the run is limited to steps
	}
	n := &c.needs[i]
	for i := range n.chosen {
		p := &n.chosen[i]
		if !c.sel.matches(p) {
			c.plan.LeftOut++
			continue
		}
		h := c.host(g, p)
		claim := h.action(ClaimServer, pending, codeTooFewReplicas, fmt.Sprintf("%s.%s has replicas = %d", f.Name, g.Name, g.Replicas),
			Field{"name", p.server.Name, h.Name})
		c.drafts = append(c.drafts, draft{actions: []Action{claim}})
	}
	if !c.sel.matches(lackingIn(f, g)) {
		c.plan.LeftOut += n.missing() + len(n.coming) + len(n.former) + len(n.unsure)
		return
	}
	for _, r := range n.rejected {
		c.reject(r)
	}
	lacks := func(missing int, code Code, why, remedy string, order *Order) {
		if missing > 0 {
			c.plan.Shortages = append(c.plan.Shortages, Shortage{Fleet: f.Name, Group: g.Name, Type: g.Type, Also: g.Also, OS: f.OS, Missing: missing, Order: order,
				Trouble: Trouble{code, fmt.Sprintf("%s.%s has replicas = %d, and ", f.Name, g.Name, g.Replicas) + why, remedy}})
		}
	}
	// A server claimed instead of an adopted one would be one too many once the block is restored or the host
	// has booted.
	lacks(len(n.former), codeHostBlockRemoved,
		serverNames(n.former)+" has the marker of that group, but its host block is missing",
		"restore its host block, or lower replicas; to claim another server instead: macfleet apply --allow-orphans", nil)
	lacks(n.held, codeOrphansHoldClaims, "no server is claimed while orphaned members may belong there",
		"restore the blocks of the orphaned members; to claim other servers instead: macfleet apply --allow-orphans", nil)
	lacks(len(n.unsure), codeHostBlockRemoved,
		serverNames(n.unsure)+" was adopted before, its host block is missing, and it does not answer",
		"restore its host block, or wait until it answers; if the machine is gone: macfleet hosts forget-key NAME, with the name under which it was adopted", nil)
	t := c.onTheWay(*n)
	lacks(len(n.coming), t.Code, t.Text, t.Remedy, nil)
	order, t := c.tooFew(*n)
	lacks(n.missing(), t.Code, t.Text, t.Remedy, order)
}

func serverNames(all []placed) string {
	var names []string
	for _, p := range all {
		names = append(names, p.server.Name)
	}
	return strings.Join(names, ", ")
}

// Room returns how many hosts each group lacks, by fleet and group, before any claim. Only the lists decide: an
// orphaned member that may return keeps no place here.
func Room(cfg *fleet.Config, snap Snapshot) map[fleet.Place]int {
	c := takeCensus(cfg, snap)
	lost := make(map[fleet.Place]int)
	for i := range c.gone {
		lost[groupOf(c.gone[i].place)]++
	}
	out := make(map[fleet.Place]int)
	for _, f := range cfg.Fleets {
		for _, g := range f.Groups {
			at := fleet.Place{Fleet: f.Name, Group: g.Name}
			out[at] = max(0, g.Replicas-len(c.members[at])-lost[at])
		}
	}
	return out
}
