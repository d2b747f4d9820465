package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan/ledger"
)

var (
	codeReplaced       = NewCode("replaced", NotDrift, "a person asked for another server in place of the host")
	codeReleaseStarted = NewCode("release-started", Warning, "an earlier run started to release the server and did not finish")
	codeReleaseAsked   = NewCode("release-asked", NotDrift, "a person asked to return the server to the pool")
	codeReleaseUnsafe  = NewCode("release-unsafe", NotDrift, "it is unknown whether the server is this configuration's and idle, so it is not wiped",
		"bring the host back (macfleet explain NAME), then run macfleet apply again")
	codeNoReplacement = NewCode("no-replacement", NotDrift, "the host is replaced only once another server has joined its group",
		"make the new server join (macfleet plan names what it waits for), or cancel: macfleet replace --cancel NAME")
	codeOSFamilyGone = NewCode("os-family-gone", Warning, "the provider no longer installs the macOS family",
		"change os of the fleet to a family that is offered")
	codeNotReinstallable = NewCode("not-reinstallable", Warning, "the provider cannot reinstall the server, so it cannot return to the pool")
	codeCatalogueUnread  = NewCode("catalogue-unread", Warning, "the provider's catalogue of operating systems could not be read",
		"run macfleet apply again when the provider answers")
)

// Keep returns a pin without its stage if its server stays after all, under the name that its host has in the plan: the name in
// the pin of an unfinished release decides nothing, and must not decide once the stage is gone.
func (p *Plan) Keep(pin Pin) Pin {
	if h, ok := p.HostByServer(pin.ServerID); ok && slices.Contains(p.Stay, pin.ServerID) {
		pin.Stage, pin.StageSince, pin.Name = Stays, time.Time{}, h.Name
	}
	return pin
}

// Reset says what a released server becomes.
type Reset struct {
	SystemID string `json:"system_id,omitempty"` // the operating system to install; empty: it is installed
	System   string `json:"system,omitempty"`    // its name, for example macos-tahoe-26.6.1
	Pool     string `json:"pool"`                // the server's name in the pool
}

// enterStage records how far a member is on its way out. A server whose group is gone from the configuration
// is a member again while its release is unfinished: nothing of it is left to decide about.
func (c *census) enterStage(p *placed, pin Pin) {
	_, marked := c.snap.Hosts[p.server.ID].Marker.Get()
	asked := c.snap.Asked[p.server.ID] == Leaving
	switch {
	case p.adopted: // a person wrote its host block
	case pin.Stage.Final() && c.named(ledger.Pin, pin.Name, pin.ServerID).Owner == ledger.Another: // its owner finishes that release
	case pin.Stage == Wiped && marked: // it was claimed again since
	case pin.Stage.Final() && p.server.Name != pin.Name: // it left under its pool name, or a person decided
	case (p.role == orphan || p.role == stray) && (asked || pin.Stage.Final() && !p.foreign):
		p.wasStray = p.role == stray
		p.role, p.stage, p.placeless, p.asked = member, pin.Stage, nil, asked
	case p.role == member:
		p.stage = pin.Stage
	}
}

// leavesAnyway reports whether a server leaves whatever the number of replicas is. Its place is free.
func (p *placed) leavesAnyway() bool {
	return p.role == member && (p.stage.Final() || p.stage == Replaced || p.asked)
}

// firstToLeave returns the n members that a scale-down takes: first those that an earlier run started with, those that
// the provider deletes anyway and those in quarantine, then those not Ready, the idle ones, the newest, and held ones last. Adopted hosts stay.
func (c *census) firstToLeave(members []*placed, n int) []*placed {
	if n <= 0 {
		return nil
	}
	order := slices.DeleteFunc(slices.Clone(members), func(p *placed) bool { return p.adopted })
	rank := func(p *placed) int {
		switch {
		case p.stage == Leaving:
			return -2
		case p.server.DeletionScheduled, c.quarantined(p):
			return -1
		}
		seen := c.snap.Hosts[p.server.ID]
		held := heldOf(seen.Marker, p.node, c.snap.Taken)
		n, isNode := p.node.Get() // a host without a Node is neither Ready nor not Ready
		works := slices.ContainsFunc(c.cluster.pods[n.Name], inventory.Pod.Works)
		return 4*ones(held != nil && !held.Expired) + 2*ones(seen.Trouble == nil && (!isNode || ready(p.node))) + ones(isNode && works)
	}
	slices.SortStableFunc(order, func(a, b *placed) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), b.server.Created.Compare(a.server.Created))
	})
	return order[:min(n, len(order))]
}

