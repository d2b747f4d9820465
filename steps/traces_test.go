package steps_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/scriptlint"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/steps"
	"github.com/macfleet/macfleet/steps/stepstest"
)

// proofOf is a marker with the proof of a step, as it is written.
func proofOf(t *testing.T, id plan.StepID) string {
	t.Helper()
	text, err := plan.Marker{Steps: map[plan.StepID]plan.Digest{id: {}}}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestTracesOfTheFirewall: a host that has no wish is asked little where macfleet
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
		{"proofs of other steps", map[string]string{"/etc/macfleet/host.json": proofOf(t, "hostname")}, true},
		{"an empty folder of anchors", map[string]string{"/etc/pf.anchors/": ""}, false},
		{"its file", map[string]string{file: settled[file]}, false},
		{"its file without the first line", map[string]string{file: headless}, true},
		{"the same, proven", map[string]string{file: headless, "/etc/macfleet/host.json": proofOf(t, "vm_firewall")}, false},
		{"all of it", settled, false},
		{"all of it, proven", map[string]string{"/etc/pf.conf": settled["/etc/pf.conf"], file: settled[file], job: settled[job], "/etc/macfleet/host.json": proofOf(t, "vm_firewall")}, false},
		{"its boot job", map[string]string{job: settled[job]}, false},
		{"a change that was never proven", map[string]string{"/etc/macfleet/pending/vm_firewall": ""}, false},
		{"a block, proven", map[string]string{"/etc/pf.conf": settled["/etc/pf.conf"], "/etc/macfleet/host.json": proofOf(t, "vm_firewall")}, false},
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
				view := plan.View{Host: host(fleet.Spec{}), Proven: strings.Contains(string(marker), "vm_firewall"), Pending: unproven == nil}
				gone := step(t, "vm_firewall", fleet.Spec{})
				ask := func(p plan.Probe) plan.Finding {
					b.Set("calls", "")
					exit, out, errs := b.run(p.Command, 0)
					if exit != 0 || errs != "" {
						t.Fatalf("%s: exit %d: %s", p.ID, exit, errs)
					}
					view.Facts = plan.Facts{p.ID: inventory.Present(said(out))}
					return gone.Diff(view)
				}
				want := ask(step(t, "vm_firewall", firewalled).Probes()[0])
				if b.calls() == "" {
					t.Error("the full question calls no tool")
				}
				expect(t, "what is found", want, ask(gone.Probes()[0]))
				if early := b.calls() == ""; early != tc.early {
					t.Errorf("ended early %t:\n%s", early, b.calls())
				}
			})
		})
	}
}

// TestTracesOfAutoLogin is TestTracesOfTheFirewall for the session, where the proof
// alone counts.
func TestTracesOfAutoLogin(t *testing.T) {
	t.Parallel()
	inShells(t, func(t *testing.T, m loginMac) {
		m.ready(rightPassword)
		m.set("session", "m1")
		gone := step(t, "auto_login", fleet.Spec{})
		for _, tc := range []struct {
			marker string
			proven bool
		}{{"", false}, {proofOf(t, "hostname"), false}, {proofOf(t, "auto_login"), true}} {
			if tc.marker != "" {
				m.Put("/etc/macfleet/host.json", tc.marker)
			}
			ask := func(p plan.Probe) plan.Finding {
				a := m.Run(p.Command, "")
				if a.Exit != 0 || a.Stderr != "" {
					t.Fatalf("%s: %+v", p.ID, a)
				}
				return gone.Diff(plan.View{Host: host(fleet.Spec{}), Facts: plan.Facts{p.ID: inventory.Present(a)}, Proven: tc.proven})
			}
			want := ask(step(t, "auto_login", loggedIn).Probes()[0])
			if tc.proven != (len(want.Changes) > 0) {
				t.Errorf("proven %t: %+v", tc.proven, want)
			}
			before := m.Get("calls")
			expect(t, "what is found", want, ask(gone.Probes()[0]))
			if early := m.Get("calls") == before; early == tc.proven {
				t.Errorf("proven %t, and ended early %t", tc.proven, early)
			}
		}
	})
}

