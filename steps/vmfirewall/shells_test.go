package vmfirewall_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/macfleet/macfleet/internal/scripttest"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/steps/pf"
	"github.com/macfleet/macfleet/steps/stepstest"
)

// bench is a machine of stub tools on which the scripts run.
type bench struct{ *scripttest.Mac }

func newBench(t *testing.T, shell ...string) bench {
	t.Helper()
	scripttest.Need(t, shell[0], "cmp")
	b := bench{scripttest.New(t, shell, "/etc/", "/Library/", "/var/")}
	b.Stub(scripttest.Text(t, "testdata/firewall.sh"), "chown", "sync", "sleep", "ifconfig", "ps", "stat", "launchctl", "pfctl")
	b.Put("/etc/pf.conf", stepstest.StockPFConf)
	b.Put("/Library/LaunchDaemons/other.plist", "")
	b.Put("/var/run/other", "")
	b.Set("main.rules", "scrub-anchor \"com.apple/*\" all fragment reassemble\nnat-anchor \"com.apple/*\" all\nnat-anchor \"com.apple.internet-sharing\" all\n"+
		"rdr-anchor \"com.apple/*\" all\nanchor \"com.apple/*\" all\nblock drop in proto tcp from <fail2ban> to any\n")
	b.Set("main.table.fail2ban", "   192.0.2.1\n   192.0.2.2\n")
	return b
}

// run runs a script, which is killed at the call of that number.
func (b bench) run(c plan.Command, kill int) (exit int, stdout, stderr string) {
	b.T.Helper()
	b.KillAt(kill)
	a := b.Run(c, "")
	return a.Exit, a.Stdout, a.Stderr
}

// finding observes the bench with the step's own probe.
func (b bench) finding(view plan.View) plan.Finding {
	b.T.Helper()
	s := stepstest.Step(b.T, "vm_firewall", firewalled)
	_, out, _ := b.run(s.Probes()[0].Command, 0)
	view.Host = stepstest.Host(firewalled)
	view.Facts = stepstest.With(nil, map[string]plan.Answer{firewallProbe: stepstest.Said(out)})
	f := s.Diff(view)
	if len(f.Unread) > 0 || f.Refused != nil {
		b.T.Fatalf("%+v, refused %+v\n%s", f.Unread, f.Refused, out)
	}
	return f
}

// apply performs a finding's change, and is killed at that call of it.
func (b bench) apply(f plan.Finding, kill int) (exit int, stderr string) {
	b.T.Helper()
	for _, c := range f.Changes {
		b.ForgetCalls()
		exit, _, stderr = b.run(c.Command, kill)
		if c.Guard != nil && exit == 0 {
			kill -= b.Count()
			b.ForgetCalls()
			exit, _, stderr = b.run(c.Guard.Persist, max(kill, 0))
		}
		if exit != 0 {
			return exit, stderr
		}
	}
	return 0, ""
}

// converge applies what differs in a view, and nothing is left.
func (b bench) converge(view plan.View) {
	b.T.Helper()
	if exit, text := b.apply(b.finding(view), 0); exit != 0 {
		b.T.Fatalf("exit %d: %s\n%s", exit, text, b.Calls())
	}
	calls := b.Calls()
	if f := b.finding(plan.View{Verified: view.Verified}); len(f.Changes) > 0 {
		b.T.Fatalf("afterwards %+v", stepstest.FieldsOf(f))
	}
	b.Set("calls", calls)
}

// picture is everything that lasts, by name.
func (b bench) picture() map[string]string {
	b.T.Helper()
	out := b.Files(filepath.Dir(b.Root))
	for name := range out {
		if strings.HasPrefix(name, "/bin/") || slices.Contains([]string{"/state/calls", "/state/count", "/state/kill", "/state/tools"}, name) {
			delete(out, name)
		}
	}
	return out
}

func inFirewallShells(t *testing.T, test func(*testing.T, bench)) {
	t.Parallel()
	scripttest.InShells(t, func(t *testing.T, shell []string) { test(t, newBench(t, shell...)) })
}

// inFirewallTurn is inFirewallShells in one of the shells by turns.
func inFirewallTurn(t *testing.T, test func(*testing.T, bench)) {
	t.Parallel()
	scripttest.InTurn(t, func(t *testing.T, shell []string) { test(t, newBench(t, shell...)) })
}