// depart enters a member that leaves into the plan.
func (c *computation) depart(g fleet.Group, p *placed) {
	if !c.sel.matches(p) {
		c.plan.LeftOut++
		return
	}
	h := c.host(g, p)
	h.Leaves, h.Asked, h.Unowned = true, p.asked, p.asked && p.wasStray
	refused := p.refused
	if !h.Asked && !h.Stage.Final() && c.sel.Departs != nil && !c.sel.Departs.Replace {
		refused = cmp.Or(refused, c.keeps(h)) // the group has one too many, but a person named a server without a place
	}
	if c.pooled(p.server) && p.why.Source != ledger.Marker && !p.adopted { // a person may have erased it, and another may use it
		refused = cmp.Or(refused, c.unsafe(h, "its server is called %s, as in the pool, and no marker shows a host of this configuration", p.server.Name))
	}
	if e := p.against; e != nil {
		refused = cmp.Or(refused, c.unsafe(h, "its %s shows %s, a host of %s", e.Source, e.Name, e.By))
	}
	c.drafts = append(c.drafts, draft{refused: refused})
}

// leaversOf returns the servers of a group that leave it anyway.
func (c *census) leaversOf(at fleet.Place) []*placed {
	var out []*placed
	for i := range c.servers {
		if p := &c.servers[i]; p.leavesAnyway() && groupOf(p.place) == at {
			out = append(out, p)
		}
	}
	return out
}

// releasePlaceless enters those whose group is no longer in the configuration.
func (c *computation) releasePlaceless() {
	for i := range c.servers {
		if p := &c.servers[i]; p.leavesAnyway() && !c.has(p.place.Fleet, p.place.Group) && len(c.sel.Steps) == 0 {
			c.depart(fleet.Group{}, p)
		}
	}
}

// departing refuses what must not be done to a host that leaves, and judges it as a whole. An erased host has
// no owner, so only its server counts.
func (c *computation) departing(d *draft) {
	h := d.host
	c.keepToCluster(h, d.actions)
	if !h.Stage.Final() {
		c.watchServer(h, d.actions)
		if !h.Server.Usable() { // it would lose its Node, and not be erased
			refuse(d.actions, statusOf(h.Server).code.Trouble(condition(c.vendor, h.Server)))
		}
		c.watchNode(h, d.actions)
	}
	h.hold(d.actions) // also if its reinstallation should be requested
	h.Converged = Differs
}

// leave plans the release of a host: drain, revoke, remove its Node, reinstall, and rename into the pool last. It
// is done as a whole: one action that is refused refuses all.
func (c *computation) leave(d *draft) {
	h := d.host
	reset, trouble := c.resetOf(h)
	origin := pending
	if h.Stage.Final() { // no run ends well before it is finished
		origin = drifted
	}
	add := func(k Kind, code Code, why string, fields ...Field) *Action {
		a := h.action(k, origin, code, why, fields...)
		d.actions = append(d.actions, a)
		return &d.actions[len(d.actions)-1]
	}
	code, why := c.whyLeaves(h)
	if !h.Stage.Final() || h.notErased() {
		trouble = cmp.Or(d.refused, c.unreleasable(h), c.unrevocable(h), trouble)
	}
	if !h.Stage.Final() {
		if h.Name != h.Server.Name { // its name and its marker must agree before it is erased
			add(RenameServer, code, why, Field{"name", h.Server.Name, h.Name})
		}
		trouble = cmp.Or(trouble, c.vacate(h, add, code, why))
	}
	if h.Stage != Wiped {
		a := add(ReinstallServer, code, why, Field{"content of the disk", h.Server.OSFamily + ", set up", cmp.Or(reset.System, h.Server.OSFamily) + ", empty"})
		a.Disruption, a.Reset, a.Forced = Wipe, &reset, h.ForceBusy
	}
	a := add(ReleaseServer, code, why, Field{"name", h.Name, reset.Pool})
	a.Reset = &reset
	if trouble != nil {
		refuse(d.actions, trouble)
		if h.Unknown == nil {
			h.Refused = trouble
		}
		return
	}
	if i := slices.IndexFunc(d.actions, func(a Action) bool { return a.Refusal != nil }); i >= 0 {
		refuse(d.actions, d.actions[i].Refusal)
	}
}

