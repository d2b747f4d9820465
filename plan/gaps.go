package plan

import (
	"maps"
	"slices"

	"github.com/macfleet/macfleet/fleet"
)

// Gaps are questions of a plan that a snapshot does not answer, because it was
// recorded for less: before the configuration changed, or with a selection.
type Gaps struct {
	Hosts  []string // names of servers that were not asked, sorted
	Probes []string // ids of probes that some host was not asked, sorted
}

// GapsOf returns what a plan would still have to ask. A snapshot that was just
// observed has no gaps.
func GapsOf(cfg *fleet.Config, stepsFor StepsFor, snap Snapshot, sel Selection) Gaps {
	var g Gaps
	for _, s := range Next(cfg, snap, sel) {
		g.Hosts = append(g.Hosts, s.Name)
	}
	slices.Sort(g.Hosts)
	missing := make(map[string]bool)
	for _, p := range Probes(cfg, stepsFor, sel) {
		for _, h := range snap.Hosts {
			_, asked := h.Facts[p.ID]
			_, instead := h.Facts[p.Unless]
			if !asked && !instead && h.Trouble == nil {
				missing[p.ID] = true
			}
		}
	}
	g.Probes = slices.Sorted(maps.Keys(missing))
	return g
}