func TestVMFirewallScripts(t *testing.T) {
	inFirewallShells(t, func(t *testing.T, b bench) {
		f := b.finding(plan.View{})
		b.converge(plan.View{})
		stepstest.Expect(t, "pf.conf", stepstest.StockPFConf+pf.Block("macfleet"), b.Read(pfConf))
		stepstest.Expect(t, "fail2ban's addresses", "   192.0.2.1\n   192.0.2.2\n", b.Kept("main.table.fail2ban"))
		if main := b.Kept("main.rules"); !strings.Contains(main, "nat-anchor \"com.apple.internet-sharing\"") {
			t.Errorf("a point that was only live is gone:\n%s", main)
		}
		if work, err := os.ReadDir(filepath.Join(b.Root, "etc/macfleet")); err != nil || len(work) != 2 || work[1].Name() != "pf.conf.first" {
			t.Errorf("left in the folder: %v, %v", work, err)
		}
		b.Put(pfConf, stepstest.StockPFConf+"pass in\n")
		before := b.picture()
		if exit, text := b.apply(f, 0); exit == 0 || !strings.Contains(text, "was changed after") {
			t.Errorf("an old plan: exit %d: %s", exit, text)
		}
		stepstest.Expect(t, "after an old plan", before["/root"+pfConf], b.picture()["/root"+pfConf])
	})
}

// TestVMFirewallScriptsUndo: what was live comes back, and no file has changed.
func TestVMFirewallScriptsUndo(t *testing.T) {
	inFirewallShells(t, func(t *testing.T, b bench) {
		before := b.picture()
		f := b.finding(plan.View{})
		for range 2 { // twice gives the same
			b.Done(f.Changes[0].Command, "")
		}
		if !strings.Contains(b.Kept("main.rules"), `anchor "macfleet"`) || b.Kept("enabled") != "" {
			t.Error("nothing was live")
		}
		for range 2 {
			b.Done(*f.Changes[0].Guard.Restore, "")
		}
		after := b.picture()
		for path, text := range before {
			if !strings.HasSuffix(path, "main.rules") { // the same points, printed as they were written
				stepstest.Expect(t, path, text, after[path])
			}
		}
		if text := after["/state/main.rules"]; strings.Contains(text, "macfleet") || !strings.Contains(text, "internet-sharing") {
			t.Errorf("the main ruleset is\n%s", text)
		}
		for path := range after {
			if strings.Contains(path, "macfleet.") || path == "/state/enabled" {
				t.Errorf("%s is left", path)
			}
		}
	})
}

func TestVMFirewallScriptsTroubles(t *testing.T) {
	inFirewallTurn(t, func(t *testing.T, b bench) {
		f := b.finding(plan.View{})
		live, keep := f.Changes[0].Command, f.Changes[0].Guard.Persist
		b.Set("macfleet.busy", "") // older tables, here and in the main ruleset
		b.Set("macfleet.table.vm_sources", "")
		b.Set("main.table.vm_sources", "")
		b.Set("main.busy", "")
		b.Put("/etc/macfleet/pf/tables/fail2ban", "   192.0.2.3\n") // left by a killed run
		if b.Done(live, ""); strings.Contains(b.Calls(), "-F all") {
			t.Errorf("busy: %s", b.Calls())
		}
		stepstest.Expect(t, "fail2ban's addresses", "   192.0.2.1\n   192.0.2.2\n   192.0.2.3\n", b.Kept("main.table.fail2ban"))
		wrong := live
		wrong.Args = append([]string{}, live.Args...)
		wrong.Args[2] = "nonsense\n"
		was := b.Kept("macfleet.rules")
		b.Fails(wrong, "", "syntax error")
		stepstest.Expect(t, "the rules from before", was, b.Kept("macfleet.rules"))
		b.Set("always-busy", "")
		check := keep
		check.Args = append([]string{}, keep.Args...)
		b.Done(check, "")
		b.Unset("always-busy")
		b.Put(pfConf, stepstest.StockPFConf)
		check.Args[4] = "nonsense\n"
		b.Fails(check, "", "pfctl rejects")
		stepstest.Expect(t, "pf.conf", stepstest.StockPFConf, b.Read(pfConf))
		const foreign = "# someone's\n-e nonsense \\n\n"
		b.Put(pfConf, foreign)
		check.Args[2], check.Args[4] = foreign, "-e nonsense \\n\n"
		b.Fails(check, "", "/etc/pf.conf:2: syntax error: -e nonsense \\n (macfleet does not change foreign lines")
		stepstest.Expect(t, "pf.conf", foreign, b.Read(pfConf))
	})
}

