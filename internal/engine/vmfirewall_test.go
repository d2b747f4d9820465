package engine_test

import (
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/sandbox"
	"github.com/macfleet/macfleet/plan"
)

// firewalled is a world of one host that has a firewall.
func firewalled(t *testing.T, switches map[string]string) (*sandbox.World, *engine.Engine, string) {
	t.Helper()
	c := config("production", 1)
	c.Fleets[0].Groups[0].Spec = fleet.Spec{VMFirewall: &fleet.VMFirewall{}}.WithBuiltIn().WithDefaults()
	if switches == nil {
		w, e := converged(t, 3, c)
		return w, e, member(t, w)
	}
	w, _ := world(t, 3)
	e := run(t, w, c)
	p := planned(t, e)
	host := p.Hosts[0].Server.Name
	for name, value := range switches {
		if err := w.SetSwitch(host, name, value); err != nil {
			t.Fatal(err)
		}
	}
	converges(t, e)
	p = planned(t, e)
	if len(p.Actions) != 0 {
		t.Fatalf("the second plan has actions: %+v", p.Actions[0].Fields)
	}
	return w, e, p.Hosts[0].Name
}

// readings are the answers to what is uncertain about macOS.
func readings() map[string]map[string]string {
	return map[string]map[string]string{
		"as documented":          nil,
		"full loads are busy":    {"full-load-busy": "yes"},
		"pf is off after a boot": {"pf-after-boot": "disabled", "table-contents": "kept"},
		"no virtual machines":    {"vm-network": "absent", "full-load-busy": "yes"},
		"the network is shared":  {"vm-network": "present", "full-load-nat": "broken"},
	}
}

// TestVMFirewallIncidents lets each incident of pf happen to a host that was set
// up: drift says its own code, apply repairs it, and nothing is left.
func TestVMFirewallIncidents(t *testing.T) {
	t.Parallel()
	names := slices.Sorted(maps.Keys(readings()))
	incidents := []string{"duplicate-pf-block", "legacy-pf-block", "begin-without-end", "flushed-pf-anchor", "unreferenced-anchor",
		"persist-table-left", "pf-disabled", "pf-conf-reset-by-update", "stock-lines-missing"}
	happen := make(map[string][]string) // by reading
	for _, row := range rows(t, len(names), len(incidents)) {
		happen[names[row[0]]] = append(happen[names[row[0]]], incidents[row[1]])
	}
	for reading, incidents := range happen {
		t.Run(reading, func(t *testing.T) {
			t.Parallel()
			declares(t, 12, "an apply for each incident that a share adds")
			w, e, host := firewalled(t, readings()[reading])
			for _, incident := range incidents {
				if err := w.Inject(host, incident); err != nil {
					t.Fatal(err)
				}
				p := planned(t, e)
				if len(p.Actions) != 1 || p.Actions[0].Reason.Code.String() != incident || !p.Actions[0].Origin.Drift {
					t.Errorf("%s: %d actions: %+v", incident, len(p.Actions), p.Actions)
				}
				converges(t, e)
				if p := planned(t, e); len(p.Actions) != 0 {
					t.Errorf("%s: afterwards %+v", incident, p.Actions)
				}
			}
		})
	}
}

// TestVMFirewallComesAndGoes: another name replaces the first, and without the
// block nothing of it is left.
func TestVMFirewallComesAndGoes(t *testing.T) {
	t.Parallel()
	w, e, host := firewalled(t, nil)
	name := "acme.runners"
	group := &e.Config.Fleets[0].Groups[0]
	group.Spec = fleet.Spec{VMFirewall: &fleet.VMFirewall{Anchor: &name, VMSources: []string{"192.168.64.0/24", "10.77.0.0/16"}, Block: []string{"10.0.0.0/8"}}}.WithBuiltIn().WithDefaults()
	if p := planned(t, e); len(p.Actions) != 1 || p.Actions[0].Reason.Code.String() != "config-changed" {
		t.Errorf("%+v", p.Actions)
	}
	converges(t, e)
	group.Spec = fleet.Spec{}.WithBuiltIn()
	p := planned(t, e)
	if len(p.Actions) != 1 || p.Actions[0].Kind != plan.RemoveStep {
		t.Fatalf("%+v", p.Actions)
	}
	converges(t, e)
	if p := planned(t, e); len(p.Actions) != 0 {
		t.Errorf("%+v", p.Actions)
	}
	machine, err := w.Mac(host)
	if err != nil {
		t.Fatal(err)
	}
	const script = `ls /etc/pf.anchors /Library/LaunchDaemons; grep -c 'acme.runners' /etc/pf.conf; grep -c fail2ban /etc/pf.conf; pfctl -a acme.runners -sr 2>/dev/null`
	left, err := machine.Run(t.Context(), "root", script)
	if err != nil {
		t.Fatal(err)
	}
	text := string(left.Stdout)
	if strings.Contains(text, "acme.runners\n") || strings.Contains(text, "macfleet.pf") || strings.Contains(text, "block ") || !strings.Contains(text, "\n0\n2\n") {
		t.Errorf("left on the Mac:\n%s", text)
	}
}

