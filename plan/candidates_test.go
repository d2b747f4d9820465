package plan_test

import (
	"strings"
	"testing"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/plan/plantest"
)

func TestFreshWorld(t *testing.T) {
	t.Parallel()
	w := newWorld(2, 1, 2)
	for _, n := range []int{5, 3, 4, 1} { // the order of the list says nothing
		w.free(n)
	}
	w.free(7).OSFamily = "Sequoia"
	w.change(7, func(h *plan.HostSeen) { h.OSVersion = inventory.Present("15.7") })
	w.free(8).Type = "M4-M"
	w.server(9, "acme-staging-macos-m2-00009").Type = "M1-M"
	p := w.plan(t)
	expect(t, "actions", []string{
		"acme-prod-macos-m2-00001 claim too-few-replicas P",
		"acme-prod-macos-m2-00001 marker too-few-replicas P",
		"acme-prod-macos-m2-00001 alpha first-setup P",
		"acme-prod-macos-m2-00001 beta first-setup P",
		"acme-prod-macos-m2-00003 claim too-few-replicas P",
		"acme-prod-macos-m2-00003 marker too-few-replicas P",
		"acme-prod-macos-m2-00003 alpha first-setup P",
		"acme-prod-macos-m2-00003 beta first-setup P",
		"acme-prod-macos-m4-00008 claim too-few-replicas P",
		"acme-prod-macos-m4-00008 marker too-few-replicas P",
		"acme-prod-macos-m4-00008 alpha first-setup P",
		"acme-prod-macos-m4-00008 beta first-setup P",
		"acme-prod-runners-m2-00007 claim too-few-replicas P",
		"acme-prod-runners-m2-00007 marker too-few-replicas P",
		"acme-prod-runners-m2-00007 alpha first-setup P",
		"acme-prod-runners-m2-00007 beta first-setup P",
	}, lines(p))
	expect(t, "fleets", []string{"macos", "runners"}, p.Fleets)
	expect(t, "strays", []string{"acme-staging-macos-m2-00009"}, strays(p))
	expect(t, "fields of the claim", []plan.Field{{Name: "name", Before: "acme-pool-01", After: "acme-prod-macos-m2-00001"}}, p.Actions[0].Fields)
	h := p.Hosts[0]
	if h.Member || h.Spec.Name != h.Name || h.Spec.User != "m1" || h.Converged != plan.Differs || !p.Cluster {
		t.Errorf("the first host is %+v, cluster %t", h.Spec, p.Cluster)
	}
	if len(p.Shortages) != 1 {
		t.Fatalf("shortages = %+v", p.Shortages)
	}
	s := p.Shortages[0]
	explained(t, &s.Trouble)
	s.Trouble, s.Order = plan.Trouble{Code: s.Trouble.Code}, nil
	expect(t, "shortage", plan.Shortage{Fleet: "runners", Group: "m2", Type: "M2-L", OS: "Sequoia", Missing: 1,
		Trouble: plan.Trouble{Code: plantest.Code("pool-too-small")}}, s)
	expect(t, "summary", plan.Summary{Add: 8, Change: 8, Refused: 1, Pending: 17}, p.Summarise())
}

