package plan

import (
	"maps"
	"slices"
	"strings"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan/lists"
)

var (
	codeListChurned = NewCode("list-churned", NotDrift, "the list of a CI service changed each time it was read and lacks the host's agent, which shows nothing",
		"run the command again")
	codeAgentUnknown = NewCode("agent-unknown", NotDrift, "the CI service cannot be read, so it is unknown whether a job runs on a host that leaves",
		"check the service, then run macfleet apply again")
)

// peerIndex finds entries of one host among those of all.
type peerIndex struct {
	PeerSeen
	entries []inventory.Entry
	byID    map[string]int
	byName  map[string][]int // by what they claim
	told    bool             // the plan says that the list churned
	quota   *Quota           // entries of this plan included; nil: not needed yet
}

// peersKnown is what a computation knows of services.
type peersKnown struct {
	said   map[inventory.ServiceName]sayings               // what hosts say of their entries
	lists  map[inventory.ServiceName]map[string]*peerIndex // made when needed first
	wanted map[inventory.ServiceName]map[string]bool       // where hosts should have entries; nil: not needed yet
	names  map[string]bool                                 // of all servers and members; nil: not needed yet
}

// allPeers are the services that the steps know, whatever a host's specification is.
func (c *computation) allPeers() []Peer {
	if len(c.snap.Peers) == 0 {
		return nil
	}
	return Peers(c.stepsFor(fleet.Host{User: c.cfg.SSH.User, Tailnet: c.cfg.Tailnet}))
}

// realms are those of a service that were read, sorted.
func (c *computation) realms(id inventory.ServiceName) []string {
	return slices.Sorted(maps.Keys(c.snap.Peers[id]))
}

// peer returns the list of a service in a realm.
func (c *computation) peer(id inventory.ServiceName, realm string) (*peerIndex, bool) {
	if x, is := c.peers.lists[id][realm]; is {
		return x, true
	}
	seen, known := c.snap.Peers[id][realm]
	if !known {
		return nil, false
	}
	x := &peerIndex{PeerSeen: seen, entries: seen.Entries()}
	x.byID, x.byName = make(map[string]int, len(x.entries)), make(map[string][]int, len(x.entries))
	for i, e := range x.entries {
		x.byID[e.ID] = i
		for _, name := range x.Names(i) {
			x.byName[name] = append(x.byName[name], i)
		}
	}
	if c.peers.lists == nil {
		c.peers.lists = make(map[inventory.ServiceName]map[string]*peerIndex)
	}
	if c.peers.lists[id] == nil {
		c.peers.lists[id] = make(map[string]*peerIndex)
	}
	c.peers.lists[id][realm] = x
	return x, true
}

// enterPeers gives a host what services have of it. A host that should have no entry any more has the one where it is registered.
func (c *computation) enterPeers(h *Host) {
	h.servers, h.taken = c.names(), c.snap.Taken
	m, _ := h.Seen.Marker.Get()
	for _, p := range Peers(c.stepsOf(h)) {
		x, is := c.enterPeer(h, p)
		if !is {
			continue
		}
		if f := m.Fence; x.Works && f != nil {
			x.Fenced = x.Entry != nil
			if l := c.snap.Lock; l == nil || !l.Alive || l.Run.ID != f.Run {
				h.fence = f
			}
		}
		h.Peers = append(h.Peers, x)
	}
}

// enterPeer returns what one service has of a host; is reports whether the service matters for the host.
func (c *computation) enterPeer(h *Host, p Peer) (x HostPeer, is bool) {
	id := p.Service().ID
	said, registered := c.peers.said[id].of(h.Server.ID, func() (lists.Said, bool) { return p.Said(h.Seen.Facts) })
	x = HostPeer{Peer: id, Works: p.Service().Works}
	realm, wanted := p.Realm()
	if x.Realm = realm; !wanted && p.Service().Place == "" {
		x.Realm = said.Realm
	}
	list, known := c.peer(id, x.Realm)
	if !known {
		if c.configured(id)[x.Realm] && p.Service().Place == "" {
			x.Seen = &PeerSeen{Trouble: codeAgentUnknown.Trouble("the selection of this run leaves out the fleets whose credentials "+x.Realm+" needs", "run it without --on")}
			return x, true
		}
		return x, false
	}
	own, listed := list.byID[said.ID]
	listed = listed && registered
	places := slices.Clone(list.byName[strings.ToLower(h.Name)])
	if listed {
		places = append(places, own)
	}
	slices.Sort(places)
	places = slices.Compact(places)
	seen := list.PeerSeen
	seen.Listing = seen.Of(h.Name, places)
	x.Seen = &seen
	if registered && len(places) == 0 && list.Churned() && list.Trouble == nil {
		why := codeListChurned.Trouble("agents came and went each time the list was read, and it lacks those of some hosts")
		if !list.told {
			list.told = true
			c.plan.Services = append(c.plan.Services, SilentService{p.Service().At(x.Realm), *why})
		}
		x.Seen = &PeerSeen{Trouble: why}
	}
	switch named := list.byName[strings.ToLower(h.Name)]; {
	case listed:
		x.Entry = &list.entries[own]
	case len(named) > 0 && x.Works:
		x.Entry = &list.entries[named[0]]
	}
	return x, true
}

