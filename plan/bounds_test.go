package plan_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
)

// eight is a plan of eight Ready hosts and one that is not, with the given
// disruption on each.
func eight(d plan.Disruption) *plan.Plan {
	p := &plan.Plan{Healthy: make(map[string][]plan.Healthy), Actions: []plan.Action{{Kind: plan.KeepObject}}}
	for i := range 9 {
		id := fmt.Sprint(i)
		h := plan.Host{Name: "host-" + id, Fleet: "runners", Member: true, Server: inventory.Server{ID: id},
			Node: inventory.Present(inventory.Node{Ready: inventory.Ready})}
		if i == 8 {
			h.Node = inventory.Present(inventory.Node{Ready: inventory.NotReady})
		} else {
			p.Healthy["runners"] = append(p.Healthy["runners"], plan.Healthy{ServerID: id, Name: h.Name})
		}
		p.Hosts = append(p.Hosts, h)
		for _, kind := range []plan.Disruption{plan.NoDisruption, d, plan.NoDisruption} {
			p.Actions = append(p.Actions, plan.Action{Kind: plan.RunStep, Host: h.Name, Fleet: "runners", ServerID: id, Disruption: kind})
		}
	}
	return p
}

// deferrals counts the deferred actions of each code. None is refused.
func deferrals(t *testing.T, p *plan.Plan) map[string]int {
	t.Helper()
	out := make(map[string]int)
	for _, a := range p.Actions {
		if a.Refusal != nil {
			t.Errorf("%s is refused: %s", a.Host, a.Refusal.Text)
		}
		if a.Deferral != nil {
			out[a.Deferral.Code.String()]++
		}
	}
	return out
}

// noSteps are those of hosts whose steps do not matter.
func noSteps(fleet.Host) []plan.Step { return nil }

// most are guardrails with a limit of hosts that one run disrupts.
func most(n int) plan.Bounds {
	return plan.Bounds{Guardrails: fleet.Guardrails{MaxDisrupted: fleet.Share{Count: n}}}
}

func TestDefer(t *testing.T) {
	t.Parallel()
	windows := fleet.Guardrails{Windows: []fleet.Window{night}}
	both := fleet.Guardrails{Windows: windows.Windows, MaxHosts: 3}
	for name, c := range map[string]struct {
		class  plan.Disruption
		bounds plan.Bounds
		want   map[string]int
		hosts  int
	}{
		"without a limit all are drained":  {plan.Drain, plan.Bounds{}, map[string]int{}, 0},
		"restarts are not disruptions":     {plan.Restart, plan.Bounds{Guardrails: windows, Now: noon}, map[string]int{}, 0},
		"as many as are named":             {plan.Drain, most(5), map[string]int{"too-many-disrupted": 3}, 3},
		"a share of the Ready hosts":       {plan.Drain, plan.Bounds{Guardrails: fleet.Guardrails{MaxDisrupted: fleet.Share{Percent: 25}}}, map[string]int{"too-many-disrupted": 6}, 6},
		"one is wiped, and the broken one": {plan.Wipe, plan.Bounds{}, map[string]int{"too-many-wipes": 7}, 7},
		"as many wipes as are named":       {plan.Wipe, plan.Bounds{Guardrails: fleet.Guardrails{MaxWipes: 3}}, map[string]int{"too-many-wipes": 5}, 5},
		"at noon nothing is drained":       {plan.Drain, plan.Bounds{Guardrails: windows, Now: noon}, map[string]int{"outside-window": 8}, 8},
		"at night it is":                   {plan.Drain, plan.Bounds{Guardrails: windows, Now: noon.Add(12 * time.Hour)}, map[string]int{}, 0},
		"unless a person allows it":        {plan.Reboot, plan.Bounds{Guardrails: windows, Now: noon, AnyTime: true}, map[string]int{}, 0},
		"three hosts, and the broken one":  {plan.NoDisruption, plan.Bounds{Guardrails: fleet.Guardrails{MaxHosts: 3}}, map[string]int{"too-many-hosts": 5 * 3}, 5},
		"at noon, of three hosts something is done": {plan.Drain, plan.Bounds{Guardrails: both, Now: noon},
			map[string]int{"too-many-hosts": 5 * 2, "outside-window": 3 + 5}, 8},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := eight(c.class)
			p.Defer(c.bounds, noSteps, nil)
			if diff := cmp.Diff(c.want, deferrals(t, p)); diff != "" {
				t.Errorf("deferred (-want +got):\n%s", diff)
			}
			if s := p.Summarise(); s.Deferred != c.hosts || s.Refused != 0 || !s.Complete() {
				t.Errorf("%+v", s)
			}
			for _, actions := range p.Runnable() {
				if n := len(actions); !actions[0].OfCluster() && n != 3 && n != 2 {
					t.Errorf("%s keeps %d actions", actions[0].Host, n)
				}
			}
		})
	}
}

