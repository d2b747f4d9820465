package view_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/hosts"
	"github.com/macfleet/macfleet/internal/doctor"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/view"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/plan/plantest"
	"github.com/macfleet/macfleet/steps"
	"github.com/macfleet/macfleet/steps/stepstest"
)

const (
	memberID = "0a1b2c3d-0000-4000-8000-000000000001"
	poolID   = "0b1b2c3d-0000-4000-8000-000000000002"
	memberOf = "acme-production-runners-m2-0a1b2"
)

// acmeCluster is the cluster that is looked at.
var acmeCluster = inventory.ClusterID{UID: "0b1f4c52-6a0e-4d0b-9a55-3f1f5d2c7e10", Context: "acme-production", Server: "https://api.acme.dev:6443"}

// scene is a fleet of one converged member beside a pool of one server: what a
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
		h.Spec.TartKubelet = nil // what is said here is the cluster's part
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

// wants sets how many servers the group wants.
func (s *scene) wants(n int) { s.cfg.Fleets[0].Groups[0].Replicas = n }

// edited gives the member another name by hand, and its Node none to go by.
func (s *scene) edited() {
	s.joins(func(_ *inventory.Cluster, n *inventory.Node) { n.ProviderID = "" })
	s.on(memberID, func(h *plan.HostSeen) {
		h.Facts["hostname.HostName"] = inventory.Present(plan.Answer{Stdout: "old-name\n"})
	})
}

// held lets somebody hold the member until then.
func (s *scene) held(until time.Time) {
	s.edited()
	s.snap.Taken = time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	s.marker(func(m *plan.Marker) {
		m.Hold = &inventory.Hold{Who: "sam@desk", Reason: "its fan is loud", Since: s.snap.Taken.Add(-time.Hour), Until: until}
	})
}

// trouble is one way in which a plan is disturbed, by the code that it shows.
type trouble struct {
	code    string
	disturb func(*scene)
}

