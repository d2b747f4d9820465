package vmfirewall_test

import (
	"strings"
	"testing"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/steps/stepstest"
)

// headless takes the first line of the anchor's file, which says its owner, and jobless the boot job too.
func headless(p *filter) {
	_, p.Files[anchorFile], _ = strings.Cut(p.Files[anchorFile], "\n")
}

func jobless(p *filter) {
	headless(p)
	delete(p.Files, bootPlist)
	p.Job = 113
}

// TestVMFirewallUnsure: where nothing says any more which anchor is macfleet's, the record stays and a person is warned.
func TestVMFirewallUnsure(t *testing.T) {
	t.Parallel()
	name := "acme.runners"
	renamed := fleet.Spec{VMFirewall: &fleet.VMFirewall{Anchor: &name}}
	for what, happens := range map[string]func(*filter){
		"another file in the block": func(p *filter) {
			jobless(p)
			p.Files[anchorFile], p.Anchors["macfleet"] = "pass\n", stepstest.Anchor{Rules: "pass all flags S/SA keep state\n"}
		},
		"an edited block": func(p *filter) {
			jobless(p)
			p.Files[pfConf] = strings.Replace(p.Files[pfConf], "# END", "# why\n# END", 1)
		},
		"only the file": func(p *filter) { jobless(p); p.Files[pfConf] = stepstest.StockPFConf },
		"an edited boot job": func(p *filter) {
			headless(p)
			p.Files[bootPlist] += "\n"
			p.Files[pfConf] = stepstest.StockPFConf
		},
	} {
		p := settledWith(happens)
		view := plan.View{Host: stepstest.Host(none), Facts: filtered(p), Verified: true}
		f := stepstest.Step(t, "vm_firewall", none).Diff(view)
		if len(f.Changes) > 0 || f.Refused != nil || f.Facts == "" || len(f.Warnings) != 1 || f.Warnings[0].Code.String() != "unknown-anchor" || !strings.Contains(f.Warnings[0].Text, "macfleet, which") {
			t.Errorf("%s: %+v", what, f)
		}
		if f := judged(t, renamed, p, view); len(f.Changes) != 1 || len(f.Warnings) != 1 {
			t.Errorf("%s, another name: %+v", what, f)
		}
		view.Verified = false
		if f := stepstest.Step(t, "vm_firewall", none).Diff(view); what != "an edited boot job" && (len(f.Changes) > 0 || f.Facts != "" || len(f.Warnings) > 0) {
			t.Errorf("%s, and nothing verified: %+v", what, f)
		}
	}
}

// TestVMFirewallRenamedWithoutHeader: the earlier anchor goes also when its file does not say any more that it is macfleet's.
func TestVMFirewallRenamedWithoutHeader(t *testing.T) {
	t.Parallel()
	name := "acme.runners"
	renamed := fleet.Spec{VMFirewall: &fleet.VMFirewall{Anchor: &name}}
	for _, happens := range []func(*filter){headless, jobless} {
		p := settledWith(happens)
		f := judged(t, renamed, p, plan.View{Verified: true})
		if len(f.Changes) != 1 || len(f.Warnings) > 0 {
			t.Fatalf("%+v", f)
		}
		after := performed(t, p, f.Changes[0])
		if _, there := after.Files[anchorFile]; there || strings.Contains(after.Files[pfConf], "macfleet\"") || after.Anchors["macfleet"].Rules != "" {
			t.Errorf("the earlier anchor is left:\n%s\n%+v", after.Files[pfConf], after.Anchors)
		}
		if f := judged(t, renamed, after, plan.View{Verified: true}); len(f.Changes) > 0 || len(f.Warnings) > 0 {
			t.Errorf("afterwards %+v", f)
		}
	}
}

// TestVMFirewallBypassed: a rule that lets packets pass before they reach the anchor is worth a warning, and no difference.
func TestVMFirewallBypassed(t *testing.T) {
	t.Parallel()
	const quick = "pass out quick all flags S/SA keep state\n"
	for _, tc := range []struct {
		name    string
		rules   func(string) string
		warned  int
		changes int
	}{
		{"ahead of it", func(r string) string {
			return strings.Replace(r, "anchor \"macfleet\"", quick+"anchor \"macfleet\"", 1)
		}, 1, 0},
		{"first of all", func(r string) string { return quick + quick + r }, 1, 0},
		{"behind it", func(r string) string { return r + quick }, 0, 0},
		{"the anchor is not evaluated", func(r string) string { return quick + without(r, "anchor \"macfleet\" all\n") }, 0, 1},
	} {
		p := settledWith(func(p *filter) { p.Rules = tc.rules(p.Rules) })
		f := judged(t, firewalled, p, plan.View{Verified: true})
		if len(f.Warnings) != tc.warned || len(f.Changes) != tc.changes || f.Refused != nil {
			t.Errorf("%s: %+v", tc.name, f)
		}
		if tc.warned > 0 && len(f.Warnings) > 0 && (f.Warnings[0].Code.String() != "bypassed-anchor" || !strings.Contains(f.Warnings[0].Text, strings.TrimSpace(quick)) || f.Warnings[0].Remedy == "") {
			t.Errorf("%s: %+v", tc.name, f.Warnings[0])
		}
	}
}

// TestVMFirewallStaysInItsPlace: what is repaired stays ahead of a foreign rule, in the file and live.
func TestVMFirewallStaysInItsPlace(t *testing.T) {
	t.Parallel()
	p := settledWith(func(p *filter) {
		p.Files[pfConf] = without(p.Files[pfConf], "# END macfleet\n") + "pass out quick all\n"
		p.NAT = ""
	})
	f := judged(t, firewalled, p, plan.View{Verified: true})
	if len(f.Changes) != 1 || f.Changes[0].Guard == nil {
		t.Fatalf("%+v", f)
	}
	for what, text := range map[string]string{"live": f.Changes[0].Command.Args[3], "the file": f.Changes[0].Guard.Persist.Args[3], "the way back": f.Changes[0].Guard.Restore.Args[3]} {
		ahead, _, found := strings.Cut(text, "pass out quick all\n")
		if !found || strings.Count(ahead, "\nanchor \"macfleet\"\n") != 1 || strings.Count(text, "\nanchor \"macfleet\"\n") != 1 {
			t.Errorf("%s:\n%s", what, text)
		}
	}
}
