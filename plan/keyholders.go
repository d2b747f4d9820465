package plan

import (
	"maps"
	"slices"
	"strings"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
)

// Traces are what an earlier macfleet leaves where hosts already trust a fleet's SSH key. Each kind survives
// the loss of the others.
type Traces struct {
	Servers    []inventory.Server
	Nodes      []inventory.Node
	Identities []inventory.Identity
	Pins       []Pin
}

// Trace is a known host and the source that knows it.
type Trace struct {
	Host string
	By   []string
}

// Hosts returns the known hosts, by name. Any name of the grammar counts: a host whose group was removed
// trusts the key too. All pins count, as several configurations may share one key.
func (t Traces) Hosts(cfg *fleet.Config) []Trace {
	found := make(map[string][]string)
	add := func(name, by string) {
		if !slices.Contains(found[name], by) {
			found[name] = append(found[name], by)
		}
	}
	for _, p := range t.Pins {
		add(p.Name, "its pinned host key")
	}
	for _, i := range t.Identities {
		add(i.Host, "its identity in the cluster")
	}
	for _, n := range t.Nodes {
		_, listed := cfg.Listed(n.Name)
		if _, owned := cfg.Parse(n.Name); owned || listed {
			add(n.Name, "its Node")
		}
	}
	for _, s := range t.Servers {
		if at, owned := cfg.Parse(s.Name); owned && strings.HasPrefix(strings.ToLower(s.ID), at.Suffix) {
			add(s.Name, "its server's name")
		}
	}
	var out []Trace
	for _, name := range slices.Sorted(maps.Keys(found)) {
		out = append(out, Trace{name, found[name]})
	}
	return out
}