// configured are the realms of a service where hosts of the configuration should have entries.
func (c *computation) configured(id inventory.ServiceName) map[string]bool {
	if c.peers.wanted == nil {
		c.peers.wanted = make(map[inventory.ServiceName]map[string]bool)
		for _, spec := range specs(c.cfg) {
			for _, p := range Peers(c.stepsFor(fleet.Host{User: c.cfg.SSH.User, Spec: spec})) {
				if realm, wanted := p.Realm(); wanted {
					if c.peers.wanted[p.Service().ID] == nil {
						c.peers.wanted[p.Service().ID] = make(map[string]bool)
					}
					c.peers.wanted[p.Service().ID][realm] = true
				}
			}
		}
	}
	return c.peers.wanted[id]
}

// names returns the names of all servers and members.
func (c *computation) names() map[string]bool {
	if c.servers == nil || c.peers.names != nil {
		return c.peers.names
	}
	c.peers.names = make(map[string]bool, len(c.servers))
	for i := range c.servers {
		c.peers.names[c.servers[i].name], c.peers.names[c.servers[i].server.Name] = true, true
	}
	return c.peers.names
}

// silentPeers warns of services that could not be read, once each.
func (c *computation) silentPeers() {
	for _, p := range c.allPeers() {
		for _, realm := range c.realms(p.Service().ID) {
			if list, _ := c.peer(p.Service().ID, realm); list.Trouble != nil {
				c.plan.Services = append(c.plan.Services, SilentService{p.Service().At(realm), *list.Trouble})
			}
		}
	}
}

// peersLeft deletes entries whose hosts are gone: unused ones that macfleet made, under names of this configuration that no server has. A
// host that does not answer may be one of them, so then nothing is deleted.
func (c *computation) peersLeft() {
	if c.plan.Narrowed || slices.ContainsFunc(c.servers, c.silent) {
		return
	}
	spoken := c.mentioned()
	for _, p := range c.allPeers() {
		for _, realm := range c.realms(p.Service().ID) {
			x, _ := c.peer(p.Service().ID, realm)
			if !x.Read() || x.ReadOnly() {
				continue
			}
			for _, e := range x.entries {
				if _, owned := c.cfg.Parse(e.Name); owned && !e.Online && !e.Busy && !spoken[e.Name] && !c.names()[e.Name] && p.Service().made(c.cfg, e) {
					c.forget(p, realm, e)
				}
			}
		}
	}
}

// forget deletes the entry of a host that is gone, if nothing speaks against it.
func (c *computation) forget(p Peer, realm string, e inventory.Entry) {
	s := p.Service()
	what := s.At(realm) + " lists the " + s.Idle + " " + s.Noun + " " + e.Name
	if !c.leftOver(what, e.Name) {
		return
	}
	fields := []Field{{s.Field, "id " + e.ID, "none"}}
	c.plan.Actions = append(c.plan.Actions, Action{Kind: ForgetPeer, Host: e.Name, Was: e.Name, Origin: drifted, Fields: fields, Step: p.ID(), About: s.Entry,
		Reason: Reason{s.LeftOver, what + ", and no server has this name"},
		Changes: []Change{{Reason: Reason{s.LeftOver, "no server is called " + e.Name}, Removes: true, Fields: fields,
			Peer: &PeerChange{Peer: p.Service().ID, Realm: realm, Verb: inventory.DeleteEntry, Entry: e}}}})
}

// silent reports whether a member was not read.
func (c *computation) silent(p placed) bool {
	if p.role != member && p.role != orphan {
		return p.role == gone
	}
	seen, asked := c.snap.Hosts[p.server.ID]
	return !asked || seen.Trouble != nil
}

