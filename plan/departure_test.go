package plan_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
)

// departs limits a run to a server that a person asked to leave. It returns the code of why it must not, or "".
func (w *world) departs(t *testing.T, name string, replace bool) string {
	t.Helper()
	sel, err := plan.CheckLists(w.cfg, w.snap, plan.Selection{Departs: &plan.Departure{Name: name, Replace: replace}})
	var refused *plan.Trouble
	switch {
	case errors.As(err, &refused):
		return refused.Code.String()
	case err != nil:
		return "error: " + err.Error()
	}
	w.sel, w.snap.Asked = sel, sel.Departs.Asked()
	return ""
}

// unmanaged is leaver with a fourth server, which has no owner.
func unmanaged() *world {
	w := leaver()
	w.cfg.Fleets[0].Groups[0].Replicas = 3
	w.outside(4, "ci-scratch")
	return w
}

// trusted pins the key of a server that shows it.
func (w *world) trusted(n int) {
	w.pinned(n, plan.Stays, "")
	w.change(n, func(h *plan.HostSeen) { h.Pinned = true })
}

// of are the kinds of the actions on the n-th server, with the code of what refuses or defers them.
func of(p *plan.Plan, n int) []string {
	var out []string
	for _, a := range p.Actions {
		if a.ServerID != serverID(n) {
			continue
		}
		text := string(a.Kind)
		switch {
		case a.Refusal != nil:
			text += " !" + a.Refusal.Code.String()
		case a.Deferral != nil:
			text += " ~" + a.Deferral.Code.String()
		}
		out = append(out, text)
	}
	return out
}

// TestWhoMayLeave by the lists only, and by which name.
func TestWhoMayLeave(t *testing.T) {
	t.Parallel()
	const member = "acme-prod-macos-m2-00003"
	for name, tc := range map[string]struct {
		edit     func(*world)
		host     string
		replace  bool
		want     string
		contains string // in the error that has no code
	}{
		"replace a member":             {host: member, replace: true},
		"replace by its short form":    {host: "macos/00003", replace: true},
		"replace an adopted one":       {edit: func(w *world) { w.adoptedMember(5, legacy); w.pinned(5, plan.Stays, "") }, host: legacy, replace: true, want: "not-replaceable"},
		"replace a server of the pool": {edit: func(w *world) { w.free(5) }, host: "acme-pool-05", replace: true, want: "not-replaceable"},
		"replace an unmanaged server":  {host: "ci-scratch", replace: true, want: "not-replaceable"},
		"replace an orphan":            {edit: func(w *world) { w.cfg.Fleets = w.cfg.Fleets[1:] }, host: member, replace: true, want: "not-replaceable"},
		"replace what is released":     {edit: func(w *world) { w.pinned(3, plan.Leaving, "") }, host: member, replace: true, want: "not-replaceable"},
		"replace what is erased":       {edit: func(w *world) { w.pinned(3, plan.Wiping, "") }, host: member, replace: true, want: "not-replaceable"},
		"replace one without a key": {edit: func(w *world) {
			w.snap.Pins = slices.DeleteFunc(w.snap.Pins, func(p plan.Pin) bool { return p.ServerID == serverID(3) })
		}, host: member, replace: true, want: "not-replaceable"},
		"replace one that is being claimed": {edit: func(w *world) { w.snap.Pins[2].Unfinished = true }, host: member, replace: true, want: "not-replaceable"},
		"release an unmanaged server":       {host: "ci-scratch"},
		"release it by its id":              {host: serverID(4)},
		"release it by a part":              {host: "scratch", want: "not-releasable"},
		"release an orphan":                 {edit: func(w *world) { w.cfg.Fleets = w.cfg.Fleets[1:] }, host: member},
		"release a member":                  {host: member, want: "not-releasable"},
		"release an adopted one":            {edit: func(w *world) { w.adoptedMember(5, legacy) }, host: legacy, want: "not-releasable"},
		"release a server of the pool":      {edit: func(w *world) { w.free(5) }, host: "acme-pool-05", want: "not-releasable"},
		"release another owner's":           {edit: func(w *world) { w.snap.Servers[3].Name = "globex-prod-web-m2-00004" }, host: "globex-prod-web-m2-00004", want: "not-releasable"},
		"release another environment's": {edit: func(w *world) {
			w.cfg.Environments = []string{"prod", "staging"}
			w.snap.Servers[3].Name = "acme-staging-macos-m2-00004"
		}, host: "acme-staging-macos-m2-00004", want: "not-releasable"},
		"release what another environment adopted": {edit: func(w *world) { w.cfg.Elsewhere = []string{serverID(4)} }, host: "ci-scratch", want: "not-releasable"},
		"release one of two of a name":             {edit: func(w *world) { w.server(5, "ci-scratch") }, host: "ci-scratch", want: "not-releasable"},
		"release nothing":                          {host: "no-such-server", contains: "no server is named"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := unmanaged()
			if tc.edit != nil {
				tc.edit(w)
			}
			got := w.departs(t, tc.host, tc.replace)
			if tc.contains == "" && got != tc.want || !strings.Contains(got, tc.contains) {
				t.Errorf("got %q, want %q", got, tc.want+tc.contains)
			}
		})
	}
}

