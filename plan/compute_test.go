package plan_test

import (
	"slices"
	"testing"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/plan/plantest"
)

const (
	first  = "acme-prod-macos-m2-00001"
	second = "acme-prod-macos-m2-00002"
	third  = "acme-prod-macos-m2-00003"
)

func TestNoChangeIsAnEmptyPlan(t *testing.T) {
	t.Parallel()
	w := newWorld(2, 0, 1)
	w.member("macos", "m2", 1)
	w.member("macos", "m2", 2)
	w.member("runners", "m2", 3)
	w.node(1, first, inventory.Ready)
	w.free(9)                    // not needed
	w.server(8, "somebody-else") // and neither is this one
	p := w.plan(t)
	expect(t, "asked", [][]string{{first, second, "acme-prod-runners-m2-00003"}}, w.asked)
	expect(t, "strays", []string{"somebody-else"}, strays(p))
	if len(p.Actions)+len(p.Shortages)+len(p.Rejected)+len(p.Lost) != 0 || p.Runnable() != nil {
		t.Errorf("the plan is not empty: %v, %+v", lines(p), p)
	}
	s := p.Summarise()
	expect(t, "summary", plan.Summary{Hosts: 3, Converged: 3}, s)
	if !s.Complete() || !s.Compared() || s.Changes() != 0 {
		t.Errorf("complete %t, compared %t, changes %d", s.Complete(), s.Compared(), s.Changes())
	}
	h, ok := p.HostByServer(serverID(2))
	if !ok || h.Name != second || !h.Member || h.Converged != plan.Converged {
		t.Errorf("HostByServer = %q, %t", h.Name, ok)
	}
	expect(t, "proofs", map[plan.StepID]plan.Digest{"alpha": verifiedAs(good, good), "beta": verifiedAs(good, good)}, h.Verified)
	if _, ok := p.HostByServer(serverID(9)); ok {
		t.Error("a server of the pool is a host of the plan")
	}
}

// TestOrigin: the marker's digests tell what moved since the last verification.
func TestOrigin(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		last map[plan.StepID]plan.Digest // of the step alpha
		now  string
		want string // "" = no difference
	}{
		{"never verified", nil, "other", first + " alpha first-setup P"},
		{"never verified, right by chance", nil, good, ""},
		{"the facts moved", map[plan.StepID]plan.Digest{"alpha": verifiedAs(good, good)}, "other", first + " alpha alpha-off D"},
		{"the configuration changed", map[plan.StepID]plan.Digest{"alpha": verifiedAs("other", "other")}, "other", first + " alpha config-changed P"},
		{"both moved", map[plan.StepID]plan.Digest{"alpha": verifiedAs("old", "old")}, "other", first + " alpha alpha-off DP"},
		{"both moved to the same", map[plan.StepID]plan.Digest{"alpha": verifiedAs("old", "old")}, good, ""},
		{"rendered otherwise by this version", map[plan.StepID]plan.Digest{"alpha": verifiedAs(good, "other")}, "other", first + " alpha config-changed P"},
		{"a digest that says nothing", map[plan.StepID]plan.Digest{"alpha": {}}, "other", first + " alpha alpha-off DP"},
		{"another step was verified", map[plan.StepID]plan.Digest{"gamma": verifiedAs(good, good)}, "other", first + " alpha first-setup P"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			w := members(1, 1)
			m := w.marker("macos", "m2", 1)
			m.Steps = tc.last
			w.change(1, func(h *plan.HostSeen) { h.Marker, h.Facts = inventory.Present(m), facts(tc.now, good) })
			p := w.plan(t)
			var want []string
			if tc.want != "" {
				want = []string{tc.want}
				expect(t, "fields", []plan.Field{{Name: "alpha", Before: tc.now, After: good}}, p.Actions[0].Fields)
				expect(t, "runnable", [][]plan.Action{p.Actions}, p.Runnable())
			}
			expect(t, "actions", want, lines(p))
		})
	}
}

