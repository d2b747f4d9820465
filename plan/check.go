package plan

import (
	"maps"
	"slices"

	"github.com/macfleet/macfleet/fleet"
)

// CheckLists returns an error when no plan must be made of what the providers list
// (CheckInventory, CheckSelection). What hosts said is left aside: a recorded
// observation is judged as it was before any host was asked.
func CheckLists(cfg *fleet.Config, snap Snapshot, sel Selection) error {
	snap.Hosts = nil
	if err := CheckInventory(cfg, snap); err != nil {
		return err
	}
	return CheckSelection(cfg, snap, sel)
}

// Probes returns every probe that any host's steps have, each once, of the steps
// that the selection names. They depend on no host, and what only one host's
// block wants is asked of all: one script serves the whole fleet.
func Probes(cfg *fleet.Config, stepsFor StepsFor, sel Selection) []Probe {
	var out []Probe
	asked := make(map[string]bool)
	for _, spec := range specs(cfg) {
		for _, step := range stepsFor(fleet.Host{User: cfg.SSH.User, Spec: spec}) {
			if !sel.Asks(step.ID()) {
				continue
			}
			for _, p := range step.Probes() {
				if !asked[p.ID] {
					asked[p.ID] = true
					out = append(out, p)
				}
			}
		}
	}
	return out
}

// specs returns the specifications of all groups, and of the hosts that have
// their own.
func specs(cfg *fleet.Config) []fleet.Spec {
	var out []fleet.Spec
	for _, f := range cfg.Fleets {
		for _, g := range f.Groups {
			out = append(out, g.Spec)
		}
	}
	for _, l := range cfg.Hosts {
		out = append(out, l.Spec)
	}
	return out
}

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
			if _, asked := h.Facts[p.ID]; !asked && h.Trouble == nil {
				missing[p.ID] = true
			}
		}
	}
	g.Probes = slices.Sorted(maps.Keys(missing))
	return g
}
