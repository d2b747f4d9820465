package vmfirewall_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/maintest"
	"github.com/macfleet/macfleet/internal/scriptlint"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/steps/pf"
	"github.com/macfleet/macfleet/steps/stepstest"
)

func TestMain(m *testing.M) { maintest.Main(m) }

const (
	firewallProbe = "vm_firewall.state"
	pfConf        = "/etc/pf.conf"
	anchorFile    = "/etc/pf.anchors/macfleet"
	bootPlist     = "/Library/LaunchDaemons/dev.macfleet.pf.plist"
)

// filter is what a Mac answers about pf.
type filter = stepstest.PacketFilter

var firewalled = fleet.Spec{VMFirewall: &fleet.VMFirewall{}}

// none wants no step.
var none = fleet.Spec{}

// filtered are the facts of a Mac that has a packet filter.
func filtered(p stepstest.PacketFilter) plan.Facts {
	return plan.Facts{firewallProbe: inventory.Present(p.Answer())}
}

// judged is the finding of the step, of a host that was set up once if verified.
func judged(t testing.TB, spec fleet.Spec, p stepstest.PacketFilter, view plan.View) plan.Finding {
	t.Helper()
	view.Host, view.Facts = stepstest.Host(spec), filtered(p)
	f := stepstest.Step(t, "vm_firewall", spec).Diff(view)
	if f.Refused == nil {
		stepstest.Sound(t, "vm_firewall", view, f)
	}
	return f
}

// settledWith is a Mac that was set up, and then something happened to it.
func settledWith(happens func(*filter)) stepstest.PacketFilter {
	p := stepstest.SettledPacketFilter()
	if happens != nil {
		happens(&p)
	}
	return p
}

func without(text string, parts ...string) string {
	for _, part := range parts {
		text = strings.ReplaceAll(text, part, "")
	}
	return text
}

