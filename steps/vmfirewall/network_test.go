package vmfirewall_test

import (
	"strings"
	"testing"

	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/steps/pf"
	"github.com/macfleet/macfleet/steps/stepstest"
)

const (
	vmnetNAT = "nat-anchor \"com.apple.internet-sharing\" all\n"
	ourPoint = "anchor \"macfleet\" all\n"
)

// inUse is a host that was set up, and on which virtual machines run.
func inUse(p *filter) {
	p.Bridge, p.Work = bridge("192.168.64.1", "0xffffff00"), "4711 run ci-1\n4712 run ci-2\n4713 pull base\n"
}

// TestVMFirewallUnderVirtualMachines: what virtual machines need is not loaded again under them.
func TestVMFirewallUnderVirtualMachines(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, code string
		disruption plan.Disruption
		main       bool   // the main ruleset is loaded
		point      string // where the anchor should be evaluated
		warning    string
		happens    func(*filter)
	}{
		{"nothing", "", plan.NoDisruption, false, "", "", nil},
		{"the anchor's point is gone", "unreferenced-anchor", plan.NoDisruption, false, pf.Last, "", func(p *filter) { p.Rules = without(p.Rules, ourPoint) }},
		{"others stand behind the block", "unreferenced-anchor", plan.NoDisruption, false, pf.First, "", func(p *filter) {
			p.Rules = without(p.Rules, ourPoint) + "pass out quick all flags S/SA keep state\n"
			p.Files[pfConf] = without(p.Files[pfConf], "block drop in proto { tcp, udp } from <fail2ban> to any\n") + "pass out quick\n"
		}},
		{"others stand on both sides", "unreferenced-anchor", plan.Drain, true, "", "", func(p *filter) {
			p.Rules = without(p.Rules, ourPoint)
			p.Files[pfConf] += "pass in on en0\n"
		}},
		{"macOS's translation is gone", "stock-anchors-missing", plan.Drain, true, "", "", func(p *filter) {
			p.NAT = without(p.NAT, "nat-anchor \"com.apple/*\" all\n")
		}},
		{"their translation is gone", "", plan.NoDisruption, false, "", "vm-network-cut", func(p *filter) { p.NAT = without(p.NAT, vmnetNAT) }},
		{"the rules were flushed", "flushed-pf-anchor", plan.NoDisruption, false, "", "", func(p *filter) { p.Anchors["macfleet"] = stepstest.Anchor{} }},
	} {
		p := settledWith(func(p *filter) {
			inUse(p)
			if tc.happens != nil {
				tc.happens(p)
			}
		})
		f := judged(t, firewalled, p, plan.View{Verified: true})
		if (len(f.Warnings) > 0) != (tc.warning != "") || tc.warning != "" && f.Warnings[0].Code.String() != tc.warning {
			t.Errorf("%s: warnings %+v", tc.name, f.Warnings)
		}
		if (len(f.Changes) > 0) != (tc.code != "") {
			t.Fatalf("%s: %+v", tc.name, f)
		}
		if tc.code == "" {
			continue
		}
		c := f.Changes[0]
		if args := c.Command.Args; c.Reason.Code.String() != tc.code || c.Disruption != tc.disruption || (args[3] != "") != tc.main || args[5] != tc.point {
			t.Errorf("%s: %s, %s, args %q", tc.name, c.Reason.Code, c.Disruption, args)
		}
		if drains := tc.disruption == plan.Drain; drains != (len(f.Busy) == 3) || drains != strings.Contains(c.Reason.Text, "drained first") {
			t.Errorf("%s: busy with %v: %s", tc.name, f.Busy, c.Reason.Text)
		}
		if tc.main && strings.Count(c.Command.Args[3], "# live: ") != 4 {
			t.Errorf("%s: no room for vmnet's points in\n%s", tc.name, c.Command.Args[3])
		}
	}
}

// TestVMFirewallOtherWriter: where rules differ and fail2ban exists, the plan says that it writes rules as well.
func TestVMFirewallOtherWriter(t *testing.T) {
	t.Parallel()
	for _, there := range []bool{true, false} {
		p := settledWith(func(p *filter) { p.Rules, p.Fail2ban = without(p.Rules, ourPoint), there })
		f := judged(t, firewalled, p, plan.View{Verified: true})
		if len(f.Changes) != 1 || strings.Contains(f.Changes[0].Reason.Text, "org.macports.fail2ban") != there || f.Changes[0].Command.Args[3] != "" {
			t.Errorf("fail2ban there: %t: %+v", there, f.Changes)
		}
	}
}

// TestVMFirewallOfAnEarlierVersion: a host that an earlier version has set up, which held no reference, has not drifted.
func TestVMFirewallOfAnEarlierVersion(t *testing.T) {
	t.Parallel()
	earlier := settledWith(func(p *filter) {
		job := p.Files[bootPlist]
		head, rest, _ := strings.Cut(job, "own=/var")
		_, tail, _ := strings.Cut(rest, "/etc/pf.conf\n")
		p.Files[bootPlist] = head + `pfctl -s info 2&gt;/dev/null | grep -q "^Status: Enabled" || pfctl -E
pfctl -s rules 2&gt;/dev/null | grep -qF "anchor \"$1\"" || pfctl -f /etc/pf.conf
` + tail
		p.Reference, p.First = "", ""
	})
	now := judged(t, firewalled, stepstest.SettledPacketFilter(), plan.View{Verified: true})
	f := judged(t, firewalled, earlier, plan.View{Verified: true})
	if want := without(now.Facts, "reference of pf=\"held\"\n"); len(f.Changes) != 1 || f.Changes[0].Guard == nil || f.Facts != want {
		t.Errorf("%+v\nwant the facts\n%s", f, want)
	}
	after := performed(t, earlier, f.Changes[0])
	if f := judged(t, firewalled, after, plan.View{Verified: true}); len(f.Changes) > 0 || f.Facts != now.Facts {
		t.Errorf("afterwards %+v", f)
	}
	if f := judged(t, none, earlier, plan.View{Verified: true}); len(f.Changes) != 1 || !f.Changes[0].Removes {
		t.Errorf("without the block %+v", f)
	}
}