// TestReleaseOfAnUnmanagedServer only if it certainly has no owner. Nothing else of the fleet is in the plan.
func TestReleaseOfAnUnmanagedServer(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		edit func(*world)
		code string // empty: it is released
	}{
		"no owner": {func(*world) {}, ""},
		"another owner's marker": {func(w *world) {
			w.marked(4, plan.Marker{Configuration: "globex", Environment: "prod", Name: "ci-scratch", ServerID: serverID(4)})
		}, "foreign-marker"},
		"a marker that is unread": {func(w *world) {
			w.change(4, func(h *plan.HostSeen) { h.Marker = inventory.Unread[plan.Marker]("damaged") })
		}, "marker-unreadable"},
		"a claim": {func(w *world) {
			w.change(4, func(h *plan.HostSeen) {
				h.Claim = inventory.Present(plan.Claim{Configuration: "globex", Environment: "prod", Name: "x", ServerID: serverID(4)})
			})
		}, "claimed-by-another"},
		"a claim of this configuration": {func(w *world) {
			w.change(4, func(h *plan.HostSeen) {
				h.Claim = inventory.Present(plan.ClaimOf(w.cfg.Owner, "ci-scratch", serverID(4)))
			})
		}, "release-unsafe"},
		"a Node by its provider id": {func(w *world) { w.node(4, "another-name", inventory.Ready); w.trusted(4) }, "release-unsafe"},
		"a Node by its name":        {func(w *world) { w.node(9, "ci-scratch", inventory.NotReady); w.trusted(4) }, "release-unsafe"},
		"a Machine": {func(w *world) {
			s := inventory.Server{ID: serverID(4), Zone: "fr-par-1"}
			w.observe(func(c *inventory.Cluster) {
				c.Machines = inventory.Present([]inventory.Machine{{Namespace: "n", Name: "m", ProviderID: s.ProviderID(), InfrastructurePaused: true}})
			})
		}, "release-unsafe"},
		"away":                  {func(w *world) { w.away(4, plan.CodeUnreachable) }, "release-unsafe"},
		"wrong key":             {func(w *world) { w.away(4, plan.CodeWrongHostKey) }, "wrong-host-key"},
		"the cluster is unread": {func(w *world) { w.snap.Nodes = inventory.Unread[[]inventory.Node]("no rights") }, "release-unsafe"},
		"its work is unread":    {func(w *world) { w.change(4, func(h *plan.HostSeen) { h.Facts = plan.Facts{} }) }, "release-unsafe"},
		"a scheduled deletion":  {func(w *world) { due(&w.snap.Servers[3]) }, "release-unsafe"},
		"it restarts":           {func(w *world) { w.snap.Servers[3].Status = "rebooting" }, "server-busy"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := unmanaged()
			tc.edit(w)
			if got := w.departs(t, "ci-scratch", false); got != "" {
				t.Fatal(got)
			}
			p := w.plan(t)
			got := of(p, 4)
			if tc.code == "" {
				expect(t, "actions", []string{"reinstall", "release"}, got)
			} else if len(got) == 0 || slices.ContainsFunc(got, func(s string) bool { return !strings.HasSuffix(s, "!"+tc.code) }) {
				t.Errorf("actions %v, want all refused by %q", got, tc.code)
			}
			if len(p.Hosts) != 1 || len(p.Actions) != len(got) {
				t.Errorf("the plan has %d hosts and %d actions", len(p.Hosts), len(p.Actions))
			}
		})
	}
}