// notErased reports whether a server whose reinstallation should be requested still has its old disk: the run died first, and
// work may have started there since.
func (h *Host) notErased() bool {
	m, marked := h.Seen.Marker.Get()
	return h.Stage == Wiping && h.Seen.Trouble == nil && marked && m.ServerID == h.Server.ID
}

// Unerased reports whether a server whose reinstallation may have been requested still has its disk: it is not being installed, and its host
// shows the pinned key and the marker of before.
func Unerased(now inventory.Server, seen HostSeen) bool {
	m, marked := seen.Marker.Get()
	return now.Usable() && seen.Trouble == nil && seen.Pinned && marked && m.ServerID == now.ID
}

// waitsForAnother returns why a host that is replaced stays for now, or nil. A server that this run claims counts: the host
// leaves after it has joined.
func (c *computation) waitsForAnother(h *Host) *Trouble {
	n := lackOf(c.needs, fleet.Place{Fleet: h.Fleet, Group: h.Group})
	if h.Stage != Replaced || n == 0 {
		return nil
	}
	return noReplacement(h.Name, fmt.Sprintf("%s.%s lacks %s: the host stays until another one has joined", h.Fleet, h.Group, count(n, "server")))
}

func noReplacement(name, why string) *Trouble {
	t := codeNoReplacement.Trouble(why)
	t.Remedy = strings.ReplaceAll(t.Remedy, "NAME", name)
	return t
}

// unsafe is the trouble of a host that must not be erased.
func (c *computation) unsafe(h *Host, format string, args ...any) *Trouble {
	t := codeReleaseUnsafe.Trouble(fmt.Sprintf(format, args...))
	t.Remedy = strings.ReplaceAll(t.Remedy, "NAME", h.Name)
	return t
}

// lackOf returns how many servers a group lacks after the claims of this run.
func lackOf(needs []need, at fleet.Place) int {
	for _, n := range needs {
		if n.fleet.Name == at.Fleet && n.group.Name == at.Group {
			return n.missing() + n.held + len(n.former) + len(n.unsure)
		}
	}
	return 0
}

// whyLeaves says why a host leaves.
func (c *computation) whyLeaves(h *Host) (Code, string) {
	_, g, known := c.cfg.Group(h.Fleet, h.Group)
	switch {
	case h.Stage.Final() && !h.Server.Usable():
		return codeReleaseStarted, c.releaseStarted(h.Server.ID) + ", and " + condition(c.vendor, h.Server)
	case h.Stage.Final():
		return codeReleaseStarted, c.releaseStarted(h.Server.ID)
	case h.Asked:
		return codeReleaseAsked, "a person asked for it with macfleet release"
	case h.Stage == Replaced:
		return codeReplaced, "another server takes its place"
	case known:
		return codeTooManyReplicas, fmt.Sprintf("%s.%s has replicas = %d", h.Fleet, h.Group, g.Replicas)
	}
	return codeTooManyReplicas, "it has no place in the configuration"
}

// releaseStarted says that a server is erased, and since when.
func (c *census) releaseStarted(id string) string {
	if at := c.stages[id].StageSince; !at.IsZero() {
		since := strings.TrimSuffix(max(time.Minute, c.snap.Taken.Sub(at).Truncate(time.Minute)).String(), "0s")
		return "its release started at " + clockTime(at) + " (" + since + " ago)"
	}
	return "its release has started"
}

// vacate adds what takes a host out of the cluster. Its Node goes after its kubelet's identity, without which no kubelet
// can register it again.
func (c *computation) vacate(h *Host, add func(Kind, Code, string, ...Field) *Action, code Code, why string) (refused *Trouble) {
	n, isNode := h.Node.Get()
	if isNode && h.Drainable() {
		a := add(DrainNode, code, why, Field{"Node", n.Name, ""})
		a.Disruption, a.Drains, a.Evicts, a.Busy, a.Forced = Drain, true, len(h.evicted()), h.work(c), h.ForceBusy
		if !a.Forced {
			a.Refusal = h.waits("the release", a.Busy)
		}
	}
	refused = c.retirePeers(h, true, add, code, why)
	if i, ok := h.Identity.Get(); ok {
		add(RevokeHost, code, why, identityFields(i, true, Field{Before: "present"})...)
	}
	for _, f := range h.Former {
		if i, ok := f.Identity.Get(); ok {
			add(RevokeHost, code, why, identityFields(i, true, Field{Before: "present"})...).Was = f.Name
		}
	}
	if isNode {
		a := add(DeleteNode, code, why, Field{"Node", n.Name, ""})
		if n.ProviderID != "" && n.ProviderID != h.Server.ProviderID() {
			a.Refusal = deleteNode(h, n, true).Refusal
		}
	}
	_ = c.retirePeers(h, false, add, code, why) // what gives no work is refused nothing
	return refused
}

