package plan_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
)

// What a server of the fleet "deleted" is called, and one of another configuration.
const (
	deleted = "acme-prod-deleted-m2-00001"
	foreign = "beta-prod-macos-m2-00001"
)

// markedAs gives a host a marker of a configuration and place.
func (w *world) markedAs(n int, owner fleet.Owner, name, fleetName, group string) {
	m := w.marker(fleetName, group, n)
	m.Configuration, m.Environment, m.Name = owner.Name, owner.Environment, name
	w.marked(n, m)
}

// knows lets the cluster know a kubelet of this configuration.
func (w *world) knows(host string) {
	w.snap.Cluster = inventory.Present(inventory.Cluster{
		Identities: inventory.Present([]inventory.Identity{{Host: host, ServiceAccount: "uid", Secret: "uid", Issued: true, Bound: true}})})
}

// TestOrphans is the table of sources that show a member, and what follows. Whatever it is, nothing
// is done to the server.
func TestOrphans(t *testing.T) {
	t.Parallel()
	acme, beta := fleet.Owner{Name: "acme", Environment: "prod"}, fleet.Owner{Name: "beta", Environment: "prod"}
	for name, tc := range map[string]struct {
		server  string // its name at the provider
		witness func(*world)
		by      string // empty: it is no orphan
		why     string
	}{
		"name of a fleet that is gone":               {deleted, nil, "name", `fleet "deleted"`},
		"name of a group that is gone":               {"acme-prod-macos-m9-00001", nil, "name", `group "m9"`},
		"name with another server's suffix":          {"acme-prod-deleted-m2-00002", nil, "", ""},
		"name in capitals":                           {"ACME-prod-deleted-m2-00001", nil, "", ""},
		"name of another environment":                {"acme-staging-deleted-m2-00001", nil, "", ""},
		"name of no known environment":               {"acme-old-deleted-m2-00001", nil, "", ""},
		"name of another configuration":              {foreign, nil, "", ""},
		"name that this configuration's begins with": {"acme-deleted-m2-00001", nil, "", ""},
		"name of the pool, and a marker":             {"acme-pool-01", func(w *world) { w.markedAs(1, acme, deleted, "deleted", "m2") }, "marker", "its marker"},
		"name of the pool, and a pin":                {"acme-pool-01", func(w *world) { w.pin(1, deleted) }, "pin", "its pin"},
		"name of the pool, and a Node":               {"acme-pool-01", func(w *world) { w.node(1, deleted, inventory.Ready) }, "Node", "its Node"},
		"name of the pool, another's marker":         {"acme-pool-01", func(w *world) { w.markedAs(1, beta, foreign, "macos", "m2") }, "", ""},
		"name of the pool, another's Node":           {"acme-pool-01", func(w *world) { w.node(1, foreign, inventory.Ready) }, "", ""},
		"name of the pool, another's pin":            {"acme-pool-01", func(w *world) { w.pin(1, foreign) }, "", ""},
		"any name, and a pin":                        {"renamed", func(w *world) { w.pin(1, deleted) }, "pin", "its pin"},
		"any name, and another's pin":                {"renamed", func(w *world) { w.pin(2, "acme-prod-deleted-m2-00002") }, "", ""},
		"pin of another configuration":               {foreign, func(w *world) { w.pin(1, foreign) }, "", ""},
		"any name, and a Node":                       {"renamed", func(w *world) { w.node(1, deleted, inventory.Ready) }, "Node", "its Node"},
		"Node of another configuration":              {foreign, func(w *world) { w.node(1, foreign, inventory.Ready) }, "", ""},
		"Node without a name of this configuration":  {"renamed", func(w *world) { w.node(1, "renamed", inventory.Ready) }, "", ""},
		"identity and Node":                          {legacy, func(w *world) { w.node(1, legacy, inventory.Ready); w.knows(legacy) }, "identity", "its host block is missing"},
		"identity of another server":                 {legacy, func(w *world) { w.knows(legacy) }, "", ""},
		"marker of a fleet that is gone":             {"renamed", func(w *world) { w.markedAs(1, acme, deleted, "deleted", "m2") }, "marker", "its marker"},
		"marker of another configuration":            {deleted, func(w *world) { w.markedAs(1, beta, deleted, "deleted", "m2") }, "", ""},
		"our name of before": {foreign, func(w *world) { w.snap.Former = []string{"beta-prod"} }, "name",
			"beta-prod"},
		"our marker of before": {"renamed", func(w *world) {
			w.snap.Former = []string{"beta-prod"}
			w.markedAs(1, beta, foreign, "macos", "m2")
		}, "marker", "beta-prod"},
		"our pin of before":   {"renamed", func(w *world) { w.snap.Former = []string{"beta-prod"}; w.pin(1, foreign) }, "pin", "beta-prod"},
		"another environment": {"acme-staging-macos-m2-00001", func(w *world) { w.snap.Former = []string{"acme-staging"} }, "", ""},
		"an environment that is gone": {"acme-old-macos-m2-00001", func(w *world) { w.snap.Former = []string{"acme-old"} }, "name",
			"acme-old"},
		"adopted in another environment": {deleted, func(w *world) { w.cfg.Elsewhere = []string{serverID(1)} }, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(2, 0, 0)
			w.cfg.Environments = []string{"prod", "staging"}
			w.outside(1, tc.server)
			w.member("macos", "m2", 2)
			w.free(9)
			if tc.witness != nil {
				tc.witness(w)
			}
			p := w.plan(t)
			if slices.ContainsFunc(p.Actions, func(a plan.Action) bool { return a.ServerID == serverID(1) }) {
				t.Errorf("something is done to the server: %v", lines(p))
			}
			const claim = "acme-pool-09 > acme-prod-macos-m2-00009"
			if tc.by == "" {
				if len(p.Orphans) != 0 || !slices.Equal(claimed(p), []string{claim}) {
					t.Errorf("orphans %+v, claims %v", p.Orphans, claimed(p))
				}
				return
			}
			if len(p.Orphans) != 1 {
				t.Fatalf("orphans %v, strays %v", orphans(p), strays(p))
			}
			o := p.Orphans[0]
			explained(t, &o.Trouble)
			if o.Name != tc.server || o.Witness != tc.by || !strings.Contains(o.Text, tc.why) || o.Code.String() != "orphaned-member" {
				t.Errorf("orphan %+v", o)
			}
			if s := p.Summarise(); s.Orphans != 1 || s.Undecided != 1 || s.Complete() || len(claimed(p)) != 0 {
				t.Errorf("summary %+v, claims %v", s, claimed(p))
			}
			if len(p.Shortages) != 1 || p.Shortages[0].Code.String() != "orphans-hold-claims" || p.Shortages[0].Missing != 1 {
				t.Errorf("shortages %+v", p.Shortages)
			}
			w.sel.AllowOrphans = true
			if p = w.plan(t); !slices.Equal(claimed(p), []string{claim}) || len(p.Orphans) != 1 || !p.Summarise().Complete() {
				t.Errorf("allowed: claims %v, orphans %v, summary %+v", claimed(p), orphans(p), p.Summarise())
			}
		})
	}
}

