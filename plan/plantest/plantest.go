// Package plantest has fleets of any size for tests and benchmarks of package
// plan and of the packages that use it.
package plantest

import (
	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/steps/stepstest"
)

// Recorded returns a fleet of n hosts (at most 1,048,576) that were set up once
// and now answer like untouched Macs: each of the Steps steps of each host has
// answers to parse, and differs by drift. All are builders and Nodes of a cluster,
// and on each is a Pod, which the step of builders refuses.
func Recorded(n int) (*fleet.Config, plan.StepsFor, plan.Snapshot) {
	return recorded(n, fate{joined: true})
}

// Converged returns the fleet of Recorded in sync: every host answers
// as it was set up, its marker records every step as verified, and no Pod is on it.
func Converged(n int) (*fleet.Config, plan.StepsFor, plan.Snapshot) {
	return recorded(n, fate{joined: true, settled: true})
}

// Joining returns the fleet of Recorded before its first set-up: the hosts are
// claimed, nothing was done on them, and the cluster does not know them.
func Joining(n int) (*fleet.Config, plan.StepsFor, plan.Snapshot) { return recorded(n, fate{}) }

// fate says how far the hosts of a fleet are set up.
type fate struct {
	joined  bool // the cluster knows them, and their markers record all steps as verified
	settled bool // they answer as they were set up, and not like untouched Macs
}

func recorded(n int, f fate) (*fleet.Config, plan.StepsFor, plan.Snapshot) {
	cfg := config(n)
	existing, stepsFor := repeated(fleet.Host{Name: "x", Spec: cfg.Fleets[0].Groups[0].Spec, User: cfg.SSH.User})
	snap := plan.Snapshot{Hosts: make(map[string]plan.HostSeen, n)}
	var nodes []inventory.Node
	var identities []inventory.Identity
	var pods []inventory.Pod
	github := *stepstest.Unlisted()
	for i := range n {
		m := newMember(cfg, i)
		seen := m.seen(f, existing, stepsFor)
		snap.Servers = append(snap.Servers, m.server)
		snap.Pins = append(snap.Pins, plan.Pin{ServerID: m.server.ID, Name: m.server.Name, Key: seen.Key, Since: m.server.Created})
		snap.Hosts[m.server.ID] = seen
		if f.settled {
			github.Agents.Agents = append(github.Agents.Agents, stepstest.Service(m.server.Name).Agents.Agents...)
		}
		if !f.joined {
			continue
		}
		nodes, identities = append(nodes, m.node()), append(identities, m.identity())
		if !f.settled {
			pods = append(pods, inventory.Pod{Namespace: "ci", Name: "job-" + m.server.ID[:5], Node: m.server.Name, Phase: "Running"})
		}
	}
	snap.Peers = plan.PeersSeen{inventory.CIService: {stepstest.RunnerScope: github}}
	snap.Nodes = inventory.Present(nodes)
	snap.Cluster = inventory.Present(inventory.Cluster{Pods: inventory.Present(pods), Identities: inventory.Present(identities),
		Join: inventory.Present(stepstest.Join()), Objects: inventory.Present([]inventory.Object(nil)), Machines: inventory.Absent[[]inventory.Machine]()})
	return cfg, stepsFor, snap
}

// config wants n hosts in four groups.
func config(n int) *fleet.Config {
	spec := fleet.Spec{Hostname: &fleet.Hostname{}, Power: &fleet.Power{}, AutoLogin: &fleet.AutoLogin{}, VMFirewall: &fleet.VMFirewall{},
		Tart: &fleet.Tart{Artifact: stepstest.TartArtifact()}, TartKubelet: &fleet.TartKubelet{Artifact: stepstest.KubeletArtifact()},
		GithubRunner: stepstest.GithubRunner()}.WithBuiltIn().WithDefaults()
	cfg := &fleet.Config{
		Owner:      fleet.Owner{Name: "acme", Environment: "prod"},
		Scaleway:   fleet.Scaleway{Zones: []string{"fr-par-1"}, PoolPrefix: "acme-pool-"},
		Kubernetes: &fleet.Kubernetes{APIServer: stepstest.Join().Server, Namespace: "macfleet"},
		SSH:        fleet.SSH{User: "m1"},
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

// Code returns the code of that name, declared or not, as a record of it is read.
func Code(name string) (c plan.Code) {
	if err := c.UnmarshalText([]byte(name)); err != nil {
		panic(err)
	}
	return c
}