// work returns the work that runs on a host as its steps read it.
func (h *Host) work(c *computation) []Task {
	var out []Task
	for _, step := range c.stepsOf(h) {
		if f := step.Diff(h.View(step.ID())); !f.Running.IsUnread() {
			f.readable()
			all, _ := f.Running.Get()
			out = append(out, all...)
			if _, shown := f.VMs.Get(); shown {
				h.vms = f.VMs
			}
		}
	}
	return out
}

// unreleasable returns why a host must not be wiped, or nil: it may be someone else's, or work may run on it.
func (c *computation) unreleasable(h *Host) *Trouble {
	// A name that a person types does not show the owner, and neither does the stage. An earlier run that deleted the Node had
	// drained the host.
	n, isNode := h.Node.Get()
	drained := h.Stage == Leaving && h.Spec.Spec.JoinsCluster() && h.Node.IsAbsent() && !h.Asked
	proven := isNode && n.ProviderID == h.Server.ProviderID() || drained
	if h.Seen.Trouble != nil {
		h.Unknown = h.Diagnosed(c.vendor)
		return c.unsafeSilent(h, proven)
	}
	if h.Unknown = h.WrongKey(); h.Unknown != nil {
		return h.Unknown
	}
	if t := cmp.Or(MarkerForbids(c.cfg, h), c.controlled(h), c.cluster.misjoined(h)); t != nil {
		return t
	}
	h.Compared = true
	if t := c.notOwn(h, proven); t != nil {
		return t
	}
	return c.unsafeWork(h)
}

// unsafeSilent returns why a host that does not answer must not be wiped, or nil. The flag says that a Node shows its owner.
func (c *computation) unsafeSilent(h *Host, proven bool) *Trouble {
	unsafe := func(format string, args ...any) *Trouble {
		return c.unsafe(h, "its host does not answer, "+format, args...)
	}
	n, isNode := h.Node.Get()
	switch code := h.Seen.Trouble.Code; {
	case code != CodeUnreachable && code != CodeHostDown: // it runs, so work may run there
		return h.Unknown
	case h.Name != h.Server.Name:
		return unsafe("and its server is called %s", h.Server.Name)
	case !proven || h.Unowned:
		return unsafe("and no Node shows that it is this configuration's")
	case h.trust.Pin == nil:
		return unsafe("and its key is not pinned")
	case h.ForceBusy:
		return nil
	case h.Spec.Spec.BuildsImages():
		return unsafe("so it is unknown whether a job runs there")
	case !isNode:
		return nil
	case n.Ready == inventory.Ready:
		return unsafe("but its Node is Ready")
	}
	if busy := h.busy(n); busy != nil {
		return unsafe("and %s", busy.Text)
	}
	return nil
}

// notOwn returns why nothing shows that a host that answers may be wiped by this configuration, or nil.
func (c *computation) notOwn(h *Host, proven bool) *Trouble {
	_, marked := h.Seen.Marker.Get()
	if h.Unowned = h.Unowned || h.Asked && !proven && !marked; h.Unowned {
		return c.unowned(h)
	}
	if !proven && !c.marks(h) {
		return c.unsafe(h, "neither a marker on its host nor a Node shows that it is this configuration's")
	}
	return nil
}

// unsafeWork returns which work a wipe would end on a host that answers, or why that is unknown; nil: none, or it may be lost.
func (c *computation) unsafeWork(h *Host) *Trouble {
	n, isNode := h.Node.Get()
	joins := h.Spec.Spec.JoinsCluster()
	switch {
	case joins && h.Node.IsUnread():
		return c.unsafe(h, "it is unknown whether it is a Node: %s", h.Node.Why())
	case !c.workRead(h):
		return c.unsafe(h, "it is unknown what runs on its host")
	case h.ForceBusy:
		return nil
	case isNode && h.Pods.IsUnread():
		return c.unsafe(h, "it is unknown which Pods run on its Node: %s", h.Pods.Why())
	case h.Drainable():
		return nil
	}
	n.Name = cmp.Or(n.Name, h.Name) // Pods may outlive their Node
	if busy := h.busy(n); busy != nil && (isNode || joins || len(h.evicted()) > 0) {
		return busy
	}
	return h.waits("the release", h.work(c))
}

