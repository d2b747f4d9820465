package stepstest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/macfleet/macfleet/plan"
)

// PacketFilter is what pfctl and the files of a Mac say, for tests.
type PacketFilter struct {
	Info, Rules, NAT string
	Tables           string            // of the main ruleset
	Anchors          map[string]Anchor // by name, without macOS's own
	Files            map[string]string // by path
	Modes            map[string]string // of files that are not root's, 0644
	First            string            // what /etc/pf.conf held at the first contact; empty: there is no copy
	Job              int               // exit code of launchctl print
	Bridge           string            // what ifconfig bridge100 says; empty: there is none
	Work             string            // of virtual machines, where there is a bridge
	Reference        string            // what pfctl said of macfleet's own reference; empty: it took none
	Fail2ban         bool              // its job is installed
}

// Anchor is an anchor as pfctl lists it.
type Anchor struct {
	Rules, Tables    string
	Sources, Blocked string // what its tables hold; empty: there is no such table
}

// StockPFConf is /etc/pf.conf of a Mac from the provider.
const StockPFConf = `#
# Default PF configuration file.
#
scrub-anchor "com.apple/*"
nat-anchor "com.apple/*"
rdr-anchor "com.apple/*"
dummynet-anchor "com.apple/*"
anchor "com.apple/*"
load anchor "com.apple" from "/etc/pf.anchors/com.apple"
table <fail2ban> persist
block drop in proto { tcp, udp } from <fail2ban> to any
`

// FactoryPacketFilter returns what a Mac from the provider says.
func FactoryPacketFilter() PacketFilter {
	return PacketFilter{
		Info: "Status: Enabled for 0 days 00:01:02           Debug: Urgent\n\nState Table                          Total             Rate\n",
		Rules: "scrub-anchor \"com.apple/*\" all fragment reassemble\nanchor \"com.apple/*\" all\n" +
			"block drop in proto tcp from <fail2ban> to any\nblock drop in proto udp from <fail2ban> to any\n",
		NAT: "nat-anchor \"com.apple/*\" all\nnat-anchor \"com.apple.internet-sharing\" all\n" +
			"rdr-anchor \"com.apple/*\" all\nrdr-anchor \"com.apple.internet-sharing\" all\n",
		Tables:  "fail2ban\n",
		Anchors: map[string]Anchor{},
		Files:   map[string]string{"/etc/pf.conf": StockPFConf},
		Job:     113,
	}
}

// SettledPacketFilter returns what a Mac says once the step has set it up with
// its defaults.
func SettledPacketFilter() PacketFilter {
	p := FactoryPacketFilter()
	p.Rules += "anchor \"macfleet\" all\n"
	p.Anchors["macfleet"] = Anchor{
		Rules:  "block drop quick from <vm_sources> to <blocked_dst>\nblock drop quick inet from <vm_sources> to 169.254.169.254\n",
		Tables: "blocked_dst\nvm_sources\n", Sources: "   192.168.64.0/22\n", Blocked: "   10.0.0.0/8\n   169.254.0.0/16\n   172.16.0.0/12\n",
	}
	p.Files["/etc/pf.conf"] += "# BEGIN macfleet\nanchor \"macfleet\"\nload anchor \"macfleet\" from \"/etc/pf.anchors/macfleet\"\n# END macfleet\n"
	p.Files["/etc/pf.anchors/macfleet"] = `# Managed by macfleet.
# What virtual machines send to these networks is dropped.
table <vm_sources> { 192.168.64.0/22 }
table <blocked_dst> { 10.0.0.0/8, 169.254.0.0/16, 172.16.0.0/12 }
block drop quick from <vm_sources> to <blocked_dst>
block drop quick from <vm_sources> to 169.254.169.254
`
	p.Files["/Library/LaunchDaemons/dev.macfleet.pf.plist"] = bootJob
	p.First, p.Job, p.Reference = StockPFConf, 0, "Token : 77\n"
	return p
}

// bootJob is the job of the anchor macfleet, byte for byte.
const bootJob = `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
	<key>Label</key>
	<string>dev.macfleet.pf</string>
	<key>ProgramArguments</key>
	<array>
		<string>/bin/sh</string>
		<string>-c</string>
		<string>PATH=/usr/bin:/bin:/usr/sbin:/sbin
own=/var/run/dev.macfleet.pf token=none
[ ! -f "$own" ] || while read -r word _ number _; do [ "$word" != Token ] || token=$number; done &lt;"$own"
pfctl -s References 2&gt;/dev/null | grep -qE "[[:space:]]$token([[:space:]]|\$)" || pfctl -E &gt;"$own" 2&gt;&amp;1
pfctl -s info 2&gt;/dev/null | grep -q "^Status: Enabled" || pfctl -e
pfctl -s rules 2&gt;/dev/null | grep -qF "anchor \"$1\"" || ifconfig bridge100 &gt;/dev/null 2&gt;&amp;1 || pfctl -f /etc/pf.conf
</string>
		<string>sh</string>
		<string>macfleet</string>
	</array>
	<key>RunAtLoad</key>
	<true/>
</dict>
</plist>
`

// Answer returns what the script of the step's probe prints.
func (p PacketFilter) Answer() plan.Answer {
	var b strings.Builder
	part := func(body, head string, args ...any) {
		b.WriteString(body + "\n== " + fmt.Sprintf(head, args...) + "\n")
	}
	part(p.Info, "info 0")
	references := "TOKENS:\nPID      Process Name                 TOKEN                    TIMESTAMP\n" +
		"412      scw-agent                    7214809236615403177      0 days 00:01:02\n"
	if p.Reference != "" {
		references += "5001     pfctl                        77                       0 days 00:01:02\n"
	}
	part(references, "references 0")
	if p.Reference != "" {
		part(p.Reference, "token 0")
	}
	part(p.Rules, "rules 0")
	part(p.NAT, "nat 0")
	part(p.Tables, "tables 0")
	names := slices.Sorted(maps.Keys(p.Anchors))
	part("  com.apple\n  "+strings.Join(names, "\n  ")+"\n", "anchors 0")
	for _, name := range names {
		a := p.Anchors[name]
		part(a.Rules, "live rules 0 %s", name)
		for _, table := range []struct{ name, held string }{{"vm_sources", a.Sources}, {"blocked_dst", a.Blocked}} {
			part(table.held, "live %s %d %s", table.name, choose(strings.Contains(a.Tables, table.name), 0, 1), name)
		}
	}
	for _, path := range slices.Sorted(maps.Keys(p.Files)) {
		mode := p.Modes[path]
		if mode == "" {
			mode = "0:0:644"
		}
		part(p.Files[path], "file 0 %s %s", mode, path)
	}
	if p.First != "" {
		text := ""
		for line := range strings.Lines(p.First) {
			if p.Files["/etc/pf.conf"] == "" || strings.Contains(line, "com.apple") {
				text += line
			}
		}
		part(text, "first 0")
	}
	part("", "job %d", p.Job)
	part("", "fail2ban %d", choose(p.Fail2ban, 0, 1))
	part(p.Bridge, "bridge %d", choose(p.Bridge != "", 0, 1))
	if p.Bridge != "" {
		part(p.Work, "work 0")
	}
	part("", "end")
	return plan.Answer{Stdout: b.String()}
}

func choose(yes bool, one, other int) int {
	if yes {
		return one
	}
	return other
}
