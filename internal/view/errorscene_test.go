package view_test

import (
	"fmt"
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/steps"
	"github.com/macfleet/macfleet/steps/stepstest"
)

const (
	memberID = "0a1b2c3d-0000-4000-8000-000000000001"
	poolID   = "0b1b2c3d-0000-4000-8000-000000000002"
	memberOf = "acme-production-runners-m2-0a1b2"
)

// acmeCluster identifies the cluster of the scenes.
var acmeCluster = inventory.ClusterID{UID: "0b1f4c52-6a0e-4d0b-9a55-3f1f5d2c7e10", Context: "acme-production", Server: "https://api.acme.dev:6443"}

// scene is a fleet of one converged member, with a pool of one server: what a
// trouble disturbs.
type scene struct {
	cfg   *fleet.Config
	snap  plan.Snapshot
	steps plan.StepsFor
	// approved is what a plan file allows of the plan that is applied; nil: everything.
	approved func(*plan.Plan) plan.Approved
}

func newScene() *scene {
	cfg := &fleet.Config{Owner: fleet.Owner{Name: "acme", Environment: "production"}, SSH: fleet.SSH{User: "m1"},
		Scaleway: fleet.Scaleway{Zones: []string{"fr-par-1"}, PoolPrefix: "acme-pool-"},
		Fleets: []fleet.Fleet{{Name: "runners", OS: "Tahoe", Groups: []fleet.Group{{Name: "m2", Type: "M2-L", Replicas: 1,
			Spec: fleet.Spec{Hostname: &fleet.Hostname{}}, Sources: fleet.Sources{
				"os": {Level: fleet.InDefaults, File: "acme.fleet.hcl", Line: 14}, "hostname": {Level: fleet.InDefaults, File: "acme.fleet.hcl", Line: 15},
				"type": {Level: fleet.InGroup, File: "runners.fleet.hcl", Line: 3}}}}}}}
	s := &scene{cfg: cfg, steps: steps.For, snap: plan.Snapshot{Nodes: inventory.Absent[[]inventory.Node](), Hosts: map[string]plan.HostSeen{}}}
	s.snap.Servers = []inventory.Server{machine(memberID, memberOf, 1), machine(poolID, "acme-pool-01", 2)}
	seen := plan.HostSeen{Key: "ssh-ed25519 AAAA", Fingerprint: "SHA256:abc", Pinned: true, Root: true,
		Serial: inventory.Present("C07ACME001"), OSVersion: inventory.Present("26.3"), Claim: inventory.Absent[plan.Claim](),
		Marker: inventory.Present(plan.Marker{Configuration: "acme", Environment: "production", Name: memberOf, ServerID: memberID,
			Serial: "C07ACME001", Version: fleet.Version}), Facts: plan.Facts{}}
	for _, name := range []string{"ComputerName", "HostName", "LocalHostName"} {
		seen.Facts["hostname."+name] = inventory.Present(plan.Answer{Stdout: memberOf + "\n"})
	}
	s.snap.Hosts[memberID] = seen
	seen.Marker, seen.Pinned, seen.Serial = inventory.Absent[plan.Marker](), false, inventory.Present("C07ACME002")
	s.snap.Hosts[poolID] = seen
	return s
}

func machine(id, name string, n int) inventory.Server {
	return inventory.Server{ID: id, Name: name, Type: "M2-L", Zone: "fr-par-1", Address: fmt.Sprintf("198.51.100.%d", n),
		OSFamily: "Tahoe", Status: "ready", Delivered: true, Created: time.Unix(int64(n), 0)}
}

// on changes what was seen of a host.
func (s *scene) on(id string, change func(*plan.HostSeen)) {
	seen := s.snap.Hosts[id]
	change(&seen)
	s.snap.Hosts[id] = seen
}

// wantsSudo gives the configuration the block that every loaded one has.
func (s *scene) wantsSudo() {
	g := &s.cfg.Fleets[0].Groups[0]
	g.Spec = g.Spec.WithBuiltIn()
	settled := stepstest.SettledFacts(memberOf)
	for id, seen := range s.snap.Hosts {
		for _, probe := range []string{"sudo.root", "sudo.account", "sudo.file"} {
			seen.Facts[probe] = settled[probe]
		}
		s.snap.Hosts[id] = seen
	}
}

// noRoot lets the member ask for a sudo password, with what was found out about it.
func (s *scene) noRoot(trouble *plan.Trouble) {
	s.wantsSudo()
	s.on(memberID, func(h *plan.HostSeen) {
		h.Root, h.Password = false, &plan.Password{Source: "Scaleway", Trouble: trouble}
		h.Facts["sudo.root"] = inventory.Present(plan.Answer{Exit: 1, Stderr: "sudo: a password is required\n"})
		h.Facts["sudo.file"] = inventory.Unread[plan.Answer](plan.NeedsRoot)
	})
}

func (s *scene) marker(change func(*plan.Marker)) {
	s.on(memberID, func(h *plan.HostSeen) {
		m, _ := h.Marker.Get()
		change(&m)
		h.Marker = inventory.Present(m)
	})
}