// TestVMFirewallIncidents: each incident has its own code, is repaired, and changes the kernel only where the kernel differs.
func TestVMFirewallIncidents(t *testing.T) {
	t.Parallel()
	block := pf.Block("macfleet")
	bare := "# VM egress filter — see /etc/pf.anchors/macfleet\nanchor \"macfleet\"\nload anchor \"macfleet\" from \"/etc/pf.anchors/macfleet\"\n"
	flush := func(p *filter) { p.Anchors["macfleet"] = stepstest.Anchor{} }
	for _, tc := range []struct {
		name, code string
		live, main bool // the kernel is changed, the main ruleset too
		happens    func(*filter)
	}{
		{"nothing", "", false, false, nil},
		{"lines appended behind the block", "", false, false, func(p *filter) { p.Files[pfConf] += "block in quick from 192.0.2.1\n" }},
		{"another anchor is odd", "", false, false, func(p *filter) { p.Anchors["f2b"] = stepstest.Anchor{Rules: "what is this\n"} }},
		{"virtual machines run", "", false, false, func(p *filter) { p.Bridge = bridge("192.168.64.1", "0xffffff00") }},
		{"the block twice", "duplicate-pf-block", false, false, func(p *filter) { p.Files[pfConf] += block }},
		{"bare lines and a block", "legacy-pf-block", false, false, func(p *filter) { p.Files[pfConf] = bare + p.Files[pfConf] }},
		{"no END", "begin-without-end", false, false, func(p *filter) { p.Files[pfConf] = without(p.Files[pfConf], "# END macfleet\n") }},
		{"flushed", "flushed-pf-anchor", true, false, flush},
		{"not evaluated", "unreferenced-anchor", true, false, func(p *filter) { p.Rules = without(p.Rules, "anchor \"macfleet\" all\n") }},
		{"not evaluated, between others", "unreferenced-anchor", true, true, func(p *filter) {
			p.Rules = without(p.Rules, "anchor \"macfleet\" all\n")
			p.Files[pfConf] += "pass in on en0\n"
		}},
		{"no reference", "pf-reference-missing", true, false, func(p *filter) { p.Reference = "" }},
		{"a reference of the last boot", "pf-reference-missing", true, false, func(p *filter) { p.Reference = "Token : 78\n" }},
		{"tables left", "persist-table-left", true, false, func(p *filter) {
			p.Anchors["macfleet"] = stepstest.Anchor{Tables: "blocked_dst\nvm_sources\n", Sources: "   192.168.64.0/22\n"}
			p.Tables += "vm_sources\nblocked_dst\n"
		}},
		{"tables left in the main ruleset alone", "persist-table-left", true, false, func(p *filter) { p.Tables += "vm_sources\n" }},
		{"an update of macOS", "pf-conf-reset-by-update", true, false, func(p *filter) {
			flush(p)
			f := stepstest.FactoryPacketFilter()
			p.Files[pfConf], p.Rules, p.NAT, p.Tables, p.Info = f.Files[pfConf], f.Rules, f.NAT, "", "Status: Disabled\n"
		}},
		{"pf is off", "pf-disabled", true, false, func(p *filter) { p.Info = "Status: Disabled for 0 days 00:00:10           Debug: Urgent\n" }},
		{"the file was edited", "anchor-file-edited", false, false, func(p *filter) { p.Files[anchorFile] += "pass quick\n" }},
		{"the file lost its header", "anchor-file-edited", false, false, func(p *filter) { p.Files[anchorFile] = "pass quick\n" }},
		{"the file is anyone's", "anchor-file-edited", false, false, func(p *filter) { p.Modes = map[string]string{anchorFile: "501:20:666"} }},
		{"the file is gone", "anchor-file-missing", false, false, func(p *filter) { delete(p.Files, anchorFile) }},
		{"the boot job is gone", "boot-job-missing", false, false, func(p *filter) { delete(p.Files, bootPlist); p.Job = 113 }},
		{"the boot job was edited", "boot-job-edited", false, false, func(p *filter) { p.Files[bootPlist] += "\n" }},
		{"the boot job is not loaded", "boot-job-edited", false, false, func(p *filter) { p.Job = 113 }},
		{"macOS's own lines are gone from the file", "stock-lines-missing", false, false, func(p *filter) {
			p.Files[pfConf] = without(p.Files[pfConf], "nat-anchor \"com.apple/*\"\n", "rdr-anchor \"com.apple/*\"\n")
		}},
		{"pf.conf is empty", "stock-lines-missing", false, false, func(p *filter) { p.Files[pfConf] = "" }},
		{"macOS's own points are gone", "stock-anchors-missing", true, true, func(p *filter) { p.NAT = "" }},
		{"the main ruleset is gone", "stock-anchors-missing", true, true, func(p *filter) { p.NAT, p.Rules = "", "" }},
		{"other rules are live", "live-rules-edited", true, false, func(p *filter) {
			a := p.Anchors["macfleet"]
			a.Rules = "pass quick all flags S/SA keep state\n" + a.Rules
			p.Anchors["macfleet"] = a
		}},
		{"a table was emptied", "live-rules-edited", true, false, func(p *filter) {
			a := p.Anchors["macfleet"]
			a.Blocked = "   10.0.0.0/8\n"
			p.Anchors["macfleet"] = a
		}},
		{"the block was edited", "pf-conf-edited", false, false, func(p *filter) {
			p.Files[pfConf] = strings.Replace(p.Files[pfConf], "macfleet\" from \"/etc", "macfleet\" from \"/tmp", 1)
		}},
		{"a translation behind the block", "pf-conf-edited", false, false, func(p *filter) { p.Files[pfConf] += "nat-anchor \"f2b\"\n" }},
		{"an earlier anchor of macfleet's", "legacy-pf-block", true, false, func(p *filter) {
			p.Files["/etc/pf.anchors/old"] = pf.Header + "\n"
			p.Anchors["old"] = p.Anchors["macfleet"]
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			p := settledWith(tc.happens)
			f := judged(t, firewalled, p, plan.View{Verified: true})
			if len(f.Unread) > 0 || f.Refused != nil || (tc.code == "") != (len(f.Changes) == 0) {
				t.Fatalf("%+v, refused %+v", f, f.Refused)
			}
			if tc.code == "" {
				return
			}
			c := f.Changes[0]
			if len(f.Changes) != 1 || c.Reason.Code.String() != tc.code || c.Removes || c.Disruption != plan.NoDisruption {
				t.Errorf("%d changes, reason %+v, removes %t", len(f.Changes), c.Reason, c.Removes)
			}
			if (c.Guard != nil) != tc.live || tc.live && (c.Command.Args[3] != "") != tc.main {
				t.Errorf("guarded %t, args %q", c.Guard != nil, c.Command.Args)
			}
			if tc.live && (c.Guard.Restore == nil || c.Guard.Restore.Args[0] != "back" || c.Guard.Persist.Name != "vm_firewall-keep") {
				t.Errorf("guard %+v", c.Guard)
			}
			after := performed(t, p, c)
			if f := judged(t, firewalled, after, plan.View{Verified: true}); len(f.Changes) > 0 || f.Refused != nil {
				t.Errorf("afterwards %+v", f)
			}
			if strings.Count(after.Files[pfConf], "fail2ban> persist") != 1 {
				t.Errorf("foreign lines are lost:\n%s", after.Files[pfConf])
			}
		})
	}
}