// badCandidates make the pool's first server unusable.
var badCandidates = []struct {
	name   string
	damage func(*world, *inventory.Server)
	code   string // "" = the server is not of the wanted kind and not worth a word
	asked  bool   // only the host itself could tell
}{
	{"not ready", func(_ *world, s *inventory.Server) { s.Status = "reinstalling" }, "server-not-ready", false},
	{"not delivered", func(_ *world, s *inventory.Server) { s.Delivered = false }, "server-not-ready", false},
	{"wrong type", func(_ *world, s *inventory.Server) { s.Type = "M1-M" }, "", false},
	{"wrong family", func(w *world, s *inventory.Server) {
		s.OSFamily = "Ventura"
		w.change(1, func(h *plan.HostSeen) { h.OSVersion = inventory.Present("13.6") })
	}, "", false},
	{"not in the pool", func(_ *world, s *inventory.Server) { s.Name, s.Type = "acme-poo", "M1-M" }, "", false},
	{"name taken", func(w *world, _ *inventory.Server) { w.server(77, "acme-prod-macos-m2-00001").Type = "M1-M" }, "name-taken", false},
	{"name of a lost server", func(w *world, _ *inventory.Server) {
		w.cfg.Fleets[0].Groups[0].Replicas++ // the lost one holds a place
		id := serverID(1)[:len(serverID(1))-1] + "f"
		w.snap.Pins = append(w.snap.Pins, plan.Pin{ServerID: id, Name: "acme-prod-macos-m2-00001"})
	}, "name-taken", false},
	{"an earlier run was erasing it", func(w *world, _ *inventory.Server) {
		w.snap.Pins = append(w.snap.Pins, plan.Pin{ServerID: serverID(1), Name: "acme-prod-macos-m2-00001", Key: "ssh-ed25519 1", Stage: plan.Wiping})
	}, "dirty-pool-host", false},
	{"trouble", func(w *world, _ *inventory.Server) { w.away(1, plan.CodeUnreachable) }, "unreachable", true},
	{"marker of another configuration", func(w *world, _ *inventory.Server) {
		m := w.marker("macos", "m2", 1)
		m.Configuration = "other"
		w.marked(1, m)
	}, "dirty-pool-host", true},
	{"Node of another configuration", func(w *world, _ *inventory.Server) {
		w.node(1, "other-prod-macos-m2-00001", inventory.Ready)
	}, "dirty-pool-host", false},
	{"pin of another configuration", func(w *world, _ *inventory.Server) { w.pin(1, "other-prod-macos-m2-00001") }, "dirty-pool-host", false},
	{"Node of an adopted host", func(w *world, _ *inventory.Server) { w.node(1, legacy, inventory.Ready); w.released(1) }, "dirty-pool-host", false},
	{"pinned when it was adopted", func(w *world, _ *inventory.Server) { w.pin(1, legacy) }, "dirty-pool-host", false},
	{"marker of another server", func(w *world, _ *inventory.Server) {
		m := w.marker("macos", "m2", 1)
		m.ServerID = serverID(7)
		w.marked(1, m)
	}, "dirty-pool-host", true},
	{"marker unread", func(w *world, _ *inventory.Server) {
		w.change(1, func(h *plan.HostSeen) { h.Marker = inventory.Unread[plan.Marker]("garbage") })
	}, "marker-unreadable", true},
	{"claim of another configuration", func(w *world, _ *inventory.Server) {
		w.change(1, func(h *plan.HostSeen) {
			h.Claim = inventory.Present(plan.Claim{Configuration: "other", Name: "other-macos-m2-00001", ServerID: serverID(1)})
		})
	}, "claimed-by-another", true},
	{"own claim for another group", func(w *world, _ *inventory.Server) {
		w.change(1, func(h *plan.HostSeen) {
			h.Claim = inventory.Present(plan.ClaimOf(w.cfg.Owner, "acme-prod-runners-m2-00001", serverID(1)))
		})
	}, "claimed-by-another", true},
	{"claim unread", func(w *world, _ *inventory.Server) {
		w.change(1, func(h *plan.HostSeen) { h.Claim = inventory.Unread[plan.Claim]("garbage") })
	}, "claim-unreadable", true},
	{"nothing read", func(w *world, _ *inventory.Server) { w.hosts[serverID(1)] = plan.HostSeen{Root: true} }, "marker-unreadable", true},
	{"runs another family", func(w *world, _ *inventory.Server) {
		w.change(1, func(h *plan.HostSeen) { h.OSVersion = inventory.Present("15.7.1") })
	}, "wrong-os", true},
	{"runs a macOS that came out later", func(w *world, _ *inventory.Server) {
		w.change(1, func(h *plan.HostSeen) { h.OSVersion = inventory.Present("27.0") })
	}, "wrong-os", true},
	{"no root", func(w *world, _ *inventory.Server) { w.change(1, func(h *plan.HostSeen) { h.Root = false }) }, "missing-sudo-password", true},
}

