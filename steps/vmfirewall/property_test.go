package vmfirewall_test

import (
	"maps"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/steps/pf"
	"github.com/macfleet/macfleet/steps/stepstest"
)

// performed does to a packet filter what a change's scripts do: first what is live, then the files.
func performed(t rapid.TB, p stepstest.PacketFilter, c plan.Change) stepstest.PacketFilter {
	t.Helper()
	p.Anchors, p.Files = maps.Clone(p.Anchors), maps.Clone(p.Files)
	keep := c.Command
	if c.Guard != nil {
		keep = c.Guard.Persist
		args := c.Command.Args
		p.Anchors[args[1]] = loaded(args[2])
		p.Tables = without(p.Tables, "vm_sources\n", "blocked_dst\n")
		if args[3] != "" {
			points, err := pf.Points(args[3])
			if err != nil {
				t.Fatal(err)
			}
			p.Rules, p.NAT = "", ""
			for _, at := range points {
				if strings.HasPrefix(at.Kind, "nat") || strings.HasPrefix(at.Kind, "rdr") {
					p.NAT += at.String() + " all\n"
				} else {
					p.Rules += at.String() + " all\n"
				}
			}
		}
		if point := pf.FilterPoint(args[1]).String() + " all\n"; args[5] == pf.First {
			apple := strings.LastIndex(p.Rules, "anchor \"com.apple")
			end := apple + strings.Index(p.Rules[apple:], "\n") + 1
			p.Rules = p.Rules[:end] + point + p.Rules[end:]
		} else if args[5] == pf.Last {
			p.Rules += point
		}
		for _, name := range args[6:] {
			p.Anchors[name] = stepstest.Anchor{}
		}
		p.Reference = "Token : 77\n"
		p.Info = "Status: Enabled for 0 days 00:00:01\n"
	}
	args := keep.Args
	if args[2] != p.Files[pfConf] {
		t.Fatalf("the script expects another pf.conf: %q", args[2])
	}
	p.Files[pf.File(args[0])], p.Files[pfConf], p.Files[bootPlist] = args[1], args[3], args[5]
	p.Modes, p.Job = nil, 0
	for _, name := range args[6:] {
		delete(p.Files, pf.File(name))
	}
	return p
}

// loaded is what an anchor's file becomes, as pfctl prints it.
func loaded(file string) stepstest.Anchor {
	var a stepstest.Anchor
	table := func(line string) string {
		_, list, _ := strings.Cut(strings.TrimSuffix(line, " }\n"), "{ ")
		return "   " + strings.ReplaceAll(list, ", ", "\n   ") + "\n"
	}
	for line := range strings.Lines(file) {
		switch {
		case strings.HasPrefix(line, "table <vm_sources>"):
			a.Tables, a.Sources = a.Tables+"vm_sources\n", table(line)
		case strings.HasPrefix(line, "table <blocked_dst>"):
			a.Tables, a.Blocked = a.Tables+"blocked_dst\n", table(line)
		case strings.HasPrefix(line, "block"):
			a.Rules += strings.Replace(line, " quick from <vm_sources> to 1", " quick inet from <vm_sources> to 1", 1)
		}
	}
	return a
}

// TestVMFirewallConverges: from any mixture of states, a change leaves nothing.
func TestVMFirewallConverges(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := drawPacketFilter(t)
		name := rapid.SampledFrom([]string{"macfleet", "acme.runners"}).Draw(t, "anchor")
		spec := fleet.Spec{VMFirewall: &fleet.VMFirewall{Anchor: &name,
			Legacy:    rapid.SliceOfDistinct(rapid.SampledFrom([]string{"old.runners", "macfleet", "f2b"}), rapid.ID[string]).Draw(t, "legacy"),
			VMSources: rapid.SampledFrom([][]string{nil, {"192.168.64.0/24"}, {"192.168.128.0/24", "10.9.0.0/16"}}).Draw(t, "sources"),
			Block:     rapid.SampledFrom([][]string{nil, {"10.0.0.0/8"}}).Draw(t, "block")}}
		h := stepstest.Host(spec)
		s := stepstest.StepOf(t, "vm_firewall", h)
		first := s.Diff(plan.View{Host: h, Facts: filtered(p), Verified: true, Pending: rapid.Bool().Draw(t, "pending")})
		if len(first.Unread) > 0 || first.Refused != nil {
			t.Fatalf("%+v, refused %+v", first, first.Refused)
		}
		for _, c := range first.Changes {
			p = performed(t, p, c)
		}
		second := s.Diff(plan.View{Host: h, Facts: filtered(p), Verified: true})
		if len(second.Changes)+len(second.Unread) > 0 || second.Refused != nil || second.Facts != s.Wanted() {
			t.Fatalf("after its changes %+v\nwanted\n%s", second, s.Wanted())
		}
	})
}

func drawPacketFilter(t *rapid.T) stepstest.PacketFilter {
	flip := func(name string) bool { return rapid.Bool().Draw(t, name) }
	p := stepstest.FactoryPacketFilter()
	if flip("settled") {
		p = stepstest.SettledPacketFilter()
	}
	for _, form := range rapid.SliceOfN(rapid.SampledFrom([]string{pf.Block("macfleet"), pf.Block("old.runners"), "anchor \"macfleet\"\n", "# BEGIN macfleet\n",
		"# END old.runners\n", "anchor \"f2b\"\nload anchor \"f2b\" from \"/x\"\n", "nat-anchor \"f2b\"\n", "pass in quick on lo0\n"}), 0, 4).Draw(t, "forms") {
		p.Files[pfConf] += form
	}
	if flip("flushed") {
		p.Anchors["macfleet"] = stepstest.Anchor{Tables: rapid.SampledFrom([]string{"", "vm_sources\n"}).Draw(t, "left")}
	}
	if flip("old live") {
		p.Anchors["old.runners"] = stepstest.Anchor{Rules: "block drop all\n", Tables: "vm_sources\n"}
	}
	if flip("disabled") {
		p.Info = "Status: Disabled\n"
	}
	if flip("no translation") {
		p.NAT = ""
	}
	if flip("unreferenced") {
		p.Rules = without(p.Rules, "anchor \"macfleet\" all\n")
	}
	if flip("tables") {
		p.Tables += "blocked_dst\n"
	}
	if flip("job") {
		p.Job = 113
	}
	if flip("file") {
		delete(p.Files, anchorFile)
	}
	return p
}