func bridge(address, mask string) string {
	return "bridge100: flags=8a63<UP,BROADCAST,SMART,RUNNING,ALLMULTI,SIMPLEX,MULTICAST> mtu 1500\n\tether 12:34:56:78:9a:64\n" +
		"\tinet " + address + " netmask " + mask + " broadcast 192.168.64.255\n\tinet6 fe80::1%bridge100 prefixlen 64 scopeid 0x11\n\tstatus: active\n"
}

func TestVMFirewallFirstSetup(t *testing.T) {
	t.Parallel()
	f := judged(t, firewalled, stepstest.FactoryPacketFilter(), plan.View{})
	if len(f.Changes) != 1 || f.Changes[0].Guard == nil || f.Changes[0].Reason.Code.String() != "vm-firewall-missing" {
		t.Fatalf("%+v", f)
	}
	on, back := f.Changes[0].Command.Args, f.Changes[0].Guard.Restore.Args
	if on[3] != "" || on[5] != pf.Last || back[2]+back[3] != "" || back[5] != "none" {
		t.Errorf("on is %q, the way back %q", on, back)
	}
	after := performed(t, stepstest.FactoryPacketFilter(), f.Changes[0])
	if f := judged(t, firewalled, after, plan.View{}); len(f.Changes) > 0 {
		t.Errorf("afterwards %+v", f)
	}
	settled := stepstest.SettledPacketFilter()
	stepstest.Expect(t, "files", settled.Files, after.Files)
	stepstest.Expect(t, "live", settled.Anchors["macfleet"].Rules, after.Anchors["macfleet"].Rules)
}

// TestVMFirewallTakesOver: a host that another tool set up under a legacy name.
func TestVMFirewallTakesOver(t *testing.T) {
	t.Parallel()
	name := "acme.runners"
	spec := fleet.Spec{VMFirewall: &fleet.VMFirewall{Anchor: &name, Legacy: []string{"old.runners", name}}}
	p := stepstest.FactoryPacketFilter()
	p.Files[pfConf] += "# filter, see /etc/pf.anchors/old.runners\n" + "anchor \"old.runners\"\nload anchor \"old.runners\" from \"/etc/pf.anchors/old.runners\"\n" + pf.Block("old.runners")
	p.Files["/etc/pf.anchors/old.runners"] = "table <vm_sources> persist { 192.168.64.0/22 }\nblock drop quick from <vm_sources> to any\n"
	p.Rules += "anchor \"old.runners\" all\n"
	p.Anchors["old.runners"] = stepstest.Anchor{Rules: "block drop quick from <vm_sources> to any\n", Tables: "vm_sources\n", Sources: "   192.168.64.0/22\n"}
	f := judged(t, spec, p, plan.View{})
	if len(f.Changes) != 1 || f.Changes[0].Reason.Code.String() != "legacy-pf-block" || !slices.Equal(f.Changes[0].Command.Args[7:], []string{"old.runners"}) {
		t.Fatalf("%+v", f)
	}
	if back := f.Changes[0].Guard.Restore.Args; back[3] != "" || back[5] != "none" || !slices.Equal(back[7:], []string{"old.runners"}) {
		t.Errorf("the way back is %q", back)
	}
	after := performed(t, p, f.Changes[0])
	stepstest.Expect(t, "pf.conf", stepstest.StockPFConf+pf.Block(name), after.Files[pfConf])
	if _, kept := after.Files["/etc/pf.anchors/old.runners"]; !kept {
		t.Error("the file of the other tool is gone")
	}
	if f := judged(t, spec, after, plan.View{}); len(f.Changes) > 0 {
		t.Errorf("afterwards %+v", f)
	}
}

