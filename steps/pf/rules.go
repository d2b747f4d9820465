package pf

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/macfleet/macfleet/fleet"
)

// Header is the first line of every anchor file that macfleet writes.
const Header = "# Managed by macfleet."

// The tables of an anchor.
const (
	SourceTable  = "vm_sources"
	BlockedTable = "blocked_dst"
)

// Tables returns the names of the tables of an anchor.
func Tables() []string { return []string{SourceTable, BlockedTable} }

// metadata is the cloud metadata address. A separate rule blocks it, whatever the
// configured networks are.
const metadata = "169.254.169.254"

// Spec is what an anchor blocks: traffic from virtual machines to some networks. NewSpec
// creates it.
type Spec struct {
	sources []netip.Prefix    // of virtual machines
	Tables  map[string]string // sorted content of the tables
}

// NewSpec parses networks such as "10.0.0.0/8". A malformed one is an error: without it the
// filter would let traffic through.
func NewSpec(sources, blocked []string) (Spec, error) {
	if len(sources) == 0 || len(blocked) == 0 {
		return Spec{}, errors.New("an anchor needs source networks and blocked networks")
	}
	from, err := networks(sources)
	to, toErr := networks(blocked)
	return Spec{from, map[string]string{SourceTable: networkList(from), BlockedTable: networkList(to)}}, cmp.Or(err, toErr)
}

func networks(texts []string) ([]netip.Prefix, error) {
	var out []netip.Prefix
	for _, text := range texts {
		if why := fleet.CheckNetwork(text); why != "" {
			return nil, fmt.Errorf("%q is not a network: %s", text, why)
		}
		out = append(out, netip.MustParsePrefix(text))
	}
	return out, nil
}

// networkList returns networks sorted and without duplicates.
func networkList(all []netip.Prefix) string {
	byAddress := func(a, b netip.Prefix) int { return cmp.Or(a.Addr().Compare(b.Addr()), a.Bits()-b.Bits()) }
	var texts []string
	for _, p := range slices.Compact(slices.SortedFunc(slices.Values(all), byAddress)) {
		texts = append(texts, p.String())
	}
	return strings.Join(texts, ", ")
}

// Covers reports whether a network is within the sources.
func (s Spec) Covers(n netip.Prefix) bool {
	return slices.ContainsFunc(s.sources, func(from netip.Prefix) bool { return from.Bits() <= n.Bits() && from.Contains(n.Addr()) })
}

// File returns the anchor file. Its tables are not persistent: a table that outlives its
// rules makes every later load fail with "Resource busy".
func (s Spec) File() string {
	text := Header + "\n# What virtual machines send to these networks is dropped.\n"
	for _, name := range Tables() {
		text += "table <" + name + "> { " + s.Tables[name] + " }\n"
	}
	return text + strings.Join(Rules(), "\n") + "\n"
}

// Rules returns the rules of an anchor in normal form. They have no direction: on the way
// out, NAT may already have replaced the virtual machine's address, so they must match on
// the bridge, too.
func Rules() []string { return slices.Clone(rules) }

var rules = []string{
	"block drop quick from <" + SourceTable + "> to <" + BlockedTable + ">",
	"block drop quick from <" + SourceTable + "> to " + metadata,
}

// IsManaged reports whether an anchor file starts with macfleet's header.
func IsManaged(file string) bool {
	first, _, _ := strings.Cut(file, "\n")
	return strings.TrimSpace(first) == Header
}

// Resembles reports whether a file contains a line that only macfleet writes: the header or
// the rule about its tables.
func Resembles(file string) bool {
	for line := range strings.Lines(file) {
		if line = strings.TrimSpace(line); line == Header || line == Rules()[0] {
			return true
		}
	}
	return false
}

// IsRendered reports whether Spec.File wrote the file, for any networks.
func IsRendered(file string) bool {
	var lists [2][]string
	for i, name := range Tables() {
		_, list, _ := strings.Cut(file, "\ntable <"+name+"> { ")
		list, _, _ = strings.Cut(list, " }\n")
		lists[i] = strings.Split(list, ", ")
	}
	s, err := NewSpec(lists[0], lists[1])
	return err == nil && s.File() == file
}
