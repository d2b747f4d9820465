package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan/lists"
)

var (
	codeOtherTailnet = NewCode("other-tailnet", Warning, "the credentials are those of a tailnet that the hosts are not in")
	codeListLacking  = NewCode("list-lacks-hosts", Warning, "a service lacks the objects of many hosts at once, so its list may be wrong")
	codeLeftUnknown  = NewCode("left-over-unknown", NotDrift, "a service lists an object with a name of this configuration that no host has, and nothing shows that macfleet made it")
)

// sayings are what hosts say of their entries at a service, by server id.
type sayings map[string]lists.Said

// believe withholds each list that is not shown to be about this configuration's hosts: all who read it see why instead. Only members count
// whose markers say that the step was verified there. A person may accept a list by its name.
func (c *computation) believe() {
	c.peers.said = make(map[inventory.ServiceName]sayings)
	said := make(map[inventory.ServiceName]map[string][]lists.Said) // by realm
	for _, f := range c.cfg.Fleets {
		for _, g := range f.Groups {
			for _, p := range c.members[fleet.Place{Fleet: f.Name, Group: g.Name}] {
				if seen := c.snap.Hosts[p.server.ID]; seen.Trouble == nil && len(seen.Facts) > 0 {
					c.hear(p, c.stepsFor(c.specified(g, p)), seen, said)
				}
			}
		}
	}
	for _, p := range c.allPeers() {
		s := p.Service()
		id := s.ID
		for _, key := range c.realms(id) {
			list, _ := c.peer(id, key)
			if !list.Read() || list.Churned() { // what it lacks shows nothing
				continue
			}
			ids := make([]string, len(list.entries))
			for i, e := range list.entries {
				ids[i] = e.ID
			}
			realm, what := key, s.At(key)
			if s.Place != "" { // one list, which shows its realm itself
				realm, what = list.Realm(), strings.TrimSpace(what+" "+list.Realm())
			}
			if why := c.disbelief(lists.Judge(realm, ids, said[id][key]), what, s.AcceptName(key)); why != nil {
				*list = peerIndex{PeerSeen: PeerSeen{Trouble: why}}
			}
		}
	}
}

// hear notes what a host says of its entries. It counts if the host is verified: its marker is this owner's, and says that the step was in
// sync there once.
func (c *computation) hear(p *placed, all []Step, seen HostSeen, counts map[inventory.ServiceName]map[string][]lists.Said) {
	m, _ := seen.Marker.Get()
	for _, peer := range Peers(all) {
		id := peer.Service().ID
		if len(c.snap.Peers[id]) == 0 {
			continue
		}
		said, is := peer.Said(seen.Facts)
		if !is {
			continue
		}
		said.Host = p.name
		if c.peers.said[id] == nil {
			c.peers.said[id], counts[id] = make(sayings), make(map[string][]lists.Said)
		}
		c.peers.said[id][p.server.ID] = said
		if _, once := m.Steps[peer.ID()]; once && m.Owner() == c.cfg.Owner {
			realm := said.Realm
			if peer.Service().Place != "" {
				realm = ""
			}
			counts[id][realm] = append(counts[id][realm], said)
		}
	}
}

// of returns what the host of a server says, which is parsed once.
func (all sayings) of(id string, says func() (lists.Said, bool)) (lists.Said, bool) {
	if s, is := all[id]; is {
		return s, true
	}
	return says()
}

// disbelief is why a list does not count; nil: it does, or a person accepted it.
func (c *computation) disbelief(v lists.Verdict, what, name string) *Trouble {
	if v.Believed() || slices.Contains(c.sel.AcceptLists, name) {
		return nil
	}
	accept := "correct the credentials; if the hosts should change to what it lists: macfleet apply --accept-list " + name
	switch hosts := count(len(v.Missing), "host"); {
	case v.State == lists.Lacking:
		return codeListLacking.Trouble(fmt.Sprintf("%s lacks %s of %d at once (%s)", what, hosts, v.Of, sampleOf(v.Missing)), accept)
	case v.Realm != "":
		return codeOtherTailnet.Trouble(fmt.Sprintf("the credentials are those of %s, and %s say that they are in %s (%s)", what, hosts, v.Realm, sampleOf(v.Missing)), accept)
	default:
		return codeOtherTailnet.Trouble(fmt.Sprintf("%s has none of the objects of %s (%s)", what, hosts, sampleOf(v.Missing)), accept)
	}
}
