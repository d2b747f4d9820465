package vmfirewall_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
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
				marker, _ := os.ReadFile(filepath.Join(b.Root, "etc/macfleet/host.json"))
				_, unproven := os.Stat(filepath.Join(b.Root, "etc/macfleet/pending/vm_firewall"))
				view := plan.View{Host: stepstest.Host(fleet.Spec{}), Verified: strings.Contains(string(marker), "vm_firewall"), Pending: unproven == nil}
				gone := stepstest.Step(t, "vm_firewall", fleet.Spec{})
				ask := func(p plan.Probe) plan.Finding {
					b.ForgetCalls()
					exit, out, errs := b.run(p.Command, 0)
					if exit != 0 || errs != "" {
						t.Fatalf("%s: exit %d: %s", p.ID, exit, errs)
					}
					view.Facts = plan.Facts{p.ID: inventory.Present(stepstest.Said(out))}
					return gone.Diff(view)
				}
				want := ask(stepstest.Step(t, "vm_firewall", firewalled).Probes()[0])
				if b.Calls() == "" {
					t.Error("the full question calls no tool")
				}
				stepstest.Expect(t, "what is found", want, ask(gone.Probes()[0]))
				if early := b.Calls() == ""; early != tc.early {
					t.Errorf("ended early %t:\n%s", early, b.Calls())
				}
			})
		})
	}
}
