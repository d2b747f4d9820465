// Package adopt writes configurations for servers that exist. It is pure: it puts servers into fleets by
// their names, types and macOS families, and renders the HCL that adopts them under these names.
package adopt

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
)

// Seen is what a host says of itself. The zero Seen means that it was not read.
type Seen struct {
	OSFamily string // macOS family that runs now; empty: unknown
	Owner    string // owner in its marker; empty: it has none, or it was not read
	Trouble  string // why it could not be read; empty: no trouble is known
}

// Request is what a draft is made from.
type Request struct {
	Owner      fleet.Owner
	PoolPrefix string
	Servers    []inventory.Server  // those to adopt
	All        []inventory.Server  // of the project: names must be unique among them
	Seen       map[string]Seen     // by server id
	Fleets     []fleet.Fleet       // that the configuration has
	Room       map[fleet.Place]int // how many hosts its groups lack, by fleet and group
	Group      fleet.Place         // the group that all servers join; zero: found by their names
}

// Draft is a proposal: fleets with their servers, and the servers that cannot be adopted.
type Draft struct {
	Owner  fleet.Owner
	Fleets []Fleet // sorted by name
	Pooled int     // servers that are free in the pool
	Left   []Left  // sorted by name and id
	Unread []Left  // adopted servers whose hosts could not be read, so that the provider's list decides about their macOS
}

// Fleet is a fleet of a draft.
type Fleet struct {
	Name   string
	OS     string
	Exists bool // the configuration has it
	Groups []Group
}

// Group is a group of a draft with the servers that it adopts, sorted by name.
type Group struct {
	Name, Type string
	Servers    []inventory.Server
}

// Left is a server that the draft leaves out, with the reason and what to do.
type Left struct {
	Server   inventory.Server
	Why, Fix string
}

// Hosts returns how many servers the draft adopts.
func (d Draft) Hosts() int {
	n := 0
	for _, f := range d.Fleets {
		for _, g := range f.Groups {
			n += len(g.Servers)
		}
	}
	return n
}

// Plan puts servers into fleets. It is deterministic: the order of the servers does not matter.
func Plan(r Request) Draft {
	d := Draft{Owner: r.Owner}
	var taken []inventory.Server
	for _, s := range r.Servers {
		why, fix := r.leaves(s)
		switch {
		case strings.HasPrefix(s.Name, r.PoolPrefix):
			d.Pooled++
		case why != "":
			d.Left = append(d.Left, Left{s, why, fix})
		default:
			taken = append(taken, s)
			if trouble := r.Seen[s.ID].Trouble; trouble != "" {
				d.Unread = append(d.Unread, Left{Server: s, Why: trouble})
			}
		}
	}
	byName := func(a, b inventory.Server) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID)) }
	slices.SortFunc(taken, byName)
	for _, list := range [][]Left{d.Left, d.Unread} {
		slices.SortFunc(list, func(a, b Left) int { return byName(a.Server, b.Server) })
	}
	r.place(&d, taken)
	return d
}

// leaves returns why a server cannot be adopted, and what to do about it. Empty texts: it can.
func (r Request) leaves(s inventory.Server) (why, fix string) {
	if !fleet.IsDNSLabel(s.Name) {
		return "its name cannot be the name of a host: " + fleet.CheckText("dns", s.Name), "rename it in the provider's console"
	}
	for _, o := range r.All {
		if o.ID != s.ID && o.Name == s.Name {
			return "another server has the same name", "rename one of them in the provider's console"
		}
	}
	if owner, _, ok := fleet.Split(s.Name, s.ID); ok {
		return "by its name, the configuration " + owner + " manages it", "use that configuration; it adopts or releases the server"
	}
	if _, owned := r.Owner.Parse(s.Name); owned {
		return "its name looks like a name that this configuration gives to another server", "choose another name for the configuration, or rename the server"
	}
	seen := r.Seen[s.ID]
	switch {
	case seen.Owner != "" && seen.Owner != r.Owner.String():
		return "its marker says that " + seen.Owner + " manages it", "use that configuration; it adopts or releases the server"
	case s.DeletionScheduled:
		return "its deletion is scheduled", "cancel the deletion in the provider's console"
	case !s.Delivered:
		return "it is not delivered yet", "wait until it is ready"
	case slices.Contains(strings.Split(s.Name, "-"), "pool"):
		return "its name looks like that of a pool server", "choose it with --pool-prefix, or rename the server"
	case strings.Contains(s.Name, "claim-pending"):
		return "another controller is claiming it", "wait until it has its final name"
	case s.OSFamily == "Linux":
		return "it runs Linux", "leave it out"
	case r.family(s) == "":
		return "its macOS family is unknown", "make the host reachable over SSH, and run the command again"
	}
	return "", ""
}

// family returns the macOS family of a server: what runs now, else what was installed first.
func (r Request) family(s inventory.Server) string {
	return cmp.Or(r.Seen[s.ID].OSFamily, s.OSFamily)
}