// troubles are all that package plan finds by itself.
func troubles() []trouble {
	claim := func(name string) inventory.Seen[plan.Claim] {
		return inventory.Present(plan.Claim{Configuration: "globex", Name: name, ServerID: memberID})
	}
	return []trouble{
		{"not-asked", func(s *scene) { delete(s.snap.Hosts, memberID) }},
		{"foreign-marker", func(s *scene) {
			s.marker(func(m *plan.Marker) { m.Configuration, m.Environment, m.Name = "globex", "", "globex-m2-0a1b2" })
		}},
		{"other-cluster", func(s *scene) {
			s.joins(func(c *inventory.Cluster, _ *inventory.Node) { c.ID = inventory.Present(acmeCluster) })
			s.marker(func(m *plan.Marker) {
				m.ClusterUID, m.Cluster = "5a4d6b3c-0000-4000-8000-000000000002", "old (https://old.acme.dev:6443)"
			})
		}},
		{"cluster-unknown", func(s *scene) {
			s.edited()
			s.joins(func(c *inventory.Cluster, _ *inventory.Node) {
				c.ID = inventory.Unread[inventory.ClusterID]("namespaces \"kube-system\" is forbidden")
			})
		}},
		{"newer-macfleet", func(s *scene) { s.marker(func(m *plan.Marker) { m.Version = "99.0.0" }) }},
		{"marker-of-another-server", func(s *scene) {
			s.marker(func(m *plan.Marker) { m.ServerID, m.Name = poolID, "acme-production-runners-m2-0b1b2" })
		}},
		{"swapped-host", func(s *scene) { s.marker(func(m *plan.Marker) { m.Serial = "C07ACME009" }) }},
		{"marker-unreadable", func(s *scene) {
			s.on(memberID, func(h *plan.HostSeen) {
				h.Marker = inventory.Unread[plan.Marker]("it is not JSON as macfleet writes it: unexpected EOF")
			})
		}},
		{"claim-unreadable", func(s *scene) {
			s.on(memberID, func(h *plan.HostSeen) {
				h.Marker, h.Claim = inventory.Absent[plan.Marker](), inventory.Unread[plan.Claim]("it is not JSON")
			})
		}},
		{"claimed-by-another", func(s *scene) {
			s.on(memberID, func(h *plan.HostSeen) { h.Marker, h.Claim = inventory.Absent[plan.Marker](), claim("globex-m2-0a1b2") })
		}},
		{"missing-sudo-password", func(s *scene) { s.on(memberID, func(h *plan.HostSeen) { h.Root = false }) }},
		{"password-not-disclosed", func(s *scene) {
			s.noRoot(plan.MissingPassword(memberOf, plantest.Code("password-not-disclosed"), "Scaleway no longer tells it"))
		}},
		{"sealed-in-get", func(s *scene) {
			s.noRoot(plan.MissingPassword(memberOf, plantest.Code("sealed-in-get"), "Scaleway answers <sealed> in its place: the API key may not see it"))
		}},
		{"wrong-password", func(s *scene) {
			s.noRoot(plan.WrongPassword(memberOf, "Scaleway", time.Unix(1794000000, 0)))
		}},
		{"sudo-locked", func(s *scene) {
			s.noRoot(nil)
			s.on(memberID, func(h *plan.HostSeen) {
				h.Facts["sudo.account"] = inventory.Present(plan.Answer{Stdout: "AuthenticationAuthority: ;ShadowHash; ;tally;\n"})
			})
		}},
		{"sudoers-broken", func(s *scene) {
			s.noRoot(nil)
			s.on(memberID, func(h *plan.HostSeen) {
				h.Facts["sudo.root"] = inventory.Present(plan.Answer{Exit: 1, Stderr: "sudo: parse error in /etc/sudoers.d/macfleet near line 1\n" +
					"sudo: no valid sudoers sources found, quitting\nsudo: unable to initialize policy plugin\n"})
			})
		}},
		{"sudo-missing", func(s *scene) {
			s.wantsSudo()
			proven := plan.Compute(s.cfg, steps.For, s.snap, plan.Selection{}).Hosts[0].Verified
			s.marker(func(m *plan.Marker) { m.Steps = proven })
			s.noRoot(nil)
		}},
		{"rolled-back", func(s *scene) {
			s.on(memberID, func(h *plan.HostSeen) {
				h.Facts["hostname.HostName"] = inventory.Present(plan.Answer{Stdout: "old-name\n"})
				h.Undone = &plan.Undone{Step: "hostname", At: time.Unix(1794000000, 0), Why: "no confirmation within 60 s"}
			})
		}},
		{"release-not-possible", func(s *scene) { s.wants(0) }},
		{"replace-not-possible", func(s *scene) { s.snap.Servers[0].Type = "M1-M" }},
		{"server-vanished", func(s *scene) {
			s.snap.Pins = []plan.Pin{{ServerID: memberID, Name: memberOf, Key: "ssh-ed25519 AAAA"}}
			s.snap.Servers = s.snap.Servers[1:]
		}},
		{"pool-too-small", func(s *scene) { s.wants(3) }},
		{"server-not-ready", func(s *scene) { s.wants(2); s.snap.Servers[1].Status = "locked" }},
		{"deletion-scheduled", func(s *scene) {
			s.wants(2)
			for i := range s.snap.Servers {
				s.snap.Servers[i].DeletionScheduled, s.snap.Servers[i].DeletableAt = true, time.Date(2026, 11, 24, 9, 14, 0, 0, time.UTC)
			}
		}},
		{"server-busy", func(s *scene) {
			s.snap.Servers[0].Status = "rebooting"
			s.on(memberID, func(h *plan.HostSeen) { h.Facts["hostname.HostName"] = inventory.Present(plan.Answer{Stdout: "mac\n"}) })
		}},
		{"server-reinstalling", func(s *scene) { s.snap.Servers[0].Status = "reinstalling" }},
		{"server-locked", func(s *scene) { s.snap.Servers[0].Status = "locked" }},
		{"server-error", func(s *scene) { s.snap.Servers[0].Status = "error" }},
		{"server-status-unknown", func(s *scene) { s.snap.Servers[0].Status = "defrosting" }},
		{"name-taken", func(s *scene) {
			s.wants(2)
			s.snap.Servers = append(s.snap.Servers, machine("0b1b2fff-0000-4000-8000-000000000003", "acme-production-runners-m2-0b1b2", 3))
			s.snap.Servers[2].Type = "M1-M"
			s.cfg.Fleets[0].Groups[0].Replicas = 3
		}},
		{"dirty-pool-host", func(s *scene) {
			s.wants(2)
			s.on(poolID, func(h *plan.HostSeen) { h.Marker = s.snap.Hosts[memberID].Marker })
		}},
		{"wrong-os", func(s *scene) {
			s.wants(2)
			s.on(poolID, func(h *plan.HostSeen) { h.OSVersion = inventory.Present("15.6") })
		}},
		{"adopted-from-pool", func(s *scene) { s.wants(2); s.listed(fleet.Listed{Name: "acme-legacy-01", ServerID: poolID}) }},
		{"name-differs", func(s *scene) {
			s.wants(2)
			s.snap.Servers[1].Name = "someones-mac"
			s.listed(fleet.Listed{Name: "acme-legacy-01", ServerID: poolID})
		}},
		{"host-block-removed", func(s *scene) {
			s.wants(2)
			s.snap.Servers[1].Name = "acme-legacy-01"
			s.on(poolID, func(h *plan.HostSeen) {
				h.Marker = inventory.Present(plan.Marker{Configuration: "acme", Environment: "production", Name: "acme-legacy-01",
					Fleet: "runners", Group: "m2", ServerID: poolID, Version: fleet.Version})
			})
		}},
		{"orphaned-member", func(s *scene) { s.snap.Servers[1].Name = "acme-production-web-m2-" + poolID[:5] }},
		{"move-needs-drain", func(s *scene) {
			s.cfg.Moves = []fleet.Move{{From: fleet.Place{Fleet: "web"}, To: fleet.Place{Fleet: "runners"}}}
			was := "acme-production-web-m2-" + memberID[:5]
			s.marker(func(m *plan.Marker) { m.Name, m.Fleet, m.Group = was, "web", "m2" })
			s.snap.Servers[0].Name = was
			s.snap.Nodes = inventory.Present([]inventory.Node{{Name: was, ProviderID: s.snap.Servers[0].ProviderID(), Ready: inventory.Ready}})
			s.snap.Cluster = inventory.Present(inventory.Cluster{Pods: inventory.Present([]inventory.Pod{})})
		}},
		{"orphans-hold-claims", func(s *scene) {
			s.wants(2)
			s.snap.Servers[1].Name = "acme-production-web-m2-" + poolID[:5]
		}},
		{"another-name", func(s *scene) {
			s.snap.Servers = s.snap.Servers[1:]
			delete(s.snap.Hosts, memberID)
			s.snap.Servers[0].Name, s.snap.Pins = "globex-production-runners-m2-"+poolID[:5], nil
		}},
		{"adopted-server-missing", func(s *scene) {
			s.wants(2)
			s.listed(fleet.Listed{Name: "acme-legacy-01", ServerID: "0c1b2c3d-0000-4000-8000-000000000003"})
		}},
		{"cluster-not-prepared", func(s *scene) {
			s.joins(func(c *inventory.Cluster, _ *inventory.Node) {
				c.Objects = inventory.Present([]inventory.Object{{Kind: "ClusterRole", Name: "macfleet-tart-kubelet", State: inventory.ObjectMissing, Why: "it is not there",
					Prepared: true, Gates: inventory.GateNodes}})
			})
		}},
		{"object-foreign", func(s *scene) {
			s.joins(func(c *inventory.Cluster, _ *inventory.Node) {
				c.Objects = inventory.Present([]inventory.Object{{Kind: "Secret", Namespace: "default", Name: "macs-kubeconfig", State: inventory.ObjectForeign,
					Why: `its label macfleet.dev/owner is "globex-production", not "acme-production"`}})
			})
		}},
		{"object-unread", func(s *scene) {
			s.joins(func(c *inventory.Cluster, _ *inventory.Node) {
				c.Objects = inventory.Present([]inventory.Object{{Kind: "Secret", Namespace: "ci", Name: "macs-kubeconfig", State: inventory.ObjectUnread,
					Prepared: true, Why: "the account that macfleet uses may not read it"}})
			})
		}},
		{"binding-foreign", func(s *scene) {
			s.joins(func(c *inventory.Cluster, _ *inventory.Node) {
				c.Foreign = []inventory.Object{{Kind: "ClusterRoleBinding", Name: "tart-kubelet-" + memberOf, State: inventory.ObjectForeign,
					Why: `its label app.kubernetes.io/managed-by is "Helm", not "macfleet"`}}
			})
		}},
		{"owned-by-cluster-api", func(s *scene) {
			s.joins(func(c *inventory.Cluster, n *inventory.Node) {
				c.Machines = inventory.Present([]inventory.Machine{s.machine()})
			})
		}},
		{"machine-not-bound", func(s *scene) {
			s.joins(func(c *inventory.Cluster, n *inventory.Node) {
				c.Machines = inventory.Present([]inventory.Machine{s.machine()})
			})
			s.cfg.Kubernetes.CAPI = &fleet.CAPI{Cluster: "macs", Namespace: "default"}
		}},
		{"pod-namespace-not-listed", func(s *scene) {
			s.joins(func(c *inventory.Cluster, n *inventory.Node) {
				c.Pods = inventory.Present([]inventory.Pod{{Namespace: "web", Name: "a", Node: memberOf, Phase: "Pending"}})
			})
			s.cfg.Kubernetes.PodNamespaces = []string{"ci"}
		}},
		{"node-not-proven", func(s *scene) {
			s.joins(func(_ *inventory.Cluster, n *inventory.Node) { n.ProviderID = "" })
			s.cfg.Fleets[0].Groups[0].Spec.TartKubelet = nil
		}},
		{"identity-left-over", func(s *scene) {
			s.joins(func(c *inventory.Cluster, n *inventory.Node) {
				i, _ := c.Identities.Get()
				c.Identities = inventory.Present(append(i, inventory.Identity{Host: "acme-legacy-01", ServiceAccount: "sa", Bound: true}))
			})
		}},
		{"node-twice", func(s *scene) {
			s.snap.Nodes = inventory.Present([]inventory.Node{{Name: "acme-legacy-01", ProviderID: s.snap.Servers[0].ProviderID(), Ready: inventory.NotReady}})
			s.joins(func(*inventory.Cluster, *inventory.Node) {})
		}},
		{"node-name-differs", func(s *scene) {
			s.joins(func(_ *inventory.Cluster, n *inventory.Node) { n.Name = "acme-legacy-01" })
		}},
		{"pods-on-node", func(s *scene) {
			s.joins(func(c *inventory.Cluster, n *inventory.Node) {
				n.ProviderID = s.snap.Servers[1].ProviderID()
				c.Pods = inventory.Present([]inventory.Pod{{Namespace: "ci", Name: "a", Node: memberOf, Phase: "Running"}})
			})
		}},
		{"pods-unread", func(s *scene) {
			s.joins(func(c *inventory.Cluster, n *inventory.Node) {
				n.ProviderID = s.snap.Servers[1].ProviderID()
				c.Pods = inventory.Unread[[]inventory.Pod]("list the pods: macfleet may not list pods")
			})
		}},
		{"waits-for-idle", func(s *scene) { s.exchanges(running(), pushing()) }},
		{"pods-left-over", func(s *scene) {
			s.joins(func(c *inventory.Cluster, _ *inventory.Node) {
				c.Pods = inventory.Present([]inventory.Pod{{Namespace: "ci", Name: "a", Node: "globex-runners-m2-fade0", Phase: "Running", Overdue: true,
					Finalizers: []string{inventory.VMFinalizer}}})
			})
		}},
		{"node-cordoned", func(s *scene) {
			s.joins(func(_ *inventory.Cluster, n *inventory.Node) {
				n.Cordoned, n.CordonClient, n.CordonSince = true, "kubectl-cordon", time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
			})
		}},
		{"foreign-taint", func(s *scene) {
			s.joins(func(_ *inventory.Cluster, n *inventory.Node) {
				n.Taints = inventory.Present([]inventory.Taint{{Key: "acme.dev/maintenance", Value: "true", Effect: "NoSchedule"}})
			})
		}},
		{"node-condition", func(s *scene) {
			s.joins(func(_ *inventory.Cluster, n *inventory.Node) {
				n.Conditions = []inventory.Condition{{Type: "DiskPressure", Status: "True", Why: "9 % of the host's disk are free"}}
			})
		}},
		{"tart-create-failed", func(s *scene) {
			s.joins(func(c *inventory.Cluster, _ *inventory.Node) {
				c.Pods = inventory.Present([]inventory.Pod{{Namespace: "ci", Name: "a", Node: memberOf, Phase: "Pending", Reason: inventory.CreateFailed}})
			})
		}},
		{"apply-in-progress", func(s *scene) { s.snap.Lock = annsLock(true) }},
		{"apply-broke-off", func(s *scene) { s.snap.Lock = annsLock(false) }},
		{"lock-unread", func(s *scene) {
			s.snap.Lock = &plan.Lock{Unread: "read lease macfleet/macfleet.acme.production: forbidden; the kubeconfig's user lacks this right"}
		}},
		{"held", func(s *scene) { s.held(time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)) }},
		{"hold-expired", func(s *scene) { s.held(time.Date(2026, 11, 21, 9, 59, 0, 0, time.UTC)) }},
		{"not-approved", func(s *scene) {
			s.edited()
			s.approved = func(*plan.Plan) plan.Approved {
				return plan.Approved{Keys: map[string]string{memberID: "SHA256:abc"}}
			}
		}},
		{"after-unapproved", func(s *scene) {
			s.wants(2)
			s.approved = allButTheClaim
		}},
		{"listed-host-missing", func(s *scene) { s.listed(fleet.Listed{Name: "acme-production-runners-m2-0a1b3"}) }},
	}
}