// TestVMFirewallStrangers: what someone else made under the wanted name is not
// touched, unless pf.conf names it: then it is an earlier form.
func TestVMFirewallStrangers(t *testing.T) {
	t.Parallel()
	foreign := func(p *filter) { p.Files[anchorFile] = "pass quick\n" }
	for _, tc := range []struct {
		name, refused string
		view          plan.View
		happens       func(*filter)
	}{
		{"a foreign file", "foreign-anchor", plan.View{}, foreign},
		{"foreign rules", "foreign-anchor", plan.View{}, func(p *filter) { p.Anchors["macfleet"] = stepstest.Anchor{Rules: "pass all\n"} }},
		{"a foreign file, verified", "", plan.View{Verified: true}, foreign},
		{"a foreign file that pf.conf loads without marks", "", plan.View{}, func(p *filter) {
			foreign(p)
			p.Files[pfConf] += "anchor \"macfleet\"\n"
		}},
		{"a foreign file in a block", "", plan.View{}, func(p *filter) { foreign(p); p.Files[pfConf] += pf.Block("macfleet") }},
		{"our rules, of a run that died", "", plan.View{}, func(p *filter) { p.Anchors["macfleet"] = stepstest.SettledPacketFilter().Anchors["macfleet"] }},
		{"pf.conf with an open brace", "pf-conf-broken", plan.View{Verified: true}, func(p *filter) { p.Files[pfConf] += "block from {\n" }},
		{"pf.conf with a NUL", "pf-conf-broken", plan.View{}, func(p *filter) { p.Files[pfConf] += "# \x00\n" }},
		{"rules in braces", "pf-conf-broken", plan.View{}, func(p *filter) { p.Files[pfConf] += "anchor \"macfleet\" {\n pass\n}\n" }},
		{"no pf.conf", "pf-conf-missing", plan.View{}, func(p *filter) { delete(p.Files, pfConf) }},
	} {
		p := stepstest.FactoryPacketFilter()
		tc.happens(&p)
		f := judged(t, firewalled, p, tc.view)
		got := ""
		if f.Refused != nil {
			got = f.Refused.Code.String()
			if f.Refused.Text == "" || f.Refused.Remedy == "" || len(f.Changes) > 0 || f.Facts == "" {
				t.Errorf("%s: %+v", tc.name, f)
			}
		}
		if got != tc.refused || (got == "") != (len(f.Changes) == 1) {
			t.Errorf("%s: refused %q and %d changes", tc.name, got, len(f.Changes))
		}
	}
}

// TestVMFirewallUncovered: machines that run in a network of which nothing is blocked are a hole that only the configuration can fix.
func TestVMFirewallUncovered(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		bridge  string
		covered bool
	}{
		{"", true}, {bridge("192.168.64.1", "0xffffff00"), true}, {bridge("192.168.67.1", "0xffffff00"), true},
		{bridge("192.168.2.1", "0xffffff00"), false}, {bridge("192.168.64.1", "0xffff0000"), false},
		{"bridge100: flags=8863 mtu 1500\n\tether 12:34:56:78:9a:64\n", true},
	} {
		p := settledWith(func(p *filter) { p.Bridge = tc.bridge })
		f := judged(t, firewalled, p, plan.View{Verified: true})
		if len(f.Changes) > 0 || (f.Refused == nil) != tc.covered || (stepstest.WantedBy(t, "vm_firewall", firewalled) == f.Facts) != tc.covered {
			t.Errorf("%q: %+v", tc.bridge, f)
		}
		if f.Refused != nil && (f.Refused.Code.String() != "vm-subnet-uncovered" || f.Refused.Remedy == "") {
			t.Errorf("%+v", f.Refused)
		}
		p.Info = "Status: Disabled\n"
		f = judged(t, firewalled, p, plan.View{Verified: true})
		if len(f.Changes) != 1 || f.Refused != nil || (len(f.Warnings) == 0) != tc.covered {
			t.Errorf("%q with another difference: %+v", tc.bridge, f)
		}
	}
}