// TestBadCandidatesAreNamedAndNotTaken: another server is claimed instead, and without one the plan is incomplete.
func TestBadCandidatesAreNamedAndNotTaken(t *testing.T) {
	t.Parallel()
	for _, tc := range badCandidates {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(1, 0, 0)
			w.free(1)
			tc.damage(w, &w.snap.Servers[0])
			p := w.plan(t)
			if len(claimed(p)) != 0 || len(p.Shortages) != 1 || p.Shortages[0].Missing != 1 || p.Summarise().Complete() {
				t.Errorf("claims %v, shortages = %+v", claimed(p), p.Shortages)
			}
			w = newWorld(1, 0, 0)
			w.free(1)
			w.free(2)
			tc.damage(w, &w.snap.Servers[0])
			p = w.plan(t)
			expect(t, "claims", []string{"acme-pool-02 > acme-prod-macos-m2-00002"}, claimed(p))
			var want []string
			if tc.code != "" {
				want = []string{"acme-pool-01 " + tc.code}
				explained(t, &p.Rejected[0].Trouble)
			}
			expect(t, "rejected", want, rejected(p))
			rounds := [][]string{{"acme-pool-02"}}
			if tc.asked {
				rounds = [][]string{{"acme-pool-01"}, {"acme-pool-02"}}
			}
			expect(t, "asked", rounds, w.asked)
			if len(p.Shortages) != 0 {
				t.Errorf("shortages = %+v", p.Shortages)
			}
		})
	}
}

func TestGoodCandidates(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(*world, *plan.HostSeen){
		"clean": func(*world, *plan.HostSeen) {},
		"an interrupted claim of this configuration": func(w *world, h *plan.HostSeen) {
			c := plan.ClaimOf(w.cfg.Owner, "acme-prod-macos-m2-00001", serverID(1))
			c.Nonce = "of another run"
			h.Claim = inventory.Present(c)
		},
		"a macOS version unread":     func(_ *world, h *plan.HostSeen) { h.OSVersion = inventory.Unread[string]("lost") },
		"the family without a minor": func(_ *world, h *plan.HostSeen) { h.OSVersion = inventory.Present("26") },
	} {
		w := newWorld(1, 0, 0)
		w.free(1)
		w.change(1, func(h *plan.HostSeen) { edit(w, h) })
		p := w.plan(t)
		expect(t, name, []string{"acme-pool-01 > acme-prod-macos-m2-00001"}, claimed(p))
		if p.Actions[0].Refusal != nil {
			t.Errorf("%s: refused: %+v", name, p.Actions[0].Refusal)
		}
	}
}

func TestOSFamilies(t *testing.T) {
	t.Parallel()
	for version, family := range map[string]string{"13.6": "Ventura", "14.0": "Sonoma", "15.7": "Sequoia", "26.3": "Tahoe"} {
		for _, os := range []string{"Ventura", "Sonoma", "Sequoia", "Tahoe"} {
			w := newWorld(1, 0, 0)
			w.cfg.Fleets[0].OS = os
			w.free(1).OSFamily = os // what was first installed
			w.change(1, func(h *plan.HostSeen) { h.OSVersion = inventory.Present(version) })
			if got := len(claimed(w.plan(t))) == 1; got != (os == family) {
				t.Errorf("macOS %s for a fleet of %s is claimed: %t", version, os, got)
			}
		}
	}
}