// TestRefusalOfWhatWasProven: where neither the facts nor the configuration changed, a host
// that cannot stay so has drifted, and no configuration has changed.
func TestRefusalOfWhatWasProven(t *testing.T) {
	t.Parallel()
	for was, want := range map[string]string{good: "disk-full D", "other": "config-changed P"} {
		w := members(1, 1)
		m := w.marker("macos", "m2", 1)
		m.Steps = map[plan.StepID]plan.Digest{"alpha": verifiedAs(was, good), "beta": verifiedAs(good, good)}
		w.change(1, func(h *plan.HostSeen) {
			h.Marker, h.Facts = inventory.Present(m), facts(good, good)
			h.Facts["alpha.get"] = inventory.Present(plan.Answer{Stdout: good, Exit: 1})
		})
		expect(t, "actions", []string{first + " alpha " + want + " !disk-full"}, lines(w.plan(t)))
	}
}

// TestAStepThatComparesNothingProvesNothing: a block that comes later is a
// first set-up. It must not count as drift, which no person can have caused.
func TestAStepThatComparesNothingProvesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(1, 0, 0)
	w.desired["alpha"] = ""
	w.member("macos", "m2", 1)
	w.found(1, "factory", good)
	h := oneHost(t, w.plan(t))
	expect(t, "proofs", map[plan.StepID]plan.Digest{"beta": verifiedAs(good, good)}, h.Verified)
	if h.Converged != plan.Converged {
		t.Errorf("converged: %s", h.Converged)
	}
	m := w.marker("macos", "m2", 1)
	m.Steps = h.Verified // as a run would write it
	w.marked(1, m)
	w.desired["alpha"] = good
	clear(w.snap.Hosts)
	expect(t, "actions", []string{first + " alpha first-setup P"}, lines(w.plan(t)))
}

func TestUnreadIsNoDifference(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name      string
		facts     plan.Facts
		actions   []string
		converged plan.Convergence
		unread    int
	}{
		{"one answer lost", plan.Facts{"alpha.get": inventory.Unread[plan.Answer]("cut off"), "beta.get": inventory.Present(plan.Answer{Stdout: good})},
			nil, plan.NotCompared, 1},
		{"no answer", nil, nil, plan.NotCompared, 2},
		{"one lost, one differs", plan.Facts{"beta.get": inventory.Present(plan.Answer{Stdout: "other"})},
			[]string{first + " beta beta-off D"}, plan.Differs, 1},
	} {
		w := members(1, 1)
		w.change(1, func(h *plan.HostSeen) { h.Facts = tc.facts })
		p := w.plan(t)
		h := oneHost(t, p)
		expect(t, tc.name, tc.actions, lines(p))
		if h.Converged != tc.converged || len(h.Unread) != tc.unread || h.Unread[0].Step != "alpha" || h.Unread[0].Why == "" {
			t.Errorf("%s: converged %s, unread %+v", tc.name, h.Converged, h.Unread)
		}
		if s := p.Summarise(); s.Unread != tc.unread || s.Complete() || s.Compared() || s.Converged != 0 {
			t.Errorf("%s: %+v", tc.name, s)
		}
	}
}

func TestUnknownHost(t *testing.T) {
	t.Parallel()
	w := members(2, 2)
	tr := &plan.Trouble{Code: plantest.Code("unreachable"), Text: "no answer", Remedy: "look"}
	w.hosts[serverID(1)] = plan.HostSeen{Trouble: tr}
	w.found(2, "other", good)
	p := w.plan(t)
	expect(t, "the rest continues", []string{second + " alpha alpha-off D"}, lines(p))
	h := p.Hosts[0]
	if h.Unknown == nil || *h.Unknown != *tr || h.Refused != nil || h.Converged != plan.NotCompared {
		t.Errorf("the dead host is %+v", h)
	}
	expect(t, "summary", plan.Summary{Change: 1, Unknown: 1, Drift: 1, Hosts: 2, NotCompared: 1}, p.Summarise())
}

func TestAHostThatWasNotAskedIsUnknown(t *testing.T) {
	t.Parallel()
	w := members(1, 1)
	p := w.compute() // without asking
	h := oneHost(t, p)
	explained(t, h.Unknown)
	if h.Unknown.Code.String() != "not-asked" || len(p.Actions) != 0 {
		t.Errorf("unknown %+v, actions %v", h.Unknown, lines(p))
	}
	fresh := newWorld(1, 0, 0)
	fresh.free(1)
	expect(t, "claims", []string{first + " claim too-few-replicas P !not-asked"}, lines(fresh.compute()))
}