// kind is what servers of one group share.
type kind struct{ stem, family, serverType string }

// place puts servers into fleets of the draft.
func (r Request) place(d *Draft, servers []inventory.Server) {
	stems := stemsOf(servers, r.Owner)
	kinds := make(map[kind][]inventory.Server)
	for _, s := range servers {
		k := kind{stems[s.Name], r.family(s), s.Type}
		kinds[k] = append(kinds[k], s)
	}
	order := slices.SortedFunc(maps.Keys(kinds), func(a, b kind) int {
		return cmp.Or(cmp.Compare(a.stem, b.stem), cmp.Compare(a.family, b.family), cmp.Compare(a.serverType, b.serverType))
	})
	b := builder{request: r, draft: d, room: make(map[fleet.Place]int), fresh: make(map[[2]string]int), types: make(map[[2]string][]string)}
	maps.Copy(b.room, r.Room)
	for _, k := range order {
		b.types[[2]string{k.stem, k.family}] = append(b.types[[2]string{k.stem, k.family}], k.serverType)
	}
	for _, k := range order {
		b.add(k, kinds[k])
	}
	slices.SortFunc(d.Fleets, func(a, b Fleet) int { return cmp.Compare(a.Name, b.Name) })
}

// builder adds groups to a draft.
type builder struct {
	request Request
	draft   *Draft
	room    map[fleet.Place]int
	fresh   map[[2]string]int      // the new fleet of a stem and family, by its place in the draft
	types   map[[2]string][]string // server types of a stem and family
}

func (b *builder) add(k kind, servers []inventory.Server) {
	if f, g, ok := b.existing(k, len(servers)); ok {
		b.room[fleet.Place{Fleet: f.Name, Group: g.Name}] -= len(servers)
		b.into(f.Name, f.OS, Group{g.Name, g.Type, servers})
		return
	}
	if at := b.request.Group; at != (fleet.Place{}) {
		for _, s := range servers {
			b.draft.Left = append(b.draft.Left, Left{s, fmt.Sprintf("%s.%s does not take it: it is %s with %s", at.Fleet, at.Group, s.Type, k.family),
				"choose a group of its type and macOS family"})
		}
		return
	}
	id := [2]string{k.stem, k.family}
	at, known := b.fresh[id]
	if !known {
		at = len(b.draft.Fleets)
		b.fresh[id] = at
		b.draft.Fleets = append(b.draft.Fleets, Fleet{Name: b.newName(k), OS: k.family})
	}
	f := &b.draft.Fleets[at]
	f.Groups = append(f.Groups, Group{groupName(k.serverType, b.types[id]), k.serverType, servers})
}

// existing returns the group of the configuration that lacks at least n hosts of a kind, if there is only one.
// A group of one's choice needs no room: the caller reports it.
func (b *builder) existing(k kind, n int) (f fleet.Fleet, g fleet.Group, ok bool) {
	found := 0
	chosen := b.request.Group
	for _, of := range b.request.Fleets {
		for _, og := range of.Groups {
			at := fleet.Place{Fleet: of.Name, Group: og.Name}
			if !og.Accepts(k.serverType) || of.OS != k.family || chosen != (fleet.Place{}) && chosen != at || chosen == (fleet.Place{}) && b.room[at] < n {
				continue
			}
			f, g, found = of, og, found+1
		}
	}
	return f, g, found == 1
}

// into adds a group of a fleet that the configuration has.
func (b *builder) into(name, family string, g Group) {
	i := slices.IndexFunc(b.draft.Fleets, func(f Fleet) bool { return f.Exists && f.Name == name })
	if i < 0 {
		i = len(b.draft.Fleets)
		b.draft.Fleets = append(b.draft.Fleets, Fleet{Name: name, OS: family, Exists: true})
	}
	f := &b.draft.Fleets[i]
	if j := slices.IndexFunc(f.Groups, func(o Group) bool { return o.Name == g.Name }); j >= 0 {
		f.Groups[j].Servers = append(f.Groups[j].Servers, g.Servers...)
		return
	}
	f.Groups = append(f.Groups, g)
}

// newName returns a name of a new fleet: the stem, with the family if the stem has several, and a number if
// the name is taken.
func (b *builder) newName(k kind) string {
	base := k.stem
	for id := range b.types {
		if id[0] == k.stem && id[1] != k.family {
			base = k.stem + part(k.family)
		}
	}
	name := base
	for n := 2; b.taken(name); n++ {
		name = fmt.Sprintf("%s%d", base, n)
	}
	return name
}

func (b *builder) taken(name string) bool {
	return slices.ContainsFunc(b.request.Fleets, func(f fleet.Fleet) bool { return f.Name == name }) ||
		slices.ContainsFunc(b.draft.Fleets, func(f Fleet) bool { return f.Name == name })
}
