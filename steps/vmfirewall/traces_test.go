package vmfirewall_test

import (
	"strings"
	"testing"

	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/steps/stepstest"
)

// TestTracesOfTheFirewall: a host without a block gets a short query where macfleet
// has left nothing, and what its step finds is what the full answer would give.
func TestTracesOfTheFirewall(t *testing.T) {
	t.Parallel()
	settled := stepstest.SettledPacketFilter().Files
	const file, job = "/etc/pf.anchors/macfleet", "/Library/LaunchDaemons/dev.macfleet.pf.plist"
	_, headless, _ := strings.Cut(settled[file], "\n")
	for _, tc := range []struct {
		name  string
		files map[string]string
		early bool
	}{
		{"no folder of anchors", nil, true},
		{"macOS's own anchor", map[string]string{"/etc/pf.anchors/com.apple": "anchor \"200.AirDrop/*\"\n"}, true},
		{"a stranger's anchor", map[string]string{"/etc/pf.anchors/acme": "pass quick all\n"}, true},
		{"records of other steps", map[string]string{"/etc/macfleet/host.json": stepstest.ProofOf(t, "hostname")}, true},
		{"an empty folder of anchors", map[string]string{"/etc/pf.anchors/": ""}, false},
		{"its file", map[string]string{file: settled[file]}, false},
		{"its file without the first line", map[string]string{file: headless}, true},
		{"the same, verified", map[string]string{file: headless, "/etc/macfleet/host.json": stepstest.ProofOf(t, "vm_firewall")}, false},
		{"all of it", settled, false},
		{"all of it, verified", map[string]string{"/etc/pf.conf": settled["/etc/pf.conf"], file: settled[file], job: settled[job], "/etc/macfleet/host.json": stepstest.ProofOf(t, "vm_firewall")}, false},
		{"its boot job", map[string]string{job: settled[job]}, false},
		{"a change that was never verified", map[string]string{"/etc/macfleet/pending/vm_firewall": ""}, false},
		{"a block, verified", map[string]string{"/etc/pf.conf": settled["/etc/pf.conf"], "/etc/macfleet/host.json": stepstest.ProofOf(t, "vm_firewall")}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			inFirewallShells(t, func(t *testing.T, b bench) {
				for path, text := range tc.files {
					if strings.HasSuffix(path, "/") {
						b.Folders(path)
						continue
					}
					b.Put(path, text)
				}
				view := plan.View{Verified: strings.Contains(b.Read("/etc/macfleet/host.json"), "vm_firewall"), Pending: b.Read("/etc/macfleet/pending/vm_firewall") != "no file"}
				stepstest.Traces(t, "vm_firewall", firewalled, view, func(c plan.Command) plan.Answer {
					b.ForgetCalls()
					return b.Run(c, "")
				})
				if early := b.Calls() == ""; early != tc.early {
					t.Errorf("ended early %t:\n%s", early, b.Calls())
				}
			})
		})
	}
}
