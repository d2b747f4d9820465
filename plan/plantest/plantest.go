// Package plantest has fleets of any size for tests and benchmarks of package
// plan and of what stands on it.
package plantest

import (
	"fmt"
	"slices"
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/steps"
	"github.com/macfleet/macfleet/steps/stepstest"
)

// Recorded returns a fleet of n hosts (at most 1,048,576) that were set up once
// and now answer like untouched Macs: each of the Steps steps of each host has
// answers to parse, and differs by drift.
func Recorded(n int) (*fleet.Config, plan.StepsFor, plan.Snapshot) {
	return recorded(n, func(inventory.Server) plan.Facts { return stepstest.FactoryFacts() })
}

// Converged returns the fleet of Recorded with nothing to do: every host answers
// as it was set up, and its marker holds the proof of every step.
func Converged(n int) (*fleet.Config, plan.StepsFor, plan.Snapshot) {
	return recorded(n, func(s inventory.Server) plan.Facts { return stepstest.SettledFacts(s.Name) })
}

func recorded(n int, facts func(inventory.Server) plan.Facts) (*fleet.Config, plan.StepsFor, plan.Snapshot) {
	cfg := config(n)
	existing := wished(steps.For(fleet.Host{Spec: cfg.Fleets[0].Groups[0].Spec, User: cfg.SSH.User}))
	stepsFor := repeated(existing)
	snap := plan.Snapshot{Hosts: make(map[string]plan.HostSeen, n)}
	nodes := make([]inventory.Node, 0, n)
	for i := range n {
		f := cfg.Fleets[i%2]
		g := f.Groups[i/2%2]
		s := server(cfg, f, g, i)
		seen := host(cfg, f, g, s, stepsFor, copies(stepstest.SettledFacts(s.Name), existing))
		seen.Facts = copies(facts(s), existing)
		nodes = append(nodes, inventory.Node{Name: s.Name, ProviderID: s.ProviderID(), Ready: inventory.Ready})
		snap.Servers = append(snap.Servers, s)
		snap.Pins = append(snap.Pins, plan.Pin{ServerID: s.ID, Name: s.Name, Key: seen.Key, Since: s.Created})
		snap.Hosts[s.ID] = seen
	}
	snap.Nodes = inventory.Present(nodes)
	return cfg, stepsFor, snap
}

// wished returns the steps that want something of a host. Those of a cluster's Nodes
// want nothing here: no host of these fleets joins one.
func wished(all []plan.Step) []plan.Step {
	return slices.DeleteFunc(all, func(s plan.Step) bool {
		return s.Diff(plan.View{Facts: stepstest.FactoryFacts(), Root: true}).Wanted == ""
	})
}

// config wants n hosts in four groups.
func config(n int) *fleet.Config {
	spec := fleet.Spec{Hostname: &fleet.Hostname{}, Power: &fleet.Power{}, AutoLogin: &fleet.AutoLogin{}, VMFirewall: &fleet.VMFirewall{}}.WithBuiltIn().WithDefaults()
	cfg := &fleet.Config{
		Owner:    fleet.Owner{Name: "acme", Environment: "prod"},
		Scaleway: fleet.Scaleway{Zones: []string{"fr-par-1"}, PoolPrefix: "acme-pool-"},
		SSH:      fleet.SSH{User: "m1"},
	}
	for _, name := range []string{"macos", "runners"} {
		cfg.Fleets = append(cfg.Fleets, fleet.Fleet{Name: name, OS: "Tahoe", Groups: []fleet.Group{
			{Name: "m2", Type: "M2-L", Spec: spec}, {Name: "m4", Type: "M4-M", Spec: spec}}})
	}
	for i := range n {
		cfg.Fleets[i%2].Groups[i/2%2].Replicas++
	}
	return cfg
}

func server(cfg *fleet.Config, f fleet.Fleet, g fleet.Group, i int) inventory.Server {
	id := fmt.Sprintf("%05x000-0000-4000-8000-%012x", i, i)
	return inventory.Server{ID: id, Name: cfg.HostName(f.Name, g.Name, id), Type: g.Type, Zone: "fr-par-1", Address: "192.0.2.1",
		OSFamily: f.OS, Status: "ready", Delivered: true, Created: time.Unix(int64(i), 0).UTC()}
}

// host is a member whose marker holds the proofs of all steps.
func host(cfg *fleet.Config, f fleet.Fleet, g fleet.Group, s inventory.Server, stepsFor plan.StepsFor, settled plan.Facts) plan.HostSeen {
	m := plan.Marker{Configuration: cfg.Name, Environment: cfg.Environment, Name: s.Name, Fleet: f.Name, Group: g.Name,
		ServerID: s.ID, Serial: "C07" + s.ID[:5], Version: fleet.Version, Steps: make(map[plan.StepID]plan.Digest, Steps)}
	view := plan.View{Host: fleet.Host{Name: s.Name, Fleet: f.Name, Group: g.Name, User: cfg.SSH.User, Spec: g.Spec},
		Server: s, Facts: settled, Root: true}
	for _, step := range stepsFor(view.Host) {
		m.Steps[step.ID()] = plan.DigestOf(step.Diff(view))
	}
	return plan.HostSeen{Key: "ssh-ed25519 " + s.ID, Fingerprint: "SHA256:" + s.ID, Pinned: true, Root: true,
		Serial: inventory.Present(m.Serial), OSVersion: inventory.Present("26.3"),
		Marker: inventory.Present(m), Claim: inventory.Absent[plan.Claim]()}
}