// TestReleaseOfAMemberThatTheListsDidNotShow: its marker says that it is one.
func TestReleaseOfAMemberThatTheListsDidNotShow(t *testing.T) {
	t.Parallel()
	w := unmanaged()
	w.marked(4, w.marker("macos", "m2", 4))
	w.trusted(4)
	if got := w.departs(t, "ci-scratch", false); got != "" {
		t.Fatal(got)
	}
	p := w.plan(t)
	if h, _ := p.HostByServer(serverID(4)); len(p.Runnable()) > 0 || h.Refused == nil || h.Refused.Code.String() != "not-releasable" {
		t.Errorf("actions %v, refused %v", of(p, 4), h.Refused)
	}
}

// TestReleaseOfASilentOrphan: a name that a person types does not show that an earlier run drained the host.
func TestReleaseOfASilentOrphan(t *testing.T) {
	t.Parallel()
	const name = "beta-prod-macos-m2-00004" // of the configuration's former name, and of a group that joins the cluster
	w := unmanaged()
	w.snap.Former = []string{fleet.Owner{Name: "beta", Environment: "prod"}.String()}
	w.snap.Servers[3].Name = name
	w.pinned(4, plan.Leaving, "")
	w.hosts[serverID(4)] = plan.HostSeen{Trouble: plan.CodeUnreachable.Trouble("no route")}
	if got := w.departs(t, name, false); got != "" {
		t.Fatal(got)
	}
	got := of(w.plan(t), 4)
	if len(got) == 0 || slices.ContainsFunc(got, func(s string) bool { return !strings.HasSuffix(s, "!release-unsafe") }) {
		t.Errorf("actions %v, want all refused", got)
	}
}

// TestUnfinishedReleaseOfAnUnmanagedServer is finished by every run once its disk may be empty; before, it is kept.
func TestUnfinishedReleaseOfAnUnmanagedServer(t *testing.T) {
	t.Parallel()
	for stage, want := range map[plan.Stage][]string{plan.Leaving: nil, plan.Wiping: {"reinstall", "release"}, plan.Wiped: {"release"}} {
		w := unmanaged()
		w.pinned(4, stage, "")
		expect(t, string(stage), want, of(w.plan(t), 4))
		if want == nil {
			continue
		}
		if got := w.departs(t, "ci-scratch", false); got != "" { // a person's request does not start it over
			t.Error(got)
		}
		expect(t, string(stage)+", asked again", want, of(w.plan(t), 4))
	}
}

// TestReplace: the host leaves only with a claim that runs and a group whose members work.
func TestReplace(t *testing.T) {
	t.Parallel()
	leaves := []string{"drain", "delete-node", "reinstall", "release"}
	refused := each(leaves, func(kind string) string { return kind + " !no-replacement" })
	for name, tc := range map[string]struct {
		edit  func(*world)
		want  []string // on the host
		claim bool
		code  string // why the host stays
	}{
		"a server is free":     {edit: func(w *world) { w.free(4) }, want: leaves, claim: true},
		"the pool is empty":    {edit: func(*world) {}, code: "no-replacement"},
		"another type is free": {edit: func(w *world) { w.free(4).Type = "M4-M" }, code: "no-replacement"},
		"an orphan may belong there": {edit: func(w *world) {
			w.free(4)
			w.server(6, "acme-prod-deleted-m2-00006")
			w.hosts[serverID(6)] = clean(6)
		}, code: "no-replacement"},
		"a silent server may be one that was adopted": {edit: func(w *world) {
			w.free(4)
			w.server(6, legacy)
			w.pin(6, legacy)
			w.hosts[serverID(6)] = plan.HostSeen{Trouble: plan.CodeUnreachable.Trouble("no route")}
		}, code: "no-replacement"},
		"a member is not Ready": {edit: func(w *world) {
			w.free(4)
			w.dropNode(2)
			w.node(2, w.snap.Servers[1].Name, inventory.NotReady)
		}, want: refused, claim: true, code: "no-replacement"},
		"a member is in quarantine": {edit: func(w *world) {
			w.free(4)
			w.dropNode(2)
			w.node(2, w.snap.Servers[1].Name, inventory.NotReady)
			nodes, _ := w.snap.Nodes.Get()
			nodes[len(nodes)-1].Repairs = &inventory.Repairs{Failed: 3, Since: noon}
			w.free(5)
		}, want: leaves, claim: true},
		"a member vanished": {edit: func(w *world) {
			w.free(4)
			w.pin(9, w.cfg.HostName("macos", "m2", serverID(9)))
			w.cfg.Fleets[0].Groups[0].Replicas = 4
		}, want: refused, claim: true, code: "no-replacement"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := leaver()
			w.cfg.Fleets[0].Groups[0].Replicas = 3
			tc.edit(w)
			if got := w.departs(t, "macos/00003", true); got != "" {
				t.Fatal(got)
			}
			p := w.plan(t)
			expect(t, "actions", tc.want, of(p, 3))
			if got := slices.Contains(of(p, 4), "claim"); got != tc.claim {
				t.Errorf("claim %t, want %t", got, tc.claim)
			}
			h, _ := p.HostByServer(serverID(3))
			code := codeOf(h.Refused)
			expect(t, "why it stays", tc.code, code)
			for _, a := range p.Actions {
				if a.ServerID == serverID(1) || a.ServerID == serverID(2) {
					t.Errorf("the plan has %s of a host that is not replaced", a.Kind)
				}
			}
		})
	}
}

