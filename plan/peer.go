package plan

import (
	"slices"
	"strings"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan/lists"
)

// Peer is the step that makes a host known to a service which keeps an entry for each host: a CI service its agent, a tailnet its device.
// What happens on the host is the step's; what happens at the service is done by the engine. Every entry has one life: it is listed, admitted
// with a credential that is minted just before its use, joined, read again, kept right, left idle, and forgotten.
type Peer interface {
	Step
	// Service is the same for all hosts.
	Service() Service
	// Realm returns where at the service the host should have its entry, such as an organization; empty: the service has one list. ok is false
	// if the host should have none.
	Realm() (realm string, ok bool)
	// Said returns the entry that the host itself names; ok is false if it names none. Its realm may differ from the specification's.
	Said(Facts) (said lists.Said, ok bool)
	// Leave returns the changes that end the host's entry: its job, its entry at the service, its files. It is Diff for a host that leaves, and
	// has no changes if there is nothing.
	Leave(View) Finding
}

// Service is what is the same about a service for all hosts.
type Service struct {
	ID     inventory.ServiceName
	Entry  string // what people call an entry, such as "CI agent"
	Noun   string // in short, such as "agent"
	Field  string // names the entry among the fields of an action
	Place  string // names the service in a sentence; empty: its realm does
	Accept string // the name by which a person accepts its list; empty: that of its realm
	Idle   string // how an entry is called that nothing uses, such as "offline"
	// LeftOver is the code of an entry whose host is gone.
	LeftOver Code
	// Required says that no server is claimed that could not join.
	Required bool
	// Works says that the service gives work to hosts: a host is idle before its entry ends, and ends it itself.
	Works bool
	// Made reports whether an entry has what macfleet gives to its own; nil: all may be its own.
	Made func(*fleet.Config, inventory.Entry) bool
	// Quota is how many entries the service takes; nil: any number.
	Quota func(*fleet.Config, []inventory.Entry) *Quota
}

// Quota is how many entries a service takes.
type Quota struct {
	Taken int // entries that count, and those for which the configuration reserves room
	Limit int // 0: none
	Full  func(taken int) *Trouble
}

// At names the service of a realm in a sentence.
func (s Service) At(realm string) string {
	if s.Place != "" {
		return s.Place
	}
	return realm
}

// AcceptName is how a person accepts the list of a realm.
func (s Service) AcceptName(realm string) string {
	if s.Accept != "" {
		return s.Accept
	}
	return strings.TrimPrefix(realm, "https://")
}

// made reports whether macfleet may have made an entry.
func (s Service) made(cfg *fleet.Config, e inventory.Entry) bool {
	return s.Made == nil || s.Made(cfg, e)
}

// Peers returns the steps that make a host known to services: those first whose services give work, because that work ends first.
func Peers(all []Step) []Peer {
	var out, later []Peer
	for _, s := range all {
		if p, is := s.(Peer); is {
			if p.Service().Works {
				out = append(out, p)
			} else {
				later = append(later, p)
			}
		}
	}
	return append(out, later...)
}

// PeerSeen is what a service answered about one realm. A step gets only the entries of its host: those that claim its name, and the one that
// the host names.
type PeerSeen struct {
	// Trouble says why it could not be read; nil: it was, or Unlisted.
	Trouble *Trouble `json:"trouble,omitempty"`
	// Unlisted says that macfleet cannot list the service's entries: nothing about them is compared.
	Unlisted bool `json:"unlisted,omitempty"`
	inventory.Listing
}

// Read reports whether the service was read.
func (s *PeerSeen) Read() bool { return s != nil && s.Trouble == nil && !s.Unlisted }

// PeersSeen is what all services answered, by the service and by the realm.
type PeersSeen map[inventory.ServiceName]map[string]PeerSeen

// HostPeer is what a service has of one host.
type HostPeer struct {
	Peer  inventory.ServiceName `json:"peer"`
	Realm string                `json:"realm,omitempty"`
	Seen  *PeerSeen             `json:"-"` // of this host; nil: no service was read for it
	Works bool                  `json:"-"` // the service gives work to hosts
	// Fenced says that a run keeps new work away.
	Fenced bool `json:"fenced,omitempty"`
	// Entry is the host's own; null: none, or unknown.
	Entry *inventory.Entry `json:"entry,omitempty"`
}

// Peer returns what a service has of the host; zero: nothing.
func (h *Host) Peer(id inventory.ServiceName) HostPeer {
	if i := slices.IndexFunc(h.Peers, func(p HostPeer) bool { return p.Peer == id }); i >= 0 {
		return h.Peers[i]
	}
	return HostPeer{Peer: id}
}

// See returns the host with another answer of a service.
func (h Host) See(id inventory.ServiceName, seen *PeerSeen) Host {
	h.Peers = slices.Clone(h.Peers)
	for i := range h.Peers {
		if h.Peers[i].Peer == id {
			h.Peers[i].Seen = seen
			return h
		}
	}
	h.Peers = append(h.Peers, HostPeer{Peer: id, Seen: seen})
	return h
}

// Peer returns what a service answered of the host; nil: it was not read, or the host should have no entry there.
func (v View) Peer(id inventory.ServiceName) *PeerSeen {
	for i := range v.Peers {
		if v.Peers[i].Peer == id {
			return v.Peers[i].Seen
		}
	}
	return nil
}

// PeerChange is a change at a service instead of on the host.
type PeerChange struct {
	Peer  inventory.ServiceName `json:"peer"`
	Realm string                `json:"realm,omitempty"`
	Verb  inventory.Verb        `json:"verb"`
	Entry inventory.Entry       `json:"entry,omitzero"` // as it was listed
	Key   string                `json:"key,omitempty"`  // id of a credential that ends, instead of an entry
	To    []string              `json:"to,omitempty"`   // what the entry gets
}