// allButTheClaim approves what comes behind a claim that nobody approved.
func allButTheClaim(p *plan.Plan) plan.Approved {
	out := plan.Approved{Keys: map[string]string{memberID: "SHA256:abc", poolID: "SHA256:abc"}, Digests: make(map[string]string)}
	for _, a := range p.Actions {
		if a.Kind != plan.ClaimServer {
			out.Digests[a.Address()] = p.Approve().Digests[a.Address()]
		}
	}
	return out
}

// annsLock is a lock that somebody holds while a plan is made.
func annsLock(alive bool) *plan.Lock {
	at := time.Unix(1794000000, 0)
	return &plan.Lock{Run: plan.Run{ID: "k3h7w2mq5a", Who: "ann@laptop", Epoch: 41}, Since: at, Renewed: at.Add(time.Minute), Alive: alive}
}

// gateTroubles are those of a host whose work is done and whose Node is waited for.
func gateTroubles() []plan.Trouble {
	return []plan.Trouble{{Code: plantest.Code("node-not-ready"), Text: "not Ready after 5m0s: Ready is Unknown: no heartbeat since 10:00:00 UTC; " +
		"on the host: tart_kubelet: kubelet-crash-loop: crash-looping", Remedy: "kubectl describe node " + memberOf},
		{Code: engine.CodeNotDrained, Text: "tart not started: drain node " + memberOf + ": pod ci/a: time was up while a disruption budget held it: The disruption budget web needs 1 healthy pods and has 1 currently",
			Remedy: "check what blocks the drain, allow more time (--drain-timeout), and apply again"},
		{Code: plantest.Code("artifact-unreadable"), Text: "artifact.tart_kubelet: open dist/tart-kubelet: permission denied; its source is \"dist/tart-kubelet\": make the file readable for macfleet's user",
			Remedy: "make the file readable for macfleet's user, and run macfleet plan again"},
		{Code: plantest.Code("artifact-changed"), Text: "artifact.tart_kubelet: dist/tart-kubelet has the SHA-256 " + strings.Repeat("0a", 32) + ", locked is " + strings.Repeat("0b", 32),
			Remedy: "if the change is intended, run macfleet artifacts lock --update tart_kubelet; otherwise restore the locked file"},
		{Code: engine.CodeMayNotRename, Text: "change server " + poolID + ": permission denied: scaleway-sdk-go: insufficient permissions: write server; " +
			"the key needs AppleSiliconFullAccess in this project", Remedy: "give the API key the permission to change servers, then apply again"},
		{Code: plantest.Code("lock-lost"), Text: "the run stopped: the lock is lost: bob@ci has taken it (run p5xq, since 10:00:00 UTC)",
			Remedy: "macfleet lock status shows the holder; apply again when that run has ended"}}
}

