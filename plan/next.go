package plan

import (
	"maps"
	"slices"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
)

// Next returns the servers that must still be contacted before Compute can decide: all members, as many
// candidates as claims need, and, before a claim, strays of the needed type, which may be renamed members. If
// the pool seems too small, servers with other images are contacted too: they may have been updated to the
// configured macOS. While the fleet's key is rotated, the whole pool is contacted: a server that accepts only the previous key could never
// be claimed after it.
func Next(cfg *fleet.Config, snap Snapshot, sel Selection) []inventory.Server {
	c := takeCensus(cfg, snap)
	w := c.wanting(sel)
	var out []inventory.Server
	for i := range c.servers {
		p := &c.servers[i]
		if _, asked := snap.Hosts[p.server.ID]; !asked && w.asks(p) {
			out = append(out, p.server)
		}
	}
	return out
}

// wanting is what a plan must read.
type wanting struct {
	*census
	sel        Selection
	candidates map[string]bool // server ids
	types      map[string]bool // that a selected claim needs
	short      map[string]bool // types of which the pool has too few
	unfinished map[string]bool // server ids of interrupted claims: a different machine there must be noticed
	rotates    bool            // the fleet's key, on all hosts
}

func (c *census) wanting(sel Selection) wanting {
	w := wanting{c, sel, make(map[string]bool), make(map[string]bool), make(map[string]bool), make(map[string]bool), false}
	for _, n := range c.assign(sel) {
		if n.missing()+len(n.unsure) > 0 && sel.matches(lackingIn(n.fleet, n.group)) {
			for _, t := range n.group.Types() {
				w.types[t], w.short[t] = true, w.short[t] || n.missing() > 0
			}
		}
		for i := range n.chosen {
			if p := &n.chosen[i]; sel.matches(p) {
				w.candidates[p.server.ID] = true
				for _, t := range n.group.Types() {
					w.types[t] = true
				}
			}
		}
	}
	if sel.IsAll() {
		for _, p := range c.snap.Pins {
			w.unfinished[p.ServerID] = p.Unfinished
		}
		_, _, w.rotates = c.snap.rotating()
	}
	return w
}

// asks reports whether a server must be contacted.
func (w wanting) asks(p *placed) bool {
	s := p.server
	switch p.role {
	case member, orphan:
		return w.sel.matches(p)
	case pool:
		return w.candidates[s.ID] || (w.unfinished[s.ID] || w.rotates) && s.Usable() || w.short[s.Type] && mayRun(s) && !w.elsewhere[s.ID]
	case stray:
		// Without a cluster, only this configuration's pin shows where the server belongs.
		wanted := w.types[s.Type] || p.wasAdopted && (len(w.types) > 0 || w.cfg.Kubernetes == nil)
		return wanted && s.Usable() && !(p.foreign && w.pooled(s)) && !w.elsewhere[s.ID] && !ofAnotherEnvironment(w.cfg, s)
	}
	return w.candidates[s.ID]
}

// ofAnotherEnvironment reports whether a server has a name of this configuration in another environment: it
// is not a lost member here, and its host may refuse the SSH key.
func ofAnotherEnvironment(cfg *fleet.Config, s inventory.Server) bool {
	for _, env := range cfg.Environments {
		o := fleet.Owner{Name: cfg.Name, Environment: env}
		if at, ok := o.Parse(s.Name); ok && o != cfg.Owner && s.Name == o.HostName(at.Fleet, at.Group, s.ID) {
			return true
		}
	}
	return false
}

// Probes returns every probe of the selected steps of any host, each once. What one host's block needs is
// read on all: one script serves the fleet.
func Probes(cfg *fleet.Config, stepsFor StepsFor, sel Selection) []Probe {
	var out []Probe
	asked := make(map[string]bool)
	for _, spec := range specs(cfg) {
		for _, step := range stepsFor(fleet.Host{User: cfg.SSH.User, Spec: spec}) {
			if !sel.Includes(step.ID()) {
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
	if sel.Departs != nil && !sel.Departs.Replace { // the server may be one on which macfleet was never root
		out = append(out, WorkProbes(stepsFor(fleet.Host{User: cfg.SSH.User}))...)
	}
	return slices.DeleteFunc(out, func(p Probe) bool { return asked[p.Unless] })
}

// WorkProbes returns what steps ask a host on which macfleet is not root about its work.
func WorkProbes(steps []Step) []Probe {
	var out []Probe
	for _, s := range steps {
		if r, is := s.(WorkReader); is {
			out = append(out, r.WorkProbe())
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

// JoinsCluster reports whether the configuration needs the cluster: a host joins it, or the Cluster API is
// connected.
func JoinsCluster(cfg *fleet.Config) bool {
	if cfg.Kubernetes == nil {
		return false
	}
	return cfg.Kubernetes.CAPI != nil || slices.ContainsFunc(specs(cfg), fleet.Spec.JoinsCluster)
}

// Gaps are questions of a plan that a snapshot does not answer, because it was recorded before the
// configuration changed, or with a selection.
type Gaps struct {
	Hosts  []string // names of servers that were not contacted, sorted
	Probes []string // ids of probes that some host has no answer to, sorted
}

// GapsOf returns what a plan still has to read. A snapshot that was just observed has no gaps.
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
