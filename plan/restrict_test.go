package plan_test

import (
	"fmt"
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

// refusals counts the refused actions of each code.
func refusals(p *plan.Plan) map[string]int {
	out := make(map[string]int)
	for _, a := range p.Actions {
		if a.Refusal != nil {
			out[a.Refusal.Code.String()]++
		}
	}
	return out
}

func TestRestrict(t *testing.T) {
	t.Parallel()
	night, err := fleet.ParseWindow("daily 22:00-04:00")
	if err != nil {
		t.Fatal(err)
	}
	windows := fleet.Guardrails{Windows: []fleet.Window{night}}
	noon := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		class  plan.Disruption
		bounds plan.Bounds
		want   map[string]int
	}{
		"restarts are not disruptions":      {plan.Restart, plan.Bounds{Guardrails: windows, Now: noon}, map[string]int{}},
		"a quarter may be drained":          {plan.Drain, plan.Bounds{}, map[string]int{"too-many-disrupted": 6 * 2}},
		"as many as are named":              {plan.Drain, plan.Bounds{MaxDisrupted: 5}, map[string]int{"too-many-disrupted": 3 * 2}},
		"one is wiped, and the broken one":  {plan.Wipe, plan.Bounds{MaxDisrupted: 9}, map[string]int{"too-many-wipes": 7 * 2}},
		"as many wipes as are named":        {plan.Wipe, plan.Bounds{MaxDisrupted: 9, MaxWipes: 3}, map[string]int{"too-many-wipes": 5 * 2}},
		"wipes are disruptions too":         {plan.Wipe, plan.Bounds{MaxWipes: 9}, map[string]int{"too-many-disrupted": 6 * 2}},
		"at noon nothing is drained":        {plan.Drain, plan.Bounds{Guardrails: windows, Now: noon, MaxDisrupted: 9}, map[string]int{"outside-window": 8 * 2}},
		"at night it is":                    {plan.Drain, plan.Bounds{Guardrails: windows, Now: noon.Add(12 * time.Hour), MaxDisrupted: 9}, map[string]int{}},
		"unless somebody says so":           {plan.Reboot, plan.Bounds{Guardrails: windows, Now: noon, MaxDisrupted: 9, AnyTime: true}, map[string]int{}},
		"three hosts, and the broken one":   {plan.NoDisruption, plan.Bounds{Guardrails: fleet.Guardrails{MaxHosts: 3}}, map[string]int{"too-many-hosts": 5 * 3}},
		"first the hosts, then what is bad": {plan.Drain, plan.Bounds{Guardrails: fleet.Guardrails{MaxHosts: 3}}, map[string]int{"too-many-hosts": 5 * 3, "too-many-disrupted": 2}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := eight(c.class)
			p.Restrict(c.bounds)
			if diff := cmp.Diff(c.want, refusals(p)); diff != "" {
				t.Errorf("refused (-want +got):\n%s", diff)
			}
			for _, actions := range p.Runnable() {
				if n := len(actions); !actions[0].OfCluster() && n != 3 && n != 1 {
					t.Errorf("%s keeps %d actions", actions[0].Host, n)
				}
			}
		})
	}
}

// TestRestrictFew: of a fleet of three, one may be disrupted.
func TestRestrictFew(t *testing.T) {
	t.Parallel()
	p := eight(plan.Drain)
	p.Healthy["runners"] = p.Healthy["runners"][:3]
	p.Hosts, p.Actions = p.Hosts[:3], p.Actions[:1+3*3]
	p.Restrict(plan.Bounds{})
	if diff := cmp.Diff(map[string]int{"too-many-disrupted": 2 * 2}, refusals(p)); diff != "" {
		t.Error(diff)
	}
}

// TestClosed: what a window forbids when an action is to begin is what it forbids a plan.
func TestClosed(t *testing.T) {
	t.Parallel()
	night, err := fleet.ParseWindow("daily 22:00-04:00")
	if err != nil {
		t.Fatal(err)
	}
	b := plan.Bounds{Guardrails: fleet.Guardrails{Windows: []fleet.Window{night}}}
	noon := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for _, anyTime := range []bool{false, true} {
		for _, d := range []plan.Disruption{plan.NoDisruption, plan.Restart, plan.Drain, plan.Reboot, plan.Wipe} {
			for _, now := range []time.Time{noon, noon.Add(12 * time.Hour)} {
				p := eight(d)
				b.Now, b.AnyTime, b.MaxDisrupted, b.MaxWipes = now, anyTime, 9, 9
				p.Restrict(b)
				for _, i := range []int{2, len(p.Actions) - 2} { // of a Ready host, and of the one that is not
					h, _ := p.HostByServer(p.Actions[i].ServerID)
					if diff := cmp.Diff(p.Actions[i].Refusal, b.Closed(h, p.Actions[i], now)); diff != "" {
						t.Errorf("%s of %s at %s, any time %t (-plan +then):\n%s", d, h.Name, now, anyTime, diff)
					}
				}
			}
		}
	}
}