// TestDeferTakesNoShare: a host of which the window leaves everything for later takes no place
// of those that one run changes.
func TestDeferTakesNoShare(t *testing.T) {
	t.Parallel()
	p := eight(plan.Drain)
	for i := range p.Actions {
		if early := p.Actions[i].ServerID < "4"; early && p.Actions[i].ServerID != "" {
			p.Actions[i].Disruption = plan.Drain
		} else {
			p.Actions[i].Disruption = plan.NoDisruption
		}
	}
	p.Defer(plan.Bounds{Guardrails: fleet.Guardrails{MaxHosts: 4, Windows: []fleet.Window{night}},
		Now: noon}, noSteps, nil)
	if diff := cmp.Diff(map[string]int{"outside-window": 4 * 3}, deferrals(t, p)); diff != "" {
		t.Error(diff)
	}
}

// TestDeferInTurn: the next run begins with those that the last one left, also where the first
// hosts of the plan differ again; and with what an earlier run started first.
func TestDeferInTurn(t *testing.T) {
	t.Parallel()
	runs := func(p *plan.Plan) (names []string) {
		for _, actions := range p.Runnable() {
			if !actions[0].OfCluster() && actions[0].ServerID != "8" {
				names = append(names, actions[0].ServerID)
			}
		}
		return names
	}
	epochs := make(map[string]int64)
	var unfinished string
	next := func(epoch int64) []string {
		p := eight(plan.Drain)
		for i := range p.Hosts {
			h := &p.Hosts[i]
			h.Seen.Entered = &plan.Entered{Epoch: epochs[h.Server.ID]}
			if h.Server.ID == unfinished {
				h.Seen.Pending = []plan.StepID{"tart"}
			}
		}
		p.Defer(plan.Bounds{Guardrails: fleet.Guardrails{MaxHosts: 3}}, noSteps, nil)
		for _, id := range runs(p) {
			epochs[id] = epoch
		}
		return runs(p)
	}
	for epoch, want := range [][]string{{"0", "1", "2"}, {"3", "4", "5"}, {"0", "6", "7"}, {"1", "2", "3"}} {
		if diff := cmp.Diff(want, next(int64(epoch+1))); diff != "" {
			t.Errorf("run %d (-want +got):\n%s", epoch+1, diff)
		}
	}
	unfinished = "3"
	if diff := cmp.Diff([]string{"3", "4", "5"}, next(5)); diff != "" {
		t.Errorf("after an interrupted run (-want +got):\n%s", diff)
	}
}