// TestThePoolIsJudgedByWhatRuns: the image that a server was first installed with says
// nothing once it was updated, so its host is read before the pool counts as too small.
func TestThePoolIsJudgedByWhatRuns(t *testing.T) {
	t.Parallel()
	type server struct{ image, runs string } // runs "" = it is unreachable, "?" = it does not say
	const tahoe, sequoia, sonoma = "26.3", "15.7.1", "14.6"
	for name, tc := range map[string]struct {
		pool     []server
		want     int    // hosts of Tahoe in macos.m2, as many of Sequoia in runners.m2
		os       string // of the runners; empty: Sequoia
		claims   []string
		rejected []string
		asked    [][]string
	}{
		"updated since": {
			pool: []server{{"Sequoia", tahoe}, {"Tahoe", tahoe}, {"Sonoma", sonoma}}, want: 1,
			claims: []string{"acme-pool-01 > acme-prod-macos-m2-00001"},
			asked:  [][]string{{"acme-pool-01", "acme-pool-02"}, {"acme-pool-03"}},
		},
		"only updated ones": {
			pool: []server{{"Sequoia", tahoe}, {"Sonoma", tahoe}, {"Sonoma", sequoia}}, want: 1,
			claims: []string{"acme-pool-01 > acme-prod-macos-m2-00001", "acme-pool-03 > acme-prod-runners-m2-00003"},
			asked:  [][]string{{"acme-pool-01", "acme-pool-02", "acme-pool-03"}},
		},
		"an older macOS than the image": {
			pool: []server{{"Tahoe", sequoia}, {"Tahoe", tahoe}}, want: 1,
			claims:   []string{"acme-pool-02 > acme-prod-macos-m2-00002", "acme-pool-01 > acme-prod-runners-m2-00001"},
			rejected: []string{"acme-pool-01 wrong-os"},
			asked:    [][]string{{"acme-pool-01", "acme-pool-02"}},
		},
		"unreachable": {
			pool: []server{{"Sonoma", ""}, {"Tahoe", tahoe}, {"Sequoia", sequoia}}, want: 1,
			claims: []string{"acme-pool-02 > acme-prod-macos-m2-00002", "acme-pool-03 > acme-prod-runners-m2-00003"},
			asked:  [][]string{{"acme-pool-02", "acme-pool-03"}},
		},
		"is unreachable, and is needed": {
			pool: []server{{"Sonoma", ""}, {"Tahoe", tahoe}}, want: 1,
			claims: []string{"acme-pool-02 > acme-prod-macos-m2-00002"}, rejected: []string{"acme-pool-01 unreachable"},
			asked: [][]string{{"acme-pool-01", "acme-pool-02"}},
		},
		"does not say what it runs": {
			pool: []server{{"Tahoe", "?"}, {"Sequoia", "?"}, {"Sonoma", "?"}}, want: 1,
			claims: []string{"acme-pool-01 > acme-prod-macos-m2-00001", "acme-pool-02 > acme-prod-runners-m2-00002"},
			asked:  [][]string{{"acme-pool-01", "acme-pool-02"}},
		},
		"a family that this version does not know": {
			pool: []server{{"Redwood", "27.1"}, {"Tahoe", tahoe}, {"Tahoe", "27.1"}}, want: 1, os: "Redwood",
			claims: []string{"acme-pool-02 > acme-prod-macos-m2-00002", "acme-pool-01 > acme-prod-runners-m2-00001"},
			asked:  [][]string{{"acme-pool-01", "acme-pool-02"}},
		},
		"an image that is no macOS": {
			pool: []server{{"DevOS", tahoe}, {"Linux", ""}, {"", tahoe}}, want: 1,
			asked: nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(tc.want, 0, tc.want)
			if tc.os != "" {
				w.cfg.Fleets[1].OS = tc.os
			}
			for i, s := range tc.pool {
				w.free(i + 1).OSFamily = s.image
				w.change(i+1, func(h *plan.HostSeen) {
					switch h.OSVersion = inventory.Present(s.runs); s.runs {
					case "":
						*h = plan.HostSeen{Trouble: &plan.Trouble{Code: plantest.Code("unreachable"), Text: "x", Remedy: "y"}}
					case "?":
						h.OSVersion = inventory.Unread[string]("lost")
					}
				})
			}
			p := w.plan(t)
			expect(t, "claims", tc.claims, claimed(p))
			expect(t, "rejected", tc.rejected, rejected(p))
			expect(t, "asked", tc.asked, w.asked)
			expect(t, "missing", 2*tc.want-len(tc.claims), missing(p))
		})
	}
}

// TestOneServerForTwoGroups: groups of one type share the pool in the order of
// the configuration, and a server that both considered is named once.
func TestOneServerForTwoGroups(t *testing.T) {
	t.Parallel()
	w := newWorld(2, 0, 2)
	w.cfg.Fleets[1].OS = "Tahoe"
	for n := 1; n <= 4; n++ {
		w.free(n)
	}
	w.snap.Servers[0].Status = "starting"
	p := w.plan(t)
	expect(t, "claims", []string{"acme-pool-02 > acme-prod-macos-m2-00002", "acme-pool-03 > acme-prod-macos-m2-00003",
		"acme-pool-04 > acme-prod-runners-m2-00004"}, claimed(p))
	expect(t, "rejected", []string{"acme-pool-01 server-not-ready"}, rejected(p))
}

// TestTwoCandidatesOfOneName: the ids of two servers may begin alike.
func TestTwoCandidatesOfOneName(t *testing.T) {
	t.Parallel()
	w := newWorld(2, 0, 0)
	w.free(1)
	w.free(2).ID = "00001fff-0000-4000-8000-000000000000"
	w.hosts[w.snap.Servers[1].ID] = clean(2)
	p := w.plan(t)
	expect(t, "claims", []string{"acme-pool-01 > acme-prod-macos-m2-00001"}, claimed(p))
	expect(t, "rejected", []string{"acme-pool-02 name-taken"}, rejected(p))
}