func TestVMFirewallUnread(t *testing.T) {
	t.Parallel()
	whole := stepstest.SettledPacketFilter().Answer().Stdout
	swap := func(old, with string) string {
		if strings.Count(whole, old) == 0 {
			t.Fatalf("%q is not in the answer", old)
		}
		return strings.Replace(whole, old, with, 1)
	}
	for _, text := range []string{
		"", "pfctl: /dev/pf: Permission denied\n", whole[:len(whole)/2], strings.TrimSuffix(whole, "\n== end\n"),
		swap("== info 0", "== info 1"), swap("== rules 0", "== rules 1"), swap("== nat 0", "== nat 1"), swap("== tables 0", "== tables 1"), swap("== anchors 0", "== anchors 1"),
		swap("Status: Enabled", "Status: Maybe"), swap("== job 0", "== job 5"), swap("== file 0", "== file 1"),
		swap("== live rules 0 macfleet", "== live rules 1 macfleet"), swap("block drop quick inet", "block drop out soon inet"),
		swap("   192.168.64.0/22\n", "   192.168.64.0/22 since\n"), swap("== info 0", "== weather 0"), swap("== info 0", "== info"), swap("anchor \"com.apple/*\" all", "anchor \"com.apple/* all"),
	} {
		f := stepstest.Step(t, "vm_firewall", firewalled).Diff(plan.View{Host: stepstest.Host(firewalled), Facts: stepstest.With(nil, map[string]plan.Answer{firewallProbe: stepstest.Said(text)}), Verified: true})
		if len(f.Unread) != 1 || f.Changes != nil || f.Refused != nil || f.Facts != "" || !strings.Contains(stepstest.WantedBy(t, "vm_firewall", firewalled), "anchor macfleet=\"evaluated") {
			t.Errorf("%.60q: %+v", text, f)
		}
	}
	f := stepstest.Step(t, "vm_firewall", firewalled).Diff(plan.View{Host: stepstest.Host(firewalled), Facts: plan.Facts{firewallProbe: inventory.Unread[plan.Answer](plan.NeedsRoot)}})
	if len(f.Unread) != 1 || f.Unread[0].Why != plan.NeedsRoot {
		t.Errorf("%+v", f)
	}
}

// TestVMFirewallRemoval: without the block, what is macfleet's goes and nothing else does.
func TestVMFirewallRemoval(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name  string
		p     stepstest.PacketFilter
		view  plan.View
		names []string // removed; nil: nothing is done
	}{
		{"factory", stepstest.FactoryPacketFilter(), plan.View{}, nil},
		{"settled", stepstest.SettledPacketFilter(), plan.View{}, []string{"macfleet"}},
		{"settled and verified", stepstest.SettledPacketFilter(), plan.View{Verified: true}, []string{"macfleet"}},
		{"the file is gone, verified", settledWith(func(p *filter) { delete(p.Files, anchorFile) }), plan.View{Verified: true}, []string{"macfleet"}},
		{"the file is gone, the job names it", settledWith(func(p *filter) { delete(p.Files, anchorFile) }), plan.View{}, []string{"macfleet"}},
		{"the header is gone, the job names it", settledWith(headless), plan.View{Verified: true}, []string{"macfleet"}},
		{"a blank line before the header, verified", settledWith(func(p *filter) {
			p.Files[anchorFile] = "\n" + p.Files[anchorFile]
			delete(p.Files, bootPlist)
		}), plan.View{Verified: true}, []string{"macfleet"}},
		{"the header and the job are gone, verified", settledWith(jobless), plan.View{Verified: true}, []string{"macfleet"}},
		{"the header and the job are gone, next to another anchor", settledWith(func(p *filter) {
			jobless(p)
			p.Files[pfConf] += pf.Block("f2b")
			p.Files["/etc/pf.anchors/f2b"] = "pass\n"
		}), plan.View{Verified: true}, []string{"macfleet"}},
		{"the header and the job are gone, nothing verified", settledWith(jobless), plan.View{}, nil},
		{"a removal that was cut", stepstest.FactoryPacketFilter(), plan.View{Pending: true}, []string{}},
	} {
		f := judged(t, none, tc.p, tc.view)
		if (tc.names == nil) != (len(f.Changes) == 0) || f.Refused != nil || len(f.Unread)+len(f.Warnings) > 0 {
			t.Errorf("%s: %+v", tc.name, f)
			continue
		}
		if tc.names == nil {
			stepstest.Expect(t, tc.name, plan.Finding{}, f)
			continue
		}
		c := f.Changes[0]
		rest := without(tc.p.Files[pfConf], pf.Block("macfleet"))
		if len(tc.names) == 0 {
			rest = tc.p.Files[pfConf]
		}
		if !c.Removes || c.Guard != nil || !slices.Equal(c.Command.Args[3:], tc.names) || c.Command.Args[0] != tc.p.Files[pfConf] || c.Command.Args[1] != rest {
			t.Errorf("%s: %+v", tc.name, c)
		}
	}
	broken := settledWith(func(p *filter) { p.Files[pfConf] += "\"" })
	if f := judged(t, none, broken, plan.View{}); f.Refused == nil || f.Refused.Code.String() != "pf-conf-broken" {
		t.Errorf("%+v", f)
	}
	lost := plan.View{Host: stepstest.Host(none), Facts: plan.Facts{}, Verified: true}
	if f := stepstest.Step(t, "vm_firewall", none).Diff(lost); len(f.Unread) != 1 {
		t.Errorf("a verified host that does not answer: %+v", f)
	}
}