// TestDeferAfterwards: after a run its limits are spent. What it deferred stays deferred, also
// while a window has opened since; what it did not bring about is left to no other run.
func TestDeferAfterwards(t *testing.T) {
	t.Parallel()
	for name, b := range map[string]plan.Bounds{
		"hosts":     {Guardrails: fleet.Guardrails{MaxHosts: 3}},
		"disrupted": most(3),
		"wipes":     {Guardrails: fleet.Guardrails{MaxWipes: 3}},
		"window":    {Guardrails: fleet.Guardrails{Windows: []fleet.Window{night}}, Now: noon},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			begun, after := eight(plan.Wipe), eight(plan.Wipe)
			if name == "disrupted" {
				b.Guardrails.MaxWipes = 9
			}
			begun.Defer(b, noSteps, nil)
			b.Now = noon.Add(12 * time.Hour)
			after.Defer(b, noSteps, begun)
			if diff := cmp.Diff(begun.Deferrals(), after.Deferrals()); diff != "" {
				t.Errorf("-before +after:\n%s", diff)
			}
			if after.Summarise().Finished() {
				t.Error("what the run was to do and did not is done")
			}
		})
	}
}

// TestLimitsOfARun: what a performed plan did counts against the limits of the plan made afterwards, which is about other hosts.
func TestLimitsOfARun(t *testing.T) {
	t.Parallel()
	for code, b := range map[string]plan.Bounds{
		"too-many-hosts":     {Guardrails: fleet.Guardrails{MaxHosts: 3, MaxWipes: 9}},
		"too-many-disrupted": {Guardrails: fleet.Guardrails{MaxDisrupted: fleet.Share{Count: 3}, MaxWipes: 9}},
		"too-many-wipes":     {Guardrails: fleet.Guardrails{MaxWipes: 3}},
	} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			begun, after := eight(plan.Wipe), eight(plan.Wipe)
			begun.Actions = slices.DeleteFunc(begun.Actions, func(a plan.Action) bool { return a.ServerID > "2" })
			after.Actions = slices.DeleteFunc(after.Actions, func(a plan.Action) bool { return a.ServerID <= "2" })
			begun.Defer(b, noSteps, nil)
			after.Defer(b, noSteps, begun)
			for _, a := range after.Actions {
				isWipe := a.Disruption == plan.Wipe && a.ServerID != "8" // a repair does not count
				if isWipe && (a.Deferral == nil || a.Deferral.Code.String() != code) {
					t.Errorf("%s: %+v", a.Host, a.Deferral)
				}
			}
		})
	}
}

// TestClosed: what a window forbids when an action is to begin is what it forbids a plan.
func TestClosed(t *testing.T) {
	t.Parallel()
	b := plan.Bounds{Guardrails: fleet.Guardrails{Windows: []fleet.Window{night}}}
	for _, anyTime := range []bool{false, true} {
		for _, d := range []plan.Disruption{plan.NoDisruption, plan.Restart, plan.Drain, plan.Reboot, plan.Wipe} {
			for _, now := range []time.Time{noon, noon.Add(12 * time.Hour)} {
				p := eight(d)
				b.Now, b.AnyTime, b.Guardrails.MaxWipes = now, anyTime, 9
				p.Defer(b, noSteps, nil)
				for _, i := range []int{2, len(p.Actions) - 2} { // of a Ready host, and of the one that is not
					h, _ := p.HostByServer(p.Actions[i].ServerID)
					if diff := cmp.Diff(p.Actions[i].Deferral, b.OutsideWindow(h, p.Actions[i], now)); diff != "" {
						t.Errorf("%s of %s at %s, any time %t (-plan +then):\n%s", d, h.Name, now, anyTime, diff)
					}
				}
			}
		}
	}
}