// TestReplaceWaitsForADeferredClaim: the host that is replaced uses up the limit, so the run claims nothing, and the host stays.
func TestReplaceWaitsForADeferredClaim(t *testing.T) {
	t.Parallel()
	w := leaver()
	w.cfg.Fleets[0].Groups[0].Replicas = 3
	w.free(4)
	begun := w.hosts[serverID(3)]
	begun.Pending = []plan.StepID{"alpha"} // by an earlier run, so it goes first
	w.hosts[serverID(3)], w.snap.Hosts[serverID(3)] = begun, begun
	if got := w.departs(t, "macos/00003", true); got != "" {
		t.Fatal(got)
	}
	p := w.plan(t)
	p.Defer(plan.Bounds{Guardrails: fleet.Guardrails{MaxHosts: 1}, Now: time.Unix(0, 0)}, w.steps, nil)
	for _, n := range []int{3, 4} {
		got := of(p, n)
		if len(got) == 0 || slices.ContainsFunc(got, func(a string) bool { return !strings.HasSuffix(a, " ~too-many-hosts") }) {
			t.Errorf("host %d: %q, which should all be deferred", n, got)
		}
	}
}

// TestWipesOfARunCount: a server that the same run has released counts against max_wipes when another one should leave since.
func TestWipesOfARunCount(t *testing.T) {
	t.Parallel()
	w := leaver()
	first := w.plan(t)
	b := plan.Bounds{Now: time.Unix(0, 0)}
	first.Defer(b, w.steps, nil)
	for _, a := range first.Actions {
		if h, _ := first.HostByServer(a.ServerID); a.Kind == plan.ReleaseServer {
			w.release(h, a)
		}
	}
	w.cfg.Fleets[0].Groups[0].Replicas = 1
	then := w.compute()
	then.Defer(b, w.steps, first)
	wiped, deferred := 0, 0
	for _, a := range then.Actions {
		switch {
		case a.Kind != plan.ReinstallServer:
		case a.Runs():
			wiped++
		case a.Deferral != nil && a.Deferral.Code.String() == "too-many-wipes":
			deferred++
		}
	}
	if wiped != 0 || deferred != 1 {
		t.Errorf("%d wiped and %d deferred, want 0 and 1: %v", wiped, deferred, lines(then))
	}
}

// TestNodeOn: a server is a Node by its name or by its provider id.
func TestNodeOn(t *testing.T) {
	t.Parallel()
	s := inventory.Server{ID: serverID(1), Name: first, Zone: "fr-par-1"}
	for name, n := range map[string]inventory.Node{"": {Name: second}, first: {Name: first}, third: {Name: third, ProviderID: s.ProviderID()}} {
		if got, is := plan.NodeOn([]inventory.Node{n}, s); got != name || is != (name != "") {
			t.Errorf("of %+v it is %q, %t", n, got, is)
		}
	}
}