// TestVMFirewallBootScript: the text inside the boot job keeps the rules of all scripts.
func TestVMFirewallBootScript(t *testing.T) {
	t.Parallel()
	plist := stepstest.SettledPacketFilter().Files[bootPlist]
	_, text, _ := strings.Cut(plist, "<string>-c</string>\n\t\t<string>")
	text, _, _ = strings.Cut(text, "</string>")
	text = strings.NewReplacer("&gt;", ">", "&lt;", "<", "&amp;", "&").Replace(text)
	if faults := scriptlint.Check("boot", text, scriptlint.Change); len(faults) > 0 || !strings.Contains(text, "pfctl -E") {
		t.Errorf("%v\n%s", faults, text)
	}
}

// FuzzVMFirewallState: whatever a host says is compared, refused or unread.
func FuzzVMFirewallState(f *testing.F) {
	f.Add(stepstest.SettledPacketFilter().Answer().Stdout)
	f.Add(stepstest.FactoryPacketFilter().Answer().Stdout)
	f.Add("\n== end\n")
	f.Add("Status: Enabled\n\n== info 0\n\n== live rules 0\n\n== file 0 x\n\n== job 113\n\n== bridge 0 \n\n== end\n")
	f.Fuzz(func(t *testing.T, text string) {
		for _, spec := range []fleet.Spec{firewalled, {}} {
			view := plan.View{Host: stepstest.Host(spec), Facts: stepstest.With(nil, map[string]plan.Answer{firewallProbe: stepstest.Said(text)})}
			if f := stepstest.Step(t, "vm_firewall", spec).Diff(view); f.Refused == nil && (len(f.Unread) == 0) != (f.Facts != "") && spec.VMFirewall != nil {
				t.Errorf("%q: %+v", text, f)
			}
		}
	})
}

// TestVMFirewallFactsKeepStill: another configuration moves what is configured and not what
// was seen, or a changed configuration would look like drift.
func TestVMFirewallFactsKeepStill(t *testing.T) {
	t.Parallel()
	other := "acme.runners"
	facts := judged(t, firewalled, stepstest.SettledPacketFilter(), plan.View{Verified: true}).Facts
	for what, desired := range map[string]fleet.VMFirewall{
		"anchor": {Anchor: &other}, "vm_sources": {VMSources: []string{"192.168.64.0/24"}}, "block": {Block: []string{"10.0.0.0/8"}},
	} {
		f := judged(t, fleet.Spec{VMFirewall: &desired}, stepstest.SettledPacketFilter(), plan.View{Verified: true})
		if f.Facts != facts || len(f.Changes) != 1 {
			t.Errorf("another %s: the facts\n%sbecame\n%s", what, facts, f.Facts)
		}
	}
}

// TestVMFirewallRolledBack: a run for another configuration started and was taken back. What
// exists is what was verified for the first configuration, so its facts are the same.
func TestVMFirewallRolledBack(t *testing.T) {
	t.Parallel()
	p := stepstest.SettledPacketFilter()
	proven := judged(t, firewalled, p, plan.View{Verified: true})
	other := fleet.Spec{VMFirewall: &fleet.VMFirewall{Block: []string{"10.0.0.0/8"}}}
	f := judged(t, other, p, plan.View{Verified: true, Pending: true})
	stepstest.Expect(t, "facts", proven.Facts, f.Facts)
	if len(f.Changes) != 1 || f.Changes[0].Guard == nil {
		t.Fatalf("%+v", f)
	}
	stepstest.Expect(t, "fields", "blocked_dst: 10.0.0.0/8, 169.254.0.0/16, 172.16.0.0/12 → 10.0.0.0/8, anchor file: of an earlier configuration → as rendered, earlier run: unfinished → finished", stepstest.Moves(f))
	if f := judged(t, firewalled, p, plan.View{Verified: true, Pending: true}); len(f.Changes) != 1 || f.Facts == proven.Facts || f.Changes[0].Reason.Code.String() != "unfinished" {
		t.Errorf("the first configuration again: %+v", f)
	}
}