// TestMarkerForbids: a host whose marker does not say that it is this server and this configuration's is not touched, and not compared as if it were.
func TestMarkerForbids(t *testing.T) {
	t.Parallel()
	edit := func(change func(*plan.Marker)) func(*world, *plan.HostSeen) {
		return func(w *world, h *plan.HostSeen) {
			m := w.marker("macos", "m2", 1)
			change(&m)
			h.Marker = inventory.Present(m)
		}
	}
	for _, tc := range []struct {
		name string
		edit func(*world, *plan.HostSeen)
		want string // code of the refusal; "" = none
	}{
		{"as it should be", edit(func(*plan.Marker) {}), ""},
		{"another configuration", edit(func(m *plan.Marker) { m.Configuration = "other" }), "foreign-marker"},
		{"another environment", edit(func(m *plan.Marker) { m.Environment = "staging" }), "foreign-marker"},
		{"an owner of the same prefix", edit(func(m *plan.Marker) { m.Configuration, m.Environment = "acme-prod", "" }), "foreign-marker"},
		{"foreign and newer", edit(func(m *plan.Marker) { m.Configuration, m.Version = "other", "99.0.0" }), "foreign-marker"},
		{"newer", edit(func(m *plan.Marker) { m.Version = "99.0.0" }), "newer-macfleet"},
		{"newer patch", edit(func(m *plan.Marker) { m.Version = "0.1.1" }), "newer-macfleet"},
		{"older", edit(func(m *plan.Marker) { m.Version = "0.0.9" }), ""},
		{"a prerelease of this one", edit(func(m *plan.Marker) { m.Version = "0.1.0-rc.1" }), ""},
		{"no version", edit(func(m *plan.Marker) { m.Version = "" }), "newer-macfleet"},
		{"an unreadable version", edit(func(m *plan.Marker) { m.Version = "next" }), "newer-macfleet"},
		{"another server", edit(func(m *plan.Marker) { m.ServerID = serverID(2) }), "marker-of-another-server"},
		{"another name", edit(func(m *plan.Marker) { m.Name = "acme-prod-deleted-m2-00001" }), "marker-of-another-server"},
		{"swapped", edit(func(m *plan.Marker) { m.Serial = "C0799999" }), "swapped-host"},
		{"swapped, without a marker", func(w *world, h *plan.HostSeen) {
			h.Marker, h.Serial = inventory.Absent[plan.Marker](), inventory.Present("C0799999")
			w.snap.Pins = append(w.snap.Pins, plan.Pin{ServerID: serverID(1), Name: first, Key: "ssh-ed25519 AAAA", Serial: "C0700001"})
		}, "swapped-host"},
		{"no serial in the marker", edit(func(m *plan.Marker) { m.Serial = "" }), ""},
		{"serial unread", func(_ *world, h *plan.HostSeen) { h.Serial = inventory.Unread[string]("lost") }, ""},
		{"marker unread", func(_ *world, h *plan.HostSeen) { h.Marker = inventory.Unread[plan.Marker]("garbage") }, "marker-unreadable"},
		{"nothing was read", func(_ *world, h *plan.HostSeen) { *h = plan.HostSeen{Root: true, Pinned: true} }, "marker-unreadable"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			w := members(1, 1)
			w.free(9) // must not be claimed instead
			w.found(1, "other", good)
			w.change(1, func(h *plan.HostSeen) { tc.edit(w, h) })
			p := w.plan(t)
			h := oneHost(t, p)
			if tc.want == "" {
				if h.Refused != nil || len(p.Runnable()) != 1 {
					t.Errorf("refused %+v, runnable %v", h.Refused, p.Runnable())
				}
				return
			}
			explained(t, h.Refused)
			if h.Refused.Code.String() != tc.want || h.Converged == plan.Converged {
				t.Errorf("refused as %s, converged %s; want %s", h.Refused.Code, h.Converged, tc.want)
			}
			if p.Actions != nil || p.Summarise().RefusedHosts != 1 || p.Summarise().Compared() {
				t.Errorf("actions %v, summary %+v", lines(p), p.Summarise())
			}
		})
	}
}