// bobEntered is another run on the host.
const bobEntered = "bob@ci has been working here since 21:20:00 UTC (run p5xq, epoch 42)"

// boundTroubles are those of hosts that one run may not touch any more.
func boundTroubles() []plan.Trouble {
	var out []plan.Trouble
	night, _ := fleet.ParseWindow("daily 22:00-04:00")
	noon := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for _, b := range []plan.Bounds{
		{Guardrails: fleet.Guardrails{MaxHosts: 1}}, {Guardrails: fleet.Guardrails{Windows: []fleet.Window{night}}, Now: noon},
		{}, {Guardrails: fleet.Guardrails{MaxDisrupted: fleet.Share{Count: 1}}},
	} {
		p := &plan.Plan{Healthy: make(map[string][]plan.Healthy)}
		for _, id := range []string{"1", "2"} {
			name := "acme-production-runners-m2-0a1b" + id
			p.Hosts = append(p.Hosts, plan.Host{Name: name, Fleet: "runners", Member: true, Server: inventory.Server{ID: id}})
			p.Healthy["runners"] = append(p.Healthy["runners"], plan.Healthy{ServerID: id, Name: name})
			d := plan.Drain
			if b.Guardrails.MaxHosts == 0 && b.Guardrails.Windows == nil && b.Guardrails.MaxDisrupted == (fleet.Share{}) {
				d = plan.Wipe
			}
			p.Actions = append(p.Actions, plan.Action{Host: name, ServerID: id, Disruption: d})
		}
		p.Defer(b, func(fleet.Host) []plan.Step { return nil }, nil)
		out = append(out, *p.Actions[1].Deferral)
	}
	return out
}