// TestVMFirewallScriptsJob: the boot job is registered when it has to be and never otherwise.
func TestVMFirewallScriptsJob(t *testing.T) {
	inFirewallTurn(t, func(t *testing.T, b bench) {
		b.converge(plan.View{})
		if n := strings.Count(b.Calls(), "launchctl bootstrap"); n != 1 || strings.Contains(b.Calls(), "bootout") {
			t.Errorf("first:\n%s", b.Calls())
		}
		b.Put(anchorFile, pf.Header+"\nedited\n")
		if b.converge(plan.View{Verified: true}); strings.Contains(b.Calls(), "boot") || strings.Contains(b.Calls(), "pfctl -f") {
			t.Errorf("after an edit of the file only: %s", b.Calls())
		}
		b.Put(bootPlist, "old")
		if b.converge(plan.View{Verified: true}); strings.Count(b.Calls(), "launchctl boot") != 2 {
			t.Errorf("another job: %s", b.Calls())
		}
		stepstest.Expect(t, "the first pf.conf", stepstest.StockPFConf, b.Read("/etc/macfleet/pf.conf.first"))
	})
}

// TestVMFirewallScriptsKilled kills the scripts at each call of a tool. The next run brings the machine to where it would have been.
func TestVMFirewallScriptsKilled(t *testing.T) {
	t.Parallel()
	whole := newBench(t, "dash")
	first := whole.finding(plan.View{})
	whole.Done(first.Changes[0].Command, "")
	whole.Done(first.Changes[0].Guard.Persist, "")
	want := whole.picture()
	for n, shell := range scripttest.Places(t, whole.Tools(), "dash", "bash") {
		t.Run(shell[0]+" "+strconv.Itoa(n), func(t *testing.T) {
			t.Parallel()
			b := newBench(t, shell...)
			if exit, _ := b.apply(b.finding(plan.View{}), n); exit == 0 {
				return // fewer calls than the probe and the scripts together
			}
			b.converge(plan.View{Pending: b.Read("etc/macfleet/pending/vm_firewall") == ""})
			got := b.picture()
			for path := range want {
				if path != "/state/main.rules" && !strings.HasPrefix(path, "/root/etc/macfleet") {
					stepstest.Expect(t, path, want[path], got[path])
				}
			}
		})
	}
}

// TestVMFirewallScriptsRemove: what was made goes, and the machine is as before.
func TestVMFirewallScriptsRemove(t *testing.T) {
	inFirewallShells(t, func(t *testing.T, b bench) {
		before := b.picture()
		b.converge(plan.View{})
		f := judged(t, none, stepstest.SettledPacketFilter(), plan.View{})
		for range 2 {
			b.Done(f.Changes[0].Command, "")
		}
		after := b.picture()
		for path, text := range before {
			if path != "/state/main.rules" {
				stepstest.Expect(t, path, text, after[path])
			}
		}
		for path := range after {
			if strings.Contains(path, "macfleet") && path != "/root/etc/macfleet/pending/vm_firewall" {
				t.Errorf("%s is left", path)
			}
		}
	})
}

// TestVMFirewallScriptsMain: a load of the main ruleset keeps the points of vmnet's that are live at that time, and no other.
func TestVMFirewallScriptsMain(t *testing.T) {
	inFirewallShells(t, func(t *testing.T, b bench) {
		b.Set("main.rules", without(b.Kept("main.rules"), "rdr-anchor \"com.apple/*\" all\n"))
		f := b.finding(plan.View{})
		b.Set("main.rules", b.Kept("main.rules")+"anchor \"com.apple.internet-sharing\" all\n") // a virtual machine has started since
		if exit, text := b.apply(f, 0); exit != 0 {
			t.Fatalf("exit %d: %s", exit, text)
		}
		main := b.Kept("main.rules")
		for point, want := range map[string]int{"\nscrub-anchor": 0, "\nnat-anchor": 1, "\nrdr-anchor": 0, "\nanchor": 1} {
			if strings.Count(main, point+" \"com.apple.internet-sharing\"") != want {
				t.Errorf("want %d of %s in\n%s", want, point, main)
			}
		}
		if strings.Contains(main, "# live") || !strings.Contains(main, "\nrdr-anchor \"com.apple/*\"\n") {
			t.Errorf("the main ruleset is\n%s", main)
		}
	})
}