func TestMissingMarker(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name  string
		claim inventory.Seen[plan.Claim]
		want  []string
		code  string
	}{
		{"no claim", inventory.Absent[plan.Claim](), []string{first + " marker marker-missing D", first + " alpha alpha-off ?"}, ""},
		{"our claim", inventory.Present(plan.Claim{Configuration: "acme", Environment: "prod", Name: first, ServerID: serverID(1), Nonce: "n"}),
			[]string{first + " marker marker-missing D", first + " alpha alpha-off ?"}, ""},
		{"another's claim", inventory.Present(plan.Claim{Configuration: "other", Name: first, ServerID: serverID(1)}), nil, "claimed-by-another"},
		{"our claim of another server", inventory.Present(plan.Claim{Configuration: "acme", Environment: "prod", Name: first, ServerID: serverID(2)}), nil, "claimed-by-another"},
		{"claim unread", inventory.Unread[plan.Claim]("lost"), nil, "claim-unreadable"},
	} {
		w := members(1, 1)
		w.change(1, func(h *plan.HostSeen) {
			h.Marker, h.Claim, h.Facts = inventory.Absent[plan.Marker](), tc.claim, facts("other", good)
		})
		p := w.plan(t)
		expect(t, tc.name, tc.want, lines(p))
		h := oneHost(t, p)
		if got := h.Refused; (got == nil) != (tc.code == "") || got != nil && got.Code.String() != tc.code {
			t.Errorf("%s: refused %+v, want %q", tc.name, got, tc.code)
		}
	}
}

// TestUnfinishedClaim: the claim of a pool server that has this configuration's claim is resumed.
func TestUnfinishedClaim(t *testing.T) {
	t.Parallel()
	w := newWorld(1, 0, 0)
	w.free(1)
	w.change(1, func(h *plan.HostSeen) {
		h.Claim = inventory.Present(plan.Claim{Configuration: "acme", Environment: "prod", Name: first, ServerID: serverID(1), Nonce: "n"})
		h.Facts = facts(good, good)
	})
	expect(t, "actions", []string{first + " claim too-few-replicas P", first + " marker claim-unfinished P"}, lines(w.plan(t)))
}

// TestNoRoot: what a host without sudo needs is shown and refused.
func TestNoRoot(t *testing.T) {
	t.Parallel()
	w := members(1, 1)
	w.change(1, func(h *plan.HostSeen) { h.Root, h.Facts = false, facts("other", good) })
	p := w.plan(t)
	expect(t, "actions", []string{first + " alpha alpha-off D !missing-sudo-password"}, lines(p))
	explained(t, oneHost(t, p).Refused)
	expect(t, "summary", plan.Summary{Refused: 1, RefusedHosts: 1, Drift: 1, Hosts: 1}, p.Summarise())
}

func TestRunnableGroupsByHost(t *testing.T) {
	t.Parallel()
	w := newWorld(4, 0, 1)
	w.member("macos", "m2", 1)
	w.found(1, "other", "other")
	w.member("macos", "m2", 2)
	w.change(2, func(h *plan.HostSeen) { h.Root, h.Facts = false, facts("other", good) })
	w.member("macos", "m2", 3).Name = "renamed"
	w.pin(3, third)
	w.found(3, good, "other")
	w.free(4)
	w.member("runners", "m2", 5)
	p := w.plan(t)
	var got [][]string
	for _, host := range p.Runnable() {
		got = append(got, lines(&plan.Plan{Actions: host}))
	}
	expect(t, "runnable", [][]string{
		{first + " alpha alpha-off D", first + " beta beta-off D"},
		{third + " rename renamed-by-hand D", third + " beta beta-off D"},
		{"acme-prod-macos-m2-00004 claim too-few-replicas P", "acme-prod-macos-m2-00004 marker too-few-replicas P",
			"acme-prod-macos-m2-00004 alpha first-setup P", "acme-prod-macos-m2-00004 beta first-setup P"},
	}, got)
	if slices.Contains(lines(p), second+" alpha alpha-off D") {
		t.Error("an action of a host without root is not refused")
	}
	expect(t, "summary", plan.Summary{Add: 2, Change: 6, Refused: 1, RefusedHosts: 1, Drift: 5, Pending: 4, Hosts: 4, Converged: 1}, p.Summarise())
}