// TestAServerGivenBackIsNoOrphan once its release was finished: the copy on this machine says nothing any more.
func TestAServerGivenBackIsNoOrphan(t *testing.T) {
	t.Parallel()
	w := newWorld(1, 0, 0)
	w.free(1)
	w.snap.Remembered = []plan.Pin{{ServerID: serverID(1), Name: deleted, Key: "ssh-ed25519 1"}}
	if p := w.plan(t); len(p.Orphans) != 1 || len(claimed(p)) != 0 {
		t.Errorf("before: orphans %v, claims %v", orphans(p), claimed(p))
	}
	w.released(1)
	if p := w.plan(t); len(p.Orphans) != 0 || !slices.Equal(claimed(p), []string{"acme-pool-01 > " + first}) {
		t.Errorf("orphans %v, claims %v", orphans(p), claimed(p))
	}
}

// TestOrphansBlockOnlyClaims: everything else runs, whatever is selected.
func TestOrphansBlockOnlyClaims(t *testing.T) {
	t.Parallel()
	w := newWorld(2, 1, 0)
	w.member("macos", "m2", 2)
	w.found(2, "off", good)
	w.member("runners", "m2", 3)
	w.pin(3, "acme-prod-runners-m2-00003")
	w.node(3, "acme-prod-runners-m2-00003", inventory.Ready)
	w.free(9)
	w.cfg.Fleets = w.cfg.Fleets[:1]
	w.cfg.Fleets[0].Groups[1].Type = "M2-L"
	p := w.plan(t)
	expect(t, "actions", []string{second + " alpha alpha-off D"}, lines(p))
	expect(t, "orphans", []string{"acme-prod-runners-m2-00003"}, orphans(p))
	expect(t, "asked", [][]string{{second, "acme-prod-runners-m2-00003"}}, w.asked)
	if len(p.Shortages) != 2 || len(p.Lost) != 0 {
		t.Errorf("shortages %+v, lost %+v", p.Shortages, p.Lost)
	}
	w.sel.On = only("group=m4")
	if p = w.plan(t); len(p.Actions)+len(p.Orphans) != 0 || len(p.Shortages) != 1 {
		t.Errorf("of one group: actions %v, orphans %v, shortages %+v", lines(p), orphans(p), p.Shortages)
	}
	// The old fleet can still be named, and shows what is left of it.
	w.sel.On = only("fleet=runners")
	if err := plan.CheckSelection(w.cfg, w.snap, w.sel); err != nil || len(w.plan(t).Orphans) != 1 {
		t.Errorf("of the fleet that is gone: %v", err)
	}
}

