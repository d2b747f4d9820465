package view_test

import (
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/plan/plantest"
	"github.com/macfleet/macfleet/steps"
	"github.com/macfleet/macfleet/steps/stepstest"
)

// trouble is one way in which a plan is disturbed, by the code that it shows.
type trouble struct {
	code    string
	disturb func(*scene)
}

// troubles are all that package plan raises without a step.
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
			s.noRoot(plan.MissingPassword(memberOf, plantest.Code("password-not-disclosed"), "Scaleway no longer provides it"))
		}},
		{"sealed-in-get", func(s *scene) {
			s.noRoot(plan.MissingPassword(memberOf, plantest.Code("sealed-in-get"), "Scaleway returns <sealed> instead: the API key may not read it"))
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
		{"release-unsafe", func(s *scene) { s.leaves(plan.Leaving); s.wants(0); s.offers(inventory.LowStock) }},
		{"agent-unknown", func(s *scene) {
			s.erases(plan.Keyring{Ours: fleetKeys, Registered: inventory.Present([]inventory.SSHKey{{Name: "fleet", Public: fleetKeys[0].Public}})})
			s.snap.Pins[0].Stage = plan.Stays
			s.wants(0)
			s.cfg.Fleets[0].Groups[0].Spec.GithubRunner = stepstest.GithubRunner()
			s.cfg.Fleets[0].Groups[0].Spec = s.cfg.Fleets[0].Groups[0].Spec.WithDefaults()
			s.snap.Peers = plan.PeersSeen{inventory.CIService: {stepstest.RunnerScope: {Trouble: &plan.Trouble{Text: "GitHub rejects the token", Remedy: "make another token"}}}}
			s.on(memberID, func(h *plan.HostSeen) {
				h.Marker = inventory.Present(plan.Marker{Configuration: "acme", Environment: "production", Name: memberOf, ServerID: memberID, Serial: "C07ACME001", Version: fleet.Version})
				h.Facts["github_runner.state/m1"] = stepstest.SettledFacts(memberOf)["github_runner.state/m1"]
				h.Facts["tart.traces"] = inventory.Present(stepstest.Said("\n== work 0\n\n== end\n"))
			})
		}},
		{"list-churned", func(s *scene) {
			s.cfg.Fleets[0].Groups[0].Spec.GithubRunner = stepstest.GithubRunner()
			s.cfg.Fleets[0].Groups[0].Spec = s.cfg.Fleets[0].Groups[0].Spec.WithDefaults()
			s.snap.Peers = plan.PeersSeen{inventory.CIService: {stepstest.RunnerScope: {Listing: inventory.Listing{Agents: &inventory.AgentService{Churned: true}}}}}
			s.on(memberID, func(h *plan.HostSeen) {
				h.Facts["github_runner.state/m1"] = stepstest.SettledFacts(memberOf)["github_runner.state/m1"]
			})
		}},
		{"os-family-gone", func(s *scene) { s.leaves(plan.Wiping); s.offers(inventory.LowStock) }},
		{"catalogue-unread", func(s *scene) { s.leaves(plan.Wiping) }},
		{"no-replacement", func(s *scene) { s.leaves(plan.Replaced); s.snap.Servers = s.snap.Servers[:1] }},
		{"fleet-key-disabled", func(s *scene) {
			s.erases(plan.Keyring{Ours: fleetKeys, Registered: inventory.Present([]inventory.SSHKey{{Name: "fleet", Public: fleetKeys[0].Public, Disabled: true}})})
		}},
		{"fleet-key-unknown", func(s *scene) { s.erases(plan.Keyring{Registered: inventory.Present([]inventory.SSHKey{})}) }},
		{"fleet-keys-unread", func(s *scene) {
			s.erases(plan.Keyring{Ours: fleetKeys, Registered: inventory.Unread[[]inventory.SSHKey]("permission denied: Scaleway denies \"list ssh_key\"")})
		}},
		{"previous-key-kept", func(s *scene) {
			previous := plan.FleetKey{Public: "ssh-ed25519 AAAAprevious", Fingerprint: "SHA256:previous"}
			s.snap.FleetKeys = []plan.FleetKey{fleetKeys[0], previous}
			s.on(memberID, func(h *plan.HostSeen) {
				h.LoginKey, h.Lists = previous.Fingerprint, inventory.Present([]string{previous.Fingerprint})
			})
		}},
		{"host-down", func(s *scene) {
			s.unanswered(&inventory.Diagnosis{Text: "server down, port 22 closed, VNC port closed, agent down", Actions: []string{"reboot"}, Detailed: true})
		}},
		{"ssh-port-unreachable", func(s *scene) {
			s.unanswered(&inventory.Diagnosis{Healthy: true, Text: "server up, port 22 open, VNC port open, agent up", Detailed: true, Alive: true, SSH: true, VNC: true, Agent: true})
		}},
		{"replace-not-possible", func(s *scene) { s.snap.Servers[0].Type = "M1-M" }},
		{"server-vanished", func(s *scene) {
			s.snap.Pins = []plan.Pin{{ServerID: memberID, Name: memberOf, Key: "ssh-ed25519 AAAA"}}
			s.snap.Servers = s.snap.Servers[1:]
		}},
		{"moved-project", func(s *scene) {
			s.snap.Pins = []plan.Pin{{ServerID: memberID, Name: memberOf, Key: "ssh-ed25519 AAAA"}}
			s.snap.Servers = s.snap.Servers[1:]
			s.snap.Account = &inventory.Account{Project: "5d6e8f70-0000-4000-8000-000000000001", Holds: []inventory.Holding{
				{Zone: "fr-par-1", Project: "5eed0000-0000-4000-8000-000000000009", Servers: 1, IDs: []string{memberID}}}}
		}},
		{"pool-too-small", func(s *scene) { s.wants(3); s.offers(inventory.LowStock) }},
		{"out-of-stock", func(s *scene) { s.wants(3); s.offers(inventory.NoStock) }},
		{"server-on-the-way", func(s *scene) { s.wants(2); s.snap.Servers[1].Status, s.snap.Servers[1].Delivered = "starting", false }},
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
		{"provider-runner", func(s *scene) { s.snap.Servers[0].RunnerConfigurations = "5c7f0a1e-2b4d-4c6a-9e11-0d3f8a7b6c5d" }},
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
				c.Objects = inventory.Present([]inventory.Object{{Kind: "ClusterRole", Name: "macfleet-tart-kubelet", State: inventory.ObjectMissing, Why: "it does not exist",
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
		{"other-controller", func(s *scene) {
			s.joins(func(_ *inventory.Cluster, n *inventory.Node) { n.Machine = "macs/" + memberOf })
		}},
		{"foreign-field-manager", func(s *scene) {
			s.joins(func(_ *inventory.Cluster, n *inventory.Node) {
				n.Writers = []inventory.Writer{{Name: "cluster-autoscaler", Fields: []string{"spec.taints"},
					Pause: "kubectl annotate node " + n.Name + " cluster-autoscaler.kubernetes.io/scale-down-disabled=true"}}
			})
		}},
		{"foreign-job", func(s *scene) {
			s.on(memberID, func(h *plan.HostSeen) {
				h.Jobs = inventory.Present([]plan.Job{{Target: "system/org.cirruslabs.orchard.worker", Loaded: true,
					Path: "/Library/LaunchDaemons/org.cirruslabs.orchard.worker.plist"}})
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
		{"quarantined", func(s *scene) { s.quarantined() }},
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