// applyTroubles are those of a host that only an apply meets.
func applyTroubles() []*hosts.Error {
	return []*hosts.Error{
		{Host: memberOf, Code: plantest.Code("undo-armed"), Phase: hosts.Undoing, Err: errors.New("a change of vm_firewall is not confirmed yet; the host undoes it within 42s"),
			Remedy: "run macfleet plan in a minute: what is not confirmed by then is as it was before"},
		{Host: memberOf, Code: plantest.Code("cut-off"), Phase: hosts.Undoing, Err: errors.New("vm_firewall: unknown whether the change is active: no answer within 6m0s"),
			Remedy: "reboot the Mac in the Scaleway console: an unconfirmed change is also undone at boot"},
		{Host: memberOf, Code: plantest.Code("rolled-back"), Phase: hosts.Undoing, Err: errors.New("vm_firewall was undone: no confirmation within 60 s"),
			Remedy: "the host is unchanged; fix what the change does to its connections, then run macfleet plan"},
		{Host: memberOf, Code: plantest.Code("no-gui-session"), Phase: hosts.Talking, Err: errors.New("no gui session of m1: Could not find domain for user gui: 501"),
			Remedy: "let the step auto_login create the session, or log in over VNC as m1"},
		{Host: memberOf, Code: plantest.Code("job-running"), Phase: hosts.Talking, Err: errors.New("os-update is still running after 1h0m0s"),
			Remedy: "run macfleet apply again; it waits for the running job"},
		{Host: memberOf, Code: plantest.Code("newer-run"), Phase: hosts.Talking, Err: errors.New(bobEntered),
			Remedy: "wait for the other apply to end, then apply again"},
		{Host: memberOf, Code: plantest.Code("host-locked"), Phase: hosts.Talking, Err: errors.New(bobEntered + "; last command 42s ago"),
			Remedy: "wait for that apply to end; if it crashed, its lock expires 10m0s after its last command, or run: macfleet lock release --force p5xq"},
		{Host: memberOf, Code: plantest.Code("run-not-noted"), Phase: hosts.Talking, Err: errors.New("the run could not be recorded in /etc/macfleet/runs, so nothing was changed"),
			Remedy: "check whether the disk is full or read-only: macfleet doctor " + memberOf},
		{Host: memberOf, Code: plantest.Code("disk-full"), Phase: hosts.Delivering, Err: errors.New("artifact.tart: 20 MB free, needs 210 MB"),
			Remedy: "free disk space on the host (tart list, tart delete, tart prune), then apply again"},
		{Host: memberOf, Code: plantest.Code("wrong-artifact"), Phase: hosts.Delivering, Err: fmt.Errorf("artifact.tart: https://releases.acme.dev/tart.tar.gz has the SHA-256 %s, not %s",
			strings.Repeat("0a", 32), strings.Repeat("0b", 32)),
			Remedy: "if the change is intended, run macfleet artifacts lock --update; otherwise find out who changed the file"},
		{Host: memberOf, Code: plantest.Code("download-failed"), Phase: hosts.Delivering, Err: errors.New("artifact.tart: curl: (6) Could not resolve host: releases.acme.dev"),
			Remedy: "check that the host can reach https://releases.acme.dev/tart.tar.gz, or let macfleet upload the file with fetch = \"push\"; then apply again: the download is resumed"},
	}
}