// retirePeers adds what ends the entries of a host that leaves: of services that give work, or of the others. A host ends its own work; the
// others are the last change, because they may end the path that the connection uses. Of a host that does not answer, only unused entries are
// deleted.
func (c *computation) retirePeers(h *Host, works bool, add func(Kind, Code, string, ...Field) *Action, code Code, why string) *Trouble {
	for _, p := range Peers(c.stepsOf(h)) {
		s, seen := p.Service(), h.Peer(p.Service().ID).Seen
		if s.Works != works {
			continue
		}
		if _, wanted := p.Realm(); works && !h.ForceBusy && (wanted && seen == nil || seen != nil && seen.Trouble != nil) {
			text := "it is unknown whether a job runs on the host"
			if seen != nil {
				text += ": " + seen.Trouble.Text
			}
			return codeAgentUnknown.Trouble(text)
		}
		var busy []Task
		var changes []Change
		if works && h.Seen.Trouble == nil {
			f := p.Leave(h.View(p.ID()))
			f.readable()
			changes, busy = f.Changes, f.Busy
		} else {
			changes = c.leaveChanges(h, p, code, why)
		}
		if len(changes) == 0 {
			continue
		}
		a := add(RetirePeer, code, why, fieldsOf(changes)...)
		a.Step, a.About, a.Changes = p.ID(), s.Entry, changes
		if works {
			a.Busy, a.Forced, a.Disruption = busy, h.ForceBusy, Drain
		}
	}
	return nil
}

// leaveChanges deletes the entries of a host at a service without the host: its own, and unused ones with its name.
func (c *computation) leaveChanges(h *Host, p Peer, code Code, why string) (out []Change) {
	x, s := h.Peer(p.Service().ID), p.Service()
	if !x.Seen.Read() {
		return nil
	}
	if s.Works { // the host does not answer
		code, why = s.LeftOver, "the host is released and does not answer"
	}
	own, _ := c.peers.said[p.Service().ID].of(h.Server.ID, func() (lists.Said, bool) { return p.Said(h.Seen.Facts) })
	for _, e := range x.Seen.Entries() {
		if e.ID == own.ID || !e.Online && s.made(c.cfg, e) {
			out = append(out, Change{Reason: Reason{code, why}, Removes: true, Peer: &PeerChange{Peer: p.Service().ID, Realm: x.Realm, Verb: inventory.DeleteEntry, Entry: e},
				Fields: []Field{{s.Field, strings.TrimSpace(e.Name + ", id " + e.ID), "none"}}})
		}
	}
	return out
}

// quotas refuses what would give a host an entry beyond the number that its service takes, and claims of hosts that could not join.
func (c *computation) quotas(d *draft) {
	h := d.host
	if h.Leaves {
		return
	}
	for _, p := range Peers(c.stepsOf(h)) {
		s := p.Service()
		realm, wanted := p.Realm()
		list, known := c.peer(s.ID, realm)
		if !wanted || !known || list.Unlisted {
			continue
		}
		joins := func(a Action) bool {
			return a.Step == p.ID() && slices.ContainsFunc(a.Changes, func(c Change) bool { return c.Input == Admission })
		}
		switch joining := slices.ContainsFunc(d.actions, func(a Action) bool { return a.Runs() && (a.Kind == ClaimServer || joins(a)) }); {
		case list.Trouble != nil:
			if s.Required && !h.Member {
				refuse(d.actions, list.Trouble)
			}
		case joining && s.Quota != nil && !h.Peer(s.ID).listed(): // an entry of its name is replaced, not added
			if why := list.take(c.cfg, s); why != nil {
				for i := range d.actions {
					if !h.Member || joins(d.actions[i]) {
						refuse(d.actions[i:i+1], why)
					}
				}
			}
		}
	}
}

// listed reports whether the service has an entry of the host, or one that claims its name.
func (p HostPeer) listed() bool { return p.Seen != nil && len(p.Seen.Entries()) > 0 }

// take counts one more entry, or returns why the service does not take it.
func (x *peerIndex) take(cfg *fleet.Config, s Service) *Trouble {
	if x.quota == nil {
		x.quota = s.Quota(cfg, x.entries)
	}
	switch q := x.quota; {
	case q.Limit == 0:
	case q.Taken < q.Limit:
		q.Taken++
	default:
		return q.Full(q.Taken)
	}
	return nil
}

// leftOver reports whether an entry at a service, with a name of this configuration that no host has, is one that macfleet made: a server
// with that name was released. Another's list of names may look the same, and a host may be about to come, so any other is only shown.
func (c *computation) leftOver(what, name string) bool {
	if slices.ContainsFunc(c.snap.Released, func(p Pin) bool { return p.Name == name }) {
		return true
	}
	c.plan.Warnings = append(c.plan.Warnings, *codeLeftUnknown.Trouble(what+", no host has this name, and no released server had it",
		"if nothing uses it, delete it there"))
	return false
}

// Fenceable reports whether a run can keep new work away from the host, so that the work on it finishes.
func (h *Host) Fenceable() bool {
	return slices.ContainsFunc(h.Peers, func(p HostPeer) bool { return p.Works && p.Entry != nil && p.Seen.Read() && !p.Seen.ReadOnly() })
}

// worked reports whether a service that gives work was read for the host, or should have been.
func (h *Host) worked() bool {
	return slices.ContainsFunc(h.Peers, func(p HostPeer) bool { return p.Works && p.Seen != nil })
}
