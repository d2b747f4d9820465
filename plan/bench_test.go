package plan_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/steps"
	"github.com/macfleet/macfleet/steps/stepstest"
)

// recorded is a fleet of n hosts, a multiple of 4, that answer like untouched Macs: every step
// has its answers to parse and its changes to make.
func recorded(n int) (*fleet.Config, plan.Snapshot) {
	spec := fleet.Spec{Hostname: &fleet.Hostname{}, Power: &fleet.Power{}}.WithDefaults()
	cfg := &fleet.Config{
		Owner:    fleet.Owner{Name: "acme", Environment: "prod"},
		Scaleway: fleet.Scaleway{Zones: []string{"fr-par-1"}, PoolPrefix: "acme-pool-"},
		SSH:      fleet.SSH{User: "m1"},
	}
	for _, name := range []string{"macos", "runners"} {
		cfg.Fleets = append(cfg.Fleets, fleet.Fleet{Name: name, OS: "Tahoe", Groups: []fleet.Group{
			{Name: "m2", Type: "M2-L", Replicas: n / 4, Spec: spec}, {Name: "m4", Type: "M4-M", Replicas: n / 4, Spec: spec}}})
	}
	snap := plan.Snapshot{Hosts: make(map[string]plan.HostSeen, n)}
	var nodes []inventory.Node
	for i := range n {
		s, seen := recordedHost(cfg, i)
		nodes = append(nodes, inventory.Node{Name: s.Name, ProviderID: s.ProviderID(), Ready: inventory.Ready})
		snap.Servers = append(snap.Servers, s)
		snap.Pins = append(snap.Pins, plan.Pin{ServerID: s.ID, Name: s.Name, Key: seen.Key, Since: s.Created})
		snap.Hosts[s.ID] = seen
	}
	snap.Nodes = inventory.Present(nodes)
	return cfg, snap
}

func recordedHost(cfg *fleet.Config, i int) (inventory.Server, plan.HostSeen) {
	f := cfg.Fleets[i%2]
	g := f.Groups[i/2%2]
	id := serverID(i)
	s := inventory.Server{ID: id, Name: cfg.HostName(f.Name, g.Name, id), Type: g.Type, Zone: "fr-par-1", Address: "192.0.2.1",
		OSFamily: f.OS, Status: "ready", Delivered: true, Created: time.Unix(int64(i), 0)}
	m := plan.Marker{Configuration: cfg.Name, Environment: cfg.Environment, Name: s.Name, Fleet: f.Name, Group: g.Name,
		ServerID: id, Version: fleet.Version}
	return s, plan.HostSeen{Key: fmt.Sprintf("ssh-ed25519 %d", i), Pinned: true, Root: true, Serial: inventory.Present("C07"),
		OSVersion: inventory.Present("26.3"), Marker: inventory.Present(m), Claim: inventory.Absent[plan.Claim](),
		Facts: stepstest.FactoryFacts()}
}

// TestRecordedFleet shows that the benchmark plans what it says.
func TestRecordedFleet(t *testing.T) {
	t.Parallel()
	cfg, snap := recorded(40)
	p := plan.Compute(cfg, steps.For, snap, plan.Selection{})
	if s := p.Summarise(); s.Hosts != 40 || s.Change != 80 || s.Unread != 0 || !s.Complete() {
		t.Errorf("40 hosts of two steps: %+v", s)
	}
	if next := plan.Next(cfg, snap, plan.Selection{}); next != nil {
		t.Errorf("%d hosts are still to be asked", len(next))
	}
}

// BenchmarkCompute plans recorded hosts with the real steps. The budget is
// 10,000 hosts in a second; the time per host must not grow with the fleet.
func BenchmarkCompute(b *testing.B) {
	for _, n := range []int{1_000, 10_000, 20_000} {
		b.Run(fmt.Sprintf("hosts=%d", n), func(b *testing.B) {
			cfg, snap := recorded(n)
			b.ReportAllocs()
			for b.Loop() {
				plan.Compute(cfg, steps.For, snap, plan.Selection{})
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/host")
		})
	}
}

// BenchmarkNext is the other half of a round.
func BenchmarkNext(b *testing.B) {
	for _, n := range []int{1_000, 10_000, 20_000} {
		b.Run(fmt.Sprintf("hosts=%d", n), func(b *testing.B) {
			cfg, snap := recorded(n)
			b.ReportAllocs()
			for b.Loop() {
				plan.Next(cfg, snap, plan.Selection{})
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/host")
		})
	}
}