// joins makes the member a Node of a cluster, whose kubelet is as it should be.
func (s *scene) joins(disturb func(c *inventory.Cluster, n *inventory.Node)) {
	s.cfg.Kubernetes = &fleet.Kubernetes{Namespace: "macfleet", LabelPrefix: "acme.dev"}
	s.cfg.Fleets[0].Groups[0].Spec.TartKubelet = &fleet.TartKubelet{}
	s.steps = func(h fleet.Host) []plan.Step {
		h.Spec.TartKubelet = nil // only the cluster's part is shown here
		return steps.For(h)
	}
	node := inventory.Node{Name: memberOf, ProviderID: s.snap.Servers[0].ProviderID(), Ready: inventory.Ready}
	c := inventory.Cluster{Machines: inventory.Absent[[]inventory.Machine](), Pods: inventory.Present([]inventory.Pod{}), Objects: inventory.Present([]inventory.Object{}),
		Identities: inventory.Present([]inventory.Identity{{Host: memberOf, ServiceAccount: "sa", Secret: "s", Issued: true, Bound: true}}),
		Join:       inventory.Present(inventory.Join{Server: "https://api.acme.dev:6443", CA: "pem"})}
	disturb(&c, &node)
	nodes, _ := s.snap.Nodes.Get()
	s.snap.Nodes, s.snap.Cluster = inventory.Present(append(nodes, node)), inventory.Present(c)
}

// machine is the member as a Machine of the Cluster API.
func (s *scene) machine() inventory.Machine {
	return inventory.Machine{Namespace: "default", Name: "runners-x1", ProviderID: s.snap.Servers[0].ProviderID(), Deployment: "runners",
		Infrastructure: "scalewayapplesiliconmachine/runners-x1"}
}

// listed gives the configuration a host block.
func (s *scene) listed(l fleet.Listed) {
	g := s.cfg.Fleets[0].Groups[0]
	l.Fleet, l.Group, l.Spec, l.Sources = "runners", "m2", g.Spec, g.Sources
	s.cfg.Hosts = append(s.cfg.Hosts, l)
}

// fleetKeys are the keys of the scenes.
var fleetKeys = []plan.FleetKey{{Public: "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIM7MFQfcHd1ylZUcKQiI8JWtuQRNG3PWlubfBl1oO9T8", Fingerprint: "SHA256:+7Mp32er4lydoNiApNjjbYQK0PA6q+yZEYhxADwBN3M"}}

// erases makes the member one that an earlier run started to erase, in a project with these SSH keys.
func (s *scene) erases(ring plan.Keyring) {
	s.leaves(plan.Wiping)
	s.offers(inventory.LowStock)
	s.snap.Catalogue.Systems = []inventory.System{{ID: "tahoe", Name: "macos-tahoe-26.6.1", Family: "Tahoe", Version: "26.6.1", Zone: "fr-par-1", Types: []string{"M2-L"}}}
	s.snap.Keyring = &ring
}

// unanswered makes the member unreachable, with the provider's diagnostic.
func (s *scene) unanswered(d *inventory.Diagnosis) {
	s.snap.Hosts[memberID] = plan.HostSeen{Diagnosis: d,
		Trouble: &plan.Trouble{Code: plan.CodeUnreachable, Text: "dial tcp 198.51.100.1:22: i/o timeout", Remedy: "check the server in the Scaleway console"}}
}

// wants lowers or raises the group's replicas, which were 1.
func (s *scene) wants(n int) {
	s.cfg.Fleets[0].Groups[0].Replicas = n
	for i := range s.snap.Pins {
		s.snap.Pins[i].GroupSize = "runners.m2=1"
	}
}

// offers is what the provider has of the scene's server type.
func (s *scene) offers(stock inventory.Stock) {
	s.snap.Catalogue = &inventory.Catalogue{Offers: []inventory.Offer{{Type: "M2-L", Zone: "fr-par-1", Stock: stock, MinLease: 24 * time.Hour}}}
}

// leaves stores that an earlier run has released the member so far.
func (s *scene) leaves(stage plan.Stage) {
	s.snap.Pins = []plan.Pin{{ServerID: memberID, Name: memberOf, Key: "ssh-ed25519 AAAA", Stage: stage}}
	if stage == plan.Wiping { // an empty disk has no marker
		s.on(memberID, func(h *plan.HostSeen) { h.Marker = inventory.Absent[plan.Marker]() })
	}
}

// edited gives the member another name by hand, and its Node none to go by.
func (s *scene) edited() {
	s.joins(func(_ *inventory.Cluster, n *inventory.Node) { n.ProviderID = "" })
	s.on(memberID, func(h *plan.HostSeen) {
		h.Facts["hostname.HostName"] = inventory.Present(plan.Answer{Stdout: "old-name\n"})
	})
}

// quarantined puts the member into quarantine after three failed repairs.
func (s *scene) quarantined() {
	at := time.Date(2026, 11, 21, 9, 30, 0, 0, time.UTC)
	s.marker(func(m *plan.Marker) {
		m.Repairs = &inventory.Repairs{Failed: 3, Last: at, Who: "sam@desk", Since: at, Reason: "node-not-ready: not Ready after 5m0s"}
	})
}

// held sets a hold on the member until then.
func (s *scene) held(until time.Time) {
	s.edited()
	s.snap.Taken = time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	s.marker(func(m *plan.Marker) {
		m.Hold = &inventory.Hold{Who: "sam@desk", Reason: "its fan is loud", Since: s.snap.Taken.Add(-time.Hour), Until: until}
	})
}
