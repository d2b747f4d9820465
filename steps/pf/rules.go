package pf

import (
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

// metadata is where clouds answer questions about a machine. It is blocked by a
// rule of its own, whatever the list of networks says.
const metadata = "169.254.169.254"

// Spec is what an anchor blocks: what comes from virtual machines, on its way to
// these networks.
type Spec struct {
	Sources []netip.Prefix // of virtual machines
	Blocked []netip.Prefix
}

// Networks reads networks such as "10.0.0.0/8", sorted and each once. Anything
// else is an error: a filter with a network too few would let through.
func Networks(texts []string) ([]netip.Prefix, error) {
	var out []netip.Prefix
	for _, text := range texts {
		if why := fleet.CheckNetwork(text); why != "" {
			return nil, fmt.Errorf("%q is no network: %s", text, why)
		}
		out = append(out, netip.MustParsePrefix(text))
	}
	return sorted(out), nil
}

func sorted(all []netip.Prefix) []netip.Prefix {
	out := slices.Clone(all)
	slices.SortFunc(out, func(a, b netip.Prefix) int {
		if c := a.Addr().Compare(b.Addr()); c != 0 {
			return c
		}
		return a.Bits() - b.Bits()
	})
	return slices.Compact(out)
}

// Rules returns the text of an anchor's file. Its tables are not persistent: one
// that outlives its rules makes every later load fail with "Resource busy".
func Rules(s Spec) (string, error) {
	if len(s.Sources) == 0 || len(s.Blocked) == 0 {
		return "", errors.New("an anchor needs networks that it blocks, and networks that it blocks them for")
	}
	for _, p := range append(slices.Clone(s.Sources), s.Blocked...) {
		if why := fleet.CheckNetwork(p.String()); why != "" {
			return "", fmt.Errorf("%s: %s", p, why)
		}
	}
	return Header + "\n# What virtual machines send to these networks is dropped.\n" +
		table(SourceTable, s.Sources) + table(BlockedTable, s.Blocked) + strings.Join(ruleLines(), "\n") + "\n", nil
}

func table(name string, networks []netip.Prefix) string {
	return "table <" + name + "> { " + NetworkList(networks) + " }\n"
}

// ruleLines are the rules without a direction: a packet of a virtual machine comes
// in on the bridge with its own address, and may have the host's when it goes out,
// where translation can come before the filter.
func ruleLines() []string {
	return []string{
		"block drop quick from <" + SourceTable + "> to <" + BlockedTable + ">",
		"block drop quick from <" + SourceTable + "> to " + metadata,
	}
}

// IsOurs reports whether an anchor file's first line says that macfleet made it.
func IsOurs(file string) bool {
	first, _, _ := strings.Cut(file, "\n")
	return strings.TrimSpace(first) == Header
}

// Live is an anchor as it is in the kernel, in normal form.
type Live struct {
	Rules            []string
	Sources, Blocked string // what the tables hold
}

// Loaded returns what an anchor's file becomes in the kernel.
func Loaded(s Spec) Live {
	return Live{Rules: ruleLines(), Sources: NetworkList(s.Sources), Blocked: NetworkList(s.Blocked)}
}

// NetworkList writes networks in a fixed order.
func NetworkList(all []netip.Prefix) string {
	var texts []string
	for _, p := range sorted(all) {
		texts = append(texts, p.String())
	}
	return strings.Join(texts, ", ")
}

// Resembles reports whether a file holds a line that only macfleet writes: its
// first line somewhere, or the rule of its tables.
func Resembles(file string) bool {
	for line := range strings.Lines(file) {
		if line = strings.TrimSpace(line); line == Header || line == ruleLines()[0] {
			return true
		}
	}
	return false
}

// IsRendered reports whether a file is as Rules writes it, for whatever networks.
func IsRendered(file string) bool {
	var s Spec
	for _, t := range []struct {
		name string
		into *[]netip.Prefix
	}{{SourceTable, &s.Sources}, {BlockedTable, &s.Blocked}} {
		_, list, _ := strings.Cut(file, "\ntable <"+t.name+"> { ")
		list, _, _ = strings.Cut(list, " }\n")
		var err error
		if *t.into, err = Networks(strings.Split(list, ", ")); err != nil {
			return false
		}
	}
	text, err := Rules(s)
	return err == nil && text == file
}