// TestWhatAnOrphanStillRuns: who decides on a host must see what is running there.
func TestWhatAnOrphanStillRuns(t *testing.T) {
	t.Parallel()
	pods := []inventory.Pod{{Name: "ci", Node: deleted, Phase: "Running"}, {Name: "done", Node: deleted, Phase: "Succeeded"}}
	for name, tc := range map[string]struct {
		edit func(*world)
		runs string
	}{
		"no cluster": {func(w *world) { w.snap.Nodes = inventory.Absent[[]inventory.Node]() }, ""},
		"no Node":    {func(*world) {}, "no Node"},
		"Ready":      {func(w *world) { w.node(1, deleted, inventory.Ready) }, "its Node is Ready"},
		"not Ready":  {func(w *world) { w.node(1, deleted, inventory.NotReady) }, "its Node is not Ready"},
		"not known":  {func(w *world) { w.snap.Nodes = inventory.Unread[[]inventory.Node]("no rights") }, "its Node is not Ready"},
		"Pods": {func(w *world) {
			w.node(1, deleted, inventory.Ready)
			w.snap.Cluster = inventory.Present(inventory.Cluster{Pods: inventory.Present(pods)})
		}, "its Node is Ready, 1 Pod running"},
		"unreachable": {func(w *world) { w.away(1, plan.CodeUnreachable) }, "no Node, not read (unreachable)"},
	} {
		w := newWorld(0, 0, 0)
		w.outside(1, deleted)
		tc.edit(w)
		if p := w.plan(t); len(p.Orphans) != 1 || p.Orphans[0].Runs() != tc.runs {
			t.Errorf("%s: %+v", name, p.Orphans)
		}
	}
}

// TestAnotherName: a configuration without hosts, in a project with servers that fit it
// under another name, was either renamed or is a second one. That is reported, and nothing is done.
func TestAnotherName(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		server string
		edit   func(*world)
		doubt  bool
	}{
		"fits":                   {foreign, func(*world) {}, true},
		"of another group":       {"beta-prod-web-m2-00001", func(*world) {}, false},
		"of another environment": {"beta-staging-macos-m2-00001", func(*world) {}, false},
		"this configuration's of another environment": {"acme-staging-macos-m2-00001", func(w *world) { w.cfg.Environments = []string{"prod", "staging"} }, false},
		"with a member":                    {foreign, func(w *world) { w.member("macos", "m2", 2) }, false},
		"with a pin of this configuration": {foreign, func(w *world) { w.pin(2, second) }, false},
		"with an identity":                 {foreign, func(w *world) { w.knows(second) }, false},
		"of a run that is narrowed":        {foreign, func(w *world) { w.sel.Steps = []plan.StepID{"alpha"} }, false},
	} {
		w := newWorld(1, 0, 0)
		w.outside(1, tc.server)
		w.free(9)
		tc.edit(w)
		p := w.plan(t)
		if got := len(p.Doubts) > 0; got != tc.doubt || len(p.Orphans) != 0 {
			t.Errorf("%s: doubts %+v, orphans %v", name, p.Doubts, orphans(p))
		}
		for _, d := range p.Doubts {
			explained(t, &d)
		}
	}
}

// TestOrphansCountAsChangedHosts: claims that replace them are bounded with them.
func TestOrphansCountAsChangedHosts(t *testing.T) {
	t.Parallel()
	for most, want := range map[int]int{1: 0, 2: 1, 3: 2, 0: 2} {
		w := newWorld(2, 0, 0)
		w.outside(1, deleted)
		w.free(8)
		w.free(9)
		w.sel.AllowOrphans = true
		p := w.plan(t)
		p.Defer(plan.Bounds{Guardrails: fleet.Guardrails{MaxHosts: most}, Now: noon}, noSteps, nil)
		if got := len(p.Runnable()); got != want {
			t.Errorf("at most %d hosts: %d are claimed, want %d", most, got, want)
		}
	}
}

// TestAClaimIsApprovedWithItsOrphans: an approval of a claim with one orphan does not cover two orphans.
func TestAClaimIsApprovedWithItsOrphans(t *testing.T) {
	t.Parallel()
	w := newWorld(1, 0, 0)
	w.outside(1, deleted)
	w.free(9)
	w.sel.AllowOrphans = true
	x := w.plan(t).Approve()
	p := w.compute()
	if n := x.Restrict(p, w.steps); n != 0 {
		t.Errorf("%d actions are not approved", n)
	}
	w.outside(2, "acme-prod-deleted-m2-00002")
	p = w.plan(t)
	if n := x.Restrict(p, w.steps); n == 0 || len(p.Runnable()) != 0 {
		t.Errorf("with a second orphan, %d actions are not approved, and these run: %v", n, p.Runnable())
	}
}
