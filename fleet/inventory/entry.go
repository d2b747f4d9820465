package inventory

import (
	"slices"
	"strings"
)

// ServiceName names a service that keeps an entry for each host.
type ServiceName string

// The services.
const (
	CIService      ServiceName = "ci"
	TailnetService ServiceName = "tailnet"
)

// Entry is what a service keeps for one host, such as a CI agent or a device of the tailnet, as far as it means the same everywhere.
type Entry struct {
	ID        string   `json:"id"` // unique among all lists of the service; a new registration has a new one
	Name      string   `json:"name"`
	Online    bool     `json:"online"`              // it is connected to the service
	Busy      bool     `json:"busy,omitempty"`      // the service says that a job runs, which may be wrong either way
	Tags      []string `json:"tags,omitempty"`      // what jobs or rules choose it by: labels, tags
	Addresses []string `json:"addresses,omitempty"` // IPv4 first
	Version   string   `json:"version,omitempty"`   // of the host's program, as the service knows it
}

// Verb is what happens to an entry at its service.
type Verb string

// The verbs.
const (
	DeleteEntry   Verb = "delete"     // already deleted: nothing to do
	RestoreAgent  Verb = "restore"    // give the agent the labels and the group that are configured
	RetagDevice   Verb = "retag"      // give the device the configured tags
	RenameDevice  Verb = "rename"     // give the device the host's name
	ApproveDevice Verb = "approve"    // the device waits for an administrator
	KeepDevice    Verb = "keep"       // the device's node key never expires
	RevokeKey     Verb = "revoke-key" // a key with which hosts join, which an earlier run left
)

// Listing is all that a service lists. One of the fields is set.
type Listing struct {
	Agents  *AgentService `json:"agents,omitempty"`
	Tailnet *Tailnet      `json:"tailnet,omitempty"`
	Plain   []Entry       `json:"entries,omitempty"` // of a service of which nothing else matters
}

// CI is what a CI service lists; zero: it is no CI service.
func (l Listing) CI() AgentService {
	if l.Agents == nil {
		return AgentService{}
	}
	return *l.Agents
}

// Net is what a control server lists; zero: it is none.
func (l Listing) Net() Tailnet {
	if l.Tailnet == nil {
		return Tailnet{}
	}
	return *l.Tailnet
}

// Realm is what the list itself shows that it is of; empty: it does not.
func (l Listing) Realm() string { return l.Net().Suffix }

// Churned says that entries came and went each time the list was read, so that it may lack some.
func (l Listing) Churned() bool { return l.CI().Churned }

// ReadOnly says that the credentials can list entries but not change them.
func (l Listing) ReadOnly() bool { return l.CI().ReadOnly }

// Entries are all entries, in the order of the list.
func (l Listing) Entries() []Entry {
	switch {
	case l.Agents != nil:
		out := make([]Entry, len(l.Agents.Agents))
		for i := range out {
			out[i] = l.Agents.Agents[i].Entry()
		}
		return out
	case l.Tailnet != nil:
		out := make([]Entry, len(l.Tailnet.Devices))
		for i := range out {
			out[i] = l.Tailnet.Devices[i].Entry()
		}
		return out
	}
	return l.Plain
}

// Names are those of hosts that the entry at a place may be, in lower case.
func (l Listing) Names(place int) []string {
	switch {
	case l.Agents != nil: // services compare names without regard to case
		return []string{strings.ToLower(l.Agents.Agents[place].Name)}
	case l.Tailnet != nil:
		return l.Tailnet.Devices[place].names()
	}
	return []string{strings.ToLower(l.Plain[place].Name)}
}

// Of is the part that concerns one host: the entries at these places in the list, and its unused keys.
func (l Listing) Of(host string, places []int) Listing {
	switch {
	case l.Agents != nil:
		part := *l.Agents
		part.Agents = at(part.Agents, places)
		l.Agents = &part
	case l.Tailnet != nil:
		part := *l.Tailnet
		part.Devices = at(part.Devices, places)
		if all, read := part.Keys.Get(); read {
			name := KeyName(host)
			var own []DeviceKey
			for _, k := range all {
				if k.For == name {
					own = append(own, k)
				}
			}
			part.Keys = Present(own)
		}
		l.Tailnet = &part
	default:
		l.Plain = at(l.Plain, places)
	}
	return l
}

// Now is the listing with entries that were read again, each as a listing that has no other, and without keys that ended.
func (l Listing) Now(read []Listing, ended []string) Listing {
	switch {
	case l.Agents != nil:
		part := *l.Agents
		part.Agents = nil
		for _, r := range read {
			part.Agents = append(part.Agents, r.CI().Agents...)
		}
		l.Agents = &part
	case l.Tailnet != nil:
		part := *l.Tailnet
		part.Devices = nil
		for _, r := range read {
			part.Devices = append(part.Devices, r.Net().Devices...)
		}
		if all, known := part.Keys.Get(); known {
			part.Keys = Present(slices.DeleteFunc(slices.Clone(all), func(k DeviceKey) bool { return slices.Contains(ended, k.ID) }))
		}
		l.Tailnet = &part
	default:
		l.Plain = nil
		for _, r := range read {
			l.Plain = append(l.Plain, r.Plain...)
		}
	}
	return l
}

// at returns the elements at some places.
func at[T any](all []T, places []int) []T {
	out := make([]T, len(places))
	for i, place := range places {
		out[i] = all[place]
	}
	return out
}

// Entry is the agent as what it has in common with entries of other services.
func (a Agent) Entry() Entry {
	e := Entry{ID: a.ID, Name: a.Name, Online: a.Online, Busy: a.Busy, Tags: a.Labels, Version: a.Version}
	if len(a.Fixed) > 0 {
		e.Tags = slices.Concat(a.Labels, a.Fixed)
	}
	return e
}

// Entry is the device as what it has in common with entries of other services.
func (d Device) Entry() Entry {
	return Entry{ID: d.ID, Name: d.Name, Online: d.Connected, Tags: d.Tags, Addresses: d.Addresses, Version: d.Version}
}

// names are those of hosts that the device may be, in lower case: its name, its host name, and its name without the number that the control
// server added: after a rejoin next to a stale device it is called NAME-1. A host's own name has no number at its end that is shorter than
// the id's five characters.
func (d Device) names() []string {
	name, host := strings.ToLower(d.Name), strings.ToLower(d.HostName)
	out := []string{name}
	if host != "" && host != name {
		out = append(out, host)
	}
	if i := strings.LastIndexByte(name, '-'); i > 0 {
		if number := name[i+1:]; number != "" && len(number) < 4 && strings.Trim(number, "0123456789") == "" && name[:i] != host {
			out = append(out, name[:i])
		}
	}
	return out
}