// disturbance is a trouble, and all that is printed of it.
type disturbance struct {
	code     string
	pictures []picture
}

// disturbed shows every trouble as plan, drift, hosts and explain do; what only an
// apply meets as its result does.
func disturbed(t *testing.T) []disturbance {
	t.Helper()
	var out []disturbance
	for _, tr := range append(troubles(), connectionTroubles(t)...) {
		s := newScene()
		tr.disturb(s)
		p := plan.Compute(s.cfg, s.steps, s.snap, plan.Selection{})
		if s.approved != nil {
			s.approved(p).Restrict(p, s.steps)
		}
		x, err := doctor.Explain(s.cfg, s.steps, s.snap, memberOf)
		explain := func(v *view.Text) { v.Explain(x, "") }
		if err != nil {
			explain = func(v *view.Text) { v.Error(err) }
		}
		out = append(out, disturbance{tr.code, []picture{
			shown("plan", func(v *view.Text) { v.Plan(p, view.PlanForm{}) }),
			shown("drift", func(v *view.Text) { v.Drift(p, reported(p), 2) }),
			shown("hosts", func(v *view.Text) { v.Hosts(p, narrow) }),
			shown("explain", explain),
		}})
	}
	failed := func(code string, f engine.Failure) {
		out = append(out, disturbance{code, []picture{
			shown("apply", func(v *view.Text) { showApplied(v, engine.Result{Failures: []engine.Failure{f}}) })}})
	}
	for _, x := range append(gateTroubles(), boundTroubles()...) {
		failed(x.Code.String(), engine.Failure{Err: &x, Action: plan.Action{Kind: plan.AwaitNode, Host: memberOf}})
	}
	for _, e := range applyTroubles() {
		failed(e.Code.String(), engine.Failure{Err: e, Action: plan.Action{Kind: plan.RunStep, Host: memberOf, Fleet: "runners", Group: "m2", Step: "vm_firewall"}})
	}
	return out
}

