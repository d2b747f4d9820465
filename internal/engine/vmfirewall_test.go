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
		must(t, w.SetSwitch(host, name, value))
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
		parallel(t, reading, func(t *testing.T) {
			declares(t, 12, "an apply for each incident that a share adds")
			w, e, host := firewalled(t, readings()[reading])
			for _, incident := range incidents {
				must(t, w.Inject(host, incident))
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
	const script = `ls /etc/pf.anchors /Library/LaunchDaemons; grep -c 'acme.runners' /etc/pf.conf; grep -c fail2ban /etc/pf.conf; pfctl -a acme.runners -sr 2>/dev/null`
	text := printed(t, macOf(t, w, host), script)
	if strings.Contains(text, "acme.runners\n") || strings.Contains(text, "macfleet.pf") || strings.Contains(text, "block ") || !strings.Contains(text, "\n0\n2\n") {
		t.Errorf("left on the Mac:\n%s", text)
	}
}

// TestVMFirewallPendingWithoutRoot: what an earlier run left unproven is a
// difference also where only the root that this run sets up can see it.
func TestVMFirewallPendingWithoutRoot(t *testing.T) {
	t.Parallel()
	w, e, host := firewalled(t, nil)
	machine := macOf(t, w, host)
	must(t, machine.Remove("/etc/sudoers.d/macfleet"))
	must(t, machine.WriteFile("/etc/macfleet/pending/vm_firewall", nil, 0, 0, 0o644))
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