// TestTracesAndAProof: an answer without traces says nothing of a host whose
// marker has a proof.
func TestTracesAndAProof(t *testing.T) {
	t.Parallel()
	for id, answer := range map[plan.StepID]string{"vm_firewall": "\n== nothing\n", "auto_login": "nothing 0 the marker holds no proof\n"} {
		gone := step(t, id, fleet.Spec{})
		view := plan.View{Host: host(fleet.Spec{}), Facts: plan.Facts{gone.Probes()[0].ID: inventory.Present(said(answer))}}
		expect(t, string(id), plan.Finding{}, gone.Diff(view))
		view.Proven = true
		if f := gone.Diff(view); len(f.Unread) != 1 || f.Changes != nil || f.Facts != "" {
			t.Errorf("%s is proven, and: %+v", id, f)
		}
	}
}

// TestTracesStandBack: what the full question of the same host says too is not
// asked, and every question may run where it runs.
func TestTracesStandBack(t *testing.T) {
	t.Parallel()
	full := make(map[string]bool)
	for _, s := range steps.For(host(everything)) {
		for _, p := range s.Probes() {
			full[p.ID] = true
		}
	}
	n := 0
	for _, s := range steps.For(host(fleet.Spec{})) {
		for _, p := range s.Probes() {
			if p.Unless == "" {
				continue
			}
			n++
			if !full[p.Unless] || full[p.ID] || !strings.HasPrefix(p.ID, string(s.ID())+".") {
				t.Errorf("%s unless %s", p.ID, p.Unless)
			}
			for _, fault := range scriptlint.Check(p.Name, p.Script, scriptlint.Probe) {
				t.Error(fault)
			}
		}
	}
	if n == 0 {
		t.Error("no step asks after traces")
	}
}

// TestTracesOfTheNode is TestTracesOfTheFirewall for a Mac that is to be no Node:
// each thing that a run leaves, by itself, is enough for the full answer.
func TestTracesOfTheNode(t *testing.T) {
	t.Parallel()
	const receipts, job = "/usr/local/lib/macfleet/", "/Library/LaunchDaemons/dev.macfleet.tart-kubelet.plist"
	for name, tc := range map[string]struct {
		step plan.StepID
		path string // what is there
		want bool   // what is there counts
	}{
		"no Tart":                    {"tart", "", false},
		"somebody else's Tart":       {"tart", "/usr/local/lib/tart.app", false},
		"a receipt of Tart":          {"tart", receipts + "tart.receipt", true},
		"no kubelet":                 {kubeletID, "", false},
		"somebody else's kubelet":    {kubeletID, "/usr/local/bin/tart-kubelet", false},
		"a receipt of the kubelet":   {kubeletID, receipts + "tart_kubelet.receipt", true},
		"its job for the next boot":  {kubeletID, job, true},
		"a removal that was cut off": {kubeletID, "/etc/macfleet/pending/tart_kubelet", true},
	} {
		t.Run(name, func(t *testing.T) {
			inNodeShells(t, func(t *testing.T, m *nodeMac) {
				wanted := m.spec
				if tc.path != "" {
					text := "made by somebody\n"
					if strings.HasPrefix(tc.path, receipts) {
						text = "current " + strings.Repeat("ab", 32) + " 1.0\nprevious -\nfile " + strings.Repeat("cd", 32) + " 1 2 3\ninstalled 1763000001\n"
					}
					m.Put(tc.path, text)
				}
				m.spec = none
				gone, v := step(t, tc.step, none), m.view(tc.step)
				full := step(t, tc.step, wanted).Probes()[0]
				ask := func(p plan.Probe) (plan.Finding, int) {
					before := m.count()
					v.Facts = plan.Facts{p.ID: inventory.Present(m.run(p.Command, ""))}
					return gone.Diff(v), m.count() - before
				}
				want, _ := ask(full)
				got, calls := ask(gone.Probes()[0])
				expect(t, "what is found", want, got)
				if found := len(want.Changes)+len(want.Unread) > 0; found != tc.want || !found && calls > 1 {
					t.Errorf("%+v; %d tools were called", want, calls)
				}
			})
		})
	}
}