// TestVMFirewallUncovered: the machines' network is different from what the configuration knows.
func TestVMFirewallUncovered(t *testing.T) {
	t.Parallel()
	w, e, host := firewalled(t, map[string]string{"vm-network": "present"})
	if err := w.SetSwitch(host, "vm-subnet", "192.168.2.1/24"); err != nil {
		t.Fatal(err)
	}
	p := planned(t, e)
	if len(p.Actions) != 1 || p.Actions[0].Refusal == nil || p.Actions[0].Refusal.Code.String() != "vm-subnet-uncovered" {
		t.Errorf("%+v", p.Actions)
	}
}

// TestVMFirewallPendingWithoutRoot: what an earlier run left unproven is a
// difference also where only the root that this run sets up can see it.
func TestVMFirewallPendingWithoutRoot(t *testing.T) {
	t.Parallel()
	w, e, host := firewalled(t, nil)
	machine, err := w.Mac(host)
	if err != nil {
		t.Fatal(err)
	}
	if err := machine.Remove("/etc/sudoers.d/macfleet"); err != nil {
		t.Fatal(err)
	}
	if err := machine.WriteFile("/etc/macfleet/pending/vm_firewall", nil, 0, 0, 0o644); err != nil {
		t.Fatal(err)
	}
	p := planned(t, e)
	if !slices.ContainsFunc(p.Actions, func(a plan.Action) bool { return a.Step == "vm_firewall" && a.AfterRoot }) {
		t.Fatalf("%+v", p.Actions)
	}
	var loads atomic.Int32
	machine.Watch(func(argv []string, _ map[string]string) {
		if strings.HasPrefix(strings.Join(argv, " "), "pfctl -a macfleet -f ") {
			loads.Add(1)
		}
	})
	converges(t, e)
	if loads.Load() == 0 {
		t.Error("the kernel was not given the rules once more")
	}
	if p := planned(t, e); len(p.Actions) != 0 {
		t.Errorf("afterwards %+v", p.Actions)
	}
}

// TestVMFirewallWithoutHeader: someone removed the line by which the anchor's file
// is known, and then the block goes from the configuration.
func TestVMFirewallWithoutHeader(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]string{
		"no header":                "tail -n +2 /etc/pf.anchors/macfleet >/tmp/f; cat /tmp/f >/etc/pf.anchors/macfleet",
		"a blank line, and no job": "{ echo; cat /etc/pf.anchors/macfleet; } >/tmp/f; cat /tmp/f >/etc/pf.anchors/macfleet; launchctl bootout system/dev.macfleet.pf; rm /Library/LaunchDaemons/dev.macfleet.pf.plist",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, e, host := firewalled(t, nil)
			machine, err := w.Mac(host)
			if err != nil {
				t.Fatal(err)
			}
			if r, err := machine.Run(t.Context(), "root", damage); err != nil || r.Exit != 0 {
				t.Fatalf("%+v, %v", r, err)
			}
			e.Config.Fleets[0].Groups[0].Spec = fleet.Spec{}.WithBuiltIn()
			converges(t, e)
			// The point in the live main ruleset evaluates nothing, and goes at the next boot.
			r, err := machine.Run(t.Context(), "root", "pfctl -a macfleet -sr; grep macfleet /etc/pf.conf; ls /etc/pf.anchors | grep macfleet")
			if err != nil || len(r.Stdout) > 0 {
				t.Errorf("left: %s, %v", r.Stdout, err)
			}
			if p := planned(t, e); len(p.Actions) != 0 {
				t.Errorf("afterwards %+v", p.Actions)
			}
		})
	}
}

// TestVMFirewallForeignFault: another tool's line in /etc/pf.conf that pf does
// not understand is what a person reads about, with its number.
func TestVMFirewallForeignFault(t *testing.T) {
	t.Parallel()
	const fault = "pass sideways from any to any"
	for name, tc := range map[string]struct {
		damage  string
		desired fleet.Spec
	}{
		"only files": {"grep -v 'END macfleet' /etc/pf.conf >/tmp/f", fleet.Spec{VMFirewall: &fleet.VMFirewall{}}},
		"live":       {"grep -v macfleet /etc/pf.conf >/tmp/f; pfctl -f /tmp/f", fleet.Spec{VMFirewall: &fleet.VMFirewall{}}},
		"removal":    {"cat /etc/pf.conf >/tmp/f", fleet.Spec{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, e, host := firewalled(t, nil)
			machine, err := w.Mac(host)
			if err != nil {
				t.Fatal(err)
			}
			r, err := machine.Run(t.Context(), "root", tc.damage+"; echo '"+fault+"' >>/tmp/f; cat /tmp/f >/etc/pf.conf; grep -n sideways /etc/pf.conf")
			if err != nil {
				t.Fatal(err)
			}
			number, _, _ := strings.Cut(string(r.Stdout), ":")
			e.Config.Fleets[0].Groups[0].Spec = tc.desired.WithBuiltIn().WithDefaults()
			result := apply(t, e)
			want := "/etc/pf.conf:" + number + ": syntax error: " + fault + " (macfleet does not change foreign lines"
			if len(result.Failures) != 1 || !strings.Contains(result.Failures[0].Err.Error(), want) {
				t.Errorf("%v, want %q", result.Failures, want)
			}
			if r, err := machine.Run(t.Context(), "root", "cmp /tmp/f /etc/pf.conf"); err != nil || r.Exit != 0 {
				t.Errorf("/etc/pf.conf was written: %+v, %v", r, err)
			}
		})
	}
}