func TestNextAsksWhatIsNeeded(t *testing.T) {
	t.Parallel()
	w := members(4, 1)
	for n := 11; n <= 16; n++ {
		w.free(n)
	}
	w.free(17).Status = "starting"
	w.server(21, "acme-staging-macos-m2-00015") // may be a member whose name was edited
	w.server(22, "somebody-else").Type = "M4-M"
	w.server(23, "not-delivered").Status = "delivering"
	w.hosts[serverID(21)] = clean(21)
	w.change(12, func(h *plan.HostSeen) { h.Root = false })
	w.change(14, func(h *plan.HostSeen) { h.Root = false })
	p := w.plan(t)
	expect(t, "asked", [][]string{
		{"acme-pool-11", "acme-pool-12", "acme-pool-13", "acme-prod-macos-m2-00001", "acme-staging-macos-m2-00015"},
		{"acme-pool-14"},
		{"acme-pool-15"},
	}, w.asked)
	expect(t, "claims", []string{"acme-pool-11 > acme-prod-macos-m2-0000b", "acme-pool-13 > acme-prod-macos-m2-0000d",
		"acme-pool-15 > acme-prod-macos-m2-0000f"}, claimed(p))
}

// TestStraysAreAskedOnlyWhereAClaimWantsThem does not contact what cannot be a lost
// member: other types, hosts of other environments, and everything where the
// run is limited to a group that lacks nothing.
func TestStraysAreAskedOnlyWhereAClaimWantsThem(t *testing.T) {
	t.Parallel()
	server := func(n int, name, kind string) inventory.Server {
		return inventory.Server{ID: serverID(n), Name: name, Type: kind, Zone: "fr-par-1", OSFamily: "Tahoe", Status: "ready", Delivered: true}
	}
	cfg := &fleet.Config{Owner: fleet.Owner{Name: "acme", Environment: "prod"}, Environments: []string{"prod", "staging"},
		Scaleway: fleet.Scaleway{PoolPrefix: "acme-pool-"},
		Fleets: []fleet.Fleet{
			{Name: "full", OS: "Tahoe", Groups: []fleet.Group{{Name: "m2", Type: "M2-L", Replicas: 0}}},
			{Name: "short", OS: "Tahoe", Groups: []fleet.Group{{Name: "m2", Type: "M2-L", Replicas: 1}}}}}
	snap := plan.Snapshot{Nodes: inventory.Absent[[]inventory.Node](), Hosts: map[string]plan.HostSeen{}, Servers: []inventory.Server{
		server(1, "somebodys-mac", "M2-L"),
		server(2, "somebodys-other-mac", "M4-S"),
		server(3, fleet.Owner{Name: "acme", Environment: "staging"}.HostName("full", "m2", serverID(3)), "M2-L"),
	}}
	names := func(sel plan.Selection) string {
		return strings.Join(each(plan.Next(cfg, snap, sel), func(s inventory.Server) string { return s.Name }), " ")
	}
	if got := names(plan.Selection{}); got != "somebodys-mac" {
		t.Errorf("asked: %q", got)
	}
	if got := names(plan.Selection{On: only("fleet=full")}); got != "" {
		t.Errorf("with --on fleet=full: %q", got)
	}
}

// TestShortageOfWhatCannotBeTaken: who has enough servers, and may not take them,
// is not advised to order some.
func TestShortageOfWhatCannotBeTaken(t *testing.T) {
	t.Parallel()
	w := newWorld(1, 0, 0)
	w.free(1)
	w.marked(1, w.marker("macos", "m2", 9))
	p := w.plan(t)
	if len(p.Shortages) != 1 || len(p.Rejected) != 1 {
		t.Fatalf("shortages %+v, rejected %+v", p.Shortages, p.Rejected)
	}
	tr := p.Shortages[0].Trouble
	if !strings.HasSuffix(tr.Text, "; not usable: 1 server") || !strings.HasPrefix(tr.Remedy, "fix the servers") {
		t.Errorf("%+v", tr)
	}
}