// TestVMFirewallScriptsMainWaits: a virtual machine that has started since the plan keeps the main ruleset from being
// loaded, by the change and by what takes it back. Where the host does not wait, it is loaded.
func TestVMFirewallScriptsMainWaits(t *testing.T) {
	inFirewallTurn(t, func(t *testing.T, b bench) {
		b.Set("main.rules", without(b.Kept("main.rules"), "rdr-anchor \"com.apple/*\" all\n"))
		change, forced := b.finding(plan.View{}).Changes[0], b.finding(plan.View{Force: true}).Changes[0]
		b.Set("ps", "  100     1       00:01 /usr/local/bin/tart pull base\n  101     1       00:01 /usr/local/bin/tart run ci-1\n")
		before := b.picture()
		exit, _, said := b.run(change.Command, 0)
		if exit != 75 || !strings.Contains(scripttest.LastLine(said), "virtual machines run") {
			t.Errorf("exit %d: %s", exit, said)
		}
		b.Done(*change.Guard.Restore, "")
		if after := b.picture(); !maps.Equal(before, after) {
			t.Errorf("something was changed: %v", after)
		}
		if b.Done(forced.Command, ""); !strings.Contains(b.Calls(), "pfctl -f") {
			t.Error("forced, and the main ruleset is not loaded")
		}
	})
}

// TestVMFirewallScriptsGuests: a virtual machine that loses its network is reported, and one that ends meanwhile or sends
// nothing is none of these.
func TestVMFirewallScriptsGuests(t *testing.T) {
	for what, exit := range map[string]int{"sends nothing": 0, "loses": 1, "loses ends": 0} {
		t.Run(what, func(t *testing.T) {
			inFirewallShells(t, func(t *testing.T, b bench) {
				f := b.finding(plan.View{})
				for _, file := range append(strings.Fields(what), "bridge") {
					b.Set(file, "")
				}
				if got, _, said := b.run(f.Changes[0].Command, 0); got != exit || strings.Contains(said, "lost their network") != (exit != 0) {
					t.Errorf("exit %d: %s", got, said)
				}
			})
		})
	}
}

// TestVMFirewallScriptsReference: macfleet takes one reference of pf and never a second one, and releases it with the step.
func TestVMFirewallScriptsReference(t *testing.T) {
	inFirewallShells(t, func(t *testing.T, b bench) {
		b.Set("others", "") // someone else holds one too
		b.converge(plan.View{})
		b.Put("/etc/macfleet/pending/vm_firewall", "")
		if b.converge(plan.View{Pending: true}); strings.Contains(b.Calls(), "pfctl -E") {
			t.Errorf("the second time: %s", b.Calls())
		}
		b.Unset("reference") // as pfctl -d does
		if f := b.finding(plan.View{Verified: true}); len(f.Changes) != 1 || f.Changes[0].Reason.Code.String() != "pf-reference-missing" {
			t.Fatalf("%+v", f)
		}
		if b.converge(plan.View{Verified: true}); strings.Contains(b.Calls(), "pfctl -f") {
			t.Errorf("taken again: %s", b.Calls())
		}
		b.Done(judged(t, none, stepstest.SettledPacketFilter(), plan.View{}).Changes[0].Command, "")
		if !strings.Contains(b.Calls(), "pfctl -X 77") {
			t.Errorf("removal: %s", b.Calls())
		}
	})
}

// TestVMFirewallScriptsGoesOn: pf continues without macfleet where others filter, also where they do so in an anchor.
func TestVMFirewallScriptsGoesOn(t *testing.T) {
	for rule, goesOn := range map[string]bool{"anchor \"f2b/*\" all\n": true, "block drop in all\n": true, "": false} {
		t.Run(rule, func(t *testing.T) {
			inFirewallTurn(t, func(t *testing.T, b bench) {
				b.Set("main.rules", "anchor \"com.apple/*\" all\nanchor \"macfleet\" all\n"+rule)
				b.Set("enabled", "")
				b.Set("reference", "")
				b.Put("/var/run/dev.macfleet.pf", "Token : 77\n")
				f := judged(t, none, stepstest.SettledPacketFilter(), plan.View{})
				_, _, said := b.run(f.Changes[0].Command, 0)
				if on := b.Kept("enabled") == ""; on != goesOn || !strings.Contains(b.Calls(), "pfctl -X 77") {
					t.Errorf("on %t, want %t: %s", on, goesOn, said)
				}
			})
		})
	}
}