// errorBlocks is a picture of every trouble: which outputs show its code, and the
// paragraphs that plan, or else apply, prints of it.
func errorBlocks(all []disturbance) picture {
	return picture{"errors", func(k terminal) string {
		var b strings.Builder
		for _, d := range all {
			fmt.Fprintf(&b, "== %s:", d.code)
			for _, p := range d.pictures {
				if strings.Contains(p.draw(terminal{}), d.code) {
					b.WriteString(" " + p.name)
				}
			}
			b.WriteString("\n")
			for part := range strings.SplitSeq(d.pictures[0].draw(k), "\n\n") {
				if strings.Contains(part, d.code) {
					b.WriteString(strings.Trim(part, "\n") + "\n")
				}
			}
		}
		return b.String()
	}}
}

// TestEveryTroubleIsShown by plan, or by apply where only that meets it.
func TestEveryTroubleIsShown(t *testing.T) {
	t.Parallel()
	for _, d := range disturbed(t) {
		if text := d.pictures[0].draw(terminal{}); !strings.Contains(text, d.code) {
			t.Errorf("%s does not show it:\n%s", d.pictures[0].name, text)
		}
	}
}

// unshown are the codes of troubles that reach nobody from outside a step.
func unshown() []string {
	return []string{"unknown-host-key", "known-hosts", // they become jump-failed
		"unread",                              // a step's answer: the pictures of plans show it
		"kubelet-settling", "node-not-judged"} // a step's warnings
}

// TestEveryCodeHasAGolden: a trouble that no golden shows was never looked at. Those
// that steps raise are shown by the goldens of steps.
func TestEveryCodeHasAGolden(t *testing.T) {
	t.Parallel()
	shown, err := os.ReadFile(filepath.Join("testdata", "errors-pipe.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range plan.Codes() {
		ours := !strings.HasPrefix(c.Home(), "steps/") && !strings.HasPrefix(c.Home(), "internal/drift/")
		if c.Remedy() != "" && ours && !slices.Contains(unshown(), c.String()) && !strings.Contains(string(shown), "== "+c.String()+":") {
			t.Errorf("%s: the trouble %s has no golden", c.Home(), c)
		}
	}
}