// marks reports whether the host has a marker that is its own and this configuration's.
func (c *computation) marks(h *Host) bool {
	m, marked := h.Seen.Marker.Get()
	return marked && m.ServerID == h.Server.ID && m.Owner() == c.cfg.Owner
}

// unrevocable returns why the identity of a host's kubelet would outlive the host, or nil.
func (c *computation) unrevocable(h *Host) *Trouble {
	if h.Stage.Final() || !h.Spec.Spec.JoinsCluster() || !h.Identity.IsUnread() {
		return nil
	}
	return c.unsafe(h, "it is unknown whether its kubelet has an identity: %s", h.Identity.Why())
}

// workRead reports whether a step read what runs on the host.
func (c *computation) workRead(h *Host) bool {
	return slices.ContainsFunc(c.stepsOf(h), func(s Step) bool { return !s.Diff(h.View(s.ID())).Running.IsUnread() })
}

// resetOf returns what a host that leaves becomes: the newest system of its family, under the pool name that it had.
func (c *computation) resetOf(h *Host) (Reset, *Trouble) {
	r := Reset{Pool: c.poolName(h)}
	catalogue := c.snap.Catalogue
	if h.Stage == Wiped {
		return r, nil
	}
	if catalogue == nil {
		return r, codeCatalogueUnread.Trouble("it is unknown which operating systems the provider installs: " + cmp.Or(c.snap.CatalogueUnread, "it is unread"))
	}
	if h.Server.OSFamily == inventory.DevOS {
		return r, codeNotReinstallable.Trouble(fmt.Sprintf("%s cannot reinstall a server with its %s", c.vendor.Name, inventory.DevOS),
			"delete the server in "+c.vendor.Console()+" once it is empty: macfleet cordon "+h.Name+" --drain")
	}
	s, ok := catalogue.System(h.Server.OSFamily, h.Server.Type, h.Server.Zone)
	if !ok {
		return r, codeOSFamilyGone.Trouble(fmt.Sprintf("%s no longer installs macOS %s on a %s in %s; it offers %s", c.vendor.Name, h.Server.OSFamily,
			h.Server.Type, h.Server.Zone, cmp.Or(strings.Join(catalogue.Families(h.Server.Type, h.Server.Zone), ", "), "nothing")))
	}
	r.SystemID, r.System = s.ID, s.Name
	return r, nil
}

// poolName returns the name that a server gets in the pool: the one it had there, if it is known and free.
func (c *computation) poolName(h *Host) string {
	id, prefix := h.Server.ID, c.vendor.PoolPrefix
	free := func(name string) bool {
		return !slices.ContainsFunc(c.snap.Servers, func(s inventory.Server) bool { return s.Name == name && s.ID != id })
	}
	if pin := h.trust.Pin; pin != nil && strings.HasPrefix(pin.Pooled, prefix) && free(pin.Pooled) {
		return pin.Pooled
	}
	if name := prefix + id[:min(len(id), fleet.SuffixLength)]; free(name) {
		return name
	}
	return prefix + id
}

// unstaged finds the servers whose stored stage means nothing any more. Mostly only a plan that is not narrowed can tell.
func (c *computation) unstaged() {
	for id, pin := range c.stages {
		i := slices.IndexFunc(c.servers, func(p placed) bool { return p.server.ID == id })
		if i < 0 { // nothing is known of it
			continue
		}
		switch p := &c.servers[i]; {
		case pin.Stage == Wiping && p.role == member && p.server.Name != pin.Name: // a person kept it: its name restored must not erase it
			c.plan.Stay = append(c.plan.Stay, id)
		case c.plan.Narrowed:
		case pin.Stage == Wiped && p.server.Name != pin.Name, pin.Stage != Wiping && p.role == pool:
			c.plan.Left = append(c.plan.Left, id)
		case pin.Stage == Leaving && p.role == member && !c.leaves[id]:
			c.plan.Stay = append(c.plan.Stay, id)
		}
	}
	slices.Sort(c.plan.Left)
	slices.Sort(c.plan.Stay)
}
