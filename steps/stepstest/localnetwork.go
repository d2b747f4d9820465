package stepstest

import (
	"fmt"
	"strings"

	"github.com/macfleet/macfleet/plan"
)

// LocalNetwork is what a Mac answers about programs' access to the local network, for tests. It started at 1763000000.
type LocalNetwork struct {
	Wired, Radio string // networks, separated by spaces
	Written      int64
	Bridge       string // its line of addresses; empty: there is no bridge
	Reached      string // the line of the last job of the session
	Neighbours   string // the lines of arp
}

// Answer is the answer of the probe.
func (l LocalNetwork) Answer() plan.Answer {
	var a answer
	list := func(name, networks string) string {
		return fmt.Sprintf("    %s =     (\n        \"%s\"\n    );\n", name, strings.Join(strings.Fields(networks), "\",\n        \""))
	}
	if l.Written == 0 {
		a.part("", "keys 1")
		a.part("", "written 1")
	} else {
		a.part("{\n"+list("AllowedEthernetLocalNetworkAddresses", l.Wired)+list("AllowedWiFiLocalNetworkAddresses", l.Radio)+"}\n", "keys 0")
		a.part(fmt.Sprintln(l.Written), "written 0")
	}
	a.part("{ sec = 1763000000, usec = 0 } Thu Nov 13 02:13:20 2025\n", "boot 0")
	if l.Bridge == "" {
		a.part("", "bridge 1")
	} else {
		a.part("bridge100: flags=8a63<UP> mtu 1500\n\t"+l.Bridge+"\n", "bridge 0")
		a.part("? (192.0.2.1) at 0:50:56:9:a:b on en0 ifscope [ethernet]\n"+l.Neighbours, "neighbours 0")
	}
	if l.Reached != "" {
		a.part(l.Reached+"\n", "reached 0")
	}
	return a.end()
}