// TestWhoLeavesIsLimited: a host that leaves is not a repair, whatever its state, and only one that worked counts as disrupted.
func TestWhoLeavesIsLimited(t *testing.T) {
	t.Parallel()
	night, _ := fleet.ParseWindow("daily 22:00-04:00")
	noon := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		ready       inventory.Readiness
		quarantined bool
		counts      bool
	}{
		"Ready":                {ready: inventory.Ready, counts: true},
		"not Ready":            {ready: inventory.NotReady},
		"Ready, in quarantine": {ready: inventory.Ready, quarantined: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			made := func() *plan.Plan {
				p := eight(plan.Drain)
				h := &p.Hosts[0]
				h.Server.Zone, h.Leaves = "fr-par-1", true
				h.Node = inventory.Present(inventory.Node{Ready: tc.ready, ProviderID: h.Server.ProviderID()})
				if tc.quarantined {
					h.FailedRepairs = &inventory.Repairs{Failed: 3, Since: noon}
				}
				p.Cluster = true
				p.Actions = slices.DeleteFunc(p.Actions, func(a plan.Action) bool { return a.ServerID > "1" || a.Disruption < plan.Drain })
				return p
			}
			p := made()
			p.Defer(most(1), noSteps, nil)
			if deferred := p.Actions[1].Deferral != nil; p.Actions[0].Deferral != nil || deferred != tc.counts {
				t.Errorf("the other host is deferred: %t, want %t", deferred, tc.counts)
			}
			p = made()
			p.Defer(plan.Bounds{Guardrails: fleet.Guardrails{Windows: []fleet.Window{night}}, Now: noon}, noSteps, nil)
			if p.Actions[0].Deferral == nil {
				t.Error("it leaves outside the window")
			}
		})
	}
}

// TestAnErasedHostIsFinishedAtAnyTime: a release whose reinstallation was requested is finished in any run.
func TestAnErasedHostIsFinishedAtAnyTime(t *testing.T) {
	t.Parallel()
	b := plan.Bounds{Guardrails: fleet.Guardrails{Windows: []fleet.Window{night}}}
	erase := plan.Action{Kind: plan.ReinstallServer, Disruption: plan.Wipe}
	for _, s := range append(plan.Stages(), plan.Stays) {
		h := plan.Host{Member: true, Leaves: true}
		h.Stage = s
		if late := b.OutsideWindow(h, erase, noon); (late == nil) != s.Final() {
			t.Errorf("stage %q: %v", s, late)
		}
		h.Server.ID, erase.ServerID = "1", "1"
		p := &plan.Plan{Hosts: []plan.Host{h}, Actions: []plan.Action{erase}}
		p.Defer(plan.Bounds{Guardrails: b.Guardrails, Now: noon}, noSteps, nil)
		if late := p.Actions[0].Deferral; (late == nil) != s.Final() {
			t.Errorf("stage %q is deferred: %v", s, late)
		}
	}
}

// nodeMaker is a step that makes a host a Node.
type nodeMaker struct{ plan.Step }

func (nodeMaker) ID() plan.StepID { return "tart_kubelet" }
func (nodeMaker) MakesNode() bool { return true }

// TestDeferWhatNeedsIt: what a limit defers keeps back what may need it on the same host, and no
// repair of anything else.
func TestDeferWhatNeedsIt(t *testing.T) {
	t.Parallel()
	p := eight(plan.NoDisruption)
	p.Actions = nil
	for _, step := range []plan.StepID{"power", "tart", "vm_firewall", "tart_kubelet", ""} {
		a := plan.Action{Kind: plan.RunStep, Host: "host-0", Fleet: "runners", ServerID: "0", Step: step}
		switch step {
		case "tart":
			a.Disruption = plan.Drain
		case "":
			a.Kind = plan.UncordonNode
		}
		p.Actions = append(p.Actions, a)
	}
	p.Defer(plan.Bounds{Guardrails: fleet.Guardrails{Windows: []fleet.Window{night}}, Now: noon},
		func(fleet.Host) []plan.Step { return []plan.Step{nodeMaker{}} }, nil)
	var runs []plan.StepID
	for _, a := range p.Actions {
		if a.Runs() {
			runs = append(runs, a.Step)
		}
	}
	if diff := cmp.Diff([]plan.StepID{"power", "vm_firewall"}, runs); diff != "" {
		t.Errorf("runs (-want +got):\n%s", diff)
	}
}
