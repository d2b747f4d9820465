package plan

import (
	"slices"

	"github.com/macfleet/macfleet/fleet"
)

// Probes returns every probe that any host's steps have, each once, of the steps
// that the selection names. They depend on no host, and what only one host's
// block wants is asked of all: one script serves the whole fleet. What another
// answer says too is not asked.
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
	return slices.DeleteFunc(out, func(p Probe) bool { return asked[p.Unless] })
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

// JoinsCluster reports whether something of the cluster itself is wanted: a host
// joins it, or the Cluster API is connected.
func JoinsCluster(cfg *fleet.Config) bool {
	if cfg.Kubernetes == nil {
		return false
	}
	return cfg.Kubernetes.CAPI != nil || slices.ContainsFunc(specs(cfg), fleet.Spec.JoinsCluster)
}
